#pragma once
// Figures as people read them, in the reader's locale. Pure.

#include <QString>
#include <cstdint>

#include "base/units.h"

namespace shoal::ui {

// The two largest units: "45 s", "12 min", "3 h 20 min", "5 days 2 h". Rounded down; never
// negative.
QString format_duration(Millis duration);
// As a clock that runs down: "14:59", "1:03:20".
QString format_countdown(Millis left);

// "260 ms", "1.5 s"
QString format_short_time(Millis duration);

QString format_bytes(double bytes);            // "1.5 GB": powers of 1000.
QString format_bytes_per_second(double rate);  // "12 MB/s"
QString format_flops_per_second(double rate);  // "4.1 TFLOP/s"
QString format_rate(double per_second);        // "1,234/s"

QString format_count(double count);    // "12,345"; from a million on "1.2 million".
QString format_credit(double credit);  // "0.04", "12.3", "1,234"
QString format_money(double amount, const QString& currency);
QString format_energy(double kilowatt_hours);  // "12 Wh", "1.25 kWh"
QString format_watts(double watts);            // "–" when it is not known (NaN), as all below.
QString format_temperature(double celsius);
QString format_percent(double share);  // Of 0 to 1.

QString format_time(Millis wall);       // "14:30", in the local time zone, as all below.
QString format_date(Millis wall);       // "1 Dec 2026"
QString format_date_time(Millis wall);  // "1 Dec 2026 14:30"
// The shortest that is clear at `now`: "14:30", "tomorrow 06:00", "Mon 08:00", "12 Dec 08:00".
QString format_when(Millis wall, Millis now);
// "just now", "5 min ago", "yesterday 14:30"
QString format_ago(Millis wall, Millis now);

}  // namespace shoal::ui
