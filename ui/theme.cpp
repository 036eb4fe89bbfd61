#include "ui/theme.h"

#include <QApplication>
#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QDBusVariant>
#include <QLabel>

#include "ui/style.h"

namespace shoal::ui {
namespace {

constexpr char kPortal[] = "org.freedesktop.portal.Desktop";
constexpr char kPortalPath[] = "/org/freedesktop/portal/desktop";
constexpr char kPortalSettings[] = "org.freedesktop.portal.Settings";
constexpr char kAppearance[] = "org.freedesktop.appearance";

const Colors& light() {
  static const Colors kColors = {
      .scheme = Scheme::kLight,
      .window = 0xf4f6f8,
      .card = 0xffffff,
      .border = 0xd5dbe1,
      .text = 0x1b232b,
      .text_quiet = 0x5a6672,
      .accent = 0x0b6e8a,
      .accent_text = 0xffffff,
      .good = 0x19703f,
      .warning = 0x8f5700,
      .bad = 0xb3261e,
      .grid = 0xe3e7eb,
      .states = {0x1f8a4c, 0xb87400, 0x3b6fd4, 0xc8322a, 0x6f7b86},
      .series = {0x0b6e8a, 0xd98a1f, 0x6a4fb3, 0x3fa66b, 0xc2476b, 0x4b8fe0, 0x8a8f2a, 0x7b5a45},
  };
  return kColors;
}

const Colors& dark() {
  static const Colors kColors = {
      .scheme = Scheme::kDark,
      .window = 0x171b20,
      .card = 0x20262d,
      .border = 0x3a434d,
      .text = 0xe8ecf0,
      .text_quiet = 0xa3aeb9,
      .accent = 0x4fb8d6,
      .accent_text = 0x06222b,
      .good = 0x68cf94,
      .warning = 0xf0b452,
      .bad = 0xff8a80,
      .grid = 0x303840,
      .states = {0x4cc47f, 0xe8a63a, 0x7ea6f5, 0xff6f66, 0x93a0ac},
      .series = {0x4fb8d6, 0xf0b452, 0xb39cf0, 0x68cf94, 0xf08aa8, 0x8ab8f7, 0xcbd06a, 0xc9a58c},
  };
  return kColors;
}

const Colors& light_contrast() {
  static const Colors kColors = {
      .scheme = Scheme::kLightContrast,
      .window = 0xfefefe,
      .card = 0xffffff,
      .border = 0x000000u,
      .text = 0x000000u,
      .text_quiet = 0x202020,
      .accent = 0x00379e,
      .accent_text = 0xffffff,
      .good = 0x004d1f,
      .warning = 0x5c3600,
      .bad = 0x8c0000,
      .grid = 0x8a8a8a,
      .states = {0x005f26, 0x7a4a00, 0x0038a8, 0xa30000, 0x3c3c3c},
      .series = {0x00379e, 0xa85b00, 0x5a0f9c, 0x006b2d, 0x9c0044, 0x0072b8, 0x5c5f00, 0x4f2f1a},
  };
  return kColors;
}

const Colors& dark_contrast() {
  static const Colors kColors = {
      .scheme = Scheme::kDarkContrast,
      .window = 0x000000u,
      .card = 0x0a0a0a,
      .border = 0xffffff,
      .text = 0xffffff,
      .text_quiet = 0xe4e4e4,
      .accent = 0x66e0ff,
      .accent_text = 0x000000u,
      .good = 0x7dffae,
      .warning = 0xffd166,
      .bad = 0xff9c94,
      .grid = 0x7a7a7a,
      .states = {0x5cff9d, 0xffc24d, 0x9cc2ff, 0xff7a70, 0xd0d0d0},
      .series = {0x66e0ff, 0xffc24d, 0xd3b8ff, 0x7dffae, 0xff9cc0, 0xa8d0ff, 0xf2f78a, 0xf0cbb0},
  };
  return kColors;
}

}  // namespace

const Colors& colors_of(Scheme scheme) {
  switch (scheme) {
    case Scheme::kLight: return light();
    case Scheme::kDark: return dark();
    case Scheme::kLightContrast: return light_contrast();
    case Scheme::kDarkContrast: return dark_contrast();
  }
  return light();
}

const Colors& colors_of(const QPalette& palette) {
  const QColor window = palette.color(QPalette::Active, QPalette::Window);
  for (const Scheme scheme :
       {Scheme::kLight, Scheme::kDark, Scheme::kLightContrast, Scheme::kDarkContrast}) {
    if (colors_of(scheme).window.rgb() == window.rgb()) return colors_of(scheme);
  }
  return window.lightness() < 128 ? dark() : light();
}

QColor mixed(const QColor& a, const QColor& b, qreal share_of_b) {
  const auto mix = [share_of_b](int x, int y) { return qRound(x + (y - x) * share_of_b); };
  return QColor(mix(a.red(), b.red()), mix(a.green(), b.green()), mix(a.blue(), b.blue()));
}

void set_text_role(QLabel& label, TextRole role) {
  QFont font = QApplication::font();
  const qreal size = font.pointSizeF();
  switch (role) {
    case TextRole::kBody:
    case TextRole::kQuiet: break;
    case TextRole::kSmall: font.setPointSizeF(size * 0.9); break;
    case TextRole::kHeading:
      font.setPointSizeF(size * 1.1);
      font.setWeight(QFont::DemiBold);
      break;
    case TextRole::kTitle:
      font.setPointSizeF(size * 1.5);
      font.setWeight(QFont::DemiBold);
      break;
    case TextRole::kFigure:
      font.setPointSizeF(size * 1.7);
      font.setWeight(QFont::DemiBold);
      break;
  }
  label.setFont(font);
  const bool quiet = role == TextRole::kQuiet || role == TextRole::kSmall;
  label.setForegroundRole(quiet ? QPalette::PlaceholderText : QPalette::WindowText);
}

QPalette palette_of(Scheme scheme) {
  const Colors& c = colors_of(scheme);
  QPalette palette;
  palette.setColor(QPalette::Window, c.window);
  palette.setColor(QPalette::WindowText, c.text);
  palette.setColor(QPalette::Base, c.card);
  palette.setColor(QPalette::AlternateBase, c.contrast() ? c.card : mixed(c.card, c.window, 0.6));
  palette.setColor(QPalette::Text, c.text);
  palette.setColor(QPalette::PlaceholderText, c.text_quiet);
  palette.setColor(QPalette::Button, c.contrast() ? c.card : mixed(c.card, c.window, 0.4));
  palette.setColor(QPalette::ButtonText, c.text);
  palette.setColor(QPalette::BrightText, c.bad);
  palette.setColor(QPalette::Highlight, c.accent);
  palette.setColor(QPalette::HighlightedText, c.accent_text);
  palette.setColor(QPalette::Link, c.accent);
  palette.setColor(QPalette::LinkVisited, c.accent);
  palette.setColor(QPalette::ToolTipBase, c.card);
  palette.setColor(QPalette::ToolTipText, c.text);
  palette.setColor(QPalette::Light, c.dark() ? mixed(c.card, c.text, 0.1) : QColor(Qt::white));
  palette.setColor(QPalette::Midlight, mixed(c.card, c.border, 0.5));
  palette.setColor(QPalette::Mid, c.border);
  palette.setColor(QPalette::Dark, mixed(c.border, c.text, c.dark() ? 0.1 : 0.3));
  palette.setColor(QPalette::Shadow, c.contrast() ? c.border : mixed(c.window, Qt::black, 0.5));
  const QColor faded = c.contrast() ? c.text_quiet : mixed(c.text_quiet, c.window, 0.35);
  for (const QPalette::ColorRole role :
       {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::PlaceholderText}) {
    palette.setColor(QPalette::Disabled, role, faded);
  }
  palette.setColor(QPalette::Disabled, QPalette::Highlight, c.border);
  palette.setColor(QPalette::Disabled, QPalette::HighlightedText, c.text);
  return palette;
}

Theme::Theme(QApplication& application) : application_(application), style_(new Style) {
  // Before our own palette hides it: what the platform's theme says.
  desktop_dark_ = application.palette().color(QPalette::Window).lightness() < 128;
  application.setStyle(style_);
  ask_desktop();
  apply();
}

Theme::~Theme() = default;

void Theme::set_choice(Choice choice) {
  choice_ = choice;
  apply();
}

void Theme::set_desktop(bool dark, bool contrast, bool reduced_motion) {
  pretended_ = true;
  desktop_dark_ = dark;
  desktop_contrast_ = contrast;
  reduced_motion_ = reduced_motion;
  apply();
}

// The desktop's answer comes later: no bus may hold the window up.
void Theme::ask_desktop() {
  QDBusConnection bus = QDBusConnection::sessionBus();
  if (!bus.isConnected()) return;
  bus.connect(kPortal, kPortalPath, kPortalSettings, "SettingChanged", this,
              SLOT(portal_setting_changed(QString, QString, QDBusVariant)));
  const std::pair<const char*, const char*> wanted[] = {
      {kAppearance, "color-scheme"},
      {kAppearance, "contrast"},
      {kAppearance, "reduced-motion"},
      {"org.gnome.desktop.interface", "enable-animations"},
      {"org.gnome.desktop.a11y.interface", "high-contrast"},
  };
  for (const auto& [group, key] : wanted) {
    QDBusMessage message =
        QDBusMessage::createMethodCall(kPortal, kPortalPath, kPortalSettings, "Read");
    message << QString(group) << QString(key);
    auto* watcher = new QDBusPendingCallWatcher(bus.asyncCall(message, 5'000), this);
    connect(watcher, &QDBusPendingCallWatcher::finished, this,
            [this, group = QString(group), key = QString(key)](QDBusPendingCallWatcher* done) {
              const QDBusPendingReply<QVariant> reply = *done;
              if (!reply.isError()) take_portal_setting(group, key, reply.value());
              done->deleteLater();
            });
  }
}

void Theme::portal_setting_changed(const QString& group, const QString& key,
                                   const QDBusVariant& value) {
  take_portal_setting(group, key, value.variant());
}

void Theme::take_portal_setting(const QString& group, const QString& key, const QVariant& value) {
  if (pretended_) return;
  QVariant inner = value;
  // Read() of older portals puts a variant into a variant.
  for (int depth = 0; depth < 3 && inner.canConvert<QDBusVariant>(); ++depth) {
    inner = inner.value<QDBusVariant>().variant();
  }
  if (group == QLatin1String(kAppearance)) {
    if (key == "color-scheme" && inner.toUInt() != 0) desktop_dark_ = inner.toUInt() == 1;
    if (key == "color-scheme" && inner.toUInt() == 0) desktop_dark_ = false;
    if (key == "contrast") desktop_contrast_ = inner.toUInt() == 1;
    if (key == "reduced-motion") reduced_motion_ = inner.toUInt() == 1;
  } else if (key == "enable-animations") {
    reduced_motion_ = !inner.toBool();
  } else if (key == "high-contrast") {
    desktop_contrast_ = inner.toBool();
  }
  apply();
}

void Theme::apply() {
  const bool is_dark = choice_ == Choice::kDesktop ? desktop_dark_ : choice_ == Choice::kDark;
  const Scheme wanted = desktop_contrast_
                            ? (is_dark ? Scheme::kDarkContrast : Scheme::kLightContrast)
                            : (is_dark ? Scheme::kDark : Scheme::kLight);
  style_->set_reduced_motion(reduced_motion_);
  if (applied_ && wanted == scheme_) return;
  applied_ = true;
  scheme_ = wanted;
  application_.setPalette(palette_of(scheme_));
  Q_EMIT changed();
}

}  // namespace shoal::ui
