// Child processes: the part of base/host.h that starts, watches and ends them.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/host.h"

extern char** environ;

namespace shoal {
namespace {

// Everything the new process needs between fork and exec, where nothing may be allocated.
struct Launch {
  const char* program;
  char* const* argv;
  char* const* environment;
  int streams[3];
  int channel;
  int report;  // Takes errno when the program cannot be started; closes by itself when it can.
  bool dies_with_parent;
  pid_t parent;
};

[[noreturn]] void report_and_leave(const Launch& launch) {
  const int code = errno;
  [[maybe_unused]] const ssize_t written = ::write(launch.report, &code, sizeof code);
  _exit(127);
}

// Runs in the child. Async-signal-safe calls only: other threads' locks may be held for ever here.
[[noreturn]] void become_program(const Launch& launch) {
  if (launch.dies_with_parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launch.parent) _exit(127);  // It died before the line above.
  }
  // Event loops block signals that they read by themselves; the new program must hear them.
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);

  // First out of the way of 0..3, then into place: any of these may have any number now.
  int fds[4] = {launch.streams[0], launch.streams[1], launch.streams[2], launch.channel};
  for (int& fd : fds) {
    if (fd >= 0 && (fd = fcntl(fd, F_DUPFD_CLOEXEC, 10)) < 0) report_and_leave(launch);
  }
  const int report = fcntl(launch.report, F_DUPFD_CLOEXEC, 10);
  Launch moved = launch;
  if (report >= 0) moved.report = report;
  for (int target = 0; target < 4; ++target) {
    if (fds[target] >= 0 && dup2(fds[target], target) < 0) report_and_leave(moved);
  }
  // Whatever a library opened without close-on-exec does not reach the program.
  const int first = launch.channel >= 0 ? kChildChannelFd + 1 : 3;
  constexpr unsigned kCloseOnExec = 1u << 2;
  if (syscall(SYS_close_range, first, ~0u, kCloseOnExec) != 0) {
    for (int fd = first; fd < 1024; ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  execve(launch.program, launch.argv, launch.environment);
  report_and_leave(moved);
}

ChildExit exit_of(int status) {
  if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

}  // namespace

std::string ChildExit::text() const {
  if (signal == 0) return "exit code " + std::to_string(code);
  const char* const name = strsignal(signal);
  return "signal " + std::to_string(signal) +
         (name != nullptr ? " (" + std::string(name) + ")" : "");
}

Result<ChildProcess> ChildProcess::spawn(ChildOptions options) {
  SHOAL_CHECK(!options.argv.empty());
  std::vector<char*> argv;
  for (std::string& argument : options.argv) argv.push_back(argument.data());
  argv.push_back(nullptr);

  std::vector<std::string> added;
  for (const auto& [name, value] : options.environment) added.push_back(name + "=" + value);
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    bool replaced = false;
    for (const auto& [name, value] : options.environment) {
      replaced |= text.starts_with(name) && text.substr(name.size()).starts_with('=');
    }
    if (!replaced) environment.push_back(*entry);
  }
  for (std::string& entry : added) environment.push_back(entry.data());
  environment.push_back(nullptr);

  const std::string what = "cannot start " + options.argv[0];
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return os_error(errno, what);
  OwnedFd report_read(report[0]);
  OwnedFd report_write(report[1]);
  OwnedFd null;
  if (options.stdin_fd < 0) {
    null = OwnedFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (null.get() < 0) return os_error(errno, what);
    options.stdin_fd = null.get();
  }
  const Launch launch{
      options.argv[0].c_str(),  argv.data(),
      environment.data(),       {options.stdin_fd, options.stdout_fd, options.stderr_fd},
      options.channel.get(),    report_write.get(),
      options.dies_with_parent, getpid()};

  // No signal handler of ours may run in the child before it has dropped them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) become_program(launch);
  const int fork_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return os_error(fork_error, what);

  ChildProcess child;
  child.pid_ = pid;
  child.pidfd_ = OwnedFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (child.pidfd_.get() < 0) return os_error(errno, what);
  report_write.reset();
  int code = 0;
  ssize_t count;
  do {
    count = ::read(report_read.get(), &code, sizeof code);
  } while (count < 0 && errno == EINTR);
  if (count == sizeof code) return os_error(code, what);  // The child is reaped on the way out.
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      exit_(std::exchange(other.exit_, std::nullopt)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(exit_, other.exit_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || exit_) return;
  kill();
  int status = 0;
  while (waitpid(static_cast<pid_t>(pid_), &status, 0) < 0 && errno == EINTR) {
  }
}

std::optional<ChildExit> ChildProcess::try_wait() {
  if (exit_ || pid_ < 0) return exit_;
  int status = 0;
  const pid_t ended = waitpid(static_cast<pid_t>(pid_), &status, WNOHANG);
  if (ended == pid_) exit_ = exit_of(status);
  // Someone else reaped it (a SIGCHLD handler): it has ended, how is lost.
  if (ended < 0 && errno == ECHILD) exit_ = ChildExit{-1, 0};
  return exit_;
}

std::optional<ChildExit> ChildProcess::wait(Millis limit) {
  const SystemClock clock;
  const Millis deadline = clock.now_monotonic() + limit;
  while (!try_wait()) {
    const Millis left = deadline - clock.now_monotonic();
    if (left.count <= 0) break;
    pollfd ended{pidfd_.get(), POLLIN, 0};
    poll(&ended, 1, static_cast<int>(std::min<int64_t>(left.count, 1 << 30)));
  }
  return exit_;
}

Result<std::string> shell_output(const std::string& command, Bytes kept_max, Bytes printed_max) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return os_error(errno, "cannot start a command");
  const OwnedFd read_end(ends[0]);
  OwnedFd write_end(ends[1]);
  SHOAL_TRY_ASSIGN(child, ChildProcess::spawn(
                              {.argv = {"/bin/sh", "-c", command}, .stdout_fd = write_end.get()}));
  write_end.reset();
  std::string kept;
  int64_t printed = 0;
  char buffer[65536];
  for (;;) {
    const ssize_t count = ::read(read_end.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os_error(errno, "cannot read what a command prints");
    if (count == 0) break;
    printed += count;
    if (printed > printed_max.count) {
      return Error{ErrorCode::kUnavailable,
                   "printed more than " + std::to_string(printed_max.count) + " bytes"};
    }
    kept.append(buffer, static_cast<size_t>(count));
    if (kept.size() > 2 * static_cast<size_t>(kept_max.count))
      kept.erase(0, kept.size() - static_cast<size_t>(kept_max.count));
  }
  if (kept.size() > static_cast<size_t>(kept_max.count))
    kept.erase(0, kept.size() - static_cast<size_t>(kept_max.count));
  std::optional<ChildExit> exit;
  while (!(exit = child.wait(Millis{60'000}))) {
  }
  if (!exit->clean()) return Error{ErrorCode::kUnavailable, "ended with " + exit->text()};
  return kept;
}

// Once it is reaped its number may be another's: never signal that.
void ChildProcess::terminate() {
  if (pid_ > 0 && !try_wait()) ::kill(static_cast<pid_t>(pid_), SIGTERM);
}

void ChildProcess::kill() {
  if (pid_ > 0 && !try_wait()) ::kill(static_cast<pid_t>(pid_), SIGKILL);
}

}  // namespace shoal
