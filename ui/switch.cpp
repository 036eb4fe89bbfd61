#include "ui/switch.h"

#include <QKeyEvent>
#include <QPainter>
#include <QStyle>

#include "ui/theme.h"

namespace shoal::ui {

Switch::Switch(QWidget* parent) : QAbstractButton(parent) {
  setCheckable(true);
  setFocusPolicy(Qt::StrongFocus);
  setCursor(Qt::PointingHandCursor);
  setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
  slide_.setDuration(120);
  connect(&slide_, &QVariantAnimation::valueChanged, this, [this](const QVariant& value) {
    place_ = value.toReal();
    update();
  });
  connect(this, &QAbstractButton::toggled, this, [this](bool on) {
    slide_.stop();
    // Less motion is asked for by an animation time of zero.
    if (!isVisible() ||
        style()->styleHint(QStyle::SH_Widget_Animation_Duration, nullptr, this) == 0) {
      place_ = on ? 1 : 0;
      update();
      return;
    }
    slide_.setStartValue(place_);
    slide_.setEndValue(on ? 1.0 : 0.0);
    slide_.start();
  });
}

QSize Switch::sizeHint() const { return {76, 40}; }

void Switch::set_on(bool on) {
  if (on == isChecked()) return;
  const QSignalBlocker blocker(this);
  setChecked(on);
  place_ = on ? 1 : 0;
  update();
}

void Switch::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) {
    click();
  } else {
    QAbstractButton::keyPressEvent(event);
  }
}

void Switch::paintEvent(QPaintEvent*) {
  const Colors& colors = colors_of(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const QRectF track = QRectF(rect()).adjusted(4, 4, -4, -4);
  const qreal radius = track.height() / 2;
  QColor fill = isChecked() ? colors.states[0] : colors.card;
  if (!isEnabled()) fill = colors.window;
  painter.setBrush(fill);
  painter.setPen(QPen(isChecked() && isEnabled() ? fill : colors.text_quiet, 2));
  painter.drawRoundedRect(track, radius, radius);

  const qreal size = track.height() - 8;
  const QRectF knob(track.left() + 4 + place_ * (track.width() - size - 8), track.top() + 4, size,
                    size);
  const QColor on_fill = colors.accent_text;
  painter.setPen(Qt::NoPen);
  painter.setBrush(isChecked() && isEnabled() ? on_fill : colors.text_quiet);
  painter.drawEllipse(knob);
  // The state is told by a mark too, not by colour and place alone.
  painter.setPen(QPen(isChecked() ? on_fill : colors.text_quiet, 2.2, Qt::SolidLine, Qt::RoundCap));
  const QPointF middle(isChecked() ? track.left() + radius : track.right() - radius,
                       track.center().y());
  if (isChecked()) {
    painter.drawLine(middle + QPointF(0, -5), middle + QPointF(0, 5));
  } else {
    painter.setBrush(Qt::NoBrush);
    painter.drawEllipse(middle, 4.5, 4.5);
  }
  if (hasFocus()) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(colors.accent, 2));
    painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), radius + 3, radius + 3);
  }
}

}  // namespace shoal::ui
