#pragma once
// The client's memory over years, in one SQLite file of its own (state folder, records.db):
// statistics, the trace of verdicts, conditions for what-if, past work, receipts, yield times.
//
// One thread. Every call is short. What is noted waits in memory until flush() has written it; a
// file that is locked, full or damaged costs no call and no process, only what problem() tells.
// Receipts alone are on the disk when their call returned ok.

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/digest.h"
#include "base/result.h"
#include "base/secrets.h"
#include "client/records/sums.h"
#include "client/rules/activity_policy.h"
#include "client/rules/what_if.h"
#include "schema/ledger_day.h"
#include "schema/message.h"
#include "schema/receipt.h"

namespace shoal::client {

inline constexpr int64_t kTraceDays = 60, kConditionDays = 8;
inline constexpr int64_t kTraceRowsMax = 50'000, kHistoryRowsMax = 10'000, kYieldRowsMax = 1'000;
inline constexpr int64_t kReceiptsKept = 20'000;  // Of one coordinator, one by one.
inline constexpr int64_t kReceiptDays = 730;      // Older ones are folded, too.
inline constexpr size_t kReceiptsPerAppendMax = 32;
inline constexpr int64_t kStatisticsStepsMax = 2'000;  // Of one answer.

struct StatisticsRow {
  Millis start{0};     // Wall time.
  std::string device;  // Empty: what belongs to no device.
  Sums sums;
};

// From a verdict to the next one of the same resource.
struct TraceSpan {
  Resource resource = Resource::kGpu;
  Verdict verdict;
  Millis start{0};            // Wall time.
  std::optional<Millis> end;  // None: it lasts.
};

struct PastWork {
  uint64_t lease = 0, session = 0;
  std::string coordinator;  // As people know it.
  std::string device;
  JobClass job_class;
  uint32_t first_fragment = 0, last_fragment = 0;
  Millis started{0}, ended{0};  // Wall time.
  uint64_t steps = 0, rows = 0;
  Message why;  // It ended.
  uint64_t unit = 0;  // 0: it was a stage of a session.
};

struct YieldTime {
  Millis at{0};  // Wall time.
  std::string device;
  Millis stop{0};  // Until no kernel ran.
  Millis free{0};  // Until the device's memory was free.
};

struct StoredReceipt {
  uint64_t row = 0;         // For paging.
  std::string coordinator;  // Its name.
  Receipt receipt;
  bool genuine = false;  // The signature fits.
};

struct ReceiptProgress {
  uint64_t through = 0;  // Every receipt from 1 to this one was stored, or folded.
  uint64_t newest = 0;   // The highest number that was stored.
  uint64_t stored = 0;   // How many ever were, the folded ones included.
};

// The receipts of one coordinator that are no longer kept one by one: numbers 1 to `through`.
struct FoldedReceipts {
  uint64_t through = 0;
  uint64_t count = 0, genuine = 0;
  double confirmed = 0, rejected = 0;  // Credit of the genuine ones.
  Digest chain;  // Of each receipt with the digest before it, from all zeros: fold_receipt().
  Digest seal;   // Over all of the above: fold_seal().
};
Digest fold_receipt(const Digest& chain, const Receipt& receipt);
Digest fold_seal(const std::string& pin, const FoldedReceipts& folded);

class Records {
 public:
  struct Options {
    const char* vfs = nullptr;  // For tests that make writes fail.
  };

  // Never fails: without a usable file everything is kept in memory and tried again by flush(). A
  // damaged file is set aside as records.db.damaged-DATE and a new one begun. Spans that were open
  // when the last process ended, however it ended, end where it was last seen alive; from there to
  // now the trace says that Shoal was not running.
  Records(const std::filesystem::path& folder, const Clock& clock, Options options);
  Records(const std::filesystem::path& folder, const Clock& clock)
      : Records(folder, clock, Options{}) {}
  // Ends open spans now, and flushes.
  ~Records();
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  // Writes what waits, and says that this process is alive: to be called once a minute or more
  // often. Also throws away, a little at a time, what is too old.
  void flush();
  // What hinders it now: a disk without room, another program's lock that lasts. Empty: nothing.
  const Message& problem() const;
  // That alone is a reason to take no work: everything else that hinders costs nothing but memory.
  bool disk_is_full() const;
  // What happened since the start that the owner should know: a file that was damaged.
  const std::vector<Message>& notices() const;

  // Statistics. An empty device: what belongs to none, such as bytes. Not kept if nothing in it.
  void add(const std::string& device, const Usage& usage);
  // Of the local day that is now, and of all time; waiting figures included. Cheap.
  Sums today();
  Sums today(const std::string& device);
  Sums ever() const;
  Spent spent();  // Energy of this local day and month, bytes of the month. Cheap.
  // Sums by step (at least a minute) and device, in the order of time; only those that are not
  // empty. The step is made coarser where only coarser rows are kept (minutes for 3 days, ten
  // minutes for 30, hours for 400, days for ever) and where there would be too many. A step of days
  // begins at local midnight.
  Result<std::vector<StatisticsRow>> statistics(Millis from, Millis to, Millis step);

