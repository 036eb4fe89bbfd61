#pragma once
// Gives each day that is over one signed root over all its receipts, and hosts the proofs that
// theirs are among them.
//
// Belongs to the coordinator's one thread.

#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/secrets.h"
#include "coordinator/store/ledger_table.h"
#include "schema/ledger_day.h"
#include "schema/merkle.h"

namespace shoal {

LedgerDay ledger_day_from(const LedgerDayRow& row);

class LedgerDays {
 public:
  // All of them outlive it.
  LedgerDays(LedgerTable& table, const Clock& clock, const SigningKey& key)
      : table_(table), clock_(clock), key_(key) {}

  // Some more of what is to be done; false when every day that is over has its root. A day takes
  // all receipts after those of the day before and until its end, by the times that they state. A
  // clock that was wrong makes a receipt belong to another day, never to two or to none; and keeps
  // no day from having its root: after a root of a day that is still to come, the next ones are
  // numbered on from it, one for each day that is over.
  Result<bool> go_on();

  Result<int64_t> newest();  // 0: no day has a root.

  struct Proofs {
    LedgerDay day;  // A count of 0: there is none.
    std::vector<ReceiptProof> proofs;
    bool more = false;
  };
  // Of the first day from `from_day` on that has a root: proofs for this host's receipts after
  // `after_number` in it. At most `count_max`, and fewer where they are far from each other.
  Result<Proofs> proofs(HostId host, int64_t from_day, uint64_t after_number, uint32_t count_max);

 private:
  // A day whose root is being made.
  struct Making {
    LedgerDayRow row;
    int64_t through = 0;  // It takes receipts of this day and before,
    int64_t today = 0;    // and those that claim to be later than now.
    MerkleRoot root, chunk;
    int64_t chunk_first_id = 0;
    ByteWriter chunks;
  };
  // A day that proofs were last asked of.
  struct Open {
    LedgerDayRow row;
    int64_t first_id = 0;            // After the last one of the day before.
    std::vector<int64_t> first_ids;  // Of each chunk.
    MerkleTree tree;                 // Over the chunks' roots.
  };
  // A chunk, whole.
  struct Chunk {
    size_t index = 0;
    std::vector<int64_t> ids;
    MerkleTree tree;
  };

  Result<void> begin();
  Result<void> finish();
  void close_chunk();
  Result<bool> open(int64_t from_day);  // False: there is no such day.
  Result<Chunk> read_chunk(size_t index);
  // The host's first number with an id from `first_id` on; one after its last when there is none.
  Result<int64_t> first_number(HostId host, int64_t first_id);

  LedgerTable& table_;
  const Clock& clock_;
  const SigningKey& key_;
  std::optional<Making> making_;
  std::optional<int64_t> newest_;
  std::optional<Open> open_;
};

}  // namespace shoal
