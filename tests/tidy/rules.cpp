#include "tests/tidy/rules.h"

#include <QRegularExpression>
#include <algorithm>
#include <map>

#include "base/digest.h"

namespace shoal {
namespace {

using Names = std::vector<std::string_view>;

bool starts_with_any(std::string_view text, const Names& beginnings) {
  return std::ranges::any_of(beginnings, [text](auto begin) { return text.starts_with(begin); });
}

// Whether one of `places` holds the header: "a/b/" with all below it, "a/*" without its folders, or
// the beginning of a file's name.
bool is_in(std::string_view header, const Names& places) {
  return std::ranges::any_of(places, [header](std::string_view place) {
    if (!place.ends_with("/*")) return header.starts_with(place);
    place.remove_suffix(1);
    return header.starts_with(place) && header.find('/', place.size()) == header.npos;
  });
}

// A row of the table of who may know whom. The first row whose `where` begins the path decides.
struct Room {
  std::string_view where;
  Names own;        // Places of the house that it may include: see is_in.
  Names libraries;  // Kinds of others' headers, as library_of() names them.
};

const std::vector<Room>& rooms() {
  static const std::vector<Room> kRooms = {
      {"base/host_", {"base/"}, {"os", "sodium"}},
      {"base/settings.cpp", {"base/"}, {"toml"}},
      {"base/cli.cpp", {"base/"}, {"cli", "json"}},
      {"base/sqlite/", {"base/"}, {"sqlite"}},
      {"base/", {"base/"}, {"sodium"}},
      // Sockets and their addresses, where KJ has no words for them.
      {"schema/transport.", {"base/", "schema/"}, {"kj", "openssl", "os"}},
      {"schema/", {"base/", "schema/"}, {"kj", "openssl"}},
      {"shaders/", {"shaders/"}, {}},

      {"compute/graph/", {"base/", "compute/graph/", "shaders/"}, {}},
      {"compute/ops/", {"base/", "compute/graph/", "compute/ops/", "shaders/"}, {}},
      {"compute/tokenizer/", {"base/", "compute/tokenizer/"}, {"pcre2", "json"}},
      {"compute/chat/",
       {"base/", "compute/chat/", "compute/tokenizer/tokenizer.h", "compute/tokenizer/unicode.h"},
       {"json"}},
      {"compute/sampling/", {"base/", "compute/sampling/", "shaders/"}, {}},
      {"compute/backends/cpu/",
       {"base/", "compute/graph/", "compute/ops/", "compute/backends/backend.h",
        "compute/backends/cpu/", "shaders/"},
       {"simd"}},
      {"compute/backends/vulkan/",
       {"base/", "compute/graph/", "compute/ops/", "compute/backends/backend.h",
        "compute/backends/vulkan/", "shaders/"},
       {"vulkan", "os"}},
      {"compute/backends/cuda/",
       {"base/", "compute/graph/", "compute/ops/", "compute/backends/backend.h",
        "compute/backends/cuda/", "shaders/"},
       {"cuda", "os"}},
      {"compute/backends/",
       {"base/", "compute/graph/", "compute/ops/", "compute/backends/", "shaders/"},
       {}},
      {"compute/models/",
       {"base/", "compute/graph/", "compute/ops/", "compute/compute.h", "compute/tokenizer/",
        "compute/models/", "shaders/"},
       {"json"}},
      {"compute/shards/",
       {"base/", "compute/graph/", "compute/ops/", "compute/compute.h", "compute/models/",
        "compute/tokenizer/tokenizer.h", "compute/shards/"},
       {"json"}},
      {"compute/worker/",
       {"base/", "schema/", "compute/compute.h", "compute/shards/shard.h", "compute/sampling/",
        "compute/worker/"},
       {"kj", "json", "cli"}},
      {"compute/run/", {"base/", "compute/", "shaders/"}, {"json", "cli"}},
      // The engine, and the door.
      {"compute/",
       {"base/", "compute/graph/", "compute/ops/", "compute/backends/backend.h",
        "compute/backends/backend_list.h", "compute/*", "shaders/"},
       {}},

      {"coordinator/work/", {"base/", "coordinator/work/"}, {"json"}},
      {"coordinator/sim/", {"base/", "coordinator/work/", "coordinator/sim/"}, {"json", "cli"}},
      {"coordinator/store/",
       {"base/", "schema/limits.h", "coordinator/store/", "coordinator/work/"},
       {"json"}},
      {"coordinator/jobs/job_file.cpp",
       {"base/", "schema/limits.h", "coordinator/jobs/", "coordinator/session/",
        "coordinator/work/"},
       {"toml", "json"}},
      {"coordinator/",
       {"base/", "schema/", "coordinator/", "compute/tokenizer/tokenizer.h",
        "compute/chat/chat_template.h"},
       {"kj", "json", "cli"}},
      // Pure: what the owner's rules say.
      {"client/rules/",
       {"base/", "schema/message.h", "schema/receipt.h", "schema/week_hours.h", "client/settings.h",
        "client/rules/"},
       {}},
      // A program of its own, whose drivers and buses may hang.
      {"client/sensors/",
       {"base/", "client/rules/readings.h", "client/sensors/", "client/whole_seconds.h"},
       {"os", "json", "cli", "dbus", "wayland", "xcb"}},
      {"client/records/",
       {"base/", "schema/ledger_day.h", "schema/message.h", "schema/receipt.h", "client/rules/",
        "client/records/"},
       {"json"}},
      {"client/", {"base/", "schema/", "client/"}, {"kj", "json", "cli"}},
      {"ui/main.cpp", {"base/", "schema/", "ui/", "client/client.h"}, {"qt"}},
      {"ui/agent_link.", {"base/", "schema/", "ui/"}, {"qt", "kj"}},
      {"ui/tray_host.", {"base/", "schema/", "ui/"}, {"qt", "xcb"}},
      {"ui/snapshot.h", {"base/", "schema/", "ui/"}, {"qt", "kj"}},
      {"ui/", {"base/", "schema/", "ui/"}, {"qt"}},
  };
  return kRooms;
}

// Which side of the house a room of tests looks at; rooms not named here look at the whole house.
const std::map<std::string_view, Names>& test_sides() {
  static const std::map<std::string_view, Names> kSides = {
      {"base", {}},
      {"schema", {}},
      {"tidy", {}},
      {"compute", {"compute/"}},
      {"graph", {"compute/"}},
      {"ops", {"compute/"}},
      {"backends", {"compute/"}},
      {"models", {"compute/"}},
      {"tokenizer", {"compute/"}},
      {"chat", {"compute/"}},
      {"shards", {"compute/"}},
      {"worker", {"compute/", "client/worker_process.h"}},
      {"coordinator", {"coordinator/", "compute/tokenizer/tokenizer.h"}},
      {"client", {"client/"}},
      {"ui", {"ui/", "client/client.h"}},
  };
  return kSides;
}

// The kind of a header in angle brackets; empty for the standard library.
std::string_view library_of(std::string_view header) {
  static const std::vector<std::pair<std::string_view, Names>> kLibraries = {
      {"qt", {"Q"}},
      {"kj", {"kj/", "capnp/"}},
      {"sqlite", {"sqlite3"}},
      {"vulkan", {"vulkan/", "volk.h"}},
      {"cuda", {"cuda", "cublas", "nvrtc", "nvml"}},
      {"sodium", {"sodium"}},
      {"openssl", {"openssl/"}},
      {"pcre2", {"pcre2"}},
      {"json", {"nlohmann/"}},
      {"toml", {"toml++/"}},
      {"cli", {"CLI/"}},
      {"dbus", {"systemd/"}},
      {"wayland", {"wayland-", "ext-idle-notify"}},
      {"xcb", {"xcb/"}},
      {"simd", {"immintrin.h", "x86intrin.h", "arm_neon.h", "cpuid.h"}},
      {"os",
       {"unistd.h", "fcntl.h", "poll.h", "sched.h", "signal.h", "pthread.h", "dlfcn.h", "netdb.h",
        "dirent.h", "termios.h", "pwd.h", "sys/", "linux/", "netinet/", "arpa/", "asm/",
        "windows.h", "winsock"}},
  };
  for (const auto& [library, beginnings] : kLibraries) {
    if (starts_with_any(header, beginnings)) return library;
  }
  return "";
}

bool is_header(std::string_view path) { return path.ends_with(".h"); }

std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

class Checker {
 public:
  Checker(std::string_view path, std::string_view content)
      : path_(path),
        raw_(split(content)),
        code_(split(without_comments(content, /*without_texts=*/false))),
        bare_(split(without_comments(content, /*without_texts=*/true))) {}

