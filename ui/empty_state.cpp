#include "ui/empty_state.h"

#include <QEvent>
#include <QVBoxLayout>

#include "ui/icons.h"
#include "ui/theme.h"

namespace shoal::ui {

EmptyState::EmptyState(QWidget* parent) : QWidget(parent) {
  auto* layout = new QVBoxLayout(this);
  layout->setSpacing(kSpace);
  layout->addStretch(2);
  for (QLabel* label : {&picture_, &headline_, &text_}) {
    label->setAlignment(Qt::AlignCenter);
    label->setWordWrap(label != &picture_);
    layout->addWidget(label);
  }
  set_text_role(headline_, TextRole::kHeading);
  set_text_role(text_, TextRole::kQuiet);
  layout->addSpacing(kSpace);
  layout->addWidget(&button_, 0, Qt::AlignCenter);
  layout->addStretch(3);
  button_.hide();
  connect(&button_, &QPushButton::clicked, this, &EmptyState::action_clicked);
}

void EmptyState::set(const QString& icon, const QString& headline, const QString& text,
                     const QString& action) {
  icon_ = icon;
  headline_.setText(headline);
  text_.setText(text);
  text_.setVisible(!text.isEmpty());
  button_.setText(action);
  button_.setVisible(!action.isEmpty());
  show_icon();
}

void EmptyState::set_disconnected() {
  set("offline", tr("Shoal does not run"),
      tr("This window shows what the background program does. It appears here as soon as that "
         "program runs."));
}

void EmptyState::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) show_icon();
}

void EmptyState::show_icon() {
  picture_.setAccessibleName(headline_.text());
  picture_.setPixmap(
      symbolic_pixmap(icon_, 48, colors_of(palette()).text_quiet, devicePixelRatioF()));
}

}  // namespace shoal::ui
