#pragma once
// A ground with round corners for things that belong together, with a heading; and the small parts
// that pages are made of.

#include <QFrame>
#include <QScrollArea>

class QLabel;
class QVBoxLayout;

namespace shoal::ui {

class Card : public QFrame {
  Q_OBJECT

 public:
  explicit Card(QWidget* parent = nullptr);

  void set_title(const QString& title);
  QVBoxLayout* body() { return body_; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QLabel* title_;
  QVBoxLayout* body_;
};

// A page's content that is longer than the window: scrolls up and down, never sideways.
class Scroller : public QScrollArea {
  Q_OBJECT

 public:
  explicit Scroller(QWidget* parent = nullptr);

  QVBoxLayout* body() { return body_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QVBoxLayout* body_;
};

// A figure with its name above and a quiet line below.
class Figure : public QWidget {
  Q_OBJECT

 public:
  explicit Figure(QWidget* parent = nullptr);

  void set(const QString& name, const QString& figure, const QString& below = {});

 private:
  QLabel *name_, *figure_, *below_;
};

// A line of text that a person reads, wrapped, and that a mouse can mark.
QLabel* make_text(QWidget* parent);
// In the colour of what is wrong; hidden while it is empty.
QLabel* make_problem(QWidget* parent);
void set_problem(QLabel& label, const QString& problem);

}  // namespace shoal::ui
