#include "ui/widgets/card.h"

#include <QEvent>
#include <QLabel>
#include <QPainter>
#include <QScrollBar>
#include <QVBoxLayout>

#include "ui/theme.h"

namespace shoal::ui {
namespace {

// Follows the palette, which a colour set once would not.
class ProblemLabel final : public QLabel {
 public:
  using QLabel::QLabel;

 protected:
  void changeEvent(QEvent* event) override {
    if (event->type() == QEvent::PaletteChange && !colouring_) {
      colouring_ = true;
      colour();
      colouring_ = false;
    }
    QLabel::changeEvent(event);
  }

 public:
  void colour() {
    QPalette own = palette();
    const QColor bad = colors_of(own).bad;
    if (own.color(QPalette::WindowText) == bad) return;
    own.setColor(QPalette::WindowText, bad);
    setPalette(own);
  }

 private:
  bool colouring_ = false;
};

}  // namespace

Card::Card(QWidget* parent) : QFrame(parent) {
  title_ = new QLabel(this);
  set_text_role(*title_, TextRole::kHeading);
  title_->hide();
  title_->setWordWrap(true);
  body_ = new QVBoxLayout(this);
  body_->setContentsMargins(kSpaceLarge, kSpace + kSpaceSmall, kSpaceLarge, kSpaceLarge);
  body_->setSpacing(kSpace);
  body_->addWidget(title_);
}

void Card::set_title(const QString& title) {
  title_->setText(title);
  title_->setVisible(!title.isEmpty());
  setAccessibleName(title);
}

void Card::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const Colors& colors = colors_of(palette());
  painter.setPen(colors.border);
  painter.setBrush(colors.card);
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), kRadius, kRadius);
}

Scroller::Scroller(QWidget* parent) : QScrollArea(parent) {
  auto* content = new QWidget(this);
  body_ = new QVBoxLayout(content);
  body_->setContentsMargins(kSpaceLarge, kSpaceLarge, kSpaceLarge, kSpaceLarge);
  body_->setSpacing(kSpaceLarge);
  setWidget(content);
  setWidgetResizable(true);
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setFocusPolicy(Qt::NoFocus);
  viewport()->setAutoFillBackground(false);
  content->setAutoFillBackground(false);
  content->installEventFilter(this);
}

bool Scroller::eventFilter(QObject* watched, QEvent* event) {
  // What the content needs is what the page needs: nothing is cut off at the side.
  if (watched == widget() && event->type() == QEvent::LayoutRequest)
    setMinimumWidth(widget()->minimumSizeHint().width() + verticalScrollBar()->sizeHint().width());
  return QScrollArea::eventFilter(watched, event);
}

Figure::Figure(QWidget* parent) : QWidget(parent) {
  name_ = new QLabel(this);
  figure_ = new QLabel(this);
  below_ = new QLabel(this);
  set_text_role(*name_, TextRole::kQuiet);
  set_text_role(*figure_, TextRole::kFigure);
  set_text_role(*below_, TextRole::kSmall);
  below_->setWordWrap(true);
  figure_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(2);
  for (QLabel* label : {name_, figure_, below_}) layout->addWidget(label);
  layout->addStretch();
}

void Figure::set(const QString& name, const QString& figure, const QString& below) {
  name_->setText(name);
  figure_->setText(figure);
  below_->setText(below);
  below_->setVisible(!below.isEmpty());
  // One thing to a screen reader, not three.
  figure_->setAccessibleName(QStringLiteral("%1: %2").arg(name, figure));
}

QLabel* make_text(QWidget* parent) {
  auto* label = new QLabel(parent);
  label->setWordWrap(true);
  label->setTextFormat(Qt::PlainText);  // Strangers wrote parts of it.
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return label;
}

QLabel* make_problem(QWidget* parent) {
  auto* label = new ProblemLabel(parent);
  label->setWordWrap(true);
  label->setTextFormat(Qt::PlainText);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label->colour();
  label->hide();
  return label;
}

void set_problem(QLabel& label, const QString& problem) {
  label.setText(problem);
  label.setVisible(!problem.isEmpty());
}

}  // namespace shoal::ui
