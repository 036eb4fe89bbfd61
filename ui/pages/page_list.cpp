#include <QtGlobal>

#include "ui/pages/page.h"

namespace shoal::ui {

std::span<const PageSpec> page_list() {
  static constexpr PageSpec kPages[] = {
      {"overview", QT_TRANSLATE_NOOP("pages", "Overview"), "overview", make_overview_page},
      {"statistics", QT_TRANSLATE_NOOP("pages", "Statistics"), "statistics", make_statistics_page},
      {"work", QT_TRANSLATE_NOOP("pages", "Work"), "work", make_work_page},
      {"devices", QT_TRANSLATE_NOOP("pages", "Devices"), "devices", make_devices_page},
      {"rules", QT_TRANSLATE_NOOP("pages", "Rules"), "rules", make_rules_page},
      {"coordinators", QT_TRANSLATE_NOOP("pages", "Coordinators"), "coordinators",
       make_coordinators_page},
      {"log", QT_TRANSLATE_NOOP("pages", "Log"), "log", make_log_page},
  };
  return kPages;
}

}  // namespace shoal::ui
