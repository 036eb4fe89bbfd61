// The sandbox of base/host.h: a seccomp filter that refuses what a compute worker has no need for.
//
// It lists what is refused, not what is allowed: GPU drivers differ in what they call, and a worker
// that dies in a driver update helps nobody. What is refused answers "not permitted", so that a
// driver's optional parts (shader caches, helpers) fail softly.

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <vector>

#include "base/host.h"

namespace shoal {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

// Refused whatever the arguments. Calls that only one architecture has are marked.
// clang-format off
constexpr int kRefused[] = {
    // Connections. socketpair stays: it reaches nobody outside.
    SYS_socket, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4,
    425, 426, 427,  // io_uring_setup, _enter, _register: they would do all of this unseen.
    // Programs and processes.
    SYS_execve, SYS_execveat,
#ifdef __x86_64__
    SYS_fork, SYS_vfork,
#endif
    // Other processes.
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, 438 /* pidfd_getfd */,
    // The machine and its names.
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_bpf,
    SYS_perf_event_open, SYS_userfaultfd, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_init_module,
    SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff,
    SYS_sethostname, SYS_setdomainname, SYS_settimeofday, SYS_clock_settime, SYS_open_by_handle_at,
    SYS_personality,
    // Files: none made, moved, removed or cut. Devices may still be opened for writing.
    SYS_unlinkat, SYS_renameat2, SYS_mkdirat, SYS_mknodat, SYS_linkat, SYS_symlinkat, SYS_fchmodat,
    SYS_fchownat, SYS_truncate, SYS_setxattr, SYS_lsetxattr,
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef __x86_64__
    SYS_unlink, SYS_rename, SYS_mkdir, SYS_rmdir, SYS_mknod, SYS_link, SYS_symlink, SYS_chmod,
    SYS_chown, SYS_lchown, SYS_creat,
#endif
};
// clang-format on

// Answered "no such call", so that the C library falls back to an older one whose arguments the
// filter can see.
constexpr int kHidden[] = {435 /* clone3 */, 437 /* openat2 */};

class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
    answer(SECCOMP_RET_KILL_PROCESS);  // A call in another architecture's numbers.
    load(offsetof(seccomp_data, nr));
#ifdef __x86_64__
    when_at_least(0x40000000, SECCOMP_RET_ERRNO | ENOSYS);  // The same in x32's.
#endif
  }

  void when_call(int call, uint32_t verdict) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    answer(verdict);
  }

  // Refuses `call` when any of `bits` is set in the low half of the argument.
  void when_argument_has(int call, int argument, uint32_t bits, uint32_t verdict) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 4));
    load(argument_offset(argument));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
    answer(verdict);
    load(offsetof(seccomp_data, nr));
  }

  // Refuses `call` unless all of `bits` are set there.
  void when_argument_lacks(int call, int argument, uint32_t bits, uint32_t verdict) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 5));
    load(argument_offset(argument));
    code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, bits, 1, 0));
    answer(verdict);
    load(offsetof(seccomp_data, nr));
  }

  std::vector<sock_filter> finish() {
    answer(SECCOMP_RET_ALLOW);
    return std::move(code_);
  }

 private:
  static uint32_t argument_offset(int argument) {  // The low half: both machines are little-endian.
    return static_cast<uint32_t>(offsetof(seccomp_data, args) + sizeof(uint64_t) * argument);
  }
  void load(size_t offset) {
    code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
  }
  void when_at_least(uint32_t value, uint32_t verdict) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, value, 0, 1));
    answer(verdict);
  }
  void answer(uint32_t verdict) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, verdict)); }

  std::vector<sock_filter> code_;
};

#ifdef __SANITIZE_ADDRESS__
std::atomic<bool> in_sandbox = false;
#endif

std::vector<sock_filter> worker_filter() {
  constexpr uint32_t kDeny = SECCOMP_RET_ERRNO | EPERM;
  Filter filter;
  for (const int call : kHidden) filter.when_call(call, SECCOMP_RET_ERRNO | ENOSYS);
  // Threads are made by clone too: those stay.
  filter.when_argument_lacks(SYS_clone, 0, CLONE_THREAD, kDeny);
  // O_TMPFILE is two bits, one of which also means "a folder": test for the other.
  constexpr uint32_t kMakes = O_CREAT | (O_TMPFILE & ~O_DIRECTORY);
  filter.when_argument_has(SYS_openat, 2, kMakes, kDeny);
#ifdef __x86_64__
  filter.when_argument_has(SYS_open, 1, kMakes, kDeny);
#endif
  for (const int call : kRefused) filter.when_call(call, kDeny);
  return filter.finish();
}

}  // namespace

Result<void> enter_sandbox() {
  if constexpr (kArchitecture == 0) {
    return Error{ErrorCode::kUnsupported, "no sandbox for this processor architecture"};
  }
  const rlimit no_core{0, 0};
  if (setrlimit(RLIMIT_CORE, &no_core) != 0) return os_error(errno, "cannot forbid core dumps");
  if (prctl(PR_SET_DUMPABLE, 0) != 0)
    return os_error(errno, "cannot close the process to debuggers");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return os_error(errno, "cannot give up new privileges");
  std::vector<sock_filter> code = worker_filter();
  sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  // On all threads at once.
  const long answer =
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  if (answer > 0) return Error{ErrorCode::kIo, "a thread has a sandbox of its own already"};
  if (answer < 0) return os_error(errno, "cannot install the sandbox's filter");
#ifdef __SANITIZE_ADDRESS__
  in_sandbox = true;
#endif
  return {};
}

}  // namespace shoal

#ifdef __SANITIZE_ADDRESS__
// The leak checker asks this at exit. It works by stopping its own process with ptrace, which the
// sandbox forbids: inside it, no check.
extern "C" int __lsan_is_turned_off() { return shoal::in_sandbox; }
#endif
