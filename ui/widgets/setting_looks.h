#pragma once
// How each setting of the client is shown: its name in plain words, its section, and how its value
// is edited. A setting that is not named here is shown by its key in the last section.

#include <QString>
#include <span>

namespace shoal::ui {

enum class SettingSection {
  kInUse,
  kPrograms,
  kPower,
  kHours,
  kNetwork,
  kMemory,
  kEnergy,
  kAdvanced,
};

enum class SettingForm {
  kPlain,           // As its type says.
  kBytes,           // In GB.
  kBytesPerSecond,  // In MB/s.
  kWeek,            // The grid of hours.
};

struct SettingLook {
  const char* key;
  const char* title;  // For translation in the context "settings", as `zero` and `unit`.
  SettingSection section = SettingSection::kAdvanced;
  const char* unit = nullptr;  // Behind a number.
  const char* zero = nullptr;  // What 0 is called.
  SettingForm form = SettingForm::kPlain;
};

std::span<const SettingLook> setting_looks();
const SettingLook* find_setting_look(const QString& key);  // Null: none.
QString setting_title(const QString& key);
QString section_title(SettingSection section);

// The word for a choice of a setting, such as "auto".
QString choice_text(const QString& key, const QString& choice);

}  // namespace shoal::ui
