#pragma once
// A large switch, for what is on or off at once.

#include <QAbstractButton>
#include <QVariantAnimation>

namespace shoal::ui {

class Switch : public QAbstractButton {
  Q_OBJECT

 public:
  explicit Switch(QWidget* parent = nullptr);

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return sizeHint(); }
  // Shows a state without telling anybody that it was clicked.
  void set_on(bool on);

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool hitButton(const QPoint& at) const override { return rect().contains(at); }
  void keyPressEvent(QKeyEvent* event) override;

 private:
  QVariantAnimation slide_;
  qreal place_ = 0;  // 0: off; 1: on.
};

}  // namespace shoal::ui
