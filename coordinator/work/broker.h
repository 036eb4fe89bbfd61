#pragma once
// Decides everything about batch work: which device gets which unit and for how long, which results
// are checked by whom, which count, and whom to trust. Pure: no clock, no store, no I/O.

#include <cstdint>
#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "base/digest.h"
#include "base/random.h"
#include "base/result.h"
#include "base/units.h"

namespace shoal {

// A job is a graph of tasks; a task is a number of items (prompts) of one kind on one model; a unit
// is a contiguous range of a task's items, cut when a device asks for work; a lease is one device's
// right to run one unit until a time. A unit may have several leases: lost ones, audits, disputes.
//
// How to use it: call an event, make the changes of take_changes() durable in one transaction, and
// only then tell anybody what the event answered. One thread.
//
// Times are the coordinator's own, in milliseconds: they may begin anywhere but never go back
// (an earlier `now` counts as the latest one that was seen). An owner that restarts goes on from
// its wall clock and calls outage().

using TaskId = Id<struct TaskTag>;
using OwnerId = Id<struct OwnerTag>;  // Who answers for a host; hosts of one owner never check
                                      // each other.
using JobClassId = Id<struct JobClassTag>;  // What owners allow or deny, as the service numbers it.

// What can be configured. Durations in milliseconds.
struct BrokerRules {
  Millis unit_target{600'000};  // A unit is cut so that its device needs about this.
  Millis unit_max{1'200'000};   // Nobody is given a unit cut for another that takes it longer.
  int64_t unit_items_max = 4096;
  double lease_factor = 3;      // A lease lasts this times the expected time ...
  Millis lease_slack{300'000};  // ... and this.
  Millis lease_max{86'400'000};
  // A device that went away has this long to come back and renew, whatever its leases say: what it
  // held is handed out again sooner. Its results stay welcome.
  Millis gone_grace{600'000};
  int renewals_max = 30;      // Of one lease: nobody keeps a unit for ever.
  int units_ahead_max = 16;   // That one device holds; a loss halves its own limit.
  double speed_weight = 0.2;  // Of the newest measurement of a device, 0 to 1.

  int newcomer_units = 10;            // Every result is audited before so many in a row were valid.
  double audit_floor = 0.02;          // And max(this, 1 / valid in a row) of them later.
  double known_rate_newcomer = 0.05;  // Of leases that are units with a known answer.
  double known_rate = 0.002;
  size_t known_units_max = 256;    // Kept to be sent again.
  Millis pending_max{86'400'000};  // A host whose oldest pending result is older is audited.
  Millis claim_max{1'800'000};     // A device that was drawn for a copy and did not ask for work so
                                   // long loses it to another.
  Millis gather{120'000};  // After a restart nothing is drawn before devices had so long to come
                           // back: who comes first shall not check everybody.
  int votes_max = 6;       // Results of one unit without a trusted device that settles it.

  Millis quarantine{86'400'000};         // The first; each further one is twice as long ...
  Millis quarantine_max{2'592'000'000};  // ... up to this.

  // Failures on so many owners' hosts, of two classes where the fleet has several: the unit is
  // poison.
  int poison_hosts = 3;
  double poison_share_max = 0.1;  // Of a job's items ...
  int64_t poison_units_min = 5;   // ... and at least so many units: the job is faulted.

  Millis ask_again_min{10'000};  // Told to a device without work.
  Millis ask_again_max{600'000};

  Millis late_max{604'800'000};  // After its end a lease's result is taken for so long.
};

// ---- What the broker is told -------------------------------------------------------------------

struct HostFacts {
  HostId host;
  OwnerId owner;               // 0: the host is its own owner.
  uint64_t address_block = 0;  // Such as its address without the last 8 bits (IPv6: 80).
  bool trusted = false;        // Its results need no check, and settle disputes.
  bool banned = false;
};

struct DeviceFacts {
  DeviceId device;
  HostId host;
  uint32_t device_class = 0;       // Devices that share hardware and driver, and so their bugs.
  Bytes memory;                    // That a model may use.
  double flops_per_second = 0;     // Measured; the broker corrects it by what results took.
  bool exact = false;              // Its self-test passed: its digests can be compared.
  std::vector<JobClassId> denied;  // By its owner.
};

enum class TaskKind : uint8_t { kGenerate, kScore, kEmbed };

struct TaskSpec {
  TaskId task;
  TaskKind kind = TaskKind::kGenerate;
  JobClassId job_class;
  ModelId model;
  Bytes memory;                  // The whole model with its state and workspace.
  int64_t items = 0;             // 0: done at once when its turn comes.
  Flops flops_per_item;          // By the graph. > 0.
  bool trusted_only = false;     // Only on trusted hosts.
  int64_t unit_items_max = 0;    // Besides that of the rules; 0: no other.
  Millis unit_target{0};         // Instead of that of the rules; 0: that one.
  bool waits_for_input = false;  // Nothing of it is handed out before input_there().
  std::vector<TaskId> after;     // Of the same job: begins when all of them are done.
};

struct JobSpec {
  JobId job;
  int priority = 0;    // A higher one goes first; equal ones by deadline, then by id.
  Millis deadline{0};  // 0: none.
  std::vector<TaskSpec> tasks;
};

struct LeaseRequest {
  DeviceId device;
  Millis wanted{600'000};        // Work it wants to hold, with what it holds already.
  Millis available{86'400'000};  // Until its owner wants it back: nothing that takes longer.
  int units_max = 8;             // Of this answer.
};

// Names a lease, as the host does. The unit is part of the name.
struct LeaseName {
  UnitId unit;
  LeaseId lease;
  HostId host;  // Of the connection that says so, never of the message.
};

struct Submission {
  LeaseName name;
  Digest digest;
  // Counts the host's finished units from 1, in the order in which it finished them: messages can
  // overtake each other, and an audit vouches for what was finished before. 0: order of arrival.
  uint64_t serial = 0;
};

// ---- What it answers ---------------------------------------------------------------------------

// Why a lease was granted. For the store and the administrator: a host that could see it would know
// when to be honest.
enum class Purpose : uint8_t {
  kWork,     // Nobody has a result yet.
  kAudit,    // A result is there, and drawn to be checked.
  kRecheck,  // The one who had a result turned out to be wrong elsewhere.
  kJudge,    // Results differ.
  kKnown,    // The answer is known.
};

struct Grant {
  LeaseId lease;
  UnitId unit;
  TaskId task;
  int64_t first_item = 0, items = 0;
  Millis until{0};     // Renew before.
  Millis expected{0};  // What the broker thinks it takes this device.
  Purpose purpose = Purpose::kWork;
};

enum class NoWork : uint8_t {
  kNone,           // It got work.
  kUnknownDevice,  // Tell the broker of the device first.
  kBanned,
  kQuarantined,  // Until `ask_again`: its results were wrong.
  kNotExact,     // Its results could not be compared.
  kEnough,       // It holds all that it wanted, or may, keep ahead.
  kNoJobs,       // There is nothing to do.
  kAllOut,       // All that is left is in other hands.
  kDenied,       // Its owner allows none of what there is.
  kTrustedOnly,  // What there is may run on trusted hosts only.
  kTooLarge,     // No model that is needed fits.
  kTooLong,      // What there is takes longer than its owner leaves it.
};

// A code of schema/message.h with no places to fill, except "batch.quarantined" (a time);
// empty for kNone.
std::string_view no_work_code(NoWork why);

struct LeaseAnswer {
  std::vector<Grant> grants;
  NoWork why = NoWork::kNone;
  Millis ask_again{0};  // When it is worth asking again; set with every `why` but kNone.
};

enum class RenewAnswer : uint8_t {
  kRenewed,
  kNotNeeded,  // The unit is done or its job gone: stop.
  kLost,       // Expired or taken back. The result is still welcome if it comes soon.
  kUnknown,    // No such lease of this host: see answer_from_rows.
};

struct Renewal {
  RenewAnswer answer = RenewAnswer::kUnknown;
  Millis until{0};
};

enum class SubmitAnswer : uint8_t {
  kAccepted,   // Pending now, or confirmed already: the changes say which.
  kExtra,      // Late, and others were quicker: counts nothing twice, credited if it agrees.
  kDuplicate,  // This lease has a result already; the first one counts. The same answer for ever.
  kNotNeeded,  // The job is gone, the unit is poison, the lease was given back or failed, its owner
               // has sent a result of the unit already, or it is much too late. Nothing is stored.
  kUnknown,    // No such lease of this host, or long done: see answer_from_rows.
};

enum class ResultState : uint8_t {
  kNone,
  kPending,
  kSuspect,  // Pending, and its host was wrong elsewhere or is banned: confirmed only if another
             // result agrees.
  kConfirmed,
  kRejected,
};

enum class RejectReason : uint8_t {
  kNone,
  kWrong,     // Another result was confirmed.
  kUnproven,  // Its job ended, or its unit was put aside, before anybody could check it.
};
std::string_view reject_code(RejectReason reason);  // A code of schema/message.h.

enum class LeaseEndReason : uint8_t {
  kSubmitted,
  kExpired,
  kGivenBack,
  kFailed,       // The unit ended with an error.
  kQuarantined,  // Its host lost the broker's trust.
  kCancelled,    // The job was cancelled, faulted, the unit is poison, or its owner has a result.
};

// ---- Changes: what to store --------------------------------------------------------------------
// In this order, in one transaction. Each is one INSERT, or one UPDATE of a row by its id.

struct UnitCut {  // INSERT unit.
  UnitId unit;
  TaskId task;
  int64_t first_item = 0, items = 0;
};
enum class UnitWant : uint8_t { kNothing, kAudit, kJudge };
struct UnitWants {  // UPDATE unit: what is still to be done before its results can count.
  UnitId unit;
  UnitWant want = UnitWant::kNothing;
};
struct LeaseGranted {  // INSERT lease, with result state kNone.
  LeaseId lease;
  UnitId unit;
  HostId host;
  DeviceId device;
  Purpose purpose = Purpose::kWork;
  Millis at{0}, until{0};
};
struct LeaseExtended {  // UPDATE lease: it ends then, which is sooner if its device went away.
  LeaseId lease;
  Millis until{0};
};
// UPDATE lease. A result may still follow, for any reason but kSubmitted, kGivenBack and kFailed.
struct LeaseEnded {
  LeaseId lease;
  LeaseEndReason why = LeaseEndReason::kSubmitted;
  Millis at{0};
};
struct ResultReceived {  // UPDATE lease: a result, pending or suspect. Once for each lease.
  LeaseId lease;
  UnitId unit;
  Digest digest;
  uint64_t serial = 0;  // The place in its host's order; never 0.
  ResultState state = ResultState::kPending;
  Millis at{0};
};
struct ResultSuspected {  // UPDATE lease.
  LeaseId lease;
};
struct ResultConfirmed {  // UPDATE lease; one ledger row: (unit, lease) is worth `flops`.
  LeaseId lease;
  UnitId unit;
  HostId host;
  Flops flops;
};
struct ResultRejected {  // UPDATE lease; one ledger row, worth nothing.
  LeaseId lease;
  UnitId unit;
  HostId host;
  RejectReason reason = RejectReason::kWrong;
};
struct UnitDone {  // UPDATE unit: once for each unit. The result of `lease` is the unit's.
  UnitId unit;
  TaskId task;
  LeaseId lease;
  Digest digest;
};
struct UnitPoisoned {  // UPDATE unit: quarantined, as it failed on several hosts or never agreed.
  UnitId unit;
  TaskId task;
};
enum class TaskState : uint8_t { kWaiting, kRunning, kDone, kStopped };
struct TaskChanged {  // UPDATE task.
  TaskId task;
  TaskState state = TaskState::kWaiting;
};
enum class JobState : uint8_t { kRunning, kPaused, kDone, kCancelled, kFaulted };
struct JobChanged {  // UPDATE job.
  JobId job;
  JobState state = JobState::kRunning;
};
struct HostChanged {  // UPDATE host: what the broker thinks of it.
  HostId host;
  int64_t valid_in_row = 0;     // Confirmed since the last wrong one.
  int64_t wrong = 0;            // Ever.
  Millis quarantined_until{0};  // 0 or past: it is not.
};

using Change = std::variant<UnitCut, UnitWants, LeaseGranted, LeaseExtended, LeaseEnded,
                            ResultReceived, ResultSuspected, ResultConfirmed, ResultRejected,
                            UnitDone, UnitPoisoned, TaskChanged, JobChanged, HostChanged>;

// ---- Rows: how a restarted owner gives it all back ---------------------------------------------

struct KnownHostRow {
  HostFacts facts;
  HostChanged record;   // `host` is ignored.
  uint64_t serial = 0;  // The greatest of its results.
};
struct JobRow {
  JobSpec spec;
  // Those that run or are paused, and those of any of the units below.
  JobState state = JobState::kRunning;
};
struct TaskRow {
  TaskId task;
  TaskState state = TaskState::kWaiting;
  int64_t items_cut = 0;   // All items before this one were cut: the greatest first + items.
  int64_t items_done = 0;  // Sums over its units.
  int64_t items_poisoned = 0;
  int64_t units_poisoned = 0;
};
struct UnitRow {  // Neither done nor poisoned, or with a lease that lives or a pending result.
  UnitCut cut;
  UnitWant want = UnitWant::kNothing;
  bool done = false;
};
struct LeaseRow {        // All of those units, in the order of their ids.
  LeaseGranted granted;  // `until` as last extended.
  bool live = true;      // No LeaseEnded yet.
  LeaseEndReason why = LeaseEndReason::kSubmitted;
  ResultState state = ResultState::kNone;
  Digest digest;
  uint64_t serial = 0;
  Millis result_at{0};
};
struct BrokerRows {
  std::vector<KnownHostRow> hosts;  // Devices are not stored: they are told again when they come.
  std::vector<JobRow> jobs;
  std::vector<TaskRow> tasks;  // Of these jobs.
  std::vector<UnitRow> units;
  std::vector<LeaseRow> leases;
  UnitId last_unit;  // The greatest ids ever given.
  LeaseId last_lease;
};

// What to say about a lease that the broker has forgotten, from its rows; `lease` null: there is no
// such row. The host must be checked before. A first result for a done unit is kExtra: store it as
// confirmed (one ledger row) if `digest` is the unit's, else as rejected, kWrong.
// `owner_has_result`: of the same unit, under another lease: nobody is paid twice for one unit.
SubmitAnswer answer_from_rows(const LeaseRow* lease, bool unit_done, bool owner_has_result = false);

struct Progress {
  int64_t items = 0;
  int64_t items_done = 0;     // Confirmed.
  int64_t items_pending = 0;  // A result is there and not confirmed.
  int64_t items_poisoned = 0;
  int64_t items_out = 0;  // Cut, without a result.
  double flops_left = 0;  // Without a result.
};

class Broker {
 public:
  Broker(const BrokerRules& rules, Random chance);
  ~Broker();
  Broker(Broker&&) noexcept;
  Broker& operator=(Broker&&) noexcept;

  // Takes up what was stored. Call it first, once; then outage() with the time that was lost.
  // kCorrupt when rows contradict each other: the broker cannot be used then.
  Result<void> restore(const BrokerRows& rows, Millis now);

  // A host was enrolled, came back, or an administrator changed it.
  void host_known(const HostFacts& facts, Millis now);

  // A device can work: it connected, woke up, or its facts changed. Its host must be known.
  void device_ready(const DeviceFacts& facts, Millis now);
  // It cannot, for whatever reason. Its leases stay for the grace that is left; who leaves in order
  // gives them back first.
  void device_gone(DeviceId device, Millis now);

  // kInvalid: an id is taken, a task has no cost, the graph has a cycle or names a stranger.
  Result<void> submit_job(const JobSpec& spec, Millis now);
  // A job that is over runs again, from its rows: those of one job, without hosts, its poisoned
  // units open, and of their leases those alone that were confirmed: nobody is paid for a unit
  // twice. Fails as restore() does. REQUIRES: the broker does not know the job.
  Result<void> reopen_job(const BrokerRows& rows, Millis now);
  bool knows_job(JobId job) const;  // Runs, is paused, or has a result that is still pending.
  // False: no such job that runs.
  bool pause_job(JobId job, bool paused, Millis now);
  bool cancel_job(JobId job, Millis now);
  // It is faulted: what came out of this task of it, which is done, was lost.
  bool fail_job(JobId job, TaskId lost, Millis now);
  void input_there(TaskId task, Millis now);  // See TaskSpec.

  LeaseAnswer lease(const LeaseRequest& request, Millis now);
  Renewal renew(const LeaseName& name, Millis now);
  Renewal held(const LeaseName& name) const;  // What renew() would say, and nothing is renewed.
  // Nobody's failure. False: there is no such live lease.
  bool give_back(const LeaseName& name, Millis now);
  // The unit ended with an error, on this host. False likewise.
  bool fail(const LeaseName& name, Millis now);
  SubmitAnswer submit(const Submission& submission, Millis now);

  // A stage of a session was checked: it counts as the check of a unit does.
  void stage_checked(HostId host, bool right, Millis now);
  HostChanged record(HostId host) const;  // What is thought of it; zeros when it is not known.

  // What time alone does: leases expire, audits are drawn. Call it at least when it is due.
  void tick(Millis now);
  Millis next_due() const;  // Of tick(); far away when nothing waits.

  // The coordinator did not answer from `from` to `to`: that costs nobody a lease.
  void outage(Millis from, Millis to);

  // Since the last call, in order.
  std::vector<Change> take_changes();
  // The same into a list that is kept: it is cleared first.
  void take_changes(std::vector<Change>& into);

  // All zero for a job that does not run.
  Progress progress(JobId job) const;
  size_t live_units() const;
  bool units_wait() const;  // For a device to ask: some could be handed out now.
  // All that the task has to hand out are units that the owners of all devices of now, as far as a
  // look goes, have a result of already.
  bool only_another_owner_can(TaskId task) const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace shoal
