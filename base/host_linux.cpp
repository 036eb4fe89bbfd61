#include "base/host.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <system_error>
#include <thread>

#include "base/files.h"

namespace shoal {
namespace {

// The text after "<key>" and its colon in one of the system's tables; empty when there is none.
std::string table_entry(const char* table, std::string_view key) {
  std::ifstream file(table);
  std::string line;
  while (std::getline(file, line)) {
    if (!std::string_view(line).starts_with(key)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

// "16318480 kB"
std::optional<Bytes> table_kilobytes(const char* table, std::string_view key) {
  const std::string text = table_entry(table, key);
  char* end = nullptr;
  const long long kilobytes = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || kilobytes < 0 || kilobytes > INT64_MAX / 1024) return std::nullopt;
  return Bytes{kilobytes * 1024};
}

// An environment variable that holds an absolute path; others are ignored, as XDG demands.
std::filesystem::path path_from_environment(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr || text[0] != '/') return {};
  return text;
}

}  // namespace

Error os_error(int code, std::string what) {
  ErrorCode kind = ErrorCode::kIo;
  switch (code) {
    case ENOENT:
    case ENOTDIR: kind = ErrorCode::kNotFound; break;
    case EEXIST: kind = ErrorCode::kExists; break;
    case EACCES:
    case EPERM:
    case EROFS: kind = ErrorCode::kDenied; break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE: kind = ErrorCode::kNoSpace; break;
    case EAGAIN:
    case EADDRINUSE:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE: kind = ErrorCode::kUnavailable; break;
    case ETIMEDOUT: kind = ErrorCode::kTimeout; break;
    case EINVAL:
    case ENAMETOOLONG: kind = ErrorCode::kInvalid; break;
    case ENOSYS: kind = ErrorCode::kUnsupported; break;
    default: break;
  }
  return {kind, std::move(what) + ": " + std::generic_category().message(code)};
}

Result<UserFolders> user_folders(const std::optional<std::filesystem::path>& home) {
  std::filesystem::path all = home.value_or(path_from_environment("SHOAL_HOME"));
  if (!all.empty()) {
    all = std::filesystem::absolute(all);
    return UserFolders{all / "config", all / "state", all / "cache", all / "run"};
  }
  const std::filesystem::path user = path_from_environment("HOME");
  const auto folder = [&user](const char* variable, const char* below_home) {
    const std::filesystem::path given = path_from_environment(variable);
    if (!given.empty()) return given / "shoal";
    return user.empty() ? std::filesystem::path() : user / below_home / "shoal";
  };
  UserFolders folders{folder("XDG_CONFIG_HOME", ".config"),
                      folder("XDG_STATE_HOME", ".local/state"), folder("XDG_CACHE_HOME", ".cache"),
                      path_from_environment("XDG_RUNTIME_DIR")};
  if (folders.config.empty() || folders.state.empty() || folders.cache.empty()) {
    return Error{ErrorCode::kNotFound,
                 "no home folder: set HOME or SHOAL_HOME to an absolute path"};
  }
  folders.runtime = folders.runtime.empty() ? folders.state / "run" : folders.runtime / "shoal";
  return folders;
}

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "unnamed";
  return name;
}

std::string cpu_name() {
  for (const char* key : {"model name", "Model", "Hardware"}) {
    const std::string name = table_entry("/proc/cpuinfo", key);
    if (!name.empty()) return name;
  }
  return "unknown processor";
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

int cpu_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

Result<MemoryInfo> memory_info() {
  const std::optional<Bytes> total = table_kilobytes("/proc/meminfo", "MemTotal");
  const std::optional<Bytes> available = table_kilobytes("/proc/meminfo", "MemAvailable");
  if (!total || !available)
    return Error{ErrorCode::kIo, "cannot read memory sizes of /proc/meminfo"};
  MemoryInfo info{*total, *available};
  // A container may hold less than the machine.
  std::ifstream limit_file("/sys/fs/cgroup/memory.max");
  int64_t limit = 0;
  if (limit_file >> limit && limit > 0) {
    info.total = std::min(info.total, Bytes{limit});
    info.available = std::min(info.available, info.total);
  }
  return info;
}

Bytes own_memory() { return table_kilobytes("/proc/self/status", "VmRSS").value_or(Bytes{0}); }

int64_t own_pid() { return ::getpid(); }
bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

Result<std::filesystem::path> own_program() {
  std::error_code code;
  std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", code);
  if (code) return Error{ErrorCode::kIo, "cannot read /proc/self/exe: " + code.message()};
  return path;
}

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void OwnedFd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<std::pair<OwnedFd, OwnedFd>> make_socket_pair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return os_error(errno, "cannot make a socket pair");
  }
  return std::pair(OwnedFd(fds[0]), OwnedFd(fds[1]));
}

void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }

Result<void> limit_own_memory(Bytes bytes_max) {
  // Private writable memory: address space alone is no measure, as GPU drivers reserve terabytes of
  // it.
  const rlimit limit{static_cast<rlim_t>(bytes_max.count), static_cast<rlim_t>(bytes_max.count)};
  if (setrlimit(RLIMIT_DATA, &limit) != 0)
    return os_error(errno, "cannot limit this process's memory");
  return {};
}

}  // namespace shoal
