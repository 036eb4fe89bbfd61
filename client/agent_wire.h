#pragma once
// Turns what the client knows into the words of agent.capnp, and what a user interface says into
// values, within limits.

#include "base/settings.h"
#include "client/live_settings.h"
#include "client/log_ring.h"
#include "client/records/receipts.h"
#include "client/records/records.h"
#include "client/sensor_source.h"
#include "client/verdicts.h"
#include "schema/agent.capnp.h"

namespace shoal::client {

rpc::Resource wire_resource(Resource resource);
rpc::Mode wire_mode(Mode mode);
// Throw for a value that a newer program may know and this one does not.
Resource read_resource(rpc::Resource resource);
Mode read_mode(rpc::Mode mode);

float known(const std::optional<double>& value);  // Not a number when it is not known.

void write_verdict(const Verdict& verdict, Millis since, rpc::Verdict::Builder to);
void write_totals(const Sums& sums, rpc::Totals::Builder to);
void write_sensor(const SensorStatus& sensor, Millis now, rpc::Sensor::Builder to);
void write_setting_value(const SettingValue& value, rpc::SettingValue::Builder to);
// Throws when a text is too long, a list has too many, or the kind is of a newer program.
SettingValue read_setting_value(rpc::SettingValue::Reader from);
void write_setting(const SettingSpec& spec, const SettingValue& value, rpc::Setting::Builder to);
void write_span(const TraceSpan& span, rpc::TraceSpan::Builder to);
void write_row(const StatisticsRow& row, rpc::StatisticsRow::Builder to);
void write_work(const PastWork& work, rpc::PastWork::Builder to);
void write_stored_receipt(const StoredReceipt& receipt, rpc::StoredReceipt::Builder to);
void write_receipt_report(const ReceiptReport& report, rpc::ReceiptReport::Builder to);
void write_log_line(const LogLine& line, rpc::LogLine::Builder to);

// Throws when there are too many, or one is too long.
std::vector<SettingChange> read_changes(capnp::List<rpc::SettingChange>::Reader from);

}  // namespace shoal::client
