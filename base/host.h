#pragma once
// What we ask of the operating system: folders, processor, memory, child processes, the sandbox.
// Only base/host_*.cpp include the system's headers.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace shoal {

// The error of a failed system call: "<what>: No space left on device", its kind from `code`
// (errno).
Error os_error(int code, std::string what);

// Where this user's data lives (XDG). `home`, or the environment's SHOAL_HOME, puts all four below
// one folder. Nothing is made: see make_folder.
struct UserFolders {
  std::filesystem::path config, state, cache, runtime;
};
Result<UserFolders> user_folders(const std::optional<std::filesystem::path>& home = {});

std::string host_name();
std::string cpu_name();
double load_average();  // Programs that want a processor, over the last minute; -1: unknown.
int cpu_count();        // Threads that this process may run on at once; at least 1.
struct MemoryInfo {
  Bytes total, available;
};
Result<MemoryInfo> memory_info();
Bytes own_memory();                           // This process's resident memory; 0 when unknown.
Result<std::filesystem::path> own_program();  // The file this process runs.
int64_t own_pid();
bool stdout_is_terminal();

// A file descriptor that closes itself.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd() { reset(); }

  int get() const { return fd_; }  // -1 when it holds none.
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// A connected pair of stream sockets, closed on exec.
Result<std::pair<OwnedFd, OwnedFd>> make_socket_pair();

// The child finds what ChildOptions::channel gave it under this number.
constexpr int kChildChannelFd = 3;

struct ChildOptions {
  std::vector<std::string> argv;  // argv[0] is the program's path; it is not looked for in PATH.
  std::vector<std::pair<std::string, std::string>> environment;  // Added to this process's own.
  OwnedFd channel;               // Closed here once the child has it.
  int stdin_fd = -1;             // -1: /dev/null.
  int stdout_fd = -1;            // -1: this process's own.
  int stderr_fd = -1;            // -1: this process's own.
  bool dies_with_parent = true;  // Dies with the thread that spawned it: spawn from one that stays.
};

struct ChildExit {
  int code = 0;    // What it returned; 0 when a signal ended it.
  int signal = 0;  // The signal that ended it; 0 when it returned.

  bool clean() const { return code == 0 && signal == 0; }
  std::string text() const;  // "exit code 1", "signal 9 (Killed)"
};

// One child. It inherits its three standard streams and the channel, nothing else. One thread.
class ChildProcess {
 public:
  static Result<ChildProcess> spawn(ChildOptions options);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();  // Kills and reaps a child that still runs.

  int64_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // Readable once the child has ended: for event loops.
  std::optional<ChildExit> try_wait();        // Empty while it runs. May be asked again.
  std::optional<ChildExit> wait(Millis limit);  // Empty when the time is over.
  void terminate();                             // Asks it to end (SIGTERM).
  void kill();                                  // Ends it (SIGKILL).

 private:
  ChildProcess() = default;

  int64_t pid_ = -1;  // -1 when moved from.
  OwnedFd pidfd_;
  std::optional<ChildExit> exit_;
};

// Runs a command by the shell to its end, its errors on ours; the last `kept_max` bytes of what it
// prints. kUnavailable with how it ended unless it ended well; who prints more than `printed_max`
// is ended.
Result<std::string> shell_output(const std::string& command, Bytes kept_max, Bytes printed_max);

// A peer that hangs up is an error of one write, not the end of the process. For programs that
// write to pipes and sockets; KJ's loops say it by themselves.
void ignore_broken_pipes();

// Takes from this process, for ever and on all threads, what a worker has no need for: connections,
// new programs and processes, other processes' memory, new or changed files, core dumps,
// privileges. Open files, memory, threads and reading stay. Drivers that start helpers must have
// started them before.
Result<void> enter_sandbox();

// Allocations beyond this fail from now on.
Result<void> limit_own_memory(Bytes bytes_max);

}  // namespace shoal
