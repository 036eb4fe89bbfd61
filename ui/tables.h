#pragma once
// Every table's columns, as lists, and the words for what the client names by an enum. A value new
// in the schema is one more entry here.

#include <QString>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "base/units.h"
#include "ui/column.h"
#include "ui/snapshot.h"

namespace shoal::ui {

// Text from the client, of which strangers may have written a part: without control characters.
QString text_of(capnp::Text::Reader text);

QString yes_no(bool yes);
QString mode_word(rpc::Mode mode);
QString privacy_word(rpc::Privacy privacy);
QString privacy_sentence(rpc::Privacy privacy);  // What it means for who reads the text.
QString job_class_text(rpc::JobClass::Reader job_class);
QString state_word(const QString& state);  // Of a connection, of work, of a device's standing.
QString sensor_word(const QString& name);
QString level_word(const QString& level);

bool same_class(rpc::JobClass::Reader a, rpc::JobClass::Reader b);

// Devices are named by ids on the wire, and by their names to people.
class DeviceNames {
 public:
  DeviceNames() = default;
  explicit DeviceNames(rpc::Snapshot::Reader snapshot);
  QString name(capnp::Text::Reader id) const;  // The id itself when it is no device of now.

 private:
  std::map<QString, QString> names_;
};

// Totals added up.
struct Sums {
  double confirmed = 0, pending = 0, rejected = 0;
  double rows = 0;
  double worked_ms = 0, allowed_ms = 0;
  double kilowatt_hours = 0, cost = 0;
  double bytes_down = 0, bytes_up = 0;
  double temperature_max = std::numeric_limits<double>::quiet_NaN();

  void add(rpc::Totals::Reader totals);
  void add_temperature(double celsius);
  double duty() const;  // 0 to 1; NaN when nothing was allowed.
};

struct DeviceSums {
  QString id, name;
  Sums sums;
  QString currency;
};

struct WorkRow {
  rpc::Snapshot::Work::Reader work;
  QString device;
  Millis now{0};
};
struct PastWorkRow {
  rpc::PastWork::Reader work;
  QString device;
  Millis now{0};
};
struct ReceiptRow {
  rpc::StoredReceipt::Reader stored;
  QString device;
};
struct TraceRow {
  rpc::TraceSpan::Reader span;
  Millis end{0};  // Of a span that lasts: now.
};
struct StandingRow {
  QString coordinator;
  rpc::HostStanding::Device::Reader device;
  QString name;
  Millis now{0};
};
struct ConnectionRow {
  rpc::Snapshot::Connection::Reader connection;
  Millis now{0};
};
using DeviceRow = rpc::Snapshot::Device::Reader;
using TransferRow = rpc::Snapshot::Transfer::Reader;
using ReportRow = rpc::ReceiptReport::Reader;
using SensorRow = rpc::Sensor::Reader;
using BackendRow = rpc::Sensor::Backend::Reader;
using LogRow = rpc::LogLine::Reader;

std::vector<Column<DeviceRow>> device_columns();
std::vector<Column<DeviceSums>> device_sum_columns();
std::vector<Column<WorkRow>> work_columns();
std::vector<Column<TransferRow>> transfer_columns();
std::vector<Column<PastWorkRow>> past_work_columns();
std::vector<Column<ReceiptRow>> receipt_columns();
std::vector<Column<ReportRow>> report_columns();
std::vector<Column<TraceRow>> trace_columns();
std::vector<Column<ConnectionRow>> connection_columns();
std::vector<Column<StandingRow>> standing_columns();
std::vector<Column<SensorRow>> sensor_columns();
std::vector<Column<BackendRow>> backend_columns();
std::vector<Column<LogRow>> log_columns();

}  // namespace shoal::ui
