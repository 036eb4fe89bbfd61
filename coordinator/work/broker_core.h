#pragma once
// Holds the broker's live state; broker_*.cpp beside it hold its rules. Opened by them alone.

#include <algorithm>
#include <deque>
#include <queue>
#include <unordered_map>

#include "base/check.h"
#include "coordinator/work/audit.h"
#include "coordinator/work/broker.h"
#include "coordinator/work/slab.h"

namespace shoal {

class Broker::Core {
 public:
  Core(const BrokerRules& rules, Random chance);

  // As in Broker, except that see() is told the time first; only tick() takes it itself.
  Result<void> restore(const BrokerRows& rows);
  Result<void> take_up(const BrokerRows& rows);
  void stage_checked(HostId host, bool right);
  HostChanged record(HostId host) const;
  bool knows_job(JobId job) const { return job_by_id_.find(job.value) != kNoSlot; }
  void host_known(const HostFacts& facts);
  void device_ready(const DeviceFacts& facts);
  void device_gone(DeviceId device);
  Result<void> submit_job(const JobSpec& spec);
  bool pause_job(JobId job, bool paused);
  bool cancel_job(JobId job);
  bool fail_job(JobId job, TaskId lost);
  void input_there(TaskId task);
  LeaseAnswer lease(const LeaseRequest& request);
  Renewal renew(const LeaseName& name);
  Renewal held(const LeaseName& name) const;
  bool give_back(const LeaseName& name);
  bool fail(const LeaseName& name);
  SubmitAnswer submit(const Submission& submission);
  void tick(Millis now);
  Millis next_due() const;
  void outage(Millis from, Millis to);
  void take_changes(std::vector<Change>& into);
  Progress progress(JobId job) const;
  size_t live_units() const { return units_.live(); }
  bool units_wait() const;
  bool only_another_owner_can(TaskId task) const;

  void see(Millis now) { now_ = std::max(now_, now); }

 private:
  // A copy of a unit: a lease, and its result if there is one. Kept as long as its unit.
  struct Copy {
    LeaseId id;
    Millis at{0};     // Granted; with a result, when that came.
    Millis until{0};  // Of a live one.
    uint64_t serial = 0;
    Digest digest;
    Slot unit = kNoSlot, host = kNoSlot, device = kNoSlot;
    Slot next = kNoSlot;                    // Of the same unit.
    Slot older = kNoSlot, newer = kNoSlot;  // In its host's list of pending results.
    uint16_t renewals = 0;
    Purpose purpose = Purpose::kWork;
    LeaseEndReason why = LeaseEndReason::kSubmitted;
    ResultState state = ResultState::kNone;
    bool live = false;
    // A check of it says something of what its host did before: the host had taken it for ordinary
    // work, and could not know that it would be compared. A copy is told by its size, and who is
    // late knows that another will have been asked.
    bool vouches() const { return purpose == Purpose::kWork && why == LeaseEndReason::kSubmitted; }
    // Its host was chosen by chance to compute what another had computed. Only such a copy checks
    // another: two that came by their leases themselves may have arranged it.
    bool drawn() const {
      return purpose == Purpose::kAudit || purpose == Purpose::kRecheck ||
             purpose == Purpose::kJudge;
    }
    bool has_result() const { return state != ResultState::kNone; }
  };

  enum class UnitState : uint8_t {
    kOpen,
    kDone,     // Kept for a lease that lives, or as a known answer.
    kDropped,  // Its job is gone, or it is poison; kept for its pending results.
  };

  struct Unit {
    UnitId id;
    int64_t first_item = 0;
    Millis since{0};  // It waits for a device.
    uint32_t items = 0;
    Slot task = kNoSlot;
    Slot copies = kNoSlot;  // The newest.
    Slot drawn = kNoSlot;   // The device that shall run its next copy.
    UnitState state = UnitState::kOpen;
    UnitWant want = UnitWant::kNothing;
    bool queued = false;    // In its task's queue.
    bool unplaced = false;  // In unplaced_.
    bool carried = false;   // A pending result is there.
    bool checked = false;   // Done because a check said so, not because its host was vouched for.
    bool known = false;     // In known_.
    bool homeless = false;  // Nobody was found to compute its next copy.
  };

