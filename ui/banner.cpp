#include "ui/banner.h"

#include <QAccessible>
#include <QEvent>
#include <QHBoxLayout>
#include <QPainter>

#include "ui/icons.h"
#include "ui/messages.h"
#include "ui/theme.h"

namespace shoal::ui {

Banner::Banner(QWidget* parent) : QFrame(parent) {
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(kSpaceLarge, kSpace, kSpace, kSpace);
  layout->setSpacing(kSpace + kSpaceSmall);
  label_.setWordWrap(true);
  label_.setTextFormat(Qt::PlainText);  // Strangers wrote parts of it.
  label_.setTextInteractionFlags(Qt::TextSelectableByMouse);
  layout->addWidget(&icon_, 0, Qt::AlignVCenter);
  layout->addWidget(&label_, 1);
  layout->addWidget(&action_);
  layout->addWidget(&close_);
  close_.setAutoRaise(true);
  close_.setIcon(symbolic_icon("cross"));
  close_.setAccessibleName(tr("Close this note"));
  close_.setToolTip(tr("Close this note"));
  close_.hide();
  connect(&action_, &QPushButton::clicked, this, &Banner::action_clicked);
  connect(&close_, &QToolButton::clicked, this, [this] {
    hide();
    Q_EMIT closed();
  });
  hide();
}

void Banner::show_text(BannerKind kind, const QString& text, const QString& action) {
  const bool is_new = text != said_ || isHidden();
  kind_ = kind;
  said_ = text;
  label_.setText(text);
  label_.setAccessibleName(text);
  action_.setText(action);
  action_.setVisible(!action.isEmpty());
  show_icon();
  show();
  if (is_new) {
    // A screen reader says it when it comes.
    QAccessibleEvent event(this, QAccessible::Alert);
    QAccessible::updateAccessibility(&event);
  }
}

void Banner::show_error(const Error& error) {
  show_text(BannerKind::kProblem, sentence(error));
  set_closable(true);
}

void Banner::set_closable(bool closable) { close_.setVisible(closable); }

QColor Banner::color() const {
  const Colors& colors = colors_of(palette());
  switch (kind_) {
    case BannerKind::kNote: return colors.accent;
    case BannerKind::kWarning: return colors.warning;
    case BannerKind::kProblem: return colors.bad;
  }
  return colors.accent;
}

void Banner::show_icon() {
  icon_.setAccessibleName(kind_ == BannerKind::kNote      ? tr("Note")
                          : kind_ == BannerKind::kWarning ? tr("Warning")
                                                          : tr("Problem"));
  icon_.setPixmap(symbolic_pixmap(kind_ == BannerKind::kNote ? "info" : "attention", 24, color(),
                                  devicePixelRatioF()));
}

void Banner::changeEvent(QEvent* event) {
  QFrame::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) show_icon();
}

void Banner::paintEvent(QPaintEvent*) {
  const Colors& colors = colors_of(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  QColor tint = color();
  tint.setAlphaF(colors.contrast() ? 0.0 : 0.10);
  painter.setBrush(colors.card);
  painter.setPen(Qt::NoPen);
  const QRectF area = QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5);
  painter.drawRoundedRect(area, kRadius, kRadius);
  painter.setBrush(tint);
  painter.setPen(QPen(color(), colors.contrast() ? 2 : 1));
  painter.drawRoundedRect(area, kRadius, kRadius);
}

}  // namespace shoal::ui
