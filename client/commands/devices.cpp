// devices, benchmark, lend: what this machine has, what it can do, what of it is lent.

#include <algorithm>

#include "base/text.h"
#include "client/agent.h"
#include "client/commands/commands.h"
#include "client/commands/words.h"
#include "client/device_json.h"
#include "client/device_wire.h"

namespace shoal::client {
namespace {

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
    kj::Promise<bool> stopped = worker.stop();
    stopped.wait(loop_.io.waitScope);
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

Cell bytes_cell(int64_t bytes) { return {text_of(Bytes{bytes}), bytes}; }

// A speed in bytes, as a table shows it.
std::string rate_text(double bytes_per_second) {
  return rounded(bytes_per_second / 1e9, 2) + " GB/s";
}

Result<void> show_devices(const CommandOptions& options) {
  SHOAL_TRY(refuse_remote(options));
  SHOAL_TRY_ASSIGN(place, open_workplace(options));
  SHOAL_TRY_ASSIGN(state, ClientState::load(place.state()));
  SHOAL_TRY_ASSIGN(program, place.worker_program());
  SHOAL_TRY_ASSIGN(
      all, with_loop<std::vector<DeviceFacts>>([&](Loop loop) -> Result<std::vector<DeviceFacts>> {
        return list_devices(loop, program).promise().wait(loop.io.waitScope);
      }));
  SHOAL_TRY_ASSIGN(chosen, choose_devices(all, place.device_words(options)));
  Json list = Json::array();
  Table table({{"device", "DEVICE"},
               {"lent", "LENT"},
               {"memory_bytes", "MEMORY"},
               {"exact", "EXACT"},
               {"rows_per_second", "ROWS/S"},
               {"name", "NAME"}});
  for (const DeviceFacts& device : all) {
    const bool lent = std::ranges::find(chosen, device.id, &DeviceFacts::id) != chosen.end();
    const Measurement* const known = state.measurement(device);
    Json entry = device_json(device);
    entry["lent"] = lent;
    entry["measured"] = known == nullptr ? Json() : measurement_json(*known);
    list.push_back(std::move(entry));
    table.add({device.selector, lent ? "yes" : "no", bytes_cell(device.memory_bytes),
               known == nullptr         ? "unknown"
               : known->self_test.exact ? "yes"
                                        : "no",
               known == nullptr ? "-" : rounded(known->benchmark.decode_rows_per_second),
               device.name + (device.software ? " (software)" : "")});
  }
  if (options.json) {
    print_json(Json{{"devices", std::move(list)}});
  } else {
    print_text(table.text());
  }
  return {};
}

using Measured = std::vector<std::pair<DeviceFacts, Measurement>>;

Result<void> measure_by_agent(AgentSession& session, const CommandOptions& options,
                              Measured& measured) {
  const auto answer = session.ask(session.agent.snapshotRequest());
  std::vector<DeviceFacts> chosen;
  for (const auto device : answer.getSnapshot().getDevices()) {
    if (device.getLent() || !options.devices.empty())
      chosen.push_back(read_facts(device.getReport().getInfo()));
  }
  if (!options.devices.empty()) {
    SHOAL_TRY_ASSIGN(named, choose_devices(chosen, options.devices));
    chosen = std::move(named);
  }
  for (const DeviceFacts& device : chosen) {
    auto request = session.agent.benchmarkRequest();
    request.setDeviceId(device.id);
    const auto report = session.ask_patiently(kj::mv(request));
    measured.push_back(
        {device, {read_self_test(report.getSelfTest()), read_benchmark(report.getReport())}});
  }
  return {};
}

Result<void> run_benchmark(const CommandOptions& options) {
  SHOAL_TRY_ASSIGN(place, open_workplace(options));
  Measured measured;
  const AgentBody by_agent = [&](AgentSession& session) {
    return measure_by_agent(session, options, measured);
  };
  SHOAL_TRY_ASSIGN(lock, ask_or_lock(options, place, by_agent));
  if (lock) {
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
  Json list = Json::array();
  std::string failures;
  Table table({{"device", "DEVICE"},
               {"exact", "EXACT"},
               {"decode", "DECODE ROWS/S"},
               {"prefill", "PREFILL ROWS/S"},
               {"weights", "WEIGHTS"},
               {"gflops", "GFLOP/S"},
               {"copy", "COPY"}});
  for (const auto& [device, m] : measured) {
    Json entry = device_json(device);
    entry.update(measurement_json(m));
    list.push_back(std::move(entry));
    table.add({device.selector, m.self_test.exact ? "yes" : "no",
               rounded(m.benchmark.decode_rows_per_second),
               rounded(m.benchmark.prefill_rows_per_second),
               rate_text(m.benchmark.weight_bytes_per_second),
               rounded(m.benchmark.flops_per_second / 1e9),
               rate_text(m.benchmark.copy_bytes_per_second)});
    if (!m.self_test.exact) {
      failures += printable(device.selector + " is not exact: " + m.self_test.first_failure) + "\n";
    }
  }
  if (options.json) {
    print_json(Json{{"devices", std::move(list)}});
  } else {
    print_text(table.text() + failures);
  }
  return {};
}

// --- lend

struct LendChoice {
  std::string device, word;
};

Result<void> lend(const CommandOptions& options, const LendChoice& choice) {
  const bool lent = choice.word == "on";
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    const auto answer = session.ask(session.agent.snapshotRequest());
    std::string id, known;
    for (const auto device : answer.getSnapshot().getDevices()) {
      const auto info = device.getReport().getInfo();
      if (choice.device == info.getId().cStr() || choice.device == info.getSelector().cStr()) {
        id = info.getId().cStr();
      }
      known += (known.empty() ? "" : ", ") + printable(info.getSelector().cStr());
    }
    if (id.empty()) {
      return Error{ErrorCode::kNotFound, "there is no device '" + choice.device + "', only " +
                                             (known.empty() ? "none at all" : known)};
    }
    auto request = session.agent.setDeviceLentRequest();
    request.setDeviceId(id);
    request.setLent(lent);
    session.ask(kj::mv(request));
    if (options.json) {
      print_json(Json{{"device", id}, {"lent", lent}});
    } else {
      print_text(printable(choice.device) + (lent ? " is lent now." : " is not lent any more."));
    }
    return {};
  });
}

}  // namespace

void add_device_commands(Commands& commands) {
  commands.add_device_options(
      commands.add("devices", "List the devices of this machine", show_devices), "--devices");
  commands.add_device_options(commands.add("benchmark", "Test and measure devices", run_benchmark),
                              "--device,--devices");
  LendChoice& choice = commands.keep<LendChoice>();
  CLI::App& command =
      commands.add("lend", "Lend a device, or keep it for yourself",
                   [&choice](const CommandOptions& options) { return lend(options, choice); });
  command.add_option("device", choice.device, "By id or selector, such as cpu or vulkan:0")
      ->required();
  command.add_option("switch", choice.word, "on or off")
      ->required()
      ->check(CLI::IsMember({"on", "off"}));
}

}  // namespace shoal::client
