// What host_test starts: answers on its channel, leaves in the ways asked for, or tries from within
// the sandbox what the sandbox forbids and what it must allow. Prints one word a line.

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/host.h"

namespace {

void say(const char* what, bool allowed) { std::printf("%s %s\n", what, allowed ? "yes" : "no"); }

// Threads that were there before are held by the filter too.
int try_everything() {
  std::atomic<int> phase = 0;
  bool old_thread_socket = true;
  std::thread old_thread([&] {
    phase.wait(0);
    old_thread_socket = socket(AF_INET, SOCK_STREAM, 0) >= 0;
  });
  const auto entered = shoal::enter_sandbox();
  if (!entered.ok()) {
    std::printf("error %s\n", entered.error().message.c_str());
    phase = 1;
    phase.notify_all();
    old_thread.join();
    return 3;
  }
  phase = 1;
  phase.notify_all();
  old_thread.join();
  say("old_thread_socket", old_thread_socket);
  say("inet", socket(AF_INET, SOCK_STREAM, 0) >= 0);
  say("unix", socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  if (child > 0) waitpid(child, nullptr, 0);
  say("fork", child > 0);
  char* const argv[] = {const_cast<char*>("/bin/true"), nullptr};
  say("exec", execv("/bin/true", argv) >= 0);
  say("ptrace", ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) >= 0);
  char name[64];
  std::snprintf(name, sizeof name, "/tmp/shoal-sandbox-%d", getpid());
  const int made = open(name, O_CREAT | O_WRONLY, 0600);
  if (made >= 0) unlink(name);
  say("create", made >= 0);
  say("mkdir", mkdir(name, 0700) == 0);
  say("truncate", truncate("/proc/self/comm", 0) == 0);

  say("read", open("/proc/cpuinfo", O_RDONLY) >= 0);
  say("device", open("/dev/null", O_RDWR) >= 0);
  bool ran = false;
  std::thread([&] { ran = true; }).join();
  say("thread", ran);
  int pair[2];
  say("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  void* const code =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  say("jit", code != MAP_FAILED && mprotect(code, 4096, PROT_READ | PROT_EXEC) == 0);
  say("memfd", memfd_create("shared", MFD_CLOEXEC) >= 0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view act = argc > 1 ? argv[1] : "";
  if (act == "channel") {
    char text[64];
    const ssize_t count = read(shoal::kChildChannelFd, text, sizeof text);
    return count > 0 && write(shoal::kChildChannelFd, text, static_cast<size_t>(count)) == count
               ? 0
               : 1;
  }
  if (act == "exit") return std::atoi(argv[2]);
  if (act == "hang") {
    std::printf("%d\n", getpid());
    std::fflush(stdout);
    for (;;) pause();
  }
  if (act == "environment") {
    std::printf("%s\n", std::getenv(argv[2]) != nullptr ? std::getenv(argv[2]) : "(unset)");
    return 0;
  }
  if (act == "descriptors") {
    for (int fd = 0; fd < 256; ++fd) {
      if (fcntl(fd, F_GETFD) >= 0) std::printf("%d\n", fd);
    }
    return 0;
  }
  if (act ==
      "parent") {  // Starts a child that hangs, says its number, and dies without a word to it.
    shoal::ChildOptions options;
    options.argv = {argv[0], "hang"};
    auto child = shoal::ChildProcess::spawn(std::move(options));
    if (!child.ok()) return 1;
    pause();
  }
  if (act == "sandbox") {
    const int code = try_everything();
    std::fflush(stdout);
    return code;
  }
  return 2;
}