  // The trace. A verdict begins a span when its activity, rule, sentence or the names in that
  // differ from those before; mere figures do not. Written at once.
  void note_verdict(Resource resource, const Verdict& verdict);
  // Spans that touch the time, oldest first; the newest `count_max` of them.
  Result<std::vector<TraceSpan>> trace(Millis from, Millis to, size_t count_max);

  // To be called once a minute: stored only when something that rules look at has changed.
  // `own_gpu_load`: as PolicyInput has it. What was spent is known here.
  void note_conditions(const Readings& readings, double own_gpu_load = 0);
  // For what_if(), in the order of time. Between two spans with a gap, nobody watched. A whole week
  // may take 20 ms: ask for a day at a time.
  Result<std::vector<WatchedSpan>> conditions(Millis from, Millis to);

  void note_work(const PastWork& work);
  Result<std::vector<PastWork>> history(size_t count_max);  // Newest first.

  void note_yield(const YieldTime& yield);
  const std::deque<YieldTime>& yields() const;  // Oldest first.

  // What the owner decided for a job class of a coordinator, by its pin. In a file of its own
  // (consents.state), with a checksum and a last good copy: durable when it returns ok, and not
  // lost with a damaged database.
  Result<void> set_consent(const std::string& pin, const JobClass& job_class, bool allowed);
  std::optional<bool> consent(const std::string& pin, const JobClass& job_class) const;
  std::vector<JobClass> denied(const std::string& pin) const;  // Denied one by one.
  // Set while decisions that are not here any more may have been a no: what is not judged since is
  // then to be denied, whatever is said of new classes. Over restarts, until
  // forget_lost_consents().
  const std::optional<Message>& consents_lost() const;
  Result<void> forget_lost_consents();

  // Receipts, by the coordinator's pin. The key that signs them never changes: kDenied when it is
  // another one than before. `host` is this host as the coordinator numbers it: with another one
  // than before, receipts are counted from 1 again.
  Result<void> know_coordinator(const std::string& pin, const std::string& name,
                                const SigningPublicKey& receipt_key, HostId host);
  // Durable when it returns ok; at most kReceiptsPerAppendMax. Those that are stored already are
  // passed over; kExists when one has come before with another content, kNotFound for a pin that
  // know_coordinator() was not called with. Only a genuine one counts in the credit figures.
  Result<void> append_receipts(const std::string& pin, std::span<const Receipt> receipts);
  // The same for what a coordinator sends by itself, which need not be honest: kInvalid unless they
  // are genuine and follow the newest one without a gap.
  Result<void> accept_receipts(const std::string& pin, std::span<const Receipt> receipts);
  // Ask the coordinator for those after `newest`.
  ReceiptProgress receipt_progress(const std::string& pin) const;
  // Those with a row after `after_row`, in the order in which they came.
  Result<std::vector<StoredReceipt>> receipts(uint64_t after_row, size_t count_max);

  // Daily roots. Which day to ask a coordinator for, and after which receipt its proofs are wanted.
  struct DayWanted {
    int64_t from_day = 0;
    uint64_t after_number = 0;
  };
  DayWanted day_wanted(const std::string& pin) const;
  // What it answered; `more` says that other proofs follow. Durable when it returns ok. kInvalid
  // when the day is not genuine, does not follow the last one, contradicts what was told before, or
  // a proof does not fit the receipt that is stored here: nothing of it is stored then.
  // kUnavailable when a receipt has not come yet.
  Result<void> accept_day(const std::string& pin, const LedgerDay& day,
                          std::span<const ReceiptProof> proofs, bool more);
  // Why the last day that it told was refused, since the start; empty: it was not.
  std::string day_problem(const std::string& pin) const;

  // For client/records/receipts.h.
  struct StoredDay {
    LedgerDay day;
    bool whole = false;  // All its proofs have come.
  };
  struct StoredProof {
    int64_t day = 0;
    ReceiptProof proof;
  };
  Result<std::vector<StoredDay>> days_of(const std::string& pin);  // In order.
  Result<std::optional<StoredProof>> proof_of(const std::string& pin, uint64_t number);
  struct KnownCoordinator {
    std::string pin, name;
    SigningPublicKey receipt_key;
    HostId host;
    FoldedReceipts folded;
  };
  Result<std::vector<KnownCoordinator>> known_coordinators();
  // In the order of their numbers, after this one.
  Result<std::vector<Receipt>> receipts_of(const std::string& pin, uint64_t after_number,
                                           size_t count_max);

 private:
  struct State;  // client/records/records_state.h
  std::unique_ptr<State> state_;
};

}  // namespace shoal::client
