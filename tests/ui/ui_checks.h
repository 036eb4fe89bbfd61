#pragma once
// What must be true of everything that is on screen: nothing is cut off, nothing lies on another,
// nothing that can be used is without a name.

#include <QStringList>

class QWidget;

namespace shoal {

// Each finding is a line: where, and what is wrong.
QStringList clipped_widgets(const QWidget& root);
QStringList overlapping_widgets(const QWidget& root);
QStringList widgets_beyond_their_parents(const QWidget& root);
QStringList unnamed_controls(QWidget& root);

}  // namespace shoal
