#pragma once
// Draws controls for all of Shoal: Fusion, with our own corners, focus marks and rail.

#include <QProxyStyle>

namespace shoal::ui {

class Style : public QProxyStyle {
  Q_OBJECT

 public:
  Style();

  // Nothing slides or fades.
  void set_reduced_motion(bool reduced) { reduced_motion_ = reduced; }

  int pixelMetric(PixelMetric metric, const QStyleOption* option,
                  const QWidget* widget) const override;
  int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                QStyleHintReturn* data) const override;
  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
  void drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                   const QWidget* widget) const override;
  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option,
                          QPainter* painter, const QWidget* widget) const override;
  QRect subControlRect(ComplexControl control, const QStyleOptionComplex* option, SubControl part,
                       const QWidget* widget) const override;
  QRect subElementRect(SubElement element, const QStyleOption* option,
                       const QWidget* widget) const override;
  QSize sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                         const QWidget* widget) const override;

 private:
  bool reduced_motion_ = false;
};

// The button that a person is likely to want: filled with the accent colour.
void set_prominent(QWidget& button);
// A button of the window's rail.
void set_rail(QWidget& button);

}  // namespace shoal::ui
