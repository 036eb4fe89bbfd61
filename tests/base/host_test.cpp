// Child processes, the sandbox, and what the machine says of itself.

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <QTest>
#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/host.h"
#include "base/host_memory.h"

using namespace shoal;

namespace {

constexpr Millis kPatience{20'000};

// Runs the child to its end with its output in a file.
struct Ran {
  std::optional<ChildExit> exit;
  std::string output;
};

Ran run_child(std::vector<std::string> arguments, ChildOptions options = {}) {
  const TempDir folder;
  const OwnedFd out(open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  arguments.insert(arguments.begin(), SHOAL_CHILD);
  options.argv = std::move(arguments);
  options.stdout_fd = out.get();
  auto child = ChildProcess::spawn(std::move(options));
  if (!child.ok()) return {std::nullopt, child.error().message};
  Ran ran;
  ran.exit = child.value().wait(kPatience);
  ran.output = std::string(as_text(read_file(folder / "out", kMebibyte).value()));
  return ran;
}

}  // namespace

class HostTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void child_talks_on_its_channel();
  void child_exits_are_told_apart();
  void absent_program_is_an_error_of_spawn();
  void child_inherits_three_streams_and_the_channel_only();
  void child_sees_the_added_environment();
  void child_dies_with_its_owner_and_with_its_parent();
  void child_can_be_ended();
  void the_shells_output_is_kept_from_its_end();
  void sandbox_refuses_and_allows();
  void folders_follow_xdg_and_their_override();
  void machine_describes_itself();
  void errors_of_the_system_have_their_kinds();
  void zeroed_memory_is_whole_and_zero();
};

void HostTest::child_talks_on_its_channel() {
  auto pair = make_socket_pair();
  QVERIFY(pair.ok());
  ChildOptions options;
  options.argv = {SHOAL_CHILD, "channel"};
  options.channel = std::move(pair.value().second);
  auto child = ChildProcess::spawn(std::move(options));
  QVERIFY(child.ok());
  QVERIFY(child.value().pid() > 0);
  const int ours = pair.value().first.get();
  QCOMPARE(write(ours, "hello", 5), ssize_t{5});
  char answer[8] = {};
  QCOMPARE(read(ours, answer, sizeof answer), ssize_t{5});
  QCOMPARE(std::string(answer), std::string("hello"));
  QVERIFY(child.value().wait(kPatience)->clean());
  QCOMPARE(read(ours, answer, sizeof answer), ssize_t{0});  // Nobody else holds the other end.
}

void HostTest::child_exits_are_told_apart() {
  const Ran returned = run_child({"exit", "7"});
  QCOMPARE(returned.exit->code, 7);
  QCOMPARE(returned.exit->text(), std::string("exit code 7"));
  QVERIFY(run_child({"exit", "0"}).exit->clean());
}

void HostTest::absent_program_is_an_error_of_spawn() {
  ChildOptions options;
  options.argv = {"/nowhere/shoal-worker"};
  const auto child = ChildProcess::spawn(std::move(options));
  QVERIFY(!child.ok());
  QVERIFY(child.error().code == ErrorCode::kNotFound);
  QCOMPARE(child.error().message,
           std::string("cannot start /nowhere/shoal-worker: No such file or directory"));
}

void HostTest::the_shells_output_is_kept_from_its_end() {
  const auto run = [](const char* command) {
    return shell_output(command, /*kept_max=*/Bytes{4}, /*printed_max=*/Bytes{100'000});
  };
  QCOMPARE(run("printf abcdefgh").value(), std::string("efgh"));
  QCOMPARE(run("printf ab").value(), std::string("ab"));
  QCOMPARE(run("true").value(), std::string());
  QCOMPARE(run("exit 3").error().message, std::string("ended with exit code 3"));
  QCOMPARE(run("kill -9 $$").error().message, std::string("ended with signal 9 (Killed)"));
  QCOMPARE(run("no-such-program 2>/dev/null").error().message,
           std::string("ended with exit code 127"));
  QCOMPARE(run("yes").error().message, std::string("printed more than 100000 bytes"));
  QVERIFY(load_average() >= 0);
}

void HostTest::child_inherits_three_streams_and_the_channel_only() {
  const OwnedFd leaky(
      open("/dev/null", O_RDONLY));  // Without close-on-exec, as a careless library.
  QCOMPARE(run_child({"descriptors"}).output, std::string("0\n1\n2\n"));
  auto pair = make_socket_pair();
  ChildOptions options;
  options.channel = std::move(pair.value().second);
  QCOMPARE(run_child({"descriptors"}, std::move(options)).output, std::string("0\n1\n2\n3\n"));
}

void HostTest::child_sees_the_added_environment() {
  qputenv("SHOAL_TEST_VALUE", "outer");
  QCOMPARE(run_child({"environment", "SHOAL_TEST_VALUE"}).output, std::string("outer\n"));
  ChildOptions options;
  options.environment = {{"SHOAL_TEST_VALUE", "inner"}};
  QCOMPARE(run_child({"environment", "SHOAL_TEST_VALUE"}, std::move(options)).output,
           std::string("inner\n"));
}

void HostTest::child_dies_with_its_owner_and_with_its_parent() {
  int64_t pid = 0;
  {
    ChildOptions options;
    options.argv = {SHOAL_CHILD, "hang"};
    auto child = ChildProcess::spawn(std::move(options));
    pid = child.value().pid();
    QVERIFY(!child.value().try_wait());
    QCOMPARE(kill(static_cast<pid_t>(pid), 0), 0);
  }
  QCOMPARE(kill(static_cast<pid_t>(pid), 0), -1);

  int out[2];
  QCOMPARE(pipe2(out, O_CLOEXEC), 0);
  const OwnedFd read_end(out[0]);
  OwnedFd write_end(out[1]);
  ChildOptions options;
  options.argv = {SHOAL_CHILD, "parent"};
  options.stdout_fd = write_end.get();
  auto parent = ChildProcess::spawn(std::move(options));
  QVERIFY(parent.ok());
  write_end.reset();
  char text[32] = {};
  QVERIFY(read(read_end.get(), text, sizeof text) > 0);  // The grandchild's number.
  parent.value().kill();
  QCOMPARE(parent.value().wait(kPatience)->signal, SIGKILL);
  // The pipe ends when the grandchild, its last holder, has gone too.
  QCOMPARE(read(read_end.get(), text, sizeof text), ssize_t{0});
}

void HostTest::child_can_be_ended() {
  for (const bool gently : {true, false}) {
    ChildOptions options;
    options.argv = {SHOAL_CHILD, "hang"};
    auto spawned = ChildProcess::spawn(std::move(options));
    ChildProcess child = std::move(spawned).value();
    QVERIFY(!child.wait(Millis{20}));  // The limit, not the end.
    gently ? child.terminate() : child.kill();
    const auto exit = child.wait(kPatience);
    QVERIFY(exit.has_value());
    QCOMPARE(exit->signal, gently ? SIGTERM : SIGKILL);
    QVERIFY(!exit->clean());
    child.kill();  // Its number may be another's by now: nothing happens.
    QCOMPARE(child.try_wait()->signal, exit->signal);
  }
}

void HostTest::sandbox_refuses_and_allows() {
  const Ran ran = run_child({"sandbox"});
  QVERIFY2(ran.exit && ran.exit->clean(), ran.output.c_str());
  std::map<std::string, std::string> said;
  std::istringstream lines(ran.output);
  for (std::string what, answer; lines >> what >> answer;) said[what] = answer;
  for (const char* refused : {"old_thread_socket", "inet", "unix", "fork", "exec", "ptrace",
                              "create", "mkdir", "truncate"}) {
    QVERIFY2(said[refused] == "no", refused);
  }
  for (const char* allowed : {"read", "device", "thread", "socketpair", "jit", "memfd"}) {
    QVERIFY2(said[allowed] == "yes", allowed);
  }
}

void HostTest::folders_follow_xdg_and_their_override() {
  const auto restore = qEnvironmentVariable("SHOAL_HOME");
  qunsetenv("SHOAL_HOME");
  qputenv("HOME", "/home/ann");
  qputenv("XDG_CACHE_HOME", "/big");
  qputenv("XDG_CONFIG_HOME", "relative");  // XDG: to be ignored.
  qunsetenv("XDG_STATE_HOME");
  qunsetenv("XDG_RUNTIME_DIR");
  const UserFolders folders = user_folders().value();
  QCOMPARE(folders.config.string(), std::string("/home/ann/.config/shoal"));
  QCOMPARE(folders.state.string(), std::string("/home/ann/.local/state/shoal"));
  QCOMPARE(folders.cache.string(), std::string("/big/shoal"));
  QCOMPARE(folders.runtime.string(), std::string("/home/ann/.local/state/shoal/run"));
  QCOMPARE(user_folders("/tmp/one").value().cache.string(), std::string("/tmp/one/cache"));
  qputenv("SHOAL_HOME", "/srv/shoal");
  QCOMPARE(user_folders().value().state.string(), std::string("/srv/shoal/state"));
  qunsetenv("SHOAL_HOME");
  qunsetenv("HOME");
  QVERIFY(!user_folders().ok());
  qputenv("SHOAL_HOME", restore.toUtf8());
}

void HostTest::machine_describes_itself() {
  QVERIFY(!host_name().empty());
  QVERIFY(!cpu_name().empty());
  QVERIFY(cpu_count() >= 1);
  const auto memory = memory_info();
  QVERIFY(memory.ok());
  QVERIFY(memory.value().total > Bytes{0} && memory.value().available <= memory.value().total);
  QVERIFY(own_memory() > Bytes{0});
  QCOMPARE(own_program().value().filename().string(), std::string("base_host_test"));
}

void HostTest::errors_of_the_system_have_their_kinds() {
  QVERIFY(os_error(ENOSPC, "x").code == ErrorCode::kNoSpace);
  QVERIFY(os_error(EACCES, "x").code == ErrorCode::kDenied);
  QCOMPARE(os_error(ENOENT, "cannot open /f").message,
           std::string("cannot open /f: No such file or directory"));
}

// On both sides of a large page, from the heap and of pages of its own.
void HostTest::zeroed_memory_is_whole_and_zero() {
  constexpr size_t kLarge = size_t{2} << 20;
  for (const size_t bytes :
       {size_t{0}, size_t{1}, kLarge - 1, kLarge, kLarge + 1, 3 * kLarge - 5}) {
    ZeroedMemory memory(bytes);
    QVERIFY(memory.data() != nullptr);
    QCOMPARE(reinterpret_cast<uintptr_t>(memory.data()) % 64, uintptr_t{0});
    QVERIFY(std::all_of(memory.data(), memory.data() + bytes,
                        [](std::byte byte) { return byte == std::byte{0}; }));
    std::fill_n(memory.data(), bytes, std::byte{1});
    const ZeroedMemory moved = std::move(memory);
    QVERIFY(memory.data() == nullptr);
    QVERIFY(bytes == 0 || moved.data()[bytes - 1] == std::byte{1});
  }
  QVERIFY(ZeroedMemory(SIZE_MAX).data() == nullptr);
  QVERIFY(ZeroedMemory(SIZE_MAX / 5).data() == nullptr);
}

QTEST_GUILESS_MAIN(HostTest)
#include "host_test.moc"
