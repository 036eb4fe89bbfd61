#pragma once
// Computes units of jobs on one device: holds some ahead, runs one after another on the device's
// worker, keeps what they have come to, and hands them in. When the owner, a session or a
// measurement needs the device, the stage is dropped at once and nothing is lost. Decides nothing
// about rules.
//
// Belongs to the KJ loop's thread.

#include <kj/async.h>
#include <kj/timer.h>

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/coordinator_link.h"
#include "client/host_server.h"
#include "client/stage_loader.h"
#include "client/unit_store.h"
#include "client/unit_work.h"
#include "client/work_list.h"
#include "schema/message.h"
#include "schema/task.h"

namespace shoal::client {

class UnitRunner {
 public:
  // A coordinator that this host is logged in at.
  struct Line {
    std::string pin;
    uint64_t login = 0;  // Another number for each connection.
    rpc::HostSession::Client session;
  };

  class Needs {
   public:
    virtual ~Needs() noexcept(false) = default;
    virtual std::vector<Line> lines() = 0;
    virtual bool attached(const std::string& pin) = 0;
    // Resolves when that coordinator knows the devices as they are.
    virtual kj::Promise<void> devices_reported(const std::string& pin) = 0;
    // Of the device's worker; empty: it has none that is ready.
    virtual ByteVector worker_key(const std::string& device_id) = 0;
    // How long the owner leaves the device; none: no end is known.
    virtual std::optional<Millis> available(const std::string& device_id) = 0;
    virtual bool may_use_network() = 0;
    virtual Millis work_ahead() = 0;
    virtual Millis checkpoint_each() = 0;
    virtual void bytes_moved(Bytes received, Bytes sent) = 0;
  };

  // All of these outlive the object. Goes on with what an earlier run left in `store`.
  UnitRunner(kj::Timer& timer, const Clock& clock, ModelCache& cache, ShardFetcher& fetcher,
             HostServer::Needs& host, Needs& needs, UnitStore store, std::string device);
  ~UnitRunner() noexcept(false);
  KJ_DISALLOW_COPY(UnitRunner);

  enum class Allowance {
    kYes,
    kSoon,  // Its worker starts, or is measured.
    kNo,    // The owner, or a session, needs the device: what was not begun is given back.
  };
  // Whether the device may compute units now. Not: its stage is dropped before this returns, and
  // what it has is kept.
  void allow(Allowance allowance);
  // Something that it depends on may have changed: a line, a setting, the time.
  void look();
  // Units that the owner denies now are given back.
  void consent_changed();
  // The computer slept: asks what still holds.
  void woke();
  // Writes what is not on disk yet.
  void save();

  // Gives back what was not begun and keeps the rest, for a later run. Nothing is done after this.
  rpc::Task<void> shut_down();
  // Gives back everything of a coordinator that the owner leaves.
  rpc::Task<void> forget(std::string pin);

  // What the owner should know though work goes on; empty: nothing.
  const Message& problem() const { return problem_; }

 private:
  struct Held;
  struct Loaded;
  struct Desk;

  rpc::Task<void> keep_working();
  rpc::Task<void> compute(Held& held);
  rpc::Task<void> load(Held& held);
  rpc::Task<void> step(Held& held);
  void failed(Held& held, const Error& error);
  void ask_what_holds();
  void note_crash(Held& held, const std::string& text);
  void begin_working();
  void stop_working();
  void finish(Held& held);

  rpc::Task<void> keep_in_touch();
  rpc::Task<void> talk(Line line);
  void stop_talking();
  void call_failed(const Line& line, const kj::Exception& exception);
  rpc::Task<void> keep_renewing();
  // How long until the next one is due.
  Millis renew_what_is_due();
  rpc::Task<void> renew_now(Line line);
  rpc::Task<void> renew(Line line, Desk& desk);
  rpc::Task<void> tell_given_back(Desk& desk, Held& held);
  rpc::Task<void> submit(Desk& desk, Held& held);
  rpc::Task<void> lease(Line line, Desk& desk);
  void take_unit(const Line& line, rpc::Unit::Reader unit, const ByteVector& key);
  Result<void> take_input(Held& held, rpc::Unit::Reader unit, const ByteVector& key);
  void hold(std::unique_ptr<Held> held);

  Desk& desk_of(Line& line);
  bool has_line(const std::string& pin);
  StageLoader::SessionNow session_of(const std::string& pin);
  Held* find(const std::string& pin, uint64_t lease) const;  // Null when there is none.
  Held* next_to_run();                                       // Null when there is nothing to do.
  bool lacks_input(const Held& held);
  Millis renew_at(const Held& held) const;
  std::optional<Millis> renewal_due(const Line& line) const;  // None: there is nothing to renew.
  bool has_to_ask(Line& line);
  bool wants_more();
  Millis remaining(const Held& held) const;
  void look_at_times();
  Millis next_look();
  void give_back(Held& held, rpc::UnitDesk::GiveBack reason, const Message& why,
                 const std::string& text = "");
  void drop(Held& held, Message why);
  void save(Held& held);
  void show(Held& held, StageWork::State state);

  kj::Timer& timer_;
  const Clock& clock_;
  ModelCache& cache_;
  StageLoader loader_;
  HostServer::Needs& host_;
  Needs& needs_;
  UnitStore store_;
  const std::string device_;

  Allowance allowance_ = Allowance::kSoon;
  bool ending_ = false;
  Message problem_;
  std::list<std::unique_ptr<Held>> held_;               // In the order in which they are computed.
  ByteVector lost_key_;                                 // Of a worker that did not answer any more.
  Held* current_ = nullptr;                             // Null while nothing is computed.
  std::unique_ptr<Loaded> loaded_;                      // Null while no stage is open.
  std::map<std::string, std::unique_ptr<Desk>> desks_;  // By pin. Never null.
  size_t asked_first_ = 0;
  uint64_t asked_anew_ = 0;  // Counts the times after which what holds was not known any more.
  Signal work_wanted_, talk_wanted_, renew_wanted_;
  bool talk_again_ = false;  // Something changed since the last round began.
  kj::Promise<void> working_ = nullptr;
  kj::Promise<void> talking_ = nullptr;
  std::string talks_with_;  // The pin of the one that it waits for; empty: for none.
  kj::Promise<void> renewing_ = nullptr;
};

}  // namespace shoal::client
