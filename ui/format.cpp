#include "ui/format.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QLocale>
#include <algorithm>
#include <cmath>

namespace shoal::ui {
namespace {

class Format {
  Q_DECLARE_TR_FUNCTIONS(Format)
};

const QString kUnknown = QStringLiteral("–");

// With as many digits as a glance needs.
QString three_digits(double value) {
  const double size = std::abs(value);
  return QLocale().toString(value, 'f', size >= 99.95 || value == 0 ? 0 : size >= 9.995 ? 1 : 2);
}

QString scaled(double value, std::initializer_list<const char*> units, double step) {
  auto unit = units.begin();
  while (std::abs(value) >= step * 0.9995 && unit + 1 != units.end()) {
    value /= step;
    ++unit;
  }
  const QString number =
      unit == units.begin() ? QLocale().toString(value, 'f', 0) : three_digits(value);
  return number + QChar::Nbsp + QString::fromLatin1(*unit);
}

QDateTime local(Millis wall) { return QDateTime::fromMSecsSinceEpoch(wall.count); }

}  // namespace

QString format_duration(Millis duration) {
  const int64_t seconds = std::max<int64_t>(duration.count, 0) / 1000;
  const QLocale locale;
  if (seconds < 60) return Format::tr("%1 s").arg(locale.toString(seconds));
  const int64_t minutes = seconds / 60;
  if (minutes < 60) return Format::tr("%1 min").arg(locale.toString(minutes));
  const int64_t hours = minutes / 60;
  if (hours < 48) {
    if (minutes % 60 == 0) return Format::tr("%1 h").arg(locale.toString(hours));
    return Format::tr("%1 h %2 min").arg(locale.toString(hours), locale.toString(minutes % 60));
  }
  const QString days =
      Format::tr("%n day(s)", nullptr, static_cast<int>(std::min<int64_t>(hours / 24, 1'000'000)));
  if (hours % 24 == 0 || hours >= 24 * 10) return days;
  return Format::tr("%1 %2 h").arg(days, locale.toString(hours % 24));
}

QString format_countdown(Millis left) {
  // Rounded up, so that it shows 0:00 only when the time is over.
  const int64_t seconds = (std::max<int64_t>(left.count, 0) + 999) / 1000;
  const auto two = [](int64_t n) { return QString::number(n).rightJustified(2, '0'); };
  if (seconds < 3600) return QString::number(seconds / 60) + ":" + two(seconds % 60);
  return QString::number(seconds / 3600) + ":" + two(seconds / 60 % 60) + ":" + two(seconds % 60);
}

QString format_short_time(Millis duration) {
  const QLocale locale;
  if (duration.count < 1'000)
    return Format::tr("%1 ms").arg(locale.toString(qint64{duration.count}));
  return Format::tr("%1 s").arg(
      locale.toString(static_cast<double>(duration.count) / 1'000, 'f', 1));
}

QString format_bytes(double bytes) {
  if (std::isnan(bytes)) return kUnknown;
  return scaled(bytes, {"B", "kB", "MB", "GB", "TB", "PB"}, 1000);
}

QString format_bytes_per_second(double rate) {
  if (std::isnan(rate)) return kUnknown;
  return scaled(rate, {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"}, 1000);
}

QString format_flops_per_second(double rate) {
  if (std::isnan(rate)) return kUnknown;
  return scaled(rate, {"FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"}, 1000);
}

QString format_rate(double per_second) {
  if (std::isnan(per_second)) return kUnknown;
  return Format::tr("%1/s", "a rate").arg(three_digits(per_second));
}

QString format_count(double count) {
  if (std::isnan(count)) return kUnknown;
  if (std::abs(count) >= 1e9) return Format::tr("%1 billion").arg(three_digits(count / 1e9));
  if (std::abs(count) >= 1e6) return Format::tr("%1 million").arg(three_digits(count / 1e6));
  return QLocale().toString(count, 'f', 0);
}

QString format_credit(double credit) {
  if (std::isnan(credit)) return kUnknown;
  if (std::abs(credit) >= 1e6) return format_count(credit);
  // The first credits of a small device are small.
  if (credit != 0 && std::abs(credit) < 0.0995) return QLocale().toString(credit, 'g', 2);
  return three_digits(credit);
}

QString format_money(double amount, const QString& currency) {
  if (std::isnan(amount)) return kUnknown;
  // A currency that the locale knows is written as it writes it.
  static const std::initializer_list<std::pair<const char*, const char*>> kSymbols = {
      {"EUR", "€"}, {"USD", "$"}, {"GBP", "£"}, {"JPY", "¥"}};
  QString symbol = currency.isEmpty() ? QString() : currency;
  for (const auto& [name, sign] : kSymbols) {
    if (currency == QLatin1String(name)) symbol = QString::fromUtf8(sign);
  }
  if (symbol.isEmpty()) return QLocale().toString(amount, 'f', 2);
  return QLocale().toCurrencyString(amount, symbol, 2);
}

QString format_energy(double kilowatt_hours) {
  if (std::isnan(kilowatt_hours)) return kUnknown;
  return scaled(kilowatt_hours * 1000, {"Wh", "kWh", "MWh"}, 1000);
}

QString format_watts(double watts) {
  if (std::isnan(watts)) return kUnknown;
  return QLocale().toString(watts, 'f', 0) + QChar::Nbsp + "W";
}

QString format_temperature(double celsius) {
  if (std::isnan(celsius)) return kUnknown;
  return QLocale().toString(celsius, 'f', 0) + QChar::Nbsp + "°C";
}

QString format_percent(double share) {
  if (std::isnan(share)) return kUnknown;
  return Format::tr("%1 %").arg(QLocale().toString(share * 100, 'f', 0));
}

QString format_time(Millis wall) {
  return QLocale().toString(local(wall).time(), QLocale::ShortFormat);
}

QString format_date(Millis wall) {
  return QLocale().toString(local(wall).date(), Format::tr("d MMM yyyy"));
}

QString format_date_time(Millis wall) {
  return Format::tr("%1 %2", "date, time").arg(format_date(wall), format_time(wall));
}

QString format_when(Millis wall, Millis now) {
  const QDate day = local(wall).date();
  const qint64 days = local(now).date().daysTo(day);
  const QString time = format_time(wall);
  if (days == 0) return time;
  if (days == 1) return Format::tr("tomorrow %1").arg(time);
  if (days == -1) return Format::tr("yesterday %1").arg(time);
  if (days > 1 && days < 7) {
    return Format::tr("%1 %2", "weekday, time").arg(QLocale().toString(day, "ddd"), time);
  }
  if (day.year() != local(now).date().year()) return format_date_time(wall);
  return Format::tr("%1 %2", "date, time").arg(QLocale().toString(day, Format::tr("d MMM")), time);
}

QString format_ago(Millis wall, Millis now) {
  const Millis age = now - wall;
  if (age.count < 60'000) return Format::tr("just now");
  if (age.count < 12 * 3'600'000) return Format::tr("%1 ago").arg(format_duration(age));
  return format_when(wall, now);
}

}  // namespace shoal::ui