  struct Task {
    TaskSpec spec;
    Slot job = kNoSlot;
    TaskState state = TaskState::kWaiting;
    int64_t items_cut = 0, items_done = 0, items_poisoned = 0, items_carried = 0;
    int waits_for = 0;
    std::vector<Slot> followers;
    std::deque<Slot> queue;  // Units without a result, and without a lease.
    size_t queued = 0;       // True entries of `queue`.
    size_t units = 0;        // In memory.
    bool swept = false;      // All is cut, and its hosts' last results were looked at.
  };

  struct Job {
    JobId id;
    int priority = 0;
    Millis deadline{0};
    JobState state = JobState::kRunning;
    std::vector<Slot> tasks;
    int64_t items = 0, items_poisoned = 0, units_poisoned = 0;
  };

  struct Host {
    HostFacts facts;
    int64_t valid_in_row = 0, wrong = 0;
    Millis quarantined_until{0};
    uint64_t serial = 0;
    uint64_t vouched = 0;                     // A check of one so late went well ...
    Millis vouched_at{0};                     // ... that came then.
    Slot oldest = kNoSlot, newest = kNoSlot;  // Pending results, by serial.
    std::vector<Slot> devices;
    bool touched = false;    // In touched_.
    bool age_timed = false;  // A timer looks at its oldest pending result.
  };

  struct Device {
    DeviceFacts facts;
    Slot host = kNoSlot;
    double speed = 0;      // FLOP/s, as results showed.
    double shown = 0;      // What its results took; 0: it has none yet.
    double ahead_max = 0;  // Units; grows by success.
    int failures = 0;      // Since its last result.
    int returns = 0;       // Units given back since its last result or rest.
    Millis last_return{0};
    Millis rest_until{0};  // It gets nothing before.
    bool ready = false;
    Slot active_at = kNoSlot, trusted_at = kNoSlot;  // Places in active_ and trusted_.
    Slot party_at = kNoSlot;                         // Of an active one: among its owner's.
    Millis last_result{0};
    Slot last_task = kNoSlot;
    std::vector<Slot> live;   // Copies.
    std::vector<Slot> drawn;  // Units; some may be drawn to others by now.
  };

  // An owner's devices that may be drawn: one at least.
  struct Party {
    OwnerId owner;
    std::vector<Slot> devices;
  };

  enum class TimerKind : uint8_t { kLease, kClaim, kAge, kRelease, kUnplaced };
  struct Timer {
    Millis due;
    int64_t id = 0;  // Of what is in the slot, to know it again.
    Slot slot = kNoSlot;
    TimerKind kind = TimerKind::kLease;
    friend bool operator<(const Timer& a, const Timer& b) { return a.due > b.due; }
  };

  // broker.cpp: hosts, devices, time.
  OwnerId owner_of(Slot host) const;
  bool quarantined(Slot host) const { return hosts_[host].quarantined_until > now_; }
  void touch(Slot host);
  void refresh_active(Slot device);
  void put_active(std::vector<Slot>& list, Slot Device::*at, Slot device, bool in);
  void put_party(Slot device, bool in);
  void undraw_all(Slot device);
  void undraw(Slot unit);
  double fleet_speed(OwnerId but);
  double believed_speed(const Device& device);
  void rest(Device& device, int times);
  void at(Millis due, TimerKind kind, Slot slot, int64_t id = 0);
  void fire(const Timer& timer);

