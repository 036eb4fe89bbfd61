#pragma once
// The one icon set, drawn for Shoal (ui/icons/*.svg): symbols in one colour that follow the theme,
// and the five states, which differ in shape as well as in colour.

#include <QColor>
#include <QIcon>
#include <QPixmap>
#include <QString>

namespace shoal::ui {

// Recoloured each time it is painted, so it follows a palette that changes. An unknown name is an
// empty icon.
QIcon symbolic_icon(const QString& name);
QPixmap symbolic_pixmap(const QString& name, int size, const QColor& color, qreal scale);

// In its own colours, as it is drawn.
QIcon colored_icon(const QString& name);

}  // namespace shoal::ui
