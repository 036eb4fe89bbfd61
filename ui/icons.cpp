#include "ui/icons.h"

#include <QFile>
#include <QGuiApplication>
#include <QIconEngine>
#include <QPainter>
#include <QPalette>
#include <QPixmapCache>
#include <QSvgRenderer>

namespace shoal::ui {
namespace {

QString path_of(const QString& name) { return ":/icons/" + name + ".svg"; }

QByteArray read_icon(const QString& name) {
  QFile file(path_of(name));
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

// An icon's colour when it stands on the palette's window, button or highlight.
QColor color_for(QIcon::Mode mode) {
  const QPalette palette = QGuiApplication::palette();
  if (mode == QIcon::Disabled) return palette.color(QPalette::Disabled, QPalette::WindowText);
  if (mode == QIcon::Selected) return palette.color(QPalette::HighlightedText);
  return palette.color(QPalette::WindowText);
}

class SymbolicEngine final : public QIconEngine {
 public:
  explicit SymbolicEngine(QString name) : name_(std::move(name)) {}

  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override {
    const qreal scale = painter->device() == nullptr ? 1 : painter->device()->devicePixelRatioF();
    const int size = std::min(rect.width(), rect.height());
    QRect place(0, 0, size, size);
    place.moveCenter(rect.center());
    painter->drawPixmap(place, symbolic_pixmap(name_, size, color_for(mode), scale));
  }
  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State) override {
    return symbolic_pixmap(name_, std::min(size.width(), size.height()), color_for(mode), 1);
  }
  QPixmap scaledPixmap(const QSize& size, QIcon::Mode mode, QIcon::State, qreal scale) override {
    QPixmap pixmap =
        symbolic_pixmap(name_, std::min(size.width(), size.height()), color_for(mode), 1);
    pixmap.setDevicePixelRatio(scale);
    return pixmap;
  }
  QIconEngine* clone() const override { return new SymbolicEngine(name_); }

 private:
  QString name_;
};

}  // namespace

QPixmap symbolic_pixmap(const QString& name, int size, const QColor& color, qreal scale) {
  const int pixels = std::max(1, qRound(size * scale));
  const QString key = "shoal:" + name + ":" + QString::number(pixels) + color.name(QColor::HexArgb);
  QPixmap pixmap;
  if (!QPixmapCache::find(key, &pixmap)) {
    pixmap = QPixmap(pixels, pixels);
    pixmap.fill(Qt::transparent);
    QByteArray svg = read_icon(name);
    if (!svg.isEmpty()) {
      svg.replace("currentColor", color.name().toLatin1());
      QSvgRenderer renderer(svg);
      QPainter painter(&pixmap);
      painter.setOpacity(color.alphaF());
      renderer.render(&painter);
    }
    QPixmapCache::insert(key, pixmap);
  }
  pixmap.setDevicePixelRatio(scale);
  return pixmap;
}

QIcon symbolic_icon(const QString& name) {
  if (!QFile::exists(path_of(name))) return {};
  return QIcon(new SymbolicEngine(name));
}

QIcon colored_icon(const QString& name) { return QIcon(path_of(name)); }

}  // namespace shoal::ui
