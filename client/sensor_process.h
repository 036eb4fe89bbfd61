#pragma once
// Keeps shoal-sensors alive and holds what it tells: the readings, and of each sensor who answered,
// what is wrong, and how old the answer is. What is too old is not known. Decides nothing.
//
// Belongs to the KJ loop's thread.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "client/back_off.h"
#include "client/loop.h"
#include "client/rules/readings.h"
#include "schema/message.h"
#include "schema/task.h"

namespace shoal::client {

// What the sensors are to look for. Of the settings, and told anew whenever those change.
struct SensorWishes {
  std::vector<std::string> exclusive_programs;  // Both lists of the rules.
  std::string idle_source = "auto";
  Millis idle_threshold{0};  // rules.idle_seconds; saves questions while the owner is here.
  std::filesystem::path cache_folder;

  bool operator==(const SensorWishes&) const = default;
};

struct SensorStatus {
  struct Backend {
    std::string name;
    bool usable = false;
    std::string problem;
    Message value;  // May be empty.
  };

  std::string name;     // idle, inhibitors, power, sleep, load, memory, disk, programs, gpu, cpu,
                        // network
  std::string backend;  // What answered; empty: nothing.
  bool known = false;
  std::string problem;  // Why it is not known, or what else is wrong. For people.
  Message value;        // What it says now; empty when it is not known.
  Millis at{0};         // When it last answered, monotonic; 0: never.
  std::vector<Backend> backends;
};

struct SensorOptions {
  std::vector<std::string> argv;  // The program, and what it is told.
  // An answer is too old after this, or after its own period and this less two seconds.
  Millis stale_after{5'000};
  Millis look_max{5'000};  // How often ages are looked at, at least.
  Millis test_max{6'000};
  Millis back_off_first{500};
  Millis back_off_most{60'000};
  Millis stays_up{30'000};  // One that lived so long starts the back-off anew.
};

class SensorProcess {
 public:
  class Needs {
   public:
    virtual ~Needs() noexcept(false) = default;
    // Something is other than it was. Once for all lines that came together.
    virtual void sensors_changed() = 0;
    // The computer sleeps, or ends, as soon as release_sleep() is called, and at the latest after
    // five seconds. readings().sleeping is true from here to woke().
    virtual void about_to_sleep() = 0;
    virtual void woke() = 0;
  };

  // All of these outlive the object. Starts at once.
  SensorProcess(Loop loop, const Clock& clock, Random& random, Needs& needs, SensorOptions options);
  ~SensorProcess();
  KJ_DISALLOW_COPY(SensorProcess);

  // Only what is known now. The same object for life.
  const Readings& readings() const { return readings_; }
  // In a fixed order, with those that have not answered yet.
  const std::vector<SensorStatus>& sensors() const { return sensors_; }
  const SensorStatus* find(std::string_view name) const;  // Null: there is no such sensor.
  // False: no source tells whether the owner is here.
  bool idle_supported() const;

  void configure(SensorWishes wishes);
  void release_sleep();
  // Asks one sensor, with all its backends, anew. Fails when there is no such sensor; one that does
  // not answer in time is an answer as well. REQUIRES: the promise does not outlive this object.
  kj::Promise<SensorStatus> test(std::string name);

  int64_t pid() const { return child_ ? child_->pid() : 0; }
  uint32_t restarts() const { return restarts_; }

 private:
  struct Test {
    std::string name;
    kj::Own<kj::PromiseFulfiller<SensorStatus>> fulfiller;
  };

  rpc::Task<void> keep_alive();
  rpc::Task<std::string> live_once();  // Why it ended.
  rpc::Task<std::string> read_lines();
  rpc::Task<std::string> child_ended();
  rpc::Task<void> watch_age();
  void send(const std::string& line);
  void send_wishes();
  bool says_the_same(std::string_view line);
  void take_line(std::string_view line);
  void set_sleeping(bool sleeping);
  void forget(SensorStatus& sensor, std::string problem);
  void forget_all(const std::string& problem);
  SensorStatus* find_sensor(std::string_view name);

  Loop loop_;
  const Clock& clock_;
  Needs& needs_;
  SensorOptions options_;
  BackOff back_off_;
  SensorWishes wishes_;
  Readings readings_;
  std::vector<SensorStatus> sensors_;
  std::map<std::string, Millis, std::less<>> stale_at_;
  struct LastLine {
    std::string text;
    Millis stale_after{0};
  };
  std::map<std::string, LastLine, std::less<>> last_lines_;  // By sensor; not those with tests.
  bool changed_ = false;  // In a way that may matter, and not told yet.
  uint32_t restarts_ = 0;
  int64_t next_test_ = 1;
  std::map<int64_t, Test> tests_;
  std::optional<ChildProcess> child_;
  kj::Own<kj::UnixEventPort::FdObserver> exit_observer_;
  kj::Own<kj::AsyncIoStream> pipe_;
  kj::Promise<void> writing_ = kj::READY_NOW;
  kj::Promise<void> ages_;
  kj::Promise<void> life_;  // Last: it uses all of the above.
};

}  // namespace shoal::client
