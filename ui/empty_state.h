#pragma once
// What a page or a table shows when there is nothing to show: an icon, what is so, and what to do.

#include <QLabel>
#include <QPushButton>
#include <QString>
#include <QWidget>

namespace shoal::ui {

class EmptyState : public QWidget {
  Q_OBJECT

 public:
  explicit EmptyState(QWidget* parent = nullptr);

  // `icon`: for symbolic_icon(). `action`: the button's text; empty: no button.
  void set(const QString& icon, const QString& headline, const QString& text,
           const QString& action = {});
  // The same words on every page while no client answers.
  void set_disconnected();

 Q_SIGNALS:
  void action_clicked();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void show_icon();

  QString icon_;
  QLabel picture_, headline_, text_;
  QPushButton button_;
};

}  // namespace shoal::ui
