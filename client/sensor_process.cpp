#include "client/sensor_process.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal::client {
namespace {

using nlohmann::json;

constexpr size_t kLineBytesMax = 1 << 20;
constexpr size_t kListMax = 64;
constexpr size_t kPieceBytes = 16 << 10;
constexpr Millis kLookLeast{100};
constexpr kj::Duration kLastBreath = 500 * kj::MILLISECONDS;
constexpr double kBytesMax = 1e18;

// What a line says under `key`, when it is of that kind and within bounds. A line is our own
// program's, but what it says comes from drivers and buses.
std::optional<bool> flag_of(const json& line, const char* key) {
  const auto entry = line.find(key);
  return entry != line.end() && entry->is_boolean() ? std::optional<bool>(entry->get<bool>())
                                                    : std::nullopt;
}

std::optional<double> real_of(const json& line, const char* key, double least, double most) {
  const auto entry = line.find(key);
  if (entry == line.end() || !entry->is_number()) return {};
  const double value = entry->get<double>();
  return value >= least && value <= most ? std::optional<double>(value) : std::nullopt;
}

template <class T>
std::optional<T> quantity_of(const json& line, const char* key) {
  const std::optional<double> value = real_of(line, key, 0, kBytesMax);
  return value ? std::optional<T>(T{static_cast<int64_t>(*value)}) : std::nullopt;
}

std::string text_of(const json& line, const char* key, size_t bytes_max = limits::kNameBytesMax) {
  const auto entry = line.find(key);
  if (entry == line.end() || !entry->is_string()) return "";
  return printable(cut_utf8(entry->get_ref<const std::string&>(), bytes_max));
}

// The entries under `key`, at most kListMax. None: no list.
const json* list_of(const json& line, const char* key) {
  const auto entry = line.find(key);
  return entry != line.end() && entry->is_array() && entry->size() <= kListMax ? &*entry : nullptr;
}

void take_idle(const json& line, Readings& to) {
  to.idle = quantity_of<Millis>(line, "idle_ms");
  to.idle_source = to.idle ? text_of(line, "backend") : "";
  to.locked = flag_of(line, "locked");
}

Message say_idle(const Readings& readings) {
  if (!readings.idle) return {};
  return {readings.locked.value_or(false) ? "sensor.idle_locked" : "sensor.idle", {*readings.idle}};
}

void take_inhibitors(const json& line, Readings& to) {
  to.game_mode = flag_of(line, "game_mode");
  to.inhibitors.reset();
  const json* list = list_of(line, "inhibitors");
  if (list == nullptr) return;
  to.inhibitors.emplace();
  for (const json& entry : *list) {
    if (entry.is_object()) to.inhibitors->push_back({text_of(entry, "who"), text_of(entry, "why")});
  }
}

Message say_inhibitors(const Readings& readings) {
  if (readings.game_mode.value_or(false)) return {"sensor.game_mode", {}};
  if (!readings.inhibitors) return {};
  if (readings.inhibitors->empty()) return {"sensor.inhibitors_none", {}};
  const Inhibitor& first = readings.inhibitors->front();
  return {"sensor.inhibitors", {first.who, first.why}};
}

void take_power(const json& line, Readings& to) {
  to.on_battery = flag_of(line, "on_battery");
  to.battery_percent = real_of(line, "battery_percent", 0, 100);
  const std::string profile = text_of(line, "power_profile");
  to.power_profile = profile.empty() ? std::optional<std::string>() : profile;
}

Message say_power(const Readings& readings) {
  if (!readings.on_battery) return {};
  const MessageParameter none = std::string("–");
  return {*readings.on_battery ? "sensor.power_battery" : "sensor.power_line",
          {readings.battery_percent ? MessageParameter(Percent{*readings.battery_percent}) : none,
           readings.power_profile.value_or("none") == "none"
               ? none
               : MessageParameter(*readings.power_profile)}};
}

void take_sleep(const json&, Readings&) {}  // See set_sleeping().

Message say_sleep(const Readings& readings) {
  return {readings.sleeping ? "sensor.sleep_soon" : "sensor.sleep_none", {}};
}

void take_load(const json& line, Readings& to) {
  to.other_cpu_load = real_of(line, "other_cpu_load", 0, 1);
}

Message say_load(const Readings& readings) {
  if (!readings.other_cpu_load) return {};
  return {"sensor.load", {Percent{*readings.other_cpu_load * 100}}};
}

void take_memory(const json& line, Readings& to) {
  to.memory_available = quantity_of<Bytes>(line, "memory_available");
}

Message say_memory(const Readings& readings) {
  if (!readings.memory_available) return {};
  return {"sensor.memory", {*readings.memory_available}};
}

void take_disk(const json& line, Readings& to) {
  to.cache_disk_free = quantity_of<Bytes>(line, "cache_disk_free");
}

Message say_disk(const Readings& readings) {
  if (!readings.cache_disk_free) return {};
  return {"sensor.disk", {*readings.cache_disk_free}};
}

void take_programs(const json& line, Readings& to) {
  to.programs.reset();
  const auto entry = line.find("programs");
  if (entry == line.end() || !entry->is_array() || entry->size() > 1'000) return;
  to.programs.emplace();
  for (const json& name : *entry) {
    if (name.is_string()) to.programs->push_back(name.get<std::string>());
  }
}

Message say_programs(const Readings& readings) {
  if (!readings.programs) return {};
  if (readings.programs->empty()) return {"sensor.programs_none", {}};
  return {"sensor.programs", {printable(readings.programs->front())}};
}

void take_gpus(const json& line, Readings& to) {
  to.gpus.reset();
  const json* list = list_of(line, "gpus");
  if (list == nullptr) return;
  to.gpus.emplace();
  for (const json& entry : *list) {
    if (!entry.is_object()) continue;
    GpuReading gpu;
    gpu.pci_address = text_of(entry, "pci");
    gpu.uuid = text_of(entry, "uuid");
    gpu.name = text_of(entry, "name");
    gpu.temperature_c = real_of(entry, "temperature_c", -50, 200);
    gpu.watts = real_of(entry, "watts", 0, 10'000);
    gpu.joules = real_of(entry, "joules", 0, 1e15);
    gpu.load = real_of(entry, "load", 0, 1);
    gpu.memory_total = quantity_of<Bytes>(entry, "memory_total");
    gpu.memory_used = quantity_of<Bytes>(entry, "memory_used");
    to.gpus->push_back(std::move(gpu));
  }
}

Message say_gpus(const Readings& readings) {
  if (!readings.gpus) return {};
  if (readings.gpus->empty()) return {"sensor.gpus_none", {}};
  const Count count{static_cast<int64_t>(readings.gpus->size())};
  std::optional<double> hottest;
  for (const GpuReading& gpu : *readings.gpus) {
    if (gpu.temperature_c && (!hottest || *gpu.temperature_c > *hottest)) {
      hottest = gpu.temperature_c;
    }
  }
  if (!hottest) return {"sensor.gpus", {count}};
  return {"sensor.gpus_temperature", {count, Celsius{*hottest}}};
}

void take_cpu(const json& line, Readings& to) {
  to.cpu_temperature_c = real_of(line, "cpu_temperature_c", -50, 200);
  to.cpu_joules = real_of(line, "cpu_joules", 0, 1e15);
}

Message say_cpu(const Readings& readings) {
  if (readings.cpu_temperature_c) return {"sensor.cpu", {Celsius{*readings.cpu_temperature_c}}};
  if (readings.cpu_joules) return {"sensor.cpu_energy", {}};
  return {};
}

void take_network(const json& line, Readings& to) {
  to.online = flag_of(line, "online");
  to.metered = flag_of(line, "metered");
}

Message say_network(const Readings& readings) {
  if (!readings.online) return {};
  if (!*readings.online) return {"sensor.network_offline", {}};
  if (!readings.metered) return {"sensor.network_online", {}};
  return {*readings.metered ? "sensor.network_metered" : "sensor.network_free", {}};
}

struct Kind {
  std::string_view name;
  // What the line says, and nothing else, is known after this.
  void (*take)(const json& line, Readings& to);
  Message (*say)(const Readings& readings);
};

constexpr Kind kKinds[] = {
    {"idle", take_idle, say_idle},          {"inhibitors", take_inhibitors, say_inhibitors},
    {"power", take_power, say_power},       {"sleep", take_sleep, say_sleep},
    {"load", take_load, say_load},          {"memory", take_memory, say_memory},
    {"disk", take_disk, say_disk},          {"programs", take_programs, say_programs},
    {"gpu", take_gpus, say_gpus},           {"cpu", take_cpu, say_cpu},
    {"network", take_network, say_network},
};

const Kind& kind_of(std::string_view name) {
  const auto* const kind = std::ranges::find(kKinds, name, &Kind::name);
  SHOAL_CHECK(kind != std::end(kKinds));
  return *kind;
}

std::vector<SensorStatus::Backend> read_backends(const json& list) {
  std::vector<SensorStatus::Backend> backends;
  for (const json& entry : list) {
    if (!entry.is_object()) continue;
    SensorStatus::Backend backend;
    backend.name = text_of(entry, "name");
    backend.usable = flag_of(entry, "usable").value_or(false);
    backend.problem = text_of(entry, "problem", limits::kReasonBytesMax);
    if (const auto idle = quantity_of<Millis>(entry, "idle_ms")) {
      backend.value = {"sensor.idle", {*idle}};
    }
    backends.push_back(std::move(backend));
  }
  return backends;
}

}  // namespace

SensorProcess::SensorProcess(Loop loop, const Clock& clock, Random& random, Needs& needs,
                             SensorOptions options)
    : loop_(loop),
      clock_(clock),
      needs_(needs),
      options_(std::move(options)),
      back_off_(options_.back_off_first, options_.back_off_most, random),
      ages_(watch_age().promise().eagerlyEvaluate([](kj::Exception&& exception) {
        log_error("sensors", "watch_ended", {{"cause", exception.getDescription().cStr()}});
      })),
      life_(keep_alive().promise().eagerlyEvaluate([](kj::Exception&& exception) {
        log_error("sensors", "gave_up", {{"cause", exception.getDescription().cStr()}});
      })) {
  for (const Kind& kind : kKinds) {
    SensorStatus sensor;
    sensor.name = kind.name;
    sensor.problem = "it has not answered yet";
    sensors_.push_back(std::move(sensor));
  }
}

SensorProcess::~SensorProcess() {
  life_ = nullptr;
  ages_ = nullptr;
  writing_ = nullptr;
}

const SensorStatus* SensorProcess::find(std::string_view name) const {
  const auto sensor = std::ranges::find(sensors_, name, &SensorStatus::name);
  return sensor == sensors_.end() ? nullptr : &*sensor;
}

SensorStatus* SensorProcess::find_sensor(std::string_view name) {
  return const_cast<SensorStatus*>(find(name));
}

bool SensorProcess::idle_supported() const {
  const SensorStatus& idle = *find("idle");
  // Nothing is said against it while the first answer is on its way.
  return idle.known || (idle.at.count == 0 && restarts_ == 0);
}

void SensorProcess::configure(SensorWishes wishes) {
  if (wishes == wishes_) return;
  wishes_ = std::move(wishes);
  send_wishes();
}

void SensorProcess::send_wishes() {
  const json wish = {{"configure",
                      {{"exclusive", wishes_.exclusive_programs},
                       {"idle_source", wishes_.idle_source},
                       {"idle_threshold_ms", wishes_.idle_threshold.count},
                       {"cache_folder", wishes_.cache_folder.string()}}}};
  send(wish.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

void SensorProcess::release_sleep() { send("{\"released\":true}\n"); }

// A child that is gone hears nothing; it is told everything anew when it is back.
void SensorProcess::send(const std::string& line) {
  if (pipe_.get() == nullptr) return;
  auto text = kj::heap<std::string>(line);
  const std::string& bytes = *text;
  writing_ = writing_
                 .then([this, &bytes]() -> kj::Promise<void> {
                   if (pipe_.get() == nullptr) return kj::READY_NOW;
                   return pipe_->write(bytes.data(), bytes.size());
                 })
                 .attach(kj::mv(text))
                 .eagerlyEvaluate([](kj::Exception&&) {});  // read_lines() sees the end as well.
}

kj::Promise<SensorStatus> SensorProcess::test(std::string name) {
  const SensorStatus* const sensor = find(name);
  if (sensor == nullptr) {
    return KJ_EXCEPTION(FAILED, "there is no such sensor", name.c_str());
  }
  if (pipe_.get() == nullptr) return *sensor;
  const int64_t id = next_test_++;
  auto pair = kj::newPromiseAndFulfiller<SensorStatus>();
  tests_[id] = {name, kj::mv(pair.fulfiller)};
  send(json{{"test", name}, {"id", id}}.dump() + "\n");
  kj::Promise<SensorStatus> late =
      loop_.timer.afterDelay(options_.test_max.count * kj::MILLISECONDS).then([this, name] {
        SensorStatus status = *find(name);
        status.known = false;
        status.problem = "it does not answer";
        return status;
      });
  return pair.promise.exclusiveJoin(kj::mv(late)).attach(kj::defer([this, id] {
    tests_.erase(id);
  }));
}

rpc::Task<void> SensorProcess::keep_alive() {
  // Not inside the constructor: what needs us is not built yet.
  co_await kj::evalLater([] {});
  while (true) {
    const Millis started = clock_.now_monotonic();
    std::string cause;
    try {
      kj::Promise<std::string> life = live_once();
      cause = co_await kj::mv(life);
    } catch (const kj::Exception& exception) {
      cause = rpc::error_of(exception).message;
    }
    writing_ = kj::READY_NOW;
    pipe_ = nullptr;
    exit_observer_ = nullptr;
    child_.reset();  // Kills it, if it still runs.
    if (clock_.now_monotonic() - started >= options_.stays_up) back_off_.reset();
    const Millis wait = back_off_.next();
    ++restarts_;
    log_warning("sensors", "ended", {{"cause", cause}, {"restart_in_ms", wait}});
    forget_all("the program that watches this computer ended: " + cause);
    co_await loop_.timer.afterDelay(wait.count * kj::MILLISECONDS);
  }
}

rpc::Task<std::string> SensorProcess::live_once() {
  auto [ours, theirs] = rpc::require(make_socket_pair());
  ChildOptions child;
  child.argv = options_.argv;
  child.stdin_fd = theirs.get();
  child.stdout_fd = theirs.get();
  child_ = rpc::require(ChildProcess::spawn(std::move(child)));
  theirs.reset();
  pipe_ = stream_of(loop_, std::move(ours));
  send_wishes();
  kj::Promise<std::string> reading = read_lines();
  std::string cause = co_await kj::mv(reading);
  // How it ended says more than that its pipe did. Watched from now: what was seen earlier would
  // not be told again.
  exit_observer_ = observe_exit(loop_, *child_);
  try {
    kj::Promise<std::string> ended = loop_.timer.timeoutAfter(kLastBreath, child_ended().promise());
    cause = co_await kj::mv(ended);
  } catch (const kj::Exception&) {
    // It lives on: the cause stays what it was.
  }
  co_return cause;
}

rpc::Task<std::string> SensorProcess::child_ended() {
  co_await exit_observer_->whenBecomesReadable();
  const std::optional<ChildExit> exit = child_->try_wait();
  co_return exit ? exit->text() : "an unknown status";
}

rpc::Task<std::string> SensorProcess::read_lines() {
  std::string pending;
  std::vector<char> piece(kPieceBytes);
  while (true) {
    size_t got = 0;
    try {
      kj::Promise<size_t> read = pipe_->tryRead(piece.data(), 1, piece.size());
      got = co_await kj::mv(read);
    } catch (const kj::Exception& exception) {
      co_return std::string(exception.getDescription().cStr());
    }
    if (got == 0) co_return "it closed its pipe";
    pending.append(piece.data(), got);
    size_t start = 0;
    size_t end = 0;
    while ((end = pending.find('\n', start)) != std::string::npos) {
      take_line(std::string_view(pending).substr(start, end - start));
      start = end + 1;
    }
    pending.erase(0, start);
    if (pending.size() > kLineBytesMax) co_return "it wrote a line without an end";
    if (std::exchange(changed_, false)) needs_.sensors_changed();
  }
}

// Most lines say what the last one of their sensor said.
bool SensorProcess::says_the_same(std::string_view text) {
  for (const auto& [name, last] : last_lines_) {
    if (last.text != text) continue;
    SensorStatus& sensor = *find_sensor(name);
    sensor.at = clock_.now_monotonic();
    stale_at_[name] = sensor.at + last.stale_after;
    return true;
  }
  return false;
}

void SensorProcess::take_line(std::string_view text) {
  if (says_the_same(text)) return;
  const json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) return;
  SensorStatus* const sensor = find_sensor(text_of(line, "sensor"));
  if (sensor == nullptr) return;
  const bool was_known = sensor->known;
  const std::string backend_before = sensor->backend;
  const std::optional<Millis> idle_before = readings_.idle;
  const std::optional<bool> locked_before = readings_.locked;
  const Kind& kind = kind_of(sensor->name);
  sensor->known = flag_of(line, "known").value_or(false);
  sensor->backend = text_of(line, "backend");
  sensor->problem = text_of(line, "problem", limits::kReasonBytesMax);
  sensor->at = clock_.now_monotonic();
  kind.take(line, readings_);
  const Millis every = quantity_of<Millis>(line, "every_ms").value_or(Millis{0});
  const Millis stale_after = std::max(
      options_.stale_after, std::min(every, Millis{60'000}) + options_.stale_after - Millis{2'000});
  stale_at_[sensor->name] = sensor->at + stale_after;
  if (const json* backends = list_of(line, "backends")) {
    sensor->backends = read_backends(*backends);
  }
  if (sensor->name == "sleep") set_sleeping(flag_of(line, "sleeping").value_or(false));
  sensor->value = sensor->known ? kind.say(readings_) : Message{};
  // For how long nobody touched this computer is another figure each time; it matters when it
  // crosses the owner's limit.
  const auto is_away = [this](const std::optional<Millis>& idle) {
    return *idle >= wishes_.idle_threshold;
  };
  const bool mere_figure = sensor->name == "idle" && was_known && sensor->known && idle_before &&
                           readings_.idle && wishes_.idle_threshold.count > 0 &&
                           sensor->backend == backend_before && readings_.locked == locked_before &&
                           is_away(readings_.idle) == is_away(idle_before);
  changed_ |= !mere_figure;
  // A test is answered anew, whatever it says.
  const json* const tests = list_of(line, "tests");
  if (tests == nullptr) {
    last_lines_[sensor->name] = {std::string(text), stale_after};
  } else {
    last_lines_.erase(sensor->name);
    for (const json& id : *tests) {
      if (!id.is_number_integer()) continue;
      const auto test = tests_.find(id.get<int64_t>());
      if (test != tests_.end()) test->second.fulfiller->fulfill(SensorStatus(*sensor));
    }
  }
}

void SensorProcess::set_sleeping(bool sleeping) {
  if (readings_.sleeping == sleeping) return;
  readings_.sleeping = sleeping;
  if (sleeping) {
    needs_.about_to_sleep();
  } else {
    needs_.woke();
  }
}

void SensorProcess::forget(SensorStatus& sensor, std::string problem) {
  kind_of(sensor.name).take(json::object(), readings_);
  if (sensor.name == "sleep") set_sleeping(false);
  sensor.known = false;
  sensor.backend.clear();
  sensor.problem = std::move(problem);
  sensor.value = {};
  stale_at_.erase(sensor.name);
  last_lines_.erase(sensor.name);
  changed_ = true;
}

void SensorProcess::forget_all(const std::string& problem) {
  for (SensorStatus& sensor : sensors_) forget(sensor, problem);
  for (auto& [id, test] : tests_) test.fulfiller->fulfill(SensorStatus(*find(test.name)));
  changed_ = false;
  needs_.sensors_changed();
}

rpc::Task<void> SensorProcess::watch_age() {
  while (true) {
    // Not before the next could be too old: what is idle should not wake for nothing.
    Millis wait = options_.look_max;
    for (const auto& [name, at] : stale_at_) {
      wait = std::min(wait, std::max(at - clock_.now_monotonic(), kLookLeast));
    }
    co_await loop_.timer.afterDelay(until_whole(clock_.now_monotonic(), wait).count *
                                    kj::MILLISECONDS);
    const Millis now = clock_.now_monotonic();
    bool any = false;
    for (SensorStatus& sensor : sensors_) {
      const auto stale = stale_at_.find(sensor.name);
      if (stale == stale_at_.end() || now < stale->second) continue;
      const int64_t seconds = (now - sensor.at).count / 1'000;
      forget(sensor, "it has told nothing for " + std::to_string(seconds) + " s");
      any = true;
    }
    if (any) {
      changed_ = false;
      needs_.sensors_changed();
    }
  }
}

}  // namespace shoal::client
