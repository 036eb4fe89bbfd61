// How much of the processors others use. What this client and its children use does not count: else
// it would wait for itself.

#include <cmath>
#include <map>

#include "client/sensors/sensor.h"
#include "client/sensors/system_files.h"

namespace shoal::client {
namespace {

constexpr Millis kEach{5'000};
constexpr Millis kFirstSpan{1'000};
constexpr size_t kTreeMax = 4'096;
constexpr size_t kThreadsLookedAt = 16;
constexpr size_t kStatBytesMax = 1 << 16;  // /proc/stat of a machine with 512 processors is 30 KB.

struct SystemTime {
  int64_t all = 0, busy = 0;  // In clock ticks.
};

// Sums over the first line: "cpu user nice system idle iowait irq softirq steal guest guest_nice".
// Guests are part of user; what the hypervisor took is nobody's here.
std::optional<SystemTime> read_system_time(const std::filesystem::path& proc) {
  const std::optional<std::string> text = read_small_file(proc / "stat", kStatBytesMax);
  if (!text) return {};
  const auto words = split_words(std::string_view(*text).substr(0, text->find('\n')));
  if (words.size() < 8 || words[0] != "cpu") return {};
  int64_t field[8] = {};
  for (size_t i = 1; i < 8; ++i) {
    const auto number = parse_number(words[i]);
    if (!number || *number < 0 || *number > int64_t{1} << 56) return {};
    field[i] = *number;
  }
  SystemTime time;
  time.busy = field[1] + field[2] + field[3] + field[6] + field[7];
  time.all = time.busy + field[4] + field[5];
  return time;
}

struct ProcessTime {
  int64_t parent = 0;
  int64_t ticks = 0;  // With children that it has waited for.
};

// "pid (any name, with ) and blanks) state ppid ...": fields are counted after the last ')'.
std::optional<ProcessTime> read_process(const std::filesystem::path& proc, int64_t pid) {
  const std::optional<std::string> text = read_small_file(proc / std::to_string(pid) / "stat");
  if (!text) return {};
  const size_t end = text->rfind(')');
  if (end == std::string::npos) return {};
  const auto words = split_words(std::string_view(*text).substr(end + 1));
  if (words.size() < 15) return {};
  ProcessTime time;
  const auto parent = parse_number(words[1]);
  if (!parent) return {};
  time.parent = *parent;
  for (size_t i = 11; i < 15; ++i) {  // utime stime cutime cstime
    const auto ticks = parse_number(words[i]);
    if (!ticks || *ticks < 0 || *ticks > int64_t{1} << 56) return {};
    time.ticks += *ticks;
  }
  return time;
}

class LoadSensor final : public Sensor {
 public:
  LoadSensor(std::filesystem::path proc, int64_t root) : proc_(std::move(proc)), root_(root) {}

  std::string_view name() const override { return "load"; }

  std::optional<SensorAnswer> read(const SensorRequest&) override {
    const std::optional<SystemTime> now = read_system_time(proc_);
    if (!now) {
      last_.reset();
      return SensorAnswer::unknown("the system does not tell how busy its processors are");
    }
    const int64_t own = own_ticks();
    const std::optional<SystemTime> before = std::exchange(last_, now);
    const int64_t own_before = std::exchange(own_, own);
    if (!before) {
      return SensorAnswer::unknown("it is being measured", kFirstSpan);
    }
    const int64_t all = now->all - before->all;
    if (all <= 0) return {};
    const int64_t busy = std::max<int64_t>(0, now->busy - before->busy);
    const int64_t ours = std::max<int64_t>(0, own - own_before);
    SensorAnswer answer;
    answer.backend = "procfs";
    answer.next = kEach;
    // Rules go by whole percent.
    const double load = static_cast<double>(busy - ours) / static_cast<double>(all);
    answer.values["other_cpu_load"] = std::round(std::clamp(load, 0.0, 1.0) * 100) / 100;
    return answer;
  }

 private:
  int64_t own_ticks() {
    int64_t sum = 0;
    for (const int64_t pid : own_processes()) {
      if (const auto time = read_process(proc_, pid)) sum += time->ticks;
    }
    return sum;
  }

  std::vector<int64_t> own_processes() const {
    std::vector<int64_t> tree = {root_};
    const auto task = [this](int64_t pid) { return proc_ / std::to_string(pid) / "task"; };
    std::error_code code;
    if (!std::filesystem::exists(task(root_) / std::to_string(root_) / "children", code)) {
      return own_processes_by_parents();
    }
    for (size_t i = 0; i < tree.size() && tree.size() < kTreeMax; ++i) {
      // A child belongs to the thread that started it. Of those below the root, none starts one
      // from another than its main thread.
      std::vector<std::string> threads = {std::to_string(tree[i])};
      if (i == 0) threads = names_in(task(root_), kThreadsLookedAt);
      for (const std::string& thread : threads) {
        const auto text = read_small_file(task(tree[i]) / thread / "children", kStatBytesMax);
        if (!text) continue;
        for (const std::string_view word : split_words(*text)) {
          if (const auto pid = parse_number(word); pid && tree.size() < kTreeMax) {
            tree.push_back(*pid);
          }
        }
      }
    }
    return tree;
  }

  // For kernels without lists of children: everybody is asked for its parent.
  std::vector<int64_t> own_processes_by_parents() const {
    std::multimap<int64_t, int64_t> children;
    for (const int64_t pid : process_ids(proc_)) {
      if (const auto time = read_process(proc_, pid)) children.emplace(time->parent, pid);
    }
    std::vector<int64_t> tree = {root_};
    for (size_t i = 0; i < tree.size() && tree.size() < kTreeMax; ++i) {
      const auto [first, last] = children.equal_range(tree[i]);
      for (auto child = first; child != last; ++child) {
        if (child->second != root_) tree.push_back(child->second);
      }
    }
    return tree;
  }

  std::filesystem::path proc_;
  int64_t root_;
  std::optional<SystemTime> last_;
  int64_t own_ = 0;
};

}  // namespace

std::unique_ptr<Sensor> make_load_sensor(const SystemRoots& roots, int64_t own_root) {
  return std::make_unique<LoadSensor>(roots.proc, own_root);
}

}  // namespace shoal::client
