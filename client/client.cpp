#include "client/client.h"

#include <kj/async-io.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/text.h"
#include "client/agent_server.h"
#include "client/device_wire.h"
#include "client/identity.h"
#include "client/workplace.h"
#include "schema/limits.h"

namespace shoal::client {
namespace {

using Json = nlohmann::ordered_json;

void print(const Json& json) {
  std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

void print_row(std::initializer_list<std::pair<std::string, int>> cells) {
  std::string line;
  for (const auto& [cell, width] : cells) {
    const std::string text = printable(cell);
    line += text;
    if (static_cast<int>(text.size()) < width) line.append(width - text.size(), ' ');
    line += ' ';
  }
  while (line.ends_with(' ')) line.pop_back();
  std::cout << line << std::endl;
}

std::string rounded(double value, const char* form = "%.1f") {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

std::string gigabytes(double bytes) { return rounded(bytes / 1e9, "%.2f GB"); }

Json device_json(const DeviceFacts& facts) {
  return {{"id", facts.id},
          {"selector", facts.selector},
          {"plane", facts.plane},
          {"name", facts.name},
          {"driver", facts.driver},
          {"memory_bytes", facts.memory_bytes},
          {"software", facts.software}};
}

Json measurement_json(const Measurement& m) {
  return {{"exact", m.self_test.exact},
          {"samples", m.self_test.samples},
          {"failed", m.self_test.failed},
          {"unsupported", m.self_test.unsupported},
          {"first_failure", m.self_test.first_failure},
          {"decode_rows_per_second", m.benchmark.decode_rows_per_second},
          {"prefill_rows_per_second", m.benchmark.prefill_rows_per_second},
          {"weight_bytes_per_second", m.benchmark.weight_bytes_per_second},
          {"flops_per_second", m.benchmark.flops_per_second},
          {"copy_bytes_per_second", m.benchmark.copy_bytes_per_second},
          {"measured_at_ms", m.benchmark.measured_at.count}};
}

// One worker for one errand: measured, shown, stopped.
class Benchmarker final : private WorkerProcess::Needs {
 public:
  explicit Benchmarker(Loop loop) : loop_(loop), random_(seed_from_system()) {}

  Measurement measure(const std::string& program, const DeviceFacts& facts, int threads) {
    auto pair = kj::newPromiseAndFulfiller<Measurement>();
    fulfiller_ = kj::mv(pair.fulfiller);
    WorkerOptions options;
    options.argv = {program, "--device", facts.id, "--threads", std::to_string(threads)};
    WorkerProcess worker(loop_, clock_, random_, *this, std::move(options));
    Measurement measurement = pair.promise.wait(loop_.io.waitScope);
    worker.stop().wait(loop_.io.waitScope);
    return measurement;
  }

 private:
  void worker_changed(WorkerProcess& worker) override {
    if (worker.restarts() == 0) return;
    fulfiller_->rejectIfThrows([&worker] {
      rpc::throw_error({ErrorCode::kUnavailable, worker.reason()});
    });
  }
  kj::Promise<void> prepare(WorkerProcess&, rpc::Worker::Client client, DeviceFacts) override {
    return measure_worker(loop_.timer, kj::mv(client))
        .promise()
        .then([this](Measurement measurement) { fulfiller_->fulfill(kj::mv(measurement)); });
  }

  Loop loop_;
  SystemClock clock_;
  Random random_;
  kj::Own<kj::PromiseFulfiller<Measurement>> fulfiller_;
};

}  // namespace

Result<void> attach_client(const CommandOptions& options, const std::string& text) {
  SHOAL_TRY_ASSIGN(url, rpc::parse_attach_url(text));
  SHOAL_TRY_ASSIGN(place, open_workplace(options));
  Json shown;
  const Result<FileLock> lock = FileLock::acquire(place.lock());
  if (is_taken(lock)) {
    SHOAL_TRY(with_agent(place, [&](Loop loop, rpc::Agent::Client agent) -> Result<void> {
      auto request = agent.attachRequest();
      request.setUrl(text);
      const auto answer = request.send().wait(loop.io.waitScope);
      const auto connection = answer.getConnection();
      shown = {{"attached", true},
               {"url", connection.getUrl().cStr()},
               {"coordinator", connection.getName().cStr()},
               {"host_id", connection.getHostId()},
               {"running", true}};
      return {};
    }));
  } else {
    if (!lock.ok()) return lock.error();
    SHOAL_TRY_ASSIGN(identity, load_or_make_identity(place.identity()));
    SHOAL_TRY_ASSIGN(state, ClientState::load(place.state()));
    Result<Attachment> attachment = with_loop<Attachment>([&](Loop loop) -> Result<Attachment> {
      return enrol(loop, url, identity).promise().wait(loop.io.waitScope);
    });
    if (!attachment.ok()) return attachment.error();
    shown = {{"attached", true},
             {"url", url_without_query(attachment.value().url)},
             {"coordinator", attachment.value().name},
             {"host_id", attachment.value().host_id},
             {"running", false}};
    SHOAL_TRY(state.attach(std::move(attachment).value()));
  }
  if (options.json) {
    print(shown);
  } else {
    std::cout << "Attached to " << printable(shown["coordinator"].get<std::string>()) << " ("
              << shown["url"].get<std::string>() << ")" << std::endl;
    if (!shown["running"].get<bool>())
      std::cout << "Start lending with: shoal-client run" << std::endl;
  }
  return {};
}

Result<void> detach_client(const CommandOptions& options, const std::string& url) {
  SHOAL_TRY_ASSIGN(place, open_workplace(options));
  int count = 0;
  const Result<FileLock> lock = FileLock::acquire(place.lock());
  if (is_taken(lock)) {
    SHOAL_TRY(with_agent(place, [&](Loop loop, rpc::Agent::Client agent) -> Result<void> {
      auto request = agent.detachRequest();
      request.setUrl(url);
      count = static_cast<int>(request.send().wait(loop.io.waitScope).getCount());
      return {};
    }));
  } else {
    if (!lock.ok()) return lock.error();
    SHOAL_TRY_ASSIGN(state, ClientState::load(place.state()));
    SHOAL_TRY_ASSIGN(detached, state.detach(url));
    count = detached;
  }
  if (count == 0 && !url.empty()) {
    return Error{ErrorCode::kNotFound, "not attached to " + url_without_query(url)};
  }
  if (options.json) {
    print({{"detached", count}});
  } else {
    std::cout << "Detached from " << count << (count == 1 ? " coordinator" : " coordinators")
              << std::endl;
  }
  return {};
}

Result<void> show_devices(const CommandOptions& options) {
  SHOAL_TRY_ASSIGN(place, open_workplace(options));
  SHOAL_TRY_ASSIGN(state, ClientState::load(place.state()));
  SHOAL_TRY_ASSIGN(program, place.worker_program());
  SHOAL_TRY_ASSIGN(
      all, with_loop<std::vector<DeviceFacts>>([&](Loop loop) -> Result<std::vector<DeviceFacts>> {
        return list_devices(loop, program).promise().wait(loop.io.waitScope);
      }));
  SHOAL_TRY_ASSIGN(chosen, choose_devices(all, place.device_words(options)));
  const auto lent = [&chosen](const DeviceFacts& device) {
    for (const DeviceFacts& one : chosen) {
      if (one.id == device.id) return true;
    }
    return false;
  };
  if (options.json) {
    Json list = Json::array();
    for (const DeviceFacts& device : all) {
      Json entry = device_json(device);
      entry["lent"] = lent(device);
      const Measurement* const known = state.measurement(device);
      entry["measured"] = known == nullptr ? Json() : measurement_json(*known);
      list.push_back(std::move(entry));
    }
    print({{"devices", std::move(list)}});
    return {};
  }
  print_row(
      {{"DEVICE", 12}, {"LENT", 5}, {"MEMORY", 10}, {"EXACT", 8}, {"ROWS/S", 10}, {"NAME", 0}});
  for (const DeviceFacts& device : all) {
    const Measurement* const known = state.measurement(device);
    print_row({{device.selector, 12},
               {lent(device) ? "yes" : "no", 5},
               {gigabytes(static_cast<double>(device.memory_bytes)), 10},
               {known == nullptr         ? "unknown"
                : known->self_test.exact ? "yes"
                                         : "no",
                8},
               {known == nullptr ? "-" : rounded(known->benchmark.decode_rows_per_second), 10},
               {device.name + (device.software ? " (software)" : ""), 0}});
  }
  return {};
}

Result<void> run_benchmark(const CommandOptions& options) {
  SHOAL_TRY_ASSIGN(place, open_workplace(options));
  std::vector<std::pair<DeviceFacts, Measurement>> measured;
  const Result<FileLock> lock = FileLock::acquire(place.lock());
  if (is_taken(lock)) {
    SHOAL_TRY(with_agent(place, [&](Loop loop, rpc::Agent::Client agent) -> Result<void> {
      const auto answer = agent.snapshotRequest().send().wait(loop.io.waitScope);
      std::vector<DeviceFacts> lent;
      for (const auto device : answer.getSnapshot().getDevices()) {
        lent.push_back(read_facts(device.getReport().getInfo()));
      }
      std::vector<DeviceFacts> chosen = lent;
      if (!options.devices.empty()) {
        SHOAL_TRY_ASSIGN(named, choose_devices(lent, options.devices));
        chosen = std::move(named);
      }
      for (const DeviceFacts& device : chosen) {
        auto request = agent.benchmarkRequest();
        request.setDeviceId(device.id);
        const auto report = request.send().wait(loop.io.waitScope);
        measured.push_back(
            {device, {read_self_test(report.getSelfTest()), read_benchmark(report.getReport())}});
      }
      return {};
    }));
  } else {
    if (!lock.ok()) return lock.error();
    SHOAL_TRY_ASSIGN(state, ClientState::load(place.state()));
    SHOAL_TRY_ASSIGN(program, place.worker_program());
    SHOAL_TRY(with_loop<void>([&](Loop loop) -> Result<void> {
      const std::vector<DeviceFacts> all =
          list_devices(loop, program).promise().wait(loop.io.waitScope);
      SHOAL_TRY_ASSIGN(chosen, choose_devices(all, place.device_words(options)));
      for (const DeviceFacts& device : chosen) {
        Benchmarker benchmarker(loop);
        measured.push_back({device, benchmarker.measure(program, device, place.threads(options))});
        SHOAL_TRY(state.remember(device, measured.back().second));
      }
      return {};
    }));
  }
  if (options.json) {
    Json list = Json::array();
    for (const auto& [device, measurement] : measured) {
      Json entry = device_json(device);
      entry.update(measurement_json(measurement));
      list.push_back(std::move(entry));
    }
    print({{"devices", std::move(list)}});
    return {};
  }
  print_row({{"DEVICE", 12},
             {"EXACT", 6},
             {"DECODE ROWS/S", 14},
             {"PREFILL ROWS/S", 15},
             {"WEIGHTS/S", 10},
             {"GFLOP/S", 9},
             {"COPY/S", 10}});
  for (const auto& [device, m] : measured) {
    print_row({{device.selector, 12},
               {m.self_test.exact ? "yes" : "no", 6},
               {rounded(m.benchmark.decode_rows_per_second), 14},
               {rounded(m.benchmark.prefill_rows_per_second), 15},
               {gigabytes(m.benchmark.weight_bytes_per_second), 10},
               {rounded(m.benchmark.flops_per_second / 1e9), 9},
               {gigabytes(m.benchmark.copy_bytes_per_second), 10}});
    if (!m.self_test.exact) std::cout << "  not exact: " << m.self_test.first_failure << std::endl;
  }
  return {};
}

Result<void> show_status(const CommandOptions& options) {
  SHOAL_TRY_ASSIGN(place, open_workplace(options));
  const Result<FileLock> lock = FileLock::acquire(place.lock());
  if (lock.ok()) {
    return Error{ErrorCode::kUnavailable, "no client runs on " + place.folders.state.string() +
                                              ": start one with shoal-client run"};
  }
  if (!is_taken(lock)) return lock.error();
  return with_agent(place, [&](Loop loop, rpc::Agent::Client agent) -> Result<void> {
    const auto answer = agent.snapshotRequest().send().wait(loop.io.waitScope);
    const rpc::Snapshot::Reader snapshot = answer.getSnapshot();
    static const char* const kStates[] = {"ready", "starting", "failed", "draining"};
    const auto state_text = [](rpc::DeviceReport::State state) {
      const auto index = static_cast<size_t>(state);
      return index < std::size(kStates) ? kStates[index] : "unknown";
    };
    if (options.json) {
      Json json = {{"pid", snapshot.getPid()},
                   {"version", snapshot.getVersion().cStr()},
                   {"host_name", snapshot.getHostName().cStr()},
                   {"connections", Json::array()},
                   {"devices", Json::array()},
                   {"cache_bytes", snapshot.getCacheBytes()},
                   {"cache_bytes_max", snapshot.getCacheBytesMax()},
                   {"transfers", Json::array()}};
      for (const auto connection : snapshot.getConnections()) {
        json["connections"].push_back({{"url", connection.getUrl().cStr()},
                                       {"name", connection.getName().cStr()},
                                       {"state", connection.getState().cStr()},
                                       {"reason", connection.getReason().cStr()},
                                       {"retry_in_ms", connection.getRetryInMs()},
                                       {"host_id", connection.getHostId()},
                                       {"trusted", connection.getTrusted()}});
      }
      for (const auto device : snapshot.getDevices()) {
        const auto report = device.getReport();
        Json entry = device_json(read_facts(report.getInfo()));
        entry["state"] = state_text(report.getState());
        entry["reason"] = report.getReason().cStr();
        entry["exact"] = report.getSelfTest().getExact();
        entry["decode_rows_per_second"] = report.getBenchmark().getDecodeRowsPerSecond();
        entry["worker_pid"] = device.getWorkerPid();
        entry["restarts"] = device.getRestarts();
        entry["stages"] = device.getStages();
        entry["steps"] = device.getSteps();
        entry["rows"] = device.getRows();
        json["devices"].push_back(std::move(entry));
      }
      for (const auto transfer : snapshot.getTransfers()) {
        json["transfers"].push_back({{"digest", transfer.getDigest().cStr()},
                                     {"bytes_done", transfer.getBytesDone()},
                                     {"bytes_total", transfer.getBytesTotal()}});
      }
      print(json);
      return {};
    }
    std::cout << "shoal-client " << snapshot.getVersion().cStr() << " on "
              << snapshot.getHostName().cStr() << " (pid " << snapshot.getPid() << ")" << std::endl;
    if (snapshot.getConnections().size() == 0) {
      std::cout << "Not attached: shoal-client attach URL" << std::endl;
    }
    for (const auto connection : snapshot.getConnections()) {
      std::cout << connection.getUrl().cStr() << "  " << connection.getState().cStr();
      if (connection.getReason().size() > 0)
        std::cout << ": " << printable(connection.getReason().cStr());
      std::cout << std::endl;
    }
    print_row({{"DEVICE", 12},
               {"STATE", 9},
               {"STAGES", 7},
               {"STEPS", 9},
               {"ROWS", 9},
               {"RESTARTS", 9},
               {"REASON", 0}});
    for (const auto device : snapshot.getDevices()) {
      const auto report = device.getReport();
      print_row({{report.getInfo().getSelector().cStr(), 12},
                 {state_text(report.getState()), 9},
                 {std::to_string(device.getStages()), 7},
                 {std::to_string(device.getSteps()), 9},
                 {std::to_string(device.getRows()), 9},
                 {std::to_string(device.getRestarts()), 9},
                 {report.getReason().cStr(), 0}});
    }
    std::cout << "cache: " << gigabytes(static_cast<double>(snapshot.getCacheBytes())) << " of "
              << gigabytes(static_cast<double>(snapshot.getCacheBytesMax())) << std::endl;
    return {};
  });
}

}  // namespace shoal::client