  std::vector<Finding> run() {
    check_head();
    for (size_t i = 0; i < code_.size(); ++i) {
      line_ = static_cast<int>(i) + 1;
      check_include(code_[i]);
      if (!is_include(code_[i])) check_hazards(bare_[i]);
      check_to_do(raw_[i]);
    }
    return std::move(findings_);
  }

 private:
  static std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      lines.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
  }

  void found(std::string_view rule, std::string advice) {
    findings_.push_back({std::string(path_), line_, std::string(rule), std::move(advice)});
  }

  void check_head() {
    // Headers in shaders/ are read by GLSL too, which has no pragma once.
    if (!is_header(path_) || path_.starts_with("shaders/")) return;
    line_ = 1;
    if (raw_.empty() || raw_[0] != "#pragma once")
      found("head", "a header begins with #pragma once");
    line_ = 2;
    if (raw_.size() < 2 || !raw_[1].starts_with("// ")) {
      found("head", "the line under #pragma once says what this room decides or holds");
    }
  }

  static bool is_include(std::string_view line) {
    const size_t start = line.find_first_not_of(' ');
    return start != line.npos && line[start] == '#' && line.find("include", start) != line.npos;
  }

  void check_include(const std::string& line) {
    static const QRegularExpression kInclude(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
    const auto match = kInclude.match(QString::fromStdString(line));
    if (!match.hasMatch()) return;
    const std::string header = match.captured(2).toStdString();
    if (match.captured(1) == "<") {
      check_library(header);
    } else {
      check_own(header);
    }
  }

  void check_library(const std::string& header) {
    const std::string_view library = library_of(header);
    if (library.empty() || path_.starts_with("tests/")) return;
    const Room* const room = room_of_file();
    if (room == nullptr || std::ranges::find(room->libraries, library) != room->libraries.end())
      return;
    found("include", "<" + header + "> has no place in " + std::string(room->where) + ": " +
                         std::string(library) + " is known elsewhere only (docs/ARCHITECTURE.md)");
  }

  void check_own(const std::string& header) {
    if (header.ends_with(".moc")) return;
    if (header.find('/') == std::string::npos || header.starts_with("../")) {
      return found("include", in_quotes(header) + ": write the path from the repository's root");
    }
    if (path_.starts_with("tests/")) return check_own_in_test(header);
    const Room* const room = room_of_file();
    if (room == nullptr || is_in(header, room->own)) return;
    found("include", std::string(room->where) + " may not know " + in_quotes(header) +
                         ": see who may include whom in docs/ARCHITECTURE.md");
  }

  void check_own_in_test(const std::string& header) {
    if (starts_with_any(header, {"base/", "schema/", "shaders/", "tests/"})) return;
    const std::string_view rest = path_.substr(6);
    const auto side = test_sides().find(rest.substr(0, rest.find('/')));
    if (side == test_sides().end() || is_in(header, side->second)) return;
    found("include", "tests/" + std::string(side->first) + " may not know " + in_quotes(header) +
                         ": a test knows what its room may know");
  }

  const Room* room_of_file() const {
    for (const Room& room : rooms()) {
      if (path_.starts_with(room.where)) return &room;
    }
    return nullptr;
  }

  void check_hazards(const std::string& line) {
    static const std::vector<QRegularExpression> kPatterns = [] {
      std::vector<QRegularExpression> patterns;
      for (const Hazard& hazard : hazards()) {
        patterns.emplace_back(
            QString::fromUtf8(hazard.pattern.data(), qsizetype(hazard.pattern.size())));
      }
      return patterns;
    }();
    const QString text = QString::fromStdString(line);
    for (size_t i = 0; i < kPatterns.size(); ++i) {
      const Hazard& hazard = hazards()[i];
      if (starts_with_any(path_, hazard.in)) continue;
      if (hazard.rule == "using namespace" && !is_header(path_)) continue;
      if (hazard.rule == "catch" && path_.ends_with("_server.cpp")) continue;  // The RPC edge.
      if (kPatterns[i].match(text).hasMatch()) found(hazard.rule, std::string(hazard.advice));
    }
  }

  // In comments, so over the raw line.
  void check_to_do(const std::string& line) {
    static const QRegularExpression kToDo(R"(\bTODO\b(?!\((soon|perf|port)\): ))");
    if (path_.starts_with("tests/tidy/")) return;  // It speaks of them.
    if (kToDo.match(QString::fromStdString(line)).hasMatch()) {
      found("todo", "a TODO has a kind: TODO(soon): , TODO(perf): or TODO(port): ");
    }
  }

  std::string_view path_;
  std::vector<std::string> raw_, code_, bare_;
  int line_ = 0;
  std::vector<Finding> findings_;
};

}  // namespace

std::string Finding::text() const { return path + ":" + std::to_string(line) + ": " + advice; }

std::vector<Finding> check_source(std::string_view path, std::string_view content) {
  return Checker(path, content).run();
}

std::span<const Hazard> hazards() {
  static const std::vector<Hazard> kHazards = {
      {"new",
       R"(\bnew\b)",
       {"ui/", "tests/ui/"},
       "write std::make_unique, or hold a member",
       "auto* lease = new Lease;",
       "auto new_lease = std::make_unique<Lease>();  // new"},
      {"delete",
       R"((?<!=)(?<!= )\bdelete\b)",
       {},
       "let std::unique_ptr or a member own it",
       "delete lease;",
       "Lease(const Lease&) = delete;"},
      {"shared_ptr",
       R"(\bshared_ptr<(?!\s*const\b))",
       {},
       "share only what never changes again: std::shared_ptr<const T>; else std::unique_ptr owns",
       "std::shared_ptr<Lease> lease;",
       "std::shared_ptr<const Lease> lease;"},
      {"sleep",
       R"(\b(sleep_for|sleep_until|usleep|nanosleep)\b)",
       {},
       "nothing waits by sleeping: wait for the event, with a timer of the loop as its limit",
       "std::this_thread::sleep_for(1s);",
       "timer.afterDelay(1 * kj::SECONDS);"},
      {"clock",
       R"(\bsystem_clock::now\b|\bgettimeofday\b)",
       {"base/clock."},
       "take a Clock (base/clock.h), so that a test can move it",
       "auto now = std::chrono::system_clock::now();",
       "const Millis now = clock.now_wall();"},
      {"chance",
       R"((?<![\w:.>])(std::)?s?rand\s*\(|\brandom_device\b|\bmt19937)",
       {"base/random."},
       "take a Random (base/random.h), so that a seed replays the run",
       "const int n = rand() % 6;",
       "const auto n = random.below(6); operand(n);"},
      {"catch",
       R"(\bcatch\s*\(\s*\.\.\.\s*\))",
       {"schema/task.h", "schema/transport.", "ui/agent_link."},
       "only the RPC edge catches (*_server.cpp, schema/task.h); elsewhere a Result says what "
       "failed",
       "} catch (...) {",
       "} catch (const toml::parse_error& error) {"},
      {"windows",
       R"(\b_WIN32\b|\b_MSC_VER\b)",
       {"base/host_"},
       "what differs by operating system is in base/host_*.cpp",
       "#ifdef _WIN32",
       "#ifdef __AVX2__"},
      {"thread",
       R"(\bstd::j?thread\b(?!::)|\bpthread_create\b|\bstd::async\b)",
       {"compute/worker/worker_server.", "ui/agent_link.", "compute/backends/cpu/thread_pool.",
        "client/sensors/sensor_threads.", "tests/"},
       "only worker_server, thread_pool, agent_link and sensor_threads start threads "
       "(docs/ARCHITECTURE.md)",
       "std::thread([] { work(); }).detach();",
       "std::thread::hardware_concurrency();"},
      {"subrange",
       R"(\bstd::(ranges::(unique|remove(_if)?|partition|stable_partition|rotate|search|equal_range|subrange)\b(?!_)|views::))",
       {"tests/"},
       "clang 14 cannot compile what returns a subrange, and the fuzzers are built with it: use a "
       "std::set, std::erase_if or std::unique",
       "std::ranges::unique(owners);",
       "const auto at = std::ranges::partition_point(times, enough);"},
      {"using namespace",
       R"(^\s*using\s+namespace\b)",
       {},
       "no `using namespace` in a header",
       "using namespace std;",
       "using Names = std::vector<std::string>;"},
  };
  return kHazards;
}

std::string without_comments(std::string_view content, bool without_texts) {
  std::string out(content);
  const auto blank = [&out](size_t from, size_t to) {
    for (size_t i = from; i < std::min(to, out.size()); ++i) {
      if (out[i] != '\n') out[i] = ' ';
    }
  };
  // The end of what began before `from` and ends with `mark`.
  const auto end_of = [content](std::string_view mark, size_t from) {
    const size_t at = content.find(mark, from);
    return at == std::string_view::npos ? content.size() : at + mark.size();
  };
  for (size_t i = 0; i < content.size();) {
    const std::string_view rest = content.substr(i);
    const bool after_word = i > 0 && (isalnum(static_cast<unsigned char>(content[i - 1])) != 0 ||
                                      content[i - 1] == '_');
    size_t end = i + 1;
    if (rest.starts_with("//")) {
      end = std::min(content.find('\n', i), content.size());
      blank(i, end);
    } else if (rest.starts_with("/*")) {
      end = end_of("*/", i + 2);
      blank(i, end);
    } else if (rest.starts_with("R\"") && !after_word) {
      const size_t open = std::min(content.find('(', i), content.size() - 1);
      const std::string mark = ")" + std::string(content.substr(i + 2, open - i - 2)) + "\"";
      end = end_of(mark, open);
      if (without_texts) blank(i, end);
    } else if (rest[0] == '"' || (rest[0] == '\'' && !after_word)) {  // 1'000 is no letter.
      while (end < content.size() && content[end] != rest[0] && content[end] != '\n') {
        end += content[end] == '\\' ? 2 : 1;
      }
      end = std::min(end + 1, content.size());
      if (without_texts) blank(i, end);
    }
    i = end;
  }
  return out;
}

std::vector<Finding> check_migrations(std::string_view record, std::vector<SourceText> files) {
  std::vector<Finding> findings;
  std::map<std::string, std::string> recorded;
  while (!record.empty()) {
    const size_t end = std::min(record.find('\n'), record.size());
    const std::string_view line = record.substr(0, end);
    if (const size_t space = line.find(' '); !line.starts_with('#') && space != line.npos) {
      recorded[std::string(line.substr(space + 1))] = std::string(line.substr(0, space));
    }
    record.remove_prefix(std::min(end + 1, record.size()));
  }
  std::ranges::sort(files, {}, &SourceText::path);
  for (const SourceText& file : files) {
    const std::string digest = digest_of(as_bytes(file.content)).hex();
    const auto entry = recorded.find(file.path);
    if (entry == recorded.end()) {
      const SourceText* const next = &file == &files.back() ? nullptr : &file + 1;
      const auto folder = [](const std::string& path) { return path.substr(0, path.rfind('/')); };
      // The newest of its folder is still being written.
      if (next == nullptr || folder(next->path) != folder(file.path)) continue;
      findings.push_back({file.path, 1, "migration",
                          "a newer migration exists, so this one is history: add \"" + digest +
                              " " + file.path + "\" to tests/tidy/migrations.txt"});
    } else if (entry->second != digest) {
      findings.push_back(
          {file.path, 1, "migration",
           "history is not edited: write a new migration, and leave this one as it was"});
    }
    if (entry != recorded.end()) recorded.erase(entry);
  }
  for (const auto& [path, digest] : recorded) {
    findings.push_back(
        {path, 1, "migration", "a recorded migration is gone: databases still need it"});
  }
  return findings;
}

}  // namespace shoal
