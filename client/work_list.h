#pragma once
// Holds the stages that coordinators have asked for, from the asking to their end, and tells those
// who run one when it must end. Runs nothing itself.
//
// Belongs to the KJ loop's thread.

#include <kj/async.h>

#include <functional>
#include <string>
#include <vector>

#include "base/units.h"
#include "schema/message.h"
#include "schema/receipt.h"

namespace shoal::client {

struct StageWork {
  enum class State { kFetching, kLoading, kReady, kWorking };

  uint64_t lease = 0, session = 0;
  std::string coordinator;       // Its pin.
  std::string coordinator_name;  // As people know it; it stays when the coordinator is left.
  std::string device;
  JobClass job_class;
  uint32_t first_fragment = 0, last_fragment = 0;
  State state = State::kFetching;
  Millis since{0};  // Wall time.
  uint64_t steps = 0, rows = 0;
  uint64_t bytes = 0;  // Of its shards.
};

class WorkList {
 public:
  // One stage's place in the list. It leaves when this is dropped.
  class Entry {
   public:
    Entry(WorkList& list, StageWork work);
    ~Entry();
    KJ_DISALLOW_COPY(Entry);

    StageWork& work() { return work_; }
    // Why it ended by itself, for the history.
    void ended(Message why);
    // Rejects as disconnected when it must end.
    kj::Promise<void> must_end();

   private:
    friend class WorkList;
    void end(const Message& why, const Message& told);

    WorkList& list_;
    StageWork work_;
    Message why_;
    Message ended_;
    kj::Own<kj::PromiseFulfiller<void>> fulfiller_;
    kj::ForkedPromise<void> must_end_;
  };

  // `left` is called with each stage that leaves, and why it ended. It must not touch the list.
  explicit WorkList(std::function<void(const StageWork& work, const Message& why)> left)
      : left_(std::move(left)) {}

  // Tells every stage for which `which` holds to end. How many. `why` is for the owner; what the
  // coordinator is told may say less of him.
  int end(const std::function<bool(const StageWork& work)>& which, const Message& why,
          const Message& told);
  std::vector<const StageWork*> all() const;
  int count(const std::string& device) const;

 private:
  std::function<void(const StageWork&, const Message&)> left_;
  std::vector<Entry*> entries_;  // Oldest first. Never null.
};

}  // namespace shoal::client
