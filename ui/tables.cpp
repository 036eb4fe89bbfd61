#include "ui/tables.h"

#include <QCoreApplication>
#include <QLocale>
#include <algorithm>

#include "base/text.h"
#include "ui/contribute.h"
#include "ui/format.h"
#include "ui/messages.h"

namespace shoal::ui {
namespace {

QString word(const char* text) { return QCoreApplication::translate("tables", text); }

QString unknown() { return QStringLiteral("–"); }

QString date_time_text(int64_t at_ms) {
  return at_ms == 0 ? unknown() : format_date_time(Millis{at_ms});
}

QString ago_text(int64_t at_ms, Millis now) {
  return at_ms == 0 ? unknown() : format_ago(Millis{at_ms}, now);
}

QVariant number(double value) { return QVariant(value); }
QVariant whole(int64_t value) { return QVariant(static_cast<qlonglong>(value)); }

// "4 to 12", as people count them: from 1.
QString fragments_text(uint32_t first, uint32_t last) {
  return QCoreApplication::translate("tables", "%1 to %2").arg(first + 1).arg(last + 1);
}

// A unit has items where a stage of a session has parts of a model.
QString work_parts_text(rpc::Snapshot::Work::Reader work) {
  const auto unit = work.getUnit();
  if (unit.getId() == 0) return fragments_text(work.getFirstFragment(), work.getLastFragment());
  return QCoreApplication::translate("tables", "unit %1, %2 of %3 items")
      .arg(unit.getId())
      .arg(format_count(unit.getItemsDone()), format_count(unit.getItems()));
}

QString work_parts_tip(rpc::Snapshot::Work::Reader work, Millis now) {
  const auto unit = work.getUnit();
  if (unit.getId() == 0) {
    return QCoreApplication::translate("tables", "Which parts of the model this computer holds");
  }
  // After a start it is not known until the coordinator has been asked.
  QString tip =
      unit.getUntilMs() == 0
          ? QCoreApplication::translate(
                "tables", "Part of a job; its coordinator will say until when it is wanted back.")
          : QCoreApplication::translate("tables", "Part of a job; it is wanted back by %1.")
                .arg(format_when(Millis{unit.getUntilMs()}, now));
  if (unit.getEstimateMs() > 0) {
    tip += ' ' + QCoreApplication::translate("tables", "The whole of it takes about %1.")
                     .arg(format_duration(Millis{static_cast<int64_t>(
                         std::min<uint64_t>(unit.getEstimateMs(), uint64_t{INT64_MAX}))}));
  }
  return tip;
}

QString past_parts_text(rpc::PastWork::Reader work) {
  if (work.getUnitId() == 0) return fragments_text(work.getFirstFragment(), work.getLastFragment());
  return QCoreApplication::translate("tables", "unit %1").arg(work.getUnitId());
}

// A receipt's reason is a code of schema/message.h.
QString reason_text(capnp::Text::Reader code) {
  if (code.size() == 0) return {};
  return sentence(Message{std::string(code.cStr()), {}});
}

struct Word {
  const char* name;
  const char* text;
};

template <size_t kCount>
QString find_word(const Word (&words)[kCount], const QString& name) {
  for (const Word& entry : words) {
    if (name == QLatin1String(entry.name)) return word(entry.text);
  }
  return name;  // Of a newer client.
}

QString verdict_word(rpc::Receipt::Verdict verdict) {
  switch (verdict) {
    case rpc::Receipt::Verdict::PENDING: return QCoreApplication::translate("tables", "pending");
    case rpc::Receipt::Verdict::CONFIRMED:
      return QCoreApplication::translate("tables", "confirmed");
    case rpc::Receipt::Verdict::REJECTED: return QCoreApplication::translate("tables", "rejected");
  }
  return unknown();
}

double earned(rpc::HostStanding::Reader standing) {
  return standing.getCreditConfirmed() * standing.getCreditRate();
}

// Where credit is worth nothing but itself, there is nothing to say.
QString earned_text(rpc::HostStanding::Reader standing) {
  const QString unit = text_of(standing.getCreditUnit());
  if (unit.isEmpty()) return {};
  const double value = earned(standing);
  const bool is_small = value > 0 && value < 0.01;
  return QStringLiteral("%1 %2").arg(
      is_small ? QLocale().toString(value, 'g', 2) : QLocale().toString(value, 'f', 2), unit);
}

}  // namespace

QString yes_no(bool yes) {
  return yes ? QCoreApplication::translate("tables", "yes")
             : QCoreApplication::translate("tables", "no");
}

QString text_of(capnp::Text::Reader text) {
  return QString::fromStdString(printable(std::string_view(text.cStr(), text.size())));
}

QString mode_word(rpc::Mode mode) {
  switch (mode) {
    case rpc::Mode::BY_RULES: return QCoreApplication::translate("tables", "By my rules");
    case rpc::Mode::ALWAYS: return QCoreApplication::translate("tables", "Always");
    case rpc::Mode::PAUSED: return QCoreApplication::translate("tables", "Paused");
  }
  return unknown();
}

QString privacy_word(rpc::Privacy privacy) {
  switch (privacy) {
    case rpc::Privacy::PUBLIC: return QCoreApplication::translate("tables", "public");
    case rpc::Privacy::ANCHORED: return QCoreApplication::translate("tables", "anchored");
    case rpc::Privacy::GROUP: return QCoreApplication::translate("tables", "group");
  }
  return unknown();
}

QString privacy_sentence(rpc::Privacy privacy) {
  switch (privacy) {
    case rpc::Privacy::PUBLIC:
      return QCoreApplication::translate(
          "tables", "Public: the owners of the computers that take part can read the text.");
    case rpc::Privacy::ANCHORED:
      return QCoreApplication::translate(
          "tables",
          "Anchored: the text itself stays on trusted computers; what passes through others "
          "can be guessed back by who tries hard.");
    case rpc::Privacy::GROUP:
      return QCoreApplication::translate(
          "tables",
          "Group: only computers that were invited to one group take part; their owners can read "
          "the text.");
  }
  return unknown();
}

QString job_class_text(rpc::JobClass::Reader job_class) {
  return QStringLiteral("%1 (%2)").arg(text_of(job_class.getModel()),
                                       privacy_word(job_class.getPrivacy()));
}

QString state_word(const QString& state) {
  static constexpr Word kWords[] = {
      {"connecting", QT_TRANSLATE_NOOP("tables", "connecting")},
      {"connected", QT_TRANSLATE_NOOP("tables", "connected")},
      {"waiting", QT_TRANSLATE_NOOP("tables", "tries again")},
      {"refused", QT_TRANSLATE_NOOP("tables", "refused")},
      {"fetching", QT_TRANSLATE_NOOP("tables", "fetching")},
      {"loading", QT_TRANSLATE_NOOP("tables", "loading")},
      {"ready", QT_TRANSLATE_NOOP("tables", "loaded")},
      {"working", QT_TRANSLATE_NOOP("tables", "working")},
      {"standby", QT_TRANSLATE_NOOP("tables", "standing by")},
      {"pooled", QT_TRANSLATE_NOOP("tables", "without work")},
      {"sleeping", QT_TRANSLATE_NOOP("tables", "asleep")},
      {"draining", QT_TRANSLATE_NOOP("tables", "finishing")},
      {"quarantined", QT_TRANSLATE_NOOP("tables", "quarantined")},
      {"gone", QT_TRANSLATE_NOOP("tables", "gone")},
      {"paused", QT_TRANSLATE_NOOP("tables", "paused")},
      {"starting", QT_TRANSLATE_NOOP("tables", "starting")},
      {"failed", QT_TRANSLATE_NOOP("tables", "failed")},
  };
  return find_word(kWords, state);
}

QString sensor_word(const QString& name) {
  static constexpr Word kWords[] = {
      {"idle", QT_TRANSLATE_NOOP("tables", "You at the computer")},
      {"inhibitors", QT_TRANSLATE_NOOP("tables", "Films and calls")},
      {"power", QT_TRANSLATE_NOOP("tables", "Power supply")},
      {"load", QT_TRANSLATE_NOOP("tables", "Load of other programs")},
      {"gpu", QT_TRANSLATE_NOOP("tables", "GPUs")},
      {"network", QT_TRANSLATE_NOOP("tables", "Network")},
      {"programs", QT_TRANSLATE_NOOP("tables", "Exclusive programs")},
      {"sleep", QT_TRANSLATE_NOOP("tables", "Sleep and shutdown")},
      {"memory", QT_TRANSLATE_NOOP("tables", "Memory")},
      {"disk", QT_TRANSLATE_NOOP("tables", "Disk")},
  };
  return find_word(kWords, name);
}

QString level_word(const QString& level) {
  static constexpr Word kWords[] = {
      {"error", QT_TRANSLATE_NOOP("tables", "error")},
      {"warning", QT_TRANSLATE_NOOP("tables", "warning")},
      {"info", QT_TRANSLATE_NOOP("tables", "info")},
  };
  return find_word(kWords, level);
}

bool same_class(rpc::JobClass::Reader a, rpc::JobClass::Reader b) {
  return a.getKind() == b.getKind() && a.getModel() == b.getModel() &&
         a.getPrivacy() == b.getPrivacy();
}

DeviceNames::DeviceNames(rpc::Snapshot::Reader snapshot) {
  for (const auto device : snapshot.getDevices()) {
    const auto info = device.getReport().getInfo();
    names_[text_of(info.getId())] = text_of(info.getName());
  }
}

QString DeviceNames::name(capnp::Text::Reader id) const {
  const QString text = text_of(id);
  const auto found = names_.find(text);
  return found == names_.end() || found->second.isEmpty() ? text : found->second;
}

void Sums::add(rpc::Totals::Reader totals) {
  confirmed += totals.getCreditConfirmed();
  pending += totals.getCreditPending();
  rejected += totals.getCreditRejected();
  rows += static_cast<double>(totals.getRows());
  worked_ms += static_cast<double>(totals.getWorkedMs());
  allowed_ms += static_cast<double>(totals.getAllowedMs());
  kilowatt_hours += totals.getKilowattHours();
  cost += totals.getCost();
  bytes_down += static_cast<double>(totals.getBytesDown());
  bytes_up += static_cast<double>(totals.getBytesUp());
}

void Sums::add_temperature(double celsius) {
  if (std::isnan(celsius)) return;
  temperature_max = std::isnan(temperature_max) ? celsius : std::max(temperature_max, celsius);
}

double Sums::duty() const {
  if (allowed_ms <= 0) return std::numeric_limits<double>::quiet_NaN();
  return std::clamp(worked_ms / allowed_ms, 0.0, 1.0);
}

std::vector<Column<DeviceRow>> device_columns() {
  return {
      {.key = "name",
       .title = QT_TRANSLATE_NOOP("tables", "Device"),
       .text = [](const DeviceRow& row) { return text_of(row.getReport().getInfo().getName()); }},
      {.key = "lent",
       .title = QT_TRANSLATE_NOOP("tables", "Lent"),
       .text = [](const DeviceRow& row) { return yes_no(row.getLent()); }},
      {.key = "state",
       .title = QT_TRANSLATE_NOOP("tables", "State"),
       .text =
           [](const DeviceRow& row) {
             return row.getLent() ? activity_word(row.getVerdict().getActivity()) : unknown();
           },
       .tip = [](const DeviceRow& row) { return sentence(row.getVerdict().getWhy()); }},
      {.key = "why",
       .title = QT_TRANSLATE_NOOP("tables", "Why"),
       .text = [](const DeviceRow& row) { return sentence(row.getVerdict().getWhy()); },
       .tip = [](const DeviceRow& row) { return sentence(row.getVerdict().getRemedy()); },
       .hidden = true},
      {.key = "credit_today",
       .title = QT_TRANSLATE_NOOP("tables", "Credit today"),
       .text =
           [](const DeviceRow& row) { return format_credit(row.getToday().getCreditConfirmed()); },
       .sort_key = [](const DeviceRow& row) { return number(row.getToday().getCreditConfirmed()); },
       .alignment = Qt::AlignRight,
       .unit = ""},
      {.key = "duty",
       .title = QT_TRANSLATE_NOOP("tables", "Busy"),
       .text = [](const DeviceRow& row) { return format_percent(row.getDuty()); },
       .sort_key = [](const DeviceRow& row) { return number(row.getDuty()); },
       .alignment = Qt::AlignRight,
       .unit = "0-1",
       .tip =
           [](const DeviceRow&) {
             return QCoreApplication::translate("tables", "Part of the last minute");
           }},
      {.key = "temperature",
       .title = QT_TRANSLATE_NOOP("tables", "Temperature"),
       .text = [](const DeviceRow& row) { return format_temperature(row.getTemperatureC()); },
       .sort_key = [](const DeviceRow& row) { return number(row.getTemperatureC()); },
       .alignment = Qt::AlignRight,
       .unit = "°C"},
      {.key = "watts",
       .title = QT_TRANSLATE_NOOP("tables", "Power"),
       .text =
           [](const DeviceRow& row) {
             const QString watts = format_watts(row.getWatts());
             return row.getWattsMeasured() || std::isnan(row.getWatts()) ? watts : '~' + watts;
           },
       .sort_key = [](const DeviceRow& row) { return number(row.getWatts()); },
       .alignment = Qt::AlignRight,
       .unit = "W",
       .tip =
           [](const DeviceRow& row) {
             return row.getWattsMeasured() ? QCoreApplication::translate("tables", "Measured")
                                           : QCoreApplication::translate("tables", "Estimated");
           }},
      {.key = "memory_used",
       .title = QT_TRANSLATE_NOOP("tables", "Memory used"),
       .text =
           [](const DeviceRow& row) {
             return format_bytes(static_cast<double>(row.getMemoryUsedBytes()));
           },
       .sort_key =
           [](const DeviceRow& row) {
             return number(static_cast<double>(row.getMemoryUsedBytes()));
           },
       .alignment = Qt::AlignRight,
       .unit = "bytes"},
      {.key = "memory",
       .title = QT_TRANSLATE_NOOP("tables", "Memory"),
       .text =
           [](const DeviceRow& row) {
             return format_bytes(static_cast<double>(row.getReport().getInfo().getMemoryBytes()));
           },
       .sort_key =
           [](const DeviceRow& row) {
             return number(static_cast<double>(row.getReport().getInfo().getMemoryBytes()));
           },
       .alignment = Qt::AlignRight,
       .unit = "bytes",
       .hidden = true},
      {.key = "stages",
       .title = QT_TRANSLATE_NOOP("tables", "Stages"),
       .text = [](const DeviceRow& row) { return format_count(row.getStages()); },
       .sort_key = [](const DeviceRow& row) { return whole(row.getStages()); },
       .alignment = Qt::AlignRight,
       .unit = "",
       .hidden = true},
      {.key = "decode",
       .title = QT_TRANSLATE_NOOP("tables", "Tokens one by one"),
       .text =
           [](const DeviceRow& row) {
             const double rate = row.getReport().getBenchmark().getDecodeRowsPerSecond();
             return rate > 0 ? format_rate(rate) : unknown();
           },
       .sort_key =
           [](const DeviceRow& row) {
             return number(row.getReport().getBenchmark().getDecodeRowsPerSecond());
           },
       .alignment = Qt::AlignRight,
       .unit = "1/s",
       .hidden = true},
      {.key = "driver",
       .title = QT_TRANSLATE_NOOP("tables", "Driver"),
       .text = [](const DeviceRow& row) { return text_of(row.getReport().getInfo().getDriver()); },
       .hidden = true},
      {.key = "id",
       .title = QT_TRANSLATE_NOOP("tables", "Id"),
       .text = [](const DeviceRow& row) { return text_of(row.getReport().getInfo().getId()); },
       .fixed_pitch = true,
       .hidden = true},
  };
}

std::vector<Column<DeviceSums>> device_sum_columns() {
  return {
      {.key = "name",
       .title = QT_TRANSLATE_NOOP("tables", "Device"),
       .text = [](const DeviceSums& row) { return row.name; }},
      {.key = "confirmed",
       .title = QT_TRANSLATE_NOOP("tables", "Confirmed"),
       .text = [](const DeviceSums& row) { return format_credit(row.sums.confirmed); },
       .sort_key = [](const DeviceSums& row) { return number(row.sums.confirmed); },
       .alignment = Qt::AlignRight,
       .unit = "credit"},
      {.key = "pending",
       .title = QT_TRANSLATE_NOOP("tables", "Pending"),
       .text = [](const DeviceSums& row) { return format_credit(row.sums.pending); },
       .sort_key = [](const DeviceSums& row) { return number(row.sums.pending); },
       .alignment = Qt::AlignRight,
       .unit = "credit"},
      {.key = "rejected",
       .title = QT_TRANSLATE_NOOP("tables", "Rejected"),
       .text = [](const DeviceSums& row) { return format_credit(row.sums.rejected); },
       .sort_key = [](const DeviceSums& row) { return number(row.sums.rejected); },
       .alignment = Qt::AlignRight,
       .unit = "credit"},
      {.key = "rows",
       .title = QT_TRANSLATE_NOOP("tables", "Tokens"),
       .text = [](const DeviceSums& row) { return format_count(row.sums.rows); },
       .sort_key = [](const DeviceSums& row) { return number(row.sums.rows); },
       .alignment = Qt::AlignRight,
       .unit = ""},
      {.key = "worked",
       .title = QT_TRANSLATE_NOOP("tables", "Worked"),
       .text =
           [](const DeviceSums& row) {
             return format_duration(Millis{static_cast<int64_t>(row.sums.worked_ms)});
           },
       .sort_key = [](const DeviceSums& row) { return number(row.sums.worked_ms / 3.6e6); },
       .alignment = Qt::AlignRight,
       .unit = "h"},
      {.key = "duty",
       .title = QT_TRANSLATE_NOOP("tables", "Duty"),
       .text = [](const DeviceSums& row) { return format_percent(row.sums.duty()); },
       .sort_key = [](const DeviceSums& row) { return number(row.sums.duty()); },
       .alignment = Qt::AlignRight,
       .unit = "0-1",
       .tip =
           [](const DeviceSums&) {
             return QCoreApplication::translate("tables",
                                                "Time worked, of the time that your rules allowed");
           }},
      {.key = "energy",
       .title = QT_TRANSLATE_NOOP("tables", "Energy"),
       .text = [](const DeviceSums& row) { return format_energy(row.sums.kilowatt_hours); },
       .sort_key = [](const DeviceSums& row) { return number(row.sums.kilowatt_hours); },
       .alignment = Qt::AlignRight,
       .unit = "kWh"},
      {.key = "cost",
       .title = QT_TRANSLATE_NOOP("tables", "Cost"),
       .text = [](const DeviceSums& row) { return format_money(row.sums.cost, row.currency); },
       .sort_key = [](const DeviceSums& row) { return number(row.sums.cost); },
       .alignment = Qt::AlignRight,
       .unit = ""},
      {.key = "temperature",
       .title = QT_TRANSLATE_NOOP("tables", "Hottest"),
       .text = [](const DeviceSums& row) { return format_temperature(row.sums.temperature_max); },
       .sort_key = [](const DeviceSums& row) { return number(row.sums.temperature_max); },
       .alignment = Qt::AlignRight,
       .unit = "°C"},
  };
}

std::vector<Column<WorkRow>> work_columns() {
  return {
      {.key = "model",
       .title = QT_TRANSLATE_NOOP("tables", "Model"),
       .text = [](const WorkRow& row) { return text_of(row.work.getJobClass().getModel()); }},
      {.key = "state",
       .title = QT_TRANSLATE_NOOP("tables", "State"),
       .text = [](const WorkRow& row) { return state_word(text_of(row.work.getState())); }},
      {.key = "device",
       .title = QT_TRANSLATE_NOOP("tables", "Device"),
       .text = [](const WorkRow& row) { return row.device; }},
      {.key = "fragments",
       .title = QT_TRANSLATE_NOOP("tables", "Parts"),
       .text = [](const WorkRow& row) { return work_parts_text(row.work); },
       .sort_key =
           [](const WorkRow& row) {
             const auto unit = row.work.getUnit();
             return whole(static_cast<int64_t>(unit.getId() == 0 ? row.work.getFirstFragment()
                                                                 : unit.getId()));
           },
       .tip = [](const WorkRow& row) { return work_parts_tip(row.work, row.now); }},
      {.key = "rows",
       .title = QT_TRANSLATE_NOOP("tables", "Tokens"),
       .text =
           [](const WorkRow& row) { return format_count(static_cast<double>(row.work.getRows())); },
       .sort_key =
           [](const WorkRow& row) { return whole(static_cast<int64_t>(row.work.getRows())); },
       .alignment = Qt::AlignRight,
       .unit = ""},
      {.key = "steps",
       .title = QT_TRANSLATE_NOOP("tables", "Steps"),
       .text =
           [](const WorkRow& row) {
             return format_count(static_cast<double>(row.work.getSteps()));
           },
       .sort_key =
           [](const WorkRow& row) { return whole(static_cast<int64_t>(row.work.getSteps())); },
       .alignment = Qt::AlignRight,
       .unit = "",
       .hidden = true},
      {.key = "since",
       .title = QT_TRANSLATE_NOOP("tables", "For"),
       .text =
           [](const WorkRow& row) {
             return format_duration(row.now - Millis{row.work.getSinceMs()});
           },
       .sort_key = [](const WorkRow& row) { return whole(-row.work.getSinceMs()); },
       .alignment = Qt::AlignRight},
      {.key = "privacy",
       .title = QT_TRANSLATE_NOOP("tables", "Data"),
       .text = [](const WorkRow& row) { return privacy_word(row.work.getJobClass().getPrivacy()); },
       .tip =
           [](const WorkRow& row) {
             return privacy_sentence(row.work.getJobClass().getPrivacy());
           }},
      {.key = "coordinator",
       .title = QT_TRANSLATE_NOOP("tables", "Coordinator"),
       .text = [](const WorkRow& row) { return text_of(row.work.getCoordinator()); }},
      {.key = "lease",
       .title = QT_TRANSLATE_NOOP("tables", "Lease"),
       .text = [](const WorkRow& row) { return QString::number(row.work.getLeaseId()); },
       .sort_key =
           [](const WorkRow& row) { return whole(static_cast<int64_t>(row.work.getLeaseId())); },
       .alignment = Qt::AlignRight,
       .hidden = true},
  };
}

std::vector<Column<TransferRow>> transfer_columns() {
  const auto share = [](const TransferRow& row) {
    const auto total = static_cast<double>(row.getBytesTotal());
    return total > 0 ? std::min(1.0, static_cast<double>(row.getBytesDone()) / total) : 0.0;
  };
  const auto left_ms = [](const TransferRow& row) {
    const double rate = row.getBytesPerSecond();
    const double left =
        static_cast<double>(row.getBytesTotal()) - static_cast<double>(row.getBytesDone());
    // A year stands for never: no duration below it overflows.
    constexpr double kYearMs = 3.2e10;
    return rate > 0 && left >= 0 ? std::min(left / rate * 1000, kYearMs)
                                 : std::numeric_limits<double>::quiet_NaN();
  };
  return {
      {.key = "digest",
       .title = QT_TRANSLATE_NOOP("tables", "Shard"),
       .text = [](const TransferRow& row) { return text_of(row.getDigest()).left(16); },
       .tip = [](const TransferRow& row) { return text_of(row.getDigest()); },
       .fixed_pitch = true},
      {.key = "progress",
       .title = QT_TRANSLATE_NOOP("tables", "Progress"),
       .text = [share](const TransferRow& row) { return format_percent(share(row)); },
       .sort_key = [share](const TransferRow& row) { return number(share(row)); },
       .alignment = Qt::AlignHCenter,
       .unit = "0-1",
       .progress = share},
      {.key = "done",
       .title = QT_TRANSLATE_NOOP("tables", "Done"),
       .text =
           [](const TransferRow& row) {
             return QCoreApplication::translate("tables", "%1 of %2")
                 .arg(format_bytes(static_cast<double>(row.getBytesDone())),
                      format_bytes(static_cast<double>(row.getBytesTotal())));
           },
       .sort_key =
           [](const TransferRow& row) { return whole(static_cast<int64_t>(row.getBytesDone())); },
       .alignment = Qt::AlignRight,
       .unit = "bytes"},
      {.key = "rate",
       .title = QT_TRANSLATE_NOOP("tables", "Rate"),
       .text =
           [](const TransferRow& row) { return format_bytes_per_second(row.getBytesPerSecond()); },
       .sort_key = [](const TransferRow& row) { return number(row.getBytesPerSecond()); },
       .alignment = Qt::AlignRight,
       .unit = "bytes/s"},
      {.key = "left",
       .title = QT_TRANSLATE_NOOP("tables", "Left"),
       .text =
           [left_ms](const TransferRow& row) {
             const double left = left_ms(row);
             return std::isnan(left) ? unknown()
                                     : format_duration(Millis{static_cast<int64_t>(left)});
           },
       .sort_key = [left_ms](const TransferRow& row) { return number(left_ms(row) / 1000); },
       .alignment = Qt::AlignRight,
       .unit = "s"},
      {.key = "coordinator",
       .title = QT_TRANSLATE_NOOP("tables", "Coordinator"),
       .text = [](const TransferRow& row) { return text_of(row.getCoordinator()); }},
  };
}

std::vector<Column<PastWorkRow>> past_work_columns() {
  return {
      {.key = "ended",
       .title = QT_TRANSLATE_NOOP("tables", "Ended"),
       .text = [](const PastWorkRow& row) { return ago_text(row.work.getEndedMs(), row.now); },
       .sort_key = [](const PastWorkRow& row) { return whole(row.work.getEndedMs()); },
       .tip = [](const PastWorkRow& row) { return date_time_text(row.work.getEndedMs()); }},
      {.key = "model",
       .title = QT_TRANSLATE_NOOP("tables", "Model"),
       .text = [](const PastWorkRow& row) { return text_of(row.work.getJobClass().getModel()); }},
      {.key = "device",
       .title = QT_TRANSLATE_NOOP("tables", "Device"),
       .text = [](const PastWorkRow& row) { return row.device; }},
      {.key = "rows",
       .title = QT_TRANSLATE_NOOP("tables", "Tokens"),
       .text =
           [](const PastWorkRow& row) {
             return format_count(static_cast<double>(row.work.getRows()));
           },
       .sort_key =
           [](const PastWorkRow& row) { return whole(static_cast<int64_t>(row.work.getRows())); },
       .alignment = Qt::AlignRight,
       .unit = ""},
      {.key = "lasted",
       .title = QT_TRANSLATE_NOOP("tables", "Lasted"),
       .text =
           [](const PastWorkRow& row) {
             return format_duration(Millis{row.work.getEndedMs() - row.work.getStartedMs()});
           },
       .sort_key =
           [](const PastWorkRow& row) {
             return number(static_cast<double>(row.work.getEndedMs() - row.work.getStartedMs()) /
                           1e3);
           },
       .alignment = Qt::AlignRight,
       .unit = "s"},
      {.key = "why",
       .title = QT_TRANSLATE_NOOP("tables", "Why it ended"),
       .text = [](const PastWorkRow& row) { return sentence(row.work.getEnded()); },
       .tip = [](const PastWorkRow& row) { return sentence(row.work.getEnded()); }},
      {.key = "coordinator",
       .title = QT_TRANSLATE_NOOP("tables", "Coordinator"),
       .text = [](const PastWorkRow& row) { return text_of(row.work.getCoordinator()); }},
      {.key = "fragments",
       .title = QT_TRANSLATE_NOOP("tables", "Parts"),
       .text = [](const PastWorkRow& row) { return past_parts_text(row.work); },
       .sort_key =
           [](const PastWorkRow& row) {
             return whole(static_cast<int64_t>(
                 row.work.getUnitId() == 0 ? row.work.getFirstFragment() : row.work.getUnitId()));
           },
       .hidden = true},
      {.key = "steps",
       .title = QT_TRANSLATE_NOOP("tables", "Steps"),
       .text =
           [](const PastWorkRow& row) {
             return format_count(static_cast<double>(row.work.getSteps()));
           },
       .sort_key =
           [](const PastWorkRow& row) { return whole(static_cast<int64_t>(row.work.getSteps())); },
       .alignment = Qt::AlignRight,
       .unit = "",
       .hidden = true},
      {.key = "started",
       .title = QT_TRANSLATE_NOOP("tables", "Started"),
       .text = [](const PastWorkRow& row) { return date_time_text(row.work.getStartedMs()); },
       .sort_key = [](const PastWorkRow& row) { return whole(row.work.getStartedMs()); },
       .hidden = true},
      {.key = "privacy",
       .title = QT_TRANSLATE_NOOP("tables", "Data"),
       .text =
           [](const PastWorkRow& row) { return privacy_word(row.work.getJobClass().getPrivacy()); },
       .hidden = true},
      {.key = "lease",
       .title = QT_TRANSLATE_NOOP("tables", "Lease"),
       .text = [](const PastWorkRow& row) { return QString::number(row.work.getLeaseId()); },
       .sort_key =
           [](const PastWorkRow& row) {
             return whole(static_cast<int64_t>(row.work.getLeaseId()));
           },
       .alignment = Qt::AlignRight,
       .hidden = true},
  };
}

std::vector<Column<ReceiptRow>> receipt_columns() {
  return {
      {.key = "at",
       .title = QT_TRANSLATE_NOOP("tables", "When"),
       .text =
           [](const ReceiptRow& row) { return date_time_text(row.stored.getReceipt().getAtMs()); },
       .sort_key = [](const ReceiptRow& row) { return whole(row.stored.getReceipt().getAtMs()); }},
      {.key = "credit",
       .title = QT_TRANSLATE_NOOP("tables", "Credit"),
       .text =
           [](const ReceiptRow& row) { return format_credit(row.stored.getReceipt().getCredit()); },
       .sort_key =
           [](const ReceiptRow& row) { return number(row.stored.getReceipt().getCredit()); },
       .alignment = Qt::AlignRight,
       .unit = ""},
      {.key = "verdict",
       .title = QT_TRANSLATE_NOOP("tables", "Verdict"),
       .text =
           [](const ReceiptRow& row) { return verdict_word(row.stored.getReceipt().getVerdict()); },
       .tip =
           [](const ReceiptRow& row) { return reason_text(row.stored.getReceipt().getReason()); }},
      {.key = "genuine",
       .title = QT_TRANSLATE_NOOP("tables", "Signature"),
       .text =
           [](const ReceiptRow& row) {
             return row.stored.getGenuine() ? QCoreApplication::translate("tables", "genuine")
                                            : QCoreApplication::translate("tables", "does not fit");
           }},
      {.key = "rows",
       .title = QT_TRANSLATE_NOOP("tables", "Tokens"),
       .text =
           [](const ReceiptRow& row) {
             return format_count(static_cast<double>(row.stored.getReceipt().getRows()));
           },
       .sort_key =
           [](const ReceiptRow& row) {
             return whole(static_cast<int64_t>(row.stored.getReceipt().getRows()));
           },
       .alignment = Qt::AlignRight,
       .unit = "",
       .hidden = true},
      {.key = "model",
       .title = QT_TRANSLATE_NOOP("tables", "Model"),
       .text =
           [](const ReceiptRow& row) {
             return text_of(row.stored.getReceipt().getJobClass().getModel());
           }},
      {.key = "device",
       .title = QT_TRANSLATE_NOOP("tables", "Device"),
       .text = [](const ReceiptRow& row) { return row.device; },
       .hidden = true},
      {.key = "reason",
       .title = QT_TRANSLATE_NOOP("tables", "Reason"),
       .text =
           [](const ReceiptRow& row) { return reason_text(row.stored.getReceipt().getReason()); },
       .tip =
           [](const ReceiptRow& row) { return reason_text(row.stored.getReceipt().getReason()); }},
      {.key = "coordinator",
       .title = QT_TRANSLATE_NOOP("tables", "Coordinator"),
       .text = [](const ReceiptRow& row) { return text_of(row.stored.getCoordinator()); }},
      {.key = "number",
       .title = QT_TRANSLATE_NOOP("tables", "Number"),
       .text =
           [](const ReceiptRow& row) {
             return QString::number(row.stored.getReceipt().getNumber());
           },
       .sort_key =
           [](const ReceiptRow& row) {
             return whole(static_cast<int64_t>(row.stored.getReceipt().getNumber()));
           },
       .alignment = Qt::AlignRight,
       .hidden = true},
      {.key = "lease",
       .title = QT_TRANSLATE_NOOP("tables", "Lease"),
       .text =
           [](const ReceiptRow& row) {
             return QString::number(row.stored.getReceipt().getLeaseId());
           },
       .sort_key =
           [](const ReceiptRow& row) {
             return whole(static_cast<int64_t>(row.stored.getReceipt().getLeaseId()));
           },
       .alignment = Qt::AlignRight,
       .hidden = true},
  };
}

std::vector<Column<ReportRow>> report_columns() {
  return {
      {.key = "coordinator",
       .title = QT_TRANSLATE_NOOP("tables", "Coordinator"),
       .text = [](const ReportRow& row) { return text_of(row.getCoordinator()); }},
      {.key = "agrees",
       .title = QT_TRANSLATE_NOOP("tables", "Answer"),
       .text =
           [](const ReportRow& row) {
             return row.getAgrees() ? QCoreApplication::translate("tables", "✓ The total is right")
                                    : QCoreApplication::translate("tables", "✗ The totals differ");
           }},
      {.key = "confirmed",
       .title = QT_TRANSLATE_NOOP("tables", "By your receipts"),
       .text = [](const ReportRow& row) { return format_credit(row.getCreditConfirmed()); },
       .sort_key = [](const ReportRow& row) { return number(row.getCreditConfirmed()); },
       .alignment = Qt::AlignRight,
       .unit = "credit"},
      {.key = "stated",
       .title = QT_TRANSLATE_NOOP("tables", "By the coordinator"),
       .text = [](const ReportRow& row) { return format_credit(row.getCreditStated()); },
       .sort_key = [](const ReportRow& row) { return number(row.getCreditStated()); },
       .alignment = Qt::AlignRight,
       .unit = "credit"},
      {.key = "genuine",
       .title = QT_TRANSLATE_NOOP("tables", "Genuine"),
       .text =
           [](const ReportRow& row) {
             return QCoreApplication::translate("tables", "%1 of %2")
                 .arg(format_count(static_cast<double>(row.getGenuine())),
                      format_count(static_cast<double>(row.getCount())));
           },
       .sort_key =
           [](const ReportRow& row) { return whole(static_cast<int64_t>(row.getGenuine())); },
       .alignment = Qt::AlignRight},
      {.key = "missing",
       .title = QT_TRANSLATE_NOOP("tables", "Missing"),
       .text =
           [](const ReportRow& row) { return format_count(static_cast<double>(row.getMissing())); },
       .sort_key =
           [](const ReportRow& row) { return whole(static_cast<int64_t>(row.getMissing())); },
       .alignment = Qt::AlignRight,
       .unit = ""},
      {.key = "why",
       .title = QT_TRANSLATE_NOOP("tables", "Why"),
       .text = [](const ReportRow& row) { return sentence(row.getWhy()); },
       .tip = [](const ReportRow& row) { return sentence(row.getWhy()); }},
  };
}

std::vector<Column<TraceRow>> trace_columns() {
  return {
      {.key = "since",
       .title = QT_TRANSLATE_NOOP("tables", "From"),
       .text =
           [](const TraceRow& row) { return date_time_text(row.span.getVerdict().getSinceMs()); },
       .sort_key = [](const TraceRow& row) { return whole(row.span.getVerdict().getSinceMs()); }},
      {.key = "lasted",
       .title = QT_TRANSLATE_NOOP("tables", "Lasted"),
       .text =
           [](const TraceRow& row) {
             return format_duration(row.end - Millis{row.span.getVerdict().getSinceMs()});
           },
       .sort_key =
           [](const TraceRow& row) {
             return number(static_cast<double>(row.end.count - row.span.getVerdict().getSinceMs()) /
                           1e3);
           },
       .alignment = Qt::AlignRight,
       .unit = "s"},
      {.key = "resource",
       .title = QT_TRANSLATE_NOOP("tables", "Of"),
       .text = [](const TraceRow& row) { return resource_word(row.span.getResource()); }},
      {.key = "state",
       .title = QT_TRANSLATE_NOOP("tables", "State"),
       .text =
           [](const TraceRow& row) { return activity_word(row.span.getVerdict().getActivity()); }},
      {.key = "why",
       .title = QT_TRANSLATE_NOOP("tables", "Why"),
       .text = [](const TraceRow& row) { return sentence(row.span.getVerdict().getWhy()); },
       .tip = [](const TraceRow& row) { return sentence(row.span.getVerdict().getWhy()); }},
      {.key = "remedy",
       .title = QT_TRANSLATE_NOOP("tables", "What would change it"),
       .text = [](const TraceRow& row) { return sentence(row.span.getVerdict().getRemedy()); },
       .tip = [](const TraceRow& row) { return sentence(row.span.getVerdict().getRemedy()); }},
      {.key = "rule",
       .title = QT_TRANSLATE_NOOP("tables", "Rule"),
       .text = [](const TraceRow& row) { return text_of(row.span.getVerdict().getRule()); },
       .hidden = true},
  };
}

std::vector<Column<ConnectionRow>> connection_columns() {
  return {
      {.key = "name",
       .title = QT_TRANSLATE_NOOP("tables", "Coordinator"),
       .text =
           [](const ConnectionRow& row) {
             const QString name = text_of(row.connection.getName());
             return name.isEmpty() ? text_of(row.connection.getUrl()) : name;
           }},
      {.key = "state",
       .title = QT_TRANSLATE_NOOP("tables", "State"),
       .text =
           [](const ConnectionRow& row) { return state_word(text_of(row.connection.getState())); },
       .tip = [](const ConnectionRow& row) { return problem_text(row.connection.getReason()); }},
      {.key = "confirmed",
       .title = QT_TRANSLATE_NOOP("tables", "Credit"),
       .text =
           [](const ConnectionRow& row) {
             return format_credit(row.connection.getStanding().getCreditConfirmed());
           },
       .sort_key =
           [](const ConnectionRow& row) {
             return number(row.connection.getStanding().getCreditConfirmed());
           },
       .alignment = Qt::AlignRight,
       .unit = ""},
      {.key = "pending",
       .title = QT_TRANSLATE_NOOP("tables", "Pending"),
       .text =
           [](const ConnectionRow& row) {
             return format_credit(row.connection.getStanding().getCreditPending());
           },
       .sort_key =
           [](const ConnectionRow& row) {
             return number(row.connection.getStanding().getCreditPending());
           },
       .alignment = Qt::AlignRight,
       .unit = ""},
      {.key = "earned",
       .title = QT_TRANSLATE_NOOP("tables", "Earned"),
       .text = [](const ConnectionRow& row) { return earned_text(row.connection.getStanding()); },
       .sort_key =
           [](const ConnectionRow& row) { return number(earned(row.connection.getStanding())); },
       .alignment = Qt::AlignRight},
      {.key = "last_work",
       .title = QT_TRANSLATE_NOOP("tables", "Last work"),
       .text =
           [](const ConnectionRow& row) {
             return row.connection.getLastWorkMs() == 0
                        ? QCoreApplication::translate("tables", "none yet")
                        : format_ago(Millis{row.connection.getLastWorkMs()}, row.now);
           },
       .sort_key = [](const ConnectionRow& row) { return whole(row.connection.getLastWorkMs()); }},
      {.key = "receipts",
       .title = QT_TRANSLATE_NOOP("tables", "Receipts"),
       .text =
           [](const ConnectionRow& row) {
             return format_count(static_cast<double>(row.connection.getReceiptsStored()));
           },
       .sort_key =
           [](const ConnectionRow& row) {
             return whole(static_cast<int64_t>(row.connection.getReceiptsStored()));
           },
       .alignment = Qt::AlignRight,
       .unit = ""},
      {.key = "trusted",
       .title = QT_TRANSLATE_NOOP("tables", "Trusts you"),
       .text = [](const ConnectionRow& row) { return yes_no(row.connection.getTrusted()); },
       .tip =
           [](const ConnectionRow&) {
             return QCoreApplication::translate(
                 "tables", "Trusted computers may hold the ends of anchored sessions");
           }},
      {.key = "url",
       .title = QT_TRANSLATE_NOOP("tables", "Address"),
       .text = [](const ConnectionRow& row) { return text_of(row.connection.getUrl()); }},
  };
}

std::vector<Column<StandingRow>> standing_columns() {
  return {
      {.key = "device",
       .title = QT_TRANSLATE_NOOP("tables", "Device"),
       .text = [](const StandingRow& row) { return row.name; }},
      {.key = "state",
       .title = QT_TRANSLATE_NOOP("tables", "State there"),
       .text = [](const StandingRow& row) { return state_word(text_of(row.device.getState())); }},
      {.key = "why",
       .title = QT_TRANSLATE_NOOP("tables", "Why it gets no work"),
       .text =
           [](const StandingRow& row) {
             const QString why = sentence(row.device.getWhy());
             return why.isEmpty() ? unknown() : why;
           },
       .tip = [](const StandingRow& row) { return sentence(row.device.getWhy()); }},
      {.key = "since",
       .title = QT_TRANSLATE_NOOP("tables", "Since"),
       .text = [](const StandingRow& row) { return ago_text(row.device.getSinceMs(), row.now); },
       .sort_key = [](const StandingRow& row) { return whole(row.device.getSinceMs()); },
       .tip = [](const StandingRow& row) { return date_time_text(row.device.getSinceMs()); }},
  };
}

std::vector<Column<SensorRow>> sensor_columns() {
  return {
      {.key = "name",
       .title = QT_TRANSLATE_NOOP("tables", "What"),
       .text = [](const SensorRow& row) { return sensor_word(text_of(row.getName())); }},
      {.key = "value",
       .title = QT_TRANSLATE_NOOP("tables", "Says now"),
       .text =
           [](const SensorRow& row) {
             if (row.getKnown()) return sentence(row.getValue());
             const QString problem = problem_text(row.getProblem());
             return problem.isEmpty()
                        ? QCoreApplication::translate("tables", "not known")
                        : QCoreApplication::translate("tables", "not known: %1").arg(problem);
           },
       .tip =
           [](const SensorRow& row) {
             return row.getKnown() ? sentence(row.getValue()) : problem_text(row.getProblem());
           }},
      {.key = "backend",
       .title = QT_TRANSLATE_NOOP("tables", "Told by"),
       .text =
           [](const SensorRow& row) {
             const QString backend = text_of(row.getBackend());
             return backend.isEmpty() ? unknown() : backend;
           }},
      {.key = "age",
       .title = QT_TRANSLATE_NOOP("tables", "Asked"),
       .text =
           [](const SensorRow& row) {
             return QCoreApplication::translate("tables", "%1 ago")
                 .arg(format_duration(Millis{static_cast<int64_t>(
                     std::min<uint64_t>(row.getAgeMs(), uint64_t{INT64_MAX}))}));
           },
       .sort_key =
           [](const SensorRow& row) { return number(static_cast<double>(row.getAgeMs()) / 1e3); },
       .alignment = Qt::AlignRight,
       .unit = "s"},
  };
}

std::vector<Column<BackendRow>> backend_columns() {
  return {
      {.key = "name",
       .title = QT_TRANSLATE_NOOP("tables", "Source"),
       .text = [](const BackendRow& row) { return text_of(row.getName()); }},
      {.key = "usable",
       .title = QT_TRANSLATE_NOOP("tables", "Works here"),
       .text = [](const BackendRow& row) { return yes_no(row.getUsable()); }},
      {.key = "value",
       .title = QT_TRANSLATE_NOOP("tables", "Says now"),
       .text =
           [](const BackendRow& row) {
             const QString value = sentence(row.getValue());
             if (!value.isEmpty()) return value;
             const QString problem = problem_text(row.getProblem());
             return problem.isEmpty() ? unknown() : problem;
           },
       .tip = [](const BackendRow& row) { return problem_text(row.getProblem()); }},
  };
}

std::vector<Column<LogRow>> log_columns() {
  return {
      {.key = "at",
       .title = QT_TRANSLATE_NOOP("tables", "When"),
       .text = [](const LogRow& row) { return date_time_text(row.getAtMs()); },
       .sort_key = [](const LogRow& row) { return whole(static_cast<int64_t>(row.getId())); },
       .tip = [](const LogRow& row) { return date_time_text(row.getAtMs()); }},
      {.key = "level",
       .title = QT_TRANSLATE_NOOP("tables", "Level"),
       .text = [](const LogRow& row) { return level_word(text_of(row.getLevel())); }},
      {.key = "module",
       .title = QT_TRANSLATE_NOOP("tables", "Module"),
       .text = [](const LogRow& row) { return text_of(row.getModule()); }},
      {.key = "event",
       .title = QT_TRANSLATE_NOOP("tables", "Event"),
       .text = [](const LogRow& row) { return text_of(row.getEvent()); }},
      {.key = "fields",
       .title = QT_TRANSLATE_NOOP("tables", "Details"),
       .text = [](const LogRow& row) { return text_of(row.getFields()); },
       .tip = [](const LogRow& row) { return text_of(row.getFields()); }},
  };
}

}  // namespace shoal::ui
