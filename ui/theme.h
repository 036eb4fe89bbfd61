#pragma once
// How everything looks: palettes (light, dark, high contrast), colours of charts and states, spaces
// and sizes of text. Knows the desktop's wish and follows it while it changes.

#include <QColor>
#include <QObject>
#include <QPalette>
#include <array>

#include "schema/agent.capnp.h"

class QApplication;
class QDBusVariant;
class QLabel;
class QVariant;

namespace shoal::ui {

class Style;

// Spaces in logical pixels: between and within the parts of a page.
constexpr int kSpaceSmall = 4;
constexpr int kSpace = 8;
constexpr int kSpaceLarge = 16;
constexpr int kSpaceHuge = 24;
constexpr int kRadius = 8;  // Of cards and banners.
constexpr int kIconSize = 20;

enum class Scheme { kLight, kDark, kLightContrast, kDarkContrast };

struct Colors {
  Scheme scheme;
  QColor window, card, border;
  QColor text, text_quiet;
  QColor accent, accent_text;    // What is chosen or switched on, and text on it.
  QColor good, warning, bad;     // For text and thin lines on a card.
  QColor grid;                   // Of charts.
  std::array<QColor, 5> states;  // By rpc::Activity.
  std::array<QColor, 8> series;  // Of charts, in order; neighbours differ in lightness too.

  bool dark() const { return scheme == Scheme::kDark || scheme == Scheme::kDarkContrast; }
  bool contrast() const { return scheme >= Scheme::kLightContrast; }
};

// The colours that belong to a palette, such as a widget's own: ask again when its palette changes
// (QEvent::PaletteChange).
const Colors& colors_of(const QPalette& palette);
const Colors& colors_of(Scheme scheme);
QColor mixed(const QColor& a, const QColor& b, qreal share_of_b);

enum class TextRole {
  kBody,
  kQuiet,    // Smaller importance, same size.
  kSmall,    // Quiet, and smaller.
  kHeading,  // Of a card or a group.
  kTitle,    // Of a page.
  kFigure,   // A number to be seen from afar.
};
void set_text_role(QLabel& label, TextRole role);

// Owns the application's palette and style. Belongs to the Qt thread.
class Theme : public QObject {
  Q_OBJECT

 public:
  enum class Choice { kDesktop, kLight, kDark };

  // Sets the style and the first palette. Without a desktop that tells, `application`'s own palette
  // says whether it is dark.
  explicit Theme(QApplication& application);
  ~Theme() override;

  Scheme scheme() const { return scheme_; }
  Choice choice() const { return choice_; }
  void set_choice(Choice choice);
  // Whether the desktop asks for less motion: then nothing slides or fades.
  bool reduced_motion() const { return reduced_motion_; }

  // As if the desktop had said so; for tests and pictures. What the real one says, now or in an
  // answer that is under way, no longer counts.
  void set_desktop(bool dark, bool contrast, bool reduced_motion);

 Q_SIGNALS:
  void changed();

 private Q_SLOTS:
  void portal_setting_changed(const QString& group, const QString& key, const QDBusVariant& value);

 private:
  void ask_desktop();
  void take_portal_setting(const QString& group, const QString& key, const QVariant& value);
  void apply();

  QApplication& application_;
  Style* style_;  // The application's.
  Scheme scheme_ = Scheme::kLight;
  Choice choice_ = Choice::kDesktop;
  bool desktop_dark_ = false;
  bool desktop_contrast_ = false;
  bool reduced_motion_ = false;
  bool pretended_ = false;  // By set_desktop().
  bool applied_ = false;
};

QPalette palette_of(Scheme scheme);

}  // namespace shoal::ui