  // broker_jobs.cpp: the graph, and handing out.
  Result<void> check_job(const JobSpec& spec) const;
  Slot add_job(const JobSpec& spec);
  void start_task(Slot task);
  void task_progressed(Slot task);
  void stop_job(Slot job, JobState state);
  void job_over(Slot job, JobState state);
  void remove_if_over(Slot job);
  void sort_runnable();
  static bool closing(const Task& task) {
    return task.state == TaskState::kRunning && task.items_cut == task.spec.items;
  }
  void sweep_if_closing(Slot task);
  Millis ask_again(NoWork why, const Device& device);
  double unit_flops(const Unit& unit) const;
  Millis target_of(const Task& task) const;
  Millis expected(const Unit& unit, const Device& device) const;
  Millis held(const Device& device) const;
  NoWork obstacle(const Task& task, const Device& device) const;
  void grant(Slot unit, Slot device, Purpose purpose, LeaseAnswer& answer);
  bool grant_drawn(Slot device, const LeaseRequest& request, LeaseAnswer& answer);
  bool grant_known(Slot device, const LeaseRequest& request, LeaseAnswer& answer);
  bool grant_work(Slot device, const LeaseRequest& request, LeaseAnswer& answer, NoWork& why);
  Slot queued_unit(Slot task, Slot device, Millis longest, NoWork& why);
  Slot cut_unit(Slot task, Slot device, Millis longest, NoWork& why);
  void forget_lost_copies(Unit& unit);
  Millis longest(const Device& device, const LeaseRequest& request) const;
  Slot find_copy(const LeaseName& name) const;
  uint64_t place_of(const Host& host, uint64_t serial) const;
  bool is_taken(const Copy& copy) const;
  void end_lease(Slot copy, LeaseEndReason why);

  // broker_results.cpp: what counts, and who is believed.
  void want(Slot unit, UnitWant what);
  void mark(Slot unit) { dirty_.push_back(unit); }
  void settle_all();
  void settle(Slot unit);
  void set_carried(Slot unit, bool carried);
  void enqueue(Slot unit);
  void draw(Slot unit);
  bool may_run(const Unit& unit, const Device& device, bool judge) const;
  bool trusted_could_run(const Unit& unit) const;
  Purpose next_purpose(const Unit& unit) const;
  void decide(Slot unit, const Digest& digest, bool checked);
  void confirm(Slot copy);
  void reject(Slot copy, RejectReason reason);
  void vouch(Slot host, uint64_t serial, Millis came);
  void confirm_vouched(Slot host);
  void blame(Slot host);
  void distrust(Slot host);
  bool stands_apart(const Copy& copy) const;
  bool is_poison(const Unit& unit) const;
  bool another_could_run(const Unit& unit, const std::vector<uint32_t>& but) const;
  void poison(Slot unit);
  void link_pending(Slot copy);
  void unlink_pending(Slot copy);
  void close_out(Slot host);
  void look_at_age(Slot host);
  void forget_if_over(Slot unit);
  void retire_known();

  BrokerRules rules_;
  Random chance_;
  Millis now_{0};
  Millis gather_until_{0};  // Nothing is drawn before.

  Slab<Unit> units_;
  Slab<Copy> copies_;
  Slab<Task> tasks_;
  Slab<Job> jobs_;
  Slab<Host> hosts_;
  Slab<Device> devices_;
  SlotMap unit_by_id_, task_by_id_, job_by_id_, host_by_id_, device_by_id_;
  int64_t last_unit_ = 0, last_lease_ = 0;

  std::vector<Slot> runnable_;  // Tasks that run, the most urgent first.
  std::vector<Slot> active_;    // Devices that may be drawn.
  std::vector<Slot> trusted_;   // Of these, those on trusted hosts.
  std::vector<Party> parties_;  // active_ once more, by owner.
  std::unordered_map<OwnerId, size_t> party_of_;
  std::deque<Slot> unplaced_;  // Units for which no device could be drawn.
  bool unplaced_timed_ = false;
  std::deque<Slot> known_;     // Done units that a trusted host computed.
  std::vector<Slot> dirty_;    // Units to settle before an event ends.
  std::vector<Slot> touched_;  // Hosts to tell of.
  std::vector<Change> changes_;
  std::priority_queue<Timer> timers_;
};

}  // namespace shoal
