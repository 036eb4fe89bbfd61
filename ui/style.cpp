#include "ui/style.h"

#include "ui/theme.h"

namespace shoal::ui {

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
    case PM_SmallIconSize:
    case PM_ButtonIconSize: return kIconSize;
    default: return QProxyStyle::pixelMetric(metric, option, widget);
  }
}

}  // namespace shoal::ui
