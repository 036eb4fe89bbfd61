#include "ui/style.h"

#include <QAbstractSpinBox>
#include <QPainter>
#include <QStyleOptionButton>
#include <QStyleOptionSlider>
#include <QWidget>

#include "ui/theme.h"

namespace shoal::ui {
namespace {

constexpr int kTextRoom = 4;  // Between the frame of a field and its text.

constexpr char kProminent[] = "shoal_prominent";
constexpr char kRail[] = "shoal_rail";
constexpr qreal kCorner = 6;

bool is(const QWidget* widget, const char* property) {
  return widget != nullptr && widget->property(property).toBool();
}

void draw_panel(QPainter& painter, const QRect& rect, const QColor& fill, const QColor& line) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(fill.isValid() ? QBrush(fill) : QBrush(Qt::NoBrush));
  painter.setPen(line.isValid() ? QPen(line, 1) : QPen(Qt::NoPen));
  painter.drawRoundedRect(QRectF(rect).adjusted(0.5, 0.5, -0.5, -0.5), kCorner, kCorner);
  painter.restore();
}

// Where the keyboard is: a line that is seen on every ground.
void draw_focus(QPainter& painter, const QRect& rect, const QColor& color) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(color, 2));
  painter.drawRoundedRect(QRectF(rect).adjusted(1, 1, -1, -1), kCorner - 1, kCorner - 1);
  painter.restore();
}

void draw_button(QPainter& painter, const QStyleOption& option, const QWidget* widget) {
  const Colors& colors = colors_of(option.palette);
  const bool enabled = option.state.testFlag(QStyle::State_Enabled);
  const bool down = option.state & (QStyle::State_Sunken | QStyle::State_On);
  const bool hover = enabled && option.state.testFlag(QStyle::State_MouseOver);
  QColor fill = option.palette.color(QPalette::Button);
  QColor line = colors.border;
  if (is(widget, kRail)) {
    fill = down    ? mixed(colors.window, colors.accent, colors.contrast() ? 0 : 0.16)
           : hover ? mixed(colors.window, colors.text, 0.06)
                   : QColor();
    line = down && colors.contrast() ? colors.accent : QColor();
  } else if (is(widget, kProminent) && enabled) {
    fill = hover ? mixed(colors.accent, colors.text, 0.12) : colors.accent;
    if (down) fill = mixed(colors.accent, colors.text, 0.25);
    line = fill;
  } else if (option.state.testFlag(QStyle::State_On)) {
    fill = mixed(colors.card, colors.accent, colors.contrast() ? 0 : 0.18);
    line = colors.accent;
  } else if (down) {
    fill = mixed(fill, colors.text, 0.14);
  } else if (hover) {
    fill = mixed(fill, colors.text, 0.06);
  }
  draw_panel(painter, option.rect, fill, line);
  if (option.state.testFlag(QStyle::State_On) && colors.contrast()) {
    draw_focus(painter, option.rect.adjusted(1, 1, -1, -1), colors.accent);
  }
  if (option.state.testFlag(QStyle::State_HasFocus) &&
      option.state.testFlag(QStyle::State_KeyboardFocusChange)) {
    draw_focus(painter, option.rect, is(widget, kProminent) ? colors.text : colors.accent);
  }
}

