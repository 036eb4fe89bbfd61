#pragma once
// The language of the window: installs what is translated for a locale, and English plurals for the
// rest.

#include <QLocale>
#include <QTranslator>

class QCoreApplication;

namespace shoal::ui {

class Translations {
 public:
  // Stays as long as the application shall speak so. The locale's forms of numbers and dates are
  // the application's default from here on.
  Translations(QCoreApplication& application, const QLocale& locale);

 private:
  QTranslator own_, english_, qt_;
};

}  // namespace shoal::ui
