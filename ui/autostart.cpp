#include "ui/autostart.h"

#include <QFile>
#include <QFileInfo>
#include <QStandardPaths>

#include "base/bytes.h"
#include "base/files.h"

namespace shoal::ui {
namespace {

constexpr char kName[] = "org.shoal.Shoal.desktop";

bool is_on(const QByteArray& entry) {
  for (const QByteArray& line : entry.split('\n')) {
    const QByteArray text = line.trimmed();
    if (text == "Hidden=true" || text == "X-GNOME-Autostart-enabled=false") return false;
  }
  return !entry.isEmpty();
}

QByteArray read(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.read(65'536) : QByteArray();
}

// As the Desktop Entry Specification wants an argument of Exec that may hold blanks.
QString quoted(const QString& argument) {
  QString escaped = argument;
  escaped.replace('\\', "\\\\\\\\")
      .replace('"', "\\\\\"")
      .replace('`', "\\\\`")
      .replace('$', "\\\\$");
  return '"' + escaped.replace('%', "%%") + '"';
}

}  // namespace

Autostart::Autostart(QString program, QString folder) : program_(std::move(program)) {
  if (folder.isEmpty()) {
    folder = QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation) + "/autostart";
  }
  path_ = folder + "/" + kName;
}

bool Autostart::enabled() const {
  // The owner's own entry comes before one of the whole system.
  if (QFileInfo::exists(path_)) return is_on(read(path_));
  return is_on(read(QString("/etc/xdg/autostart/") + kName));
}

Result<void> Autostart::set_enabled(bool enabled) const {
  SHOAL_TRY(make_folder(QFileInfo(path_).absolutePath().toStdString()));
  QString entry =
      "[Desktop Entry]\nType=Application\nName=Shoal\n"
      "Comment=Lends this computer to large language models\n"
      "Comment[de]=Verleiht diesen Rechner an große Sprachmodelle\n"
      "Icon=org.shoal.Shoal\nTerminal=false\nX-GNOME-Autostart-Delay=10\n";
  entry += "Exec=" + quoted(program_) + " --hidden\n";
  entry += enabled ? "X-GNOME-Autostart-enabled=true\n" : "Hidden=true\n";
  const QByteArray bytes = entry.toUtf8();
  return write_file_durably(path_.toStdString(),
                            as_bytes(std::string_view(bytes.data(), size_t(bytes.size()))));
}

}  // namespace shoal::ui
