#pragma once
// A line that stands out above a page: what is wrong or new, and one button that helps.

#include <QFrame>
#include <QLabel>
#include <QPushButton>
#include <QToolButton>

#include "base/result.h"

namespace shoal::ui {

enum class BannerKind { kNote, kWarning, kProblem };

class Banner : public QFrame {
  Q_OBJECT

 public:
  // Hidden until there is something to say.
  explicit Banner(QWidget* parent = nullptr);

  void show_text(BannerKind kind, const QString& text, const QString& action = {});
  void show_error(const Error& error);
  // Whether a cross takes it away; it does not come back by itself.
  void set_closable(bool closable);
  const QString& text() const { return said_; }

 Q_SIGNALS:
  void action_clicked();
  void closed();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  QColor color() const;
  void show_icon();

  BannerKind kind_ = BannerKind::kNote;
  QString said_;
  QLabel icon_, label_;
  QPushButton action_;
  QToolButton close_;
};

}  // namespace shoal::ui