// A box or a ring with a line that is seen on every ground, filled when it is on.
void draw_mark(QPainter& painter, const QStyleOption& option, QStyle::PrimitiveElement element) {
  const Colors& colors = colors_of(option.palette);
  const bool enabled = option.state.testFlag(QStyle::State_Enabled);
  const bool on = option.state.testFlag(QStyle::State_On);
  const bool partly = option.state.testFlag(QStyle::State_NoChange);
  const bool round = element == QStyle::PE_IndicatorRadioButton;
  const qreal side = std::min(option.rect.width(), option.rect.height()) - 2;
  QRectF box(0, 0, side, side);
  box.moveCenter(QRectF(option.rect).center());
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  const bool filled = (on || partly) && enabled;
  painter.setBrush(filled ? colors.accent : colors.card);
  painter.setPen(QPen(filled ? colors.accent : colors.text_quiet, 1.4));
  if (round) {
    painter.drawEllipse(box);
  } else {
    painter.drawRoundedRect(box, 3, 3);
  }
  const QColor mark = enabled ? colors.accent_text : colors.text_quiet;
  if (on && round) {
    painter.setPen(Qt::NoPen);
    painter.setBrush(mark);
    painter.drawEllipse(box.center(), side * 0.22, side * 0.22);
  } else if (on || partly) {
    painter.setPen(QPen(mark, 2, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    const auto at = [&box](qreal x, qreal y) {
      return QPointF(box.left() + x * box.width(), box.top() + y * box.height());
    };
    if (partly) {
      painter.drawLine(at(0.25, 0.5), at(0.75, 0.5));
    } else {
      const QPointF tick[] = {at(0.24, 0.53), at(0.43, 0.72), at(0.77, 0.3)};
      painter.drawPolyline(tick, 3);
    }
  }
  painter.restore();
}

void draw_arrow(QPainter& painter, const QRect& rect, bool up, const QColor& color) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(color, 1.6, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  const QPointF middle = QRectF(rect).center();
  const qreal y = up ? -1.8 : 1.8;
  const QPointF points[] = {middle + QPointF(-3.4, -y), middle + QPointF(0, y),
                            middle + QPointF(3.4, -y)};
  painter.drawPolyline(points, 3);
  painter.restore();
}

}  // namespace

Style::Style() : QProxyStyle("fusion") {}

int Style::pixelMetric(PixelMetric metric, const QStyleOption* option,
                       const QWidget* widget) const {
  switch (metric) {
    case PM_LayoutLeftMargin:
    case PM_LayoutRightMargin:
    case PM_LayoutTopMargin:
    case PM_LayoutBottomMargin: return kSpaceLarge;
    case PM_LayoutHorizontalSpacing:
    case PM_LayoutVerticalSpacing: return kSpace;
    // Space between the text of a cell and its edge, in tables, lists and their heads.
    case PM_FocusFrameHMargin: return kSpaceSmall + 1;
    case PM_HeaderMargin: return kSpaceSmall + 1;
    case PM_SmallIconSize:
    case PM_ButtonIconSize: return kIconSize;
    case PM_ButtonShiftHorizontal:
    case PM_ButtonShiftVertical: return 0;
    case PM_ScrollBarExtent: return 12;
    case PM_IndicatorWidth:
    case PM_IndicatorHeight:
    case PM_ExclusiveIndicatorWidth:
    case PM_ExclusiveIndicatorHeight: return 18;
    default: return QProxyStyle::pixelMetric(metric, option, widget);
  }
}

int Style::styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                     QStyleHintReturn* data) const {
  switch (hint) {
    case SH_UnderlineShortcut: return 1;
    case SH_EtchDisabledText: return 0;
    case SH_Widget_Animation_Duration:
      return reduced_motion_ ? 0 : QProxyStyle::styleHint(hint, option, widget, data);
    case SH_ItemView_ArrowKeysNavigateIntoChildren: return 1;
    default: return QProxyStyle::styleHint(hint, option, widget, data);
  }
}

void Style::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                          const QWidget* widget) const {
  switch (element) {
    case PE_PanelButtonCommand:
    case PE_PanelButtonTool: {
      const bool automatic =
          element == PE_PanelButtonTool && option->state.testFlag(State_AutoRaise);
      const bool quiet =
          automatic && !is(widget, kRail) &&
          !(option->state & (State_MouseOver | State_On | State_Sunken | State_HasFocus));
      if (!quiet) draw_button(*painter, *option, widget);
      return;
    }
    case PE_FrameFocusRect:
      if (option->state.testFlag(State_KeyboardFocusChange)) {
        draw_focus(*painter, option->rect, colors_of(option->palette).accent);
      }
      return;
    case PE_IndicatorCheckBox:
    case PE_IndicatorRadioButton: draw_mark(*painter, *option, element); return;
    case PE_FrameDefaultButton: return;  // Filled buttons say it.
    case PE_PanelLineEdit: {
      const Colors& colors = colors_of(option->palette);
      const bool framed = qstyleoption_cast<const QStyleOptionFrame*>(option) == nullptr ||
                          qstyleoption_cast<const QStyleOptionFrame*>(option)->lineWidth > 0;
      if (!framed) return;
      const bool focus = option->state.testFlag(State_HasFocus);
      draw_panel(*painter, option->rect, option->palette.color(QPalette::Base),
                 focus ? colors.accent : colors.border);
      if (focus) draw_focus(*painter, option->rect, colors.accent);
      return;
    }
    case PE_PanelTipLabel:
      draw_panel(*painter, option->rect, option->palette.color(QPalette::ToolTipBase),
                 colors_of(option->palette).border);
      return;
    default: QProxyStyle::drawPrimitive(element, option, painter, widget);
  }
}

void Style::drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                        const QWidget* widget) const {
  if (element == CE_PushButtonLabel && is(widget, kProminent)) {
    if (const auto* button = qstyleoption_cast<const QStyleOptionButton*>(option)) {
      QStyleOptionButton copy = *button;
      if (copy.state.testFlag(State_Enabled)) {
        const QColor text = colors_of(option->palette).accent_text;
        copy.palette.setColor(QPalette::ButtonText, text);
        copy.palette.setColor(QPalette::WindowText, text);
      }
      QProxyStyle::drawControl(element, &copy, painter, widget);
      return;
    }
  }
  QProxyStyle::drawControl(element, option, painter, widget);
}

