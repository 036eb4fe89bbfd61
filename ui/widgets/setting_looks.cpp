#include "ui/widgets/setting_looks.h"

#include <QCoreApplication>
#include <algorithm>

namespace shoal::ui {
namespace {

using enum SettingSection;
using enum SettingForm;

#define TEXT(text) QT_TRANSLATE_NOOP("settings", text)

constexpr SettingLook kLooks[] = {
    {"rules.gpu_when_in_use", TEXT("GPUs while you use the computer"), kInUse},
    {"rules.cpu_when_in_use", TEXT("CPU while you use the computer"), kInUse},
    {"rules.idle_seconds", TEXT("Not in use after"), kInUse, TEXT("s")},
    {"rules.idle_source", TEXT("Who tells that you are away"), kInUse},
    {"rules.inhibitors", TEXT("Wait during films and calls"), kInUse},
    {"yield.stop_ms", TEXT("Stop computing within"), kInUse, TEXT("ms")},
    {"yield.free_ms", TEXT("Free the memory within"), kInUse, TEXT("ms")},

    {"rules.exclusive_programs", TEXT("Programs that have the computer to themselves"), kPrograms},
    {"rules.exclusive_programs_gpu", TEXT("Programs that have the GPUs to themselves"), kPrograms},
    {"rules.game_mode", TEXT("Wait during games"), kPrograms},
    {"rules.other_cpu_load_max", TEXT("CPU load of other programs, at most"), kPrograms, TEXT("%")},
    {"rules.other_gpu_load_max", TEXT("GPU load of other programs, at most"), kPrograms, TEXT("%")},

    {"rules.on_battery", TEXT("Work on battery"), kPower},
    {"rules.battery_percent_min", TEXT("Battery charge, at least"), kPower, TEXT("%")},
    {"rules.power_saver", TEXT("Work in power-saver mode"), kPower},
    {"rules.gpu_temperature_max", TEXT("GPU temperature, at most"), kPower, TEXT("°C")},
    {"rules.cpu_temperature_max", TEXT("CPU temperature, at most"), kPower, TEXT("°C")},
    {"comfort.temperature_target", TEXT("Hold each device at"), kPower, TEXT("°C"), TEXT("off")},
    {"comfort.watts_target", TEXT("Hold each device at"), kPower, TEXT("W"), TEXT("off")},
    {"comfort.duty_percent_max", TEXT("Compute at most this part of the time"), kPower, TEXT("%")},

    {"rules.compute_hours", TEXT("Hours to compute"), kHours, nullptr, nullptr, kWeek},
    {"rules.network_hours", TEXT("Hours to use the network"), kHours, nullptr, nullptr, kWeek},

    {"rules.metered", TEXT("Use metered connections"), kNetwork},
    {"rules.download_bytes_per_second", TEXT("Download rate, at most"), kNetwork, TEXT("MB/s"),
     TEXT("no limit"), kBytesPerSecond},
    {"rules.upload_bytes_per_second", TEXT("Upload rate, at most"), kNetwork, TEXT("MB/s"),
     TEXT("no limit"), kBytesPerSecond},
    {"rules.transfer_bytes_month", TEXT("Transfer in a month, at most"), kNetwork, TEXT("GB"),
     TEXT("no limit"), kBytes},

    {"rules.memory_free_bytes_min", TEXT("Memory that stays free"), kMemory, TEXT("GB"), nullptr,
     kBytes},
    {"rules.vram_reserve_bytes", TEXT("GPU memory that stays free"), kMemory, TEXT("GB"), nullptr,
     kBytes},
    {"cache.bytes_max", TEXT("Disk space for models, at most"), kMemory, TEXT("GB"), nullptr,
     kBytes},
    {"cache.free_bytes_min", TEXT("Disk space that stays free"), kMemory, TEXT("GB"), nullptr,
     kBytes},
    {"cache.folder", TEXT("Folder for models"), kMemory},

    {"energy.price_per_kwh", TEXT("Price of a kilowatt-hour"), kEnergy},
    {"energy.currency", TEXT("Currency"), kEnergy},
    {"energy.tariff", TEXT("Other prices at some hours"), kEnergy},
    {"energy.price_max", TEXT("Wait while a kilowatt-hour costs more than"), kEnergy, nullptr,
     TEXT("never")},
    {"energy.kwh_per_day_max", TEXT("Energy in a day, at most"), kEnergy, TEXT("kWh"),
     TEXT("no limit")},
    {"energy.kwh_per_month_max", TEXT("Energy in a month, at most"), kEnergy, TEXT("kWh"),
     TEXT("no limit")},
    {"energy.cpu_watts", TEXT("Power of the CPU while it computes"), kEnergy, TEXT("W")},
    {"energy.gpu_watts", TEXT("Power of a GPU while it computes"), kEnergy, TEXT("W")},

    {"compute.devices", TEXT("Devices to lend")},
    {"compute.threads", TEXT("Threads on the CPU"), kAdvanced, nullptr, TEXT("all")},
    {"consent.new_classes", TEXT("Work that you have not judged yet")},
    {"remote.listen", TEXT("Address for windows on other machines")},
    {"coordinators", TEXT("Coordinators to join at start")},
    {"worker.program", TEXT("Program that computes")},
    {"worker.memory_bytes_max", TEXT("Memory of one worker, at most"), kAdvanced, TEXT("GB"),
     TEXT("no limit"), kBytes},
    {"worker.hang_ms_max", TEXT("A silent worker is ended after"), kAdvanced, TEXT("ms")},
};

struct ChoiceWord {
  const char* choice;
  const char* text;
};

// Names of desktops' own interfaces stay as they are.
constexpr ChoiceWord kChoices[] = {
    {"auto", TEXT("The first that works")}, {"allow", TEXT("is taken")},
    {"deny", TEXT("is refused")},           {"terminals", TEXT("Terminals (for servers)")},
    {"mutter", "GNOME (Mutter)"},           {"screensaver", TEXT("Screen saver")},
    {"xscreensaver", "X11 (XScreenSaver)"}, {"ext-idle-notify", "Wayland (ext-idle-notify)"},
    {"logind", "systemd-logind"},
};

#undef TEXT

QString translated(const char* text) { return QCoreApplication::translate("settings", text); }

}  // namespace

std::span<const SettingLook> setting_looks() { return kLooks; }

const SettingLook* find_setting_look(const QString& key) {
  const auto* const found = std::ranges::find_if(
      kLooks, [&key](const SettingLook& look) { return key == QLatin1String(look.key); });
  return found == std::end(kLooks) ? nullptr : found;
}

QString setting_title(const QString& key) {
  const SettingLook* const look = find_setting_look(key);
  return look == nullptr ? key : translated(look->title);
}

QString section_title(SettingSection section) {
  switch (section) {
    case kInUse: return translated(QT_TRANSLATE_NOOP("settings", "While in use"));
    case kPrograms: return translated(QT_TRANSLATE_NOOP("settings", "Programs and load"));
    case kPower: return translated(QT_TRANSLATE_NOOP("settings", "Power and heat"));
    case kHours: return translated(QT_TRANSLATE_NOOP("settings", "Hours"));
    case kNetwork: return translated(QT_TRANSLATE_NOOP("settings", "Network"));
    case kMemory: return translated(QT_TRANSLATE_NOOP("settings", "Memory and disk"));
    case kEnergy: return translated(QT_TRANSLATE_NOOP("settings", "Energy and cost"));
    case kAdvanced: return translated(QT_TRANSLATE_NOOP("settings", "Advanced"));
  }
  return {};
}

QString choice_text(const QString& key, const QString& choice) {
  Q_UNUSED(key);
  for (const ChoiceWord& word : kChoices) {
    if (choice == QLatin1String(word.choice)) return translated(word.text);
  }
  return choice;
}

}  // namespace shoal::ui
