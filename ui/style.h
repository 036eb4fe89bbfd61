#pragma once
// Draws controls for all of Shoal: Fusion, with our own corners, focus marks and switches.

#include <QProxyStyle>

namespace shoal::ui {

class Style : public QProxyStyle {
  Q_OBJECT

 public:
  Style();

  int pixelMetric(PixelMetric metric, const QStyleOption* option,
                  const QWidget* widget) const override;
};

}  // namespace shoal::ui
