#include "ui/widgets/setting_looks.h"

#include <QCoreApplication>
#include <algorithm>

namespace shoal::ui {
namespace {

using enum SettingSection;
using enum SettingForm;

constexpr SettingLook kLooks[] = {
    {"rules.gpu_when_in_use", QT_TRANSLATE_NOOP("settings", "GPUs while you use the computer"),
     kInUse},
    {"rules.cpu_when_in_use", QT_TRANSLATE_NOOP("settings", "CPU while you use the computer"),
     kInUse},
    {"rules.idle_seconds", QT_TRANSLATE_NOOP("settings", "Not in use after"), kInUse,
     QT_TRANSLATE_NOOP("settings", "s")},
    {"rules.idle_source", QT_TRANSLATE_NOOP("settings", "Who tells that you are away"), kInUse},
    {"rules.inhibitors", QT_TRANSLATE_NOOP("settings", "Wait during films and calls"), kInUse},
    {"yield.stop_ms", QT_TRANSLATE_NOOP("settings", "Stop computing within"), kInUse,
     QT_TRANSLATE_NOOP("settings", "ms")},
    {"yield.free_ms", QT_TRANSLATE_NOOP("settings", "Free the memory within"), kInUse,
     QT_TRANSLATE_NOOP("settings", "ms")},

    {"rules.exclusive_programs",
     QT_TRANSLATE_NOOP("settings", "Programs that have the computer to themselves"), kPrograms},
    {"rules.exclusive_programs_gpu",
     QT_TRANSLATE_NOOP("settings", "Programs that have the GPUs to themselves"), kPrograms},
    {"rules.game_mode", QT_TRANSLATE_NOOP("settings", "Wait during games"), kPrograms},
    {"rules.other_cpu_load_max",
     QT_TRANSLATE_NOOP("settings", "CPU load of other programs, at most"), kPrograms,
     QT_TRANSLATE_NOOP("settings", "%")},
    {"rules.other_gpu_load_max",
     QT_TRANSLATE_NOOP("settings", "GPU load of other programs, at most"), kPrograms,
     QT_TRANSLATE_NOOP("settings", "%")},

    {"rules.on_battery", QT_TRANSLATE_NOOP("settings", "Work on battery"), kPower},
    {"rules.battery_percent_min", QT_TRANSLATE_NOOP("settings", "Battery charge, at least"), kPower,
     QT_TRANSLATE_NOOP("settings", "%")},
    {"rules.power_saver", QT_TRANSLATE_NOOP("settings", "Work in power-saver mode"), kPower},
    {"rules.gpu_temperature_max", QT_TRANSLATE_NOOP("settings", "GPU temperature, at most"), kPower,
     QT_TRANSLATE_NOOP("settings", "°C")},
    {"rules.cpu_temperature_max", QT_TRANSLATE_NOOP("settings", "CPU temperature, at most"), kPower,
     QT_TRANSLATE_NOOP("settings", "°C")},
    {"comfort.temperature_target", QT_TRANSLATE_NOOP("settings", "Hold the temperature at"), kPower,
     QT_TRANSLATE_NOOP("settings", "°C"), QT_TRANSLATE_NOOP("settings", "off")},
    {"comfort.watts_target", QT_TRANSLATE_NOOP("settings", "Hold the power at"), kPower,
     QT_TRANSLATE_NOOP("settings", "W"), QT_TRANSLATE_NOOP("settings", "off")},
    {"comfort.duty_percent_max",
     QT_TRANSLATE_NOOP("settings", "Compute at most this part of the time"), kPower,
     QT_TRANSLATE_NOOP("settings", "%")},

    {"rules.compute_hours", QT_TRANSLATE_NOOP("settings", "Hours to compute"), kHours, nullptr,
     nullptr, kWeek},
    {"rules.network_hours", QT_TRANSLATE_NOOP("settings", "Hours to use the network"), kHours,
     nullptr, nullptr, kWeek},

    {"rules.metered", QT_TRANSLATE_NOOP("settings", "Use metered connections"), kNetwork},
    {"rules.download_bytes_per_second", QT_TRANSLATE_NOOP("settings", "Download rate, at most"),
     kNetwork, QT_TRANSLATE_NOOP("settings", "MB/s"), QT_TRANSLATE_NOOP("settings", "no limit"),
     kBytesPerSecond},
    {"rules.upload_bytes_per_second", QT_TRANSLATE_NOOP("settings", "Upload rate, at most"),
     kNetwork, QT_TRANSLATE_NOOP("settings", "MB/s"), QT_TRANSLATE_NOOP("settings", "no limit"),
     kBytesPerSecond},
    {"rules.transfer_bytes_month", QT_TRANSLATE_NOOP("settings", "Transfer in a month, at most"),
     kNetwork, QT_TRANSLATE_NOOP("settings", "GB"), QT_TRANSLATE_NOOP("settings", "no limit"),
     kBytes},
    {"network.direct", QT_TRANSLATE_NOOP("settings", "Connect to other computers directly"),
     kNetwork},
    {"network.direct_listen", QT_TRANSLATE_NOOP("settings", "Address for direct connections"),
     kNetwork},

    {"rules.memory_free_bytes_min", QT_TRANSLATE_NOOP("settings", "Memory that stays free"),
     kMemory, QT_TRANSLATE_NOOP("settings", "GB"), nullptr, kBytes},
    {"rules.vram_reserve_bytes", QT_TRANSLATE_NOOP("settings", "GPU memory that stays free"),
     kMemory, QT_TRANSLATE_NOOP("settings", "GB"), nullptr, kBytes},
    {"cache.bytes_max", QT_TRANSLATE_NOOP("settings", "Disk space for models, at most"), kMemory,
     QT_TRANSLATE_NOOP("settings", "GB"), nullptr, kBytes},
    {"cache.free_bytes_min", QT_TRANSLATE_NOOP("settings", "Disk space that stays free"), kMemory,
     QT_TRANSLATE_NOOP("settings", "GB"), nullptr, kBytes},
    {"cache.folder", QT_TRANSLATE_NOOP("settings", "Folder for models"), kMemory},

    {"energy.price_per_kwh", QT_TRANSLATE_NOOP("settings", "Price of a kilowatt-hour"), kEnergy},
    {"energy.currency", QT_TRANSLATE_NOOP("settings", "Currency"), kEnergy},
    {"energy.tariff", QT_TRANSLATE_NOOP("settings", "Other prices at some hours"), kEnergy},
    {"energy.price_max",
     QT_TRANSLATE_NOOP("settings", "Wait while a kilowatt-hour costs more than"), kEnergy, nullptr,
     QT_TRANSLATE_NOOP("settings", "never")},
    {"energy.kwh_per_day_max", QT_TRANSLATE_NOOP("settings", "Energy in a day, at most"), kEnergy,
     QT_TRANSLATE_NOOP("settings", "kWh"), QT_TRANSLATE_NOOP("settings", "no limit")},
    {"energy.kwh_per_month_max", QT_TRANSLATE_NOOP("settings", "Energy in a month, at most"),
     kEnergy, QT_TRANSLATE_NOOP("settings", "kWh"), QT_TRANSLATE_NOOP("settings", "no limit")},
    {"energy.cpu_watts", QT_TRANSLATE_NOOP("settings", "Power of the CPU while it computes"),
     kEnergy, QT_TRANSLATE_NOOP("settings", "W")},
    {"energy.gpu_watts", QT_TRANSLATE_NOOP("settings", "Power of a GPU while it computes"), kEnergy,
     QT_TRANSLATE_NOOP("settings", "W")},

    {"compute.devices", QT_TRANSLATE_NOOP("settings", "Devices to lend")},
    {"compute.threads", QT_TRANSLATE_NOOP("settings", "Threads on the CPU"), kAdvanced, nullptr,
     QT_TRANSLATE_NOOP("settings", "all")},
    {"work.ahead_minutes", QT_TRANSLATE_NOOP("settings", "Work on jobs that is kept ahead"),
     kAdvanced, QT_TRANSLATE_NOOP("settings", "min")},
    {"work.checkpoint_seconds", QT_TRANSLATE_NOOP("settings", "Work on jobs is stored every"),
     kAdvanced, QT_TRANSLATE_NOOP("settings", "s")},
    {"consent.new_classes", QT_TRANSLATE_NOOP("settings", "Work that you have not judged yet")},
    {"remote.listen", QT_TRANSLATE_NOOP("settings", "Address for other machines")},
    {"coordinators", QT_TRANSLATE_NOOP("settings", "Coordinators to join at start")},
    {"worker.program", QT_TRANSLATE_NOOP("settings", "Program that computes")},
    {"sensors.program", QT_TRANSLATE_NOOP("settings", "Program that watches the computer")},
    {"worker.memory_bytes_max", QT_TRANSLATE_NOOP("settings", "Memory of one worker, at most"),
     kAdvanced, QT_TRANSLATE_NOOP("settings", "GB"), QT_TRANSLATE_NOOP("settings", "no limit"),
     kBytes},
    {"worker.hang_ms_max", QT_TRANSLATE_NOOP("settings", "A silent worker is ended after"),
     kAdvanced, QT_TRANSLATE_NOOP("settings", "ms")},
};

struct ChoiceWord {
  const char* choice;
  const char* text;
};

// Names of desktops' own interfaces stay as they are.
constexpr ChoiceWord kChoices[] = {
    {"auto", QT_TRANSLATE_NOOP("settings", "The first that works")},
    {"allow", QT_TRANSLATE_NOOP("settings", "is taken")},
    {"deny", QT_TRANSLATE_NOOP("settings", "is refused")},
    {"terminals", QT_TRANSLATE_NOOP("settings", "Terminals (for servers)")},
    {"mutter", "GNOME (Mutter)"},
    {"screensaver", QT_TRANSLATE_NOOP("settings", "Screen saver")},
    {"xscreensaver", "X11 (XScreenSaver)"},
    {"ext-idle-notify", "Wayland (ext-idle-notify)"},
    {"logind", "systemd-logind"},
};

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
    case kInUse: return QCoreApplication::translate("settings", "While in use");
    case kPrograms: return QCoreApplication::translate("settings", "Programs and load");
    case kPower: return QCoreApplication::translate("settings", "Power and heat");
    case kHours: return QCoreApplication::translate("settings", "Hours");
    case kNetwork: return QCoreApplication::translate("settings", "Network");
    case kMemory: return QCoreApplication::translate("settings", "Memory and disk");
    case kEnergy: return QCoreApplication::translate("settings", "Energy and cost");
    case kAdvanced: return QCoreApplication::translate("settings", "Advanced");
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