void Style::drawComplexControl(ComplexControl control, const QStyleOptionComplex* option,
                               QPainter* painter, const QWidget* widget) const {
  if (const auto* spin = qstyleoption_cast<const QStyleOptionSpinBox*>(option);
      control == CC_SpinBox && spin != nullptr) {
    const Colors& colors = colors_of(option->palette);
    const bool focus = option->state.testFlag(State_HasFocus);
    if (spin->frame) {
      draw_panel(*painter, option->rect, option->palette.color(QPalette::Base),
                 focus ? colors.accent : colors.border);
      if (focus) draw_focus(*painter, option->rect, colors.accent);
    }
    if (spin->buttonSymbols == QAbstractSpinBox::NoButtons) return;
    const bool enabled = option->state.testFlag(State_Enabled);
    for (const auto [part, step] : {std::pair(SC_SpinBoxUp, QAbstractSpinBox::StepUpEnabled),
                                    std::pair(SC_SpinBoxDown, QAbstractSpinBox::StepDownEnabled)}) {
      const bool can = enabled && spin->stepEnabled.testFlag(step);
      const bool hot = can && option->activeSubControls == part;
      draw_arrow(*painter, subControlRect(control, option, part, widget), part == SC_SpinBoxUp,
                 hot ? colors.accent
                     : option->palette.color(can ? QPalette::Active : QPalette::Disabled,
                                             QPalette::ButtonText));
    }
    return;
  }
  const auto* slider = qstyleoption_cast<const QStyleOptionSlider*>(option);
  if (control != CC_ScrollBar || slider == nullptr) {
    QProxyStyle::drawComplexControl(control, option, painter, widget);
    return;
  }
  // A thumb alone: what is below it shows how far the page goes.
  const Colors& colors = colors_of(option->palette);
  const bool held = option->activeSubControls.testFlag(SC_ScrollBarSlider) &&
                    (option->state & (State_MouseOver | State_Sunken));
  const QRect thumb = subControlRect(control, option, SC_ScrollBarSlider, widget);
  if (!option->state.testFlag(State_Enabled) || thumb.isEmpty()) return;
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(Qt::NoPen);
  painter->setBrush(held || colors.contrast() ? colors.text_quiet
                                              : mixed(colors.window, colors.text_quiet, 0.55));
  painter->drawRoundedRect(QRectF(thumb).adjusted(3, 3, -3, -3), 3, 3);
  painter->restore();
}

QRect Style::subControlRect(ComplexControl control, const QStyleOptionComplex* option,
                            SubControl part, const QWidget* widget) const {
  const auto* slider = qstyleoption_cast<const QStyleOptionSlider*>(option);
  if (control != CC_ScrollBar || slider == nullptr) {
    const QRect rect = QProxyStyle::subControlRect(control, option, part, widget);
    const bool text = control == CC_ComboBox && part == SC_ComboBoxEditField;
    return text ? rect.adjusted(kTextRoom, 0, 0, 0) : rect;
  }
  const QRect all = option->rect;
  const bool flat = slider->orientation == Qt::Horizontal;
  const int room = flat ? all.width() : all.height();
  const int64_t range = int64_t{slider->maximum} - slider->minimum;
  const int length = range <= 0
                         ? room
                         : std::clamp<int>(static_cast<int>(int64_t{slider->pageStep} * room /
                                                            (range + slider->pageStep)),
                                           std::min(28, room), room);
  const int start = sliderPositionFromValue(
      slider->minimum, slider->maximum, slider->sliderPosition, room - length, slider->upsideDown);
  const auto piece = [&](int from, int to) {
    return flat ? QRect(all.x() + from, all.y(), to - from, all.height())
                : QRect(all.x(), all.y() + from, all.width(), to - from);
  };
  switch (part) {
    case SC_ScrollBarSlider: return piece(start, start + length);
    case SC_ScrollBarSubPage: return piece(0, start);
    case SC_ScrollBarAddPage: return piece(start + length, room);
    case SC_ScrollBarGroove: return all;
    default: return {};
  }
}

QRect Style::subElementRect(SubElement element, const QStyleOption* option,
                            const QWidget* widget) const {
  const QRect rect = QProxyStyle::subElementRect(element, option, widget);
  if (element != SE_LineEditContents) return rect;
  // Spin boxes and combo boxes hold a line edit of their own, which has their room already.
  const QWidget* const parent = widget == nullptr ? nullptr : widget->parentWidget();
  const bool inner =
      parent != nullptr && (parent->inherits("QAbstractSpinBox") || parent->inherits("QComboBox"));
  return inner ? rect : rect.adjusted(kTextRoom, 0, -kTextRoom, 0);
}

QSize Style::sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                              const QWidget* widget) const {
  QSize wanted = QProxyStyle::sizeFromContents(type, option, size, widget);
  switch (type) {
    case CT_PushButton:
      return {std::max(wanted.width() + 8, 72), std::max(wanted.height() + 4, 32)};
    case CT_ToolButton:
      if (is(widget, kRail)) return {wanted.width() + 16, std::max(wanted.height() + 8, 38)};
      return {wanted.width() + 4, std::max(wanted.height(), 30)};
    case CT_SpinBox: return {wanted.width(), std::max(wanted.height(), 30)};
    case CT_ComboBox:
    case CT_LineEdit: return {wanted.width() + 2 * kTextRoom, std::max(wanted.height(), 30)};
    default: return wanted;
  }
}

void set_prominent(QWidget& button) { button.setProperty(kProminent, true); }
void set_rail(QWidget& button) { button.setProperty(kRail, true); }

}  // namespace shoal::ui
