#pragma once
// Holds the stages that coordinators have asked for and the units that are leased, from the asking
// to their end, and tells those who run a stage when it must end. Runs nothing itself.
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

// A stage of a session, or a unit of a job.
struct StageWork {
  enum class State { kAhead, kFetching, kLoading, kReady, kWorking };  // kAhead: a unit, held.

  uint64_t lease = 0, session = 0;
  uint64_t unit = 0;  // 0: it is a stage of a session. Else there is no session and no fragment.
  std::string coordinator;       // Its pin.
  std::string coordinator_name;  // As people know it; it stays when the coordinator is left.
  std::string device;
  JobClass job_class;
  uint32_t first_fragment = 0, last_fragment = 0;
  State state = State::kFetching;
  Millis since{0};  // Wall time.
  uint64_t steps = 0, rows = 0;
  uint64_t bytes = 0;  // Of its shards.
  // Of a unit.
  uint32_t items = 0, items_done = 0;
  Millis until{0};  // Monotonic: its lease's end.
  Millis estimate{0};
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
    // It leaves as if it had not been here.
    void leave_no_trace() { traceless_ = true; }
    // Rejects as disconnected when it must end. Of a stage only: units are told by their runner.
    kj::Promise<void> must_end();

   private:
    friend class WorkList;
    void end(const Message& why, const Message& told);

    WorkList& list_;
    StageWork work_;
    Message why_;
    Message ended_;
    bool traceless_ = false;
    kj::Own<kj::PromiseFulfiller<void>> fulfiller_;
    kj::ForkedPromise<void> must_end_;
  };

  // `left` is called with each one that leaves, and why it ended. It must not touch the list.
  explicit WorkList(std::function<void(const StageWork& work, const Message& why)> left)
      : left_(std::move(left)) {}

  // Tells every stage (no unit) for which `which` holds to end. How many. `why` is for the owner;
  // what the coordinator is told may say less of him.
  int end(const std::function<bool(const StageWork& work)>& which, const Message& why,
          const Message& told);
  std::vector<const StageWork*> all() const;
  int count(const std::string& device) const;   // Those in use: all but units that are held.
  int stages(const std::string& device) const;  // Of sessions.

 private:
  std::function<void(const StageWork&, const Message&)> left_;
  std::vector<Entry*> entries_;  // Oldest first. Never null.
};

}  // namespace shoal::client
