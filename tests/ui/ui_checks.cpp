#include "tests/ui/ui_checks.h"

#include <QAbstractButton>
#include <QAbstractScrollArea>
#include <QAccessible>
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QScrollBar>
#include <QTabBar>
#include <QWidget>

namespace shoal {
namespace {

QString name_of(const QWidget& widget) {
  QString text = widget.metaObject()->className();
  if (const auto* label = qobject_cast<const QLabel*>(&widget)) text += " '" + label->text() + "'";
  if (const auto* button = qobject_cast<const QAbstractButton*>(&widget)) {
    text += " '" + button->text() + "'";
  }
  if (!widget.accessibleName().isEmpty()) text += " [" + widget.accessibleName() + "]";
  for (const QWidget* parent = widget.parentWidget(); parent != nullptr && !parent->isWindow();
       parent = parent->parentWidget()) {
    const QString kind = parent->metaObject()->className();
    if (kind != "QWidget" && kind != "QStackedWidget") return text + " in " + kind;
  }
  return text;
}

// What a person can see: shown, and of a size.
QList<QWidget*> shown_below(const QWidget& root) {
  QList<QWidget*> shown;
  for (QWidget* widget : root.findChildren<QWidget*>()) {
    if (widget->isVisibleTo(&root) && widget->window() == &root) shown += widget;
  }
  return shown;
}

bool scrolls(const QWidget& widget) {
  for (const QWidget* w = &widget; w != nullptr && !w->isWindow(); w = w->parentWidget()) {
    if (qobject_cast<const QHeaderView*>(w) != nullptr) return true;
    if (w->inherits("QChartView") || w->inherits("QAbstractItemView")) return true;
  }
  return false;
}

QStringList walk(QAccessibleInterface* node, const QString& path, int depth) {
  QStringList findings;
  if (node == nullptr || !node->isValid() || depth > 40) return findings;
  if (node->state().invisible) return findings;
  const QString name = node->text(QAccessible::Name);
  const QString here = path + "/" + QString::number(int(node->role()), 16) +
                       (name.isEmpty() ? QString() : "'" + name + "'");
  const QObject* object = node->object();
  // Parts of a control that are reached by the control itself.
  const bool inner = object != nullptr && object->objectName().startsWith("qt_");
  switch (node->role()) {
    case QAccessible::Button:
    case QAccessible::CheckBox:
    case QAccessible::RadioButton:
    case QAccessible::ButtonMenu:
    case QAccessible::ButtonDropDown:
    case QAccessible::ComboBox:
    case QAccessible::EditableText:
    case QAccessible::SpinBox:
    case QAccessible::Slider:
    case QAccessible::ProgressBar:
    case QAccessible::Table:
    case QAccessible::List:
    case QAccessible::Tree:
    case QAccessible::PageTab:
    case QAccessible::MenuItem:
    case QAccessible::Chart:
    case QAccessible::Graphic:
      if (name.isEmpty() && !inner) findings += here + " has no name";
      break;
    default: break;
  }
  // Cells and lists in pop-ups are the rows' own text.
  if (node->role() == QAccessible::Table || node->role() == QAccessible::ComboBox) return findings;
  for (int i = 0; i < node->childCount(); ++i) findings += walk(node->child(i), here, depth + 1);
  return findings;
}

}  // namespace

QStringList clipped_widgets(const QWidget& root) {
  QStringList findings;
  for (const QWidget* widget : shown_below(root)) {
    if (scrolls(*widget)) continue;
    QSize wanted;
    if (const auto* label = qobject_cast<const QLabel*>(widget)) {
      if (label->text().isEmpty()) continue;
      wanted =
          label->wordWrap() ? QSize(0, label->heightForWidth(label->width())) : label->sizeHint();
      if (label->wordWrap()) {
        // Even wrapped, the longest word must fit.
        wanted.setWidth(label->minimumSizeHint().width());
      }
    } else if (qobject_cast<const QAbstractButton*>(widget) != nullptr ||
               qobject_cast<const QTabBar*>(widget) != nullptr) {
      wanted = widget->inherits("QTabBar") ? widget->minimumSizeHint() : widget->sizeHint();
      if (widget->inherits("QScroller") || widget->maximumWidth() < wanted.width()) continue;
    } else if (qobject_cast<const QComboBox*>(widget) != nullptr) {
      wanted = widget->minimumSizeHint();
    } else {
      continue;
    }
    if (widget->width() + 1 < wanted.width() || widget->height() + 1 < wanted.height()) {
      findings += QString("%1 wants %2x%3 and has %4x%5")
                      .arg(name_of(*widget))
                      .arg(wanted.width())
                      .arg(wanted.height())
                      .arg(widget->width())
                      .arg(widget->height());
    }
  }
  return findings;
}

QStringList overlapping_widgets(const QWidget& root) {
  QStringList findings;
  const QList<QWidget*> shown = shown_below(root);
  const auto counts = [](const QWidget* widget) {
    return qobject_cast<const QLabel*>(widget) != nullptr ||
           qobject_cast<const QAbstractButton*>(widget) != nullptr ||
           qobject_cast<const QComboBox*>(widget) != nullptr;
  };
  for (qsizetype i = 0; i < shown.size(); ++i) {
    if (!counts(shown[i]) || scrolls(*shown[i])) continue;
    for (qsizetype j = i + 1; j < shown.size(); ++j) {
      if (!counts(shown[j]) || shown[i]->parentWidget() != shown[j]->parentWidget()) continue;
      const QRect common = shown[i]->geometry() & shown[j]->geometry();
      if (common.width() > 1 && common.height() > 1) {
        findings += name_of(*shown[i]) + " lies on " + name_of(*shown[j]);
      }
    }
  }
  return findings;
}

QStringList widgets_beyond_their_parents(const QWidget& root) {
  QStringList findings;
  for (const QWidget* widget : shown_below(root)) {
    const QWidget* parent = widget->parentWidget();
    // What scrolls up and down is higher than its frame, and never wider.
    if (scrolls(*widget) || widget->objectName().startsWith("qt_")) continue;
    if (widget->x() >= 0 && widget->geometry().right() < parent->width()) continue;
    findings += QString("%1 reaches from %2 to %3 in a width of %4")
                    .arg(name_of(*widget))
                    .arg(widget->x())
                    .arg(widget->geometry().right())
                    .arg(parent->width());
  }
  return findings;
}

QStringList unnamed_controls(QWidget& root) {
  return walk(QAccessible::queryAccessibleInterface(&root), {}, 0);
}

}  // namespace shoal
