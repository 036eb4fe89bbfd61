#pragma once
// What Records holds between its calls: the database, when it can be used, and what waits for it.

#include <deque>

#include "base/files.h"
#include "base/sqlite/database.h"
#include "client/records/levels.h"
#include "client/records/records.h"

namespace shoal {
std::span<const Migration> record_migrations();
}

namespace shoal::client {

// The level of privacy in a column: 0 public, 1 anchored, 2 group.
inline int64_t privacy_number(const JobClass& job_class) {
  return job_class.group ? 2 : job_class.anchored ? 1 : 0;
}
inline JobClass job_class_in(std::string kind, std::string model, int64_t privacy) {
  return {std::move(kind), std::move(model), privacy != 0 && privacy != 2, privacy == 2};
}

struct Records::State {
  State(std::filesystem::path folder, const Clock& clock, Options options);

  Millis now() const { return sane_wall(clock.now_wall()); }

  // -- The file (records.cpp).

  // Opens it if it is not open, and writes all that waits, in one transaction. After an error
  // everything waits on.
  Result<void> write_waiting();
  Result<void> open_database();
  Result<void> write_waiting_once();
  // What the last process left open ends where that one was last seen alive.
  Result<void> recover();
  void set_aside();
  // Keeps what hinders; a damaged file is set aside.
  void note_error(const Error& error);
  // `body` runs at the next chance, in a transaction. It may run again when that one failed.
  void later(std::function<Result<void>()> body);
  Result<std::optional<int64_t>> mark(std::string_view key);
  Result<void> set_mark(std::string_view key, int64_t value);
  // Hands an error on, and acts on what it says of the file.
  template <class T>
  Result<T> noted(Result<T> result) {
    if (!result.ok() && result.error().code == ErrorCode::kCorrupt) note_error(result.error());
    return result;
  }
  // For a call that reads: what waits is written first. The error says why nothing can be read.
  Result<Database*> readable();
  Result<void> forget_old();

  // -- Statistics (records_statistics.cpp).

  Result<int64_t> name_id(const std::string& text);
  Result<void> add_to_levels(Millis at, const std::string& device, const Sums& sums);
  // The figures in memory, once the database has them or has them waiting.
  void count(Millis at, const std::string& device, const Sums& sums);
  Result<void> load_ever();
  void roll_day();  // Loads today's and the month's figures when the day has changed.
  Result<void> add_stored_days(Millis from, Millis to, std::map<std::string, Sums>& into);
  Result<void> write_sums();
  // From where on the rows of a level are whole; before, coarser ones are.
  Result<Millis> kept_from(Level level);
  Result<void> forget_statistics();

  // -- The trace and the conditions (records_trace.cpp).

  struct OpenSpan {
    Verdict verdict;
    Millis start{0};
  };
  void begin_span(Resource resource, const OpenSpan& span);
  void end_spans(Millis at);
  Result<void> load_yields();
  Result<void> forget_trace();

  // -- Receipts (records_receipts.cpp).

  // How far the days of a coordinator have come.
  struct Days {
    std::optional<LedgerDay> last;  // The newest that is stored.
    bool whole = false;             // All proofs of that one have come.
    uint64_t proved = 0;            // The highest number of a receipt that a proof came for.
  };
  struct Coordinator {
    int64_t id = 0;
    std::string name;
    SigningPublicKey receipt_key;
    HostId host;
    ReceiptProgress progress;
    FoldedReceipts folded;
    Days days;
  };
  // What the statistics learn of a receipt, once the transaction is through.
  struct Counted {
    Millis at{0};
    std::string device;
    Sums sums;
  };
  Result<void> load_coordinators();
  Result<void> load_days(Coordinator& coordinator);  // records_days.cpp
  Result<void> insert_coordinator(const std::string& pin, Coordinator& coordinator);
  static bool is_genuine(const Coordinator& coordinator, const Receipt& receipt);
  // `known_genuine`: their signatures were checked just now.
  Result<void> append_receipts(const std::string& pin, std::span<const Receipt> receipts,
                               bool known_genuine);
  Result<void> append_receipt(Coordinator& coordinator, const Receipt& receipt, bool known_genuine,
                              std::vector<Counted>& counted);
  Result<void> count_receipt(Coordinator& coordinator, const Receipt& receipt, bool genuine,
                             int64_t row, std::vector<Counted>& counted);
  // A device that only a coordinator speaks of is none of ours.
  Result<std::string> own_device(const std::string& device);
  Result<void> save_coordinator(const Coordinator& coordinator);
  Result<void> fold_some();
  Result<bool> fold_next(Coordinator& coordinator, Millis before, std::vector<Counted>& counted);

  const std::filesystem::path folder;
  const Clock& clock;
  const Options options;
  const Millis started_at;
  std::unique_ptr<Database> database;  // Null while the file cannot be used.

  Message problem;
  std::optional<Millis> locked_since;  // By the monotonic clock.
  std::vector<Message> notices;

  std::map<std::pair<int64_t, std::string>, Sums> waiting_sums;  // By minute and device.
  std::deque<std::function<Result<void>()>> waiting;

  std::map<std::string, int64_t, std::less<>> names;  // As the table `name` has them.
  std::map<std::string, Sums> ever, today, month;     // By device; what waits is in them.
  std::optional<int64_t> day;  // The local day of `today`; none: it must be loaded.
  Millis today_from{0}, today_to{0}, month_from{0}, month_to{0};

  std::optional<OpenSpan> open_spans[kResourceCount];
  ByteVector last_condition;
  std::optional<Millis> last_input;
  std::deque<YieldTime> yields;

  std::map<std::string, Coordinator> coordinators;  // By pin.
  // Of a file that was set aside: known, though none of their receipts is here.
  std::map<std::string, Coordinator> carried_over;

  std::map<std::string, std::string> day_problems;  // By pin: see Records::day_problem.

  StateFile consent_file;
  using Consents = std::map<std::pair<std::string, JobClass>, bool>;
  void load_consents();
  Result<void> save_consents(const Consents& consents, bool lost);
  Consents consents;
  std::optional<Message> consents_lost;
};

}  // namespace shoal::client
