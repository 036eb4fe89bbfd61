#include "ui/translations.h"

#include <QCoreApplication>
#include <QLibraryInfo>

namespace shoal::ui {

Translations::Translations(QCoreApplication& application, const QLocale& locale) {
  QLocale::setDefault(locale);
  // The last one that is installed is asked first.
  if (english_.load(":/i18n/shoal_en.qm")) application.installTranslator(&english_);
  if (locale.language() == QLocale::English || locale.language() == QLocale::C) return;
  if (qt_.load(locale, "qtbase", "_", QLibraryInfo::path(QLibraryInfo::TranslationsPath))) {
    application.installTranslator(&qt_);
  }
  if (own_.load(locale, "shoal", "_", ":/i18n")) application.installTranslator(&own_);
}

}  // namespace shoal::ui
