#pragma once
// A live generation: tokens through a pipeline of stages on several hosts, which goes on unchanged
// when hosts are lost. Drives the stage runners; decides nothing that work/ can decide.
//
// Belongs to the coordinator's one thread. Dropping it ends it, and gives back all that it held.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/session/auditor.h"
#include "coordinator/session/direct_paths.h"
#include "coordinator/session/stage_runner.h"

namespace shoal {

class Session final : public StageRunner::Owner {
 public:
  // Stores the session. `needs`, `live` and `receiver` outlive it; it is in `live` while it lives.
  static Result<std::unique_ptr<Session>> start(SessionNeeds& needs, std::set<Session*>& live,
                                                std::shared_ptr<const LiveModel> model,
                                                SessionRequest request, TokenReceiver& receiver);
  ~Session() noexcept(false);
  KJ_DISALLOW_COPY(Session);

  // To its end. Fails with a sentence for the requester. REQUIRES: called once; the session
  // outlives the task.
  rpc::Task<SessionSummary> run();

  // As it is now, for administrators.
  const SessionRow& row() const { return row_; }
  std::vector<StageWho> stages() const;
  const std::string& model_name() const { return shared_->model->name; }
  int64_t tokens() const { return static_cast<int64_t>(summary_.ids.size()); }
  int64_t relayed_bytes() const { return shared_->relayed_bytes; }
  const SessionFigures& figures() const { return summary_.figures; }

  Session(SessionNeeds& needs, std::set<Session*>& live, kj::Own<SessionShared> shared,
          SessionRow row,
          TokenReceiver& receiver);  // For start() alone.

 private:
  bool in_use(const DevicePlace& place, const StageRunner& besides) const override;
  void stage_lost(const StageRunner& stage, const LossCause& cause) override;
  int64_t tokens_left() const override;
  double seconds_per_token(const StageRunner& besides) const override;

  void plan();
  rpc::Task<void> generate();
  rpc::Task<void> make_all_ready();
  struct Pass;
  rpc::Task<void> repair(StageRunner& stage);
  rpc::Task<void> run_stage(size_t index, Pass& pass);
  rpc::Task<void> run_joined(size_t from, size_t to, Pass& pass);
  rpc::Task<void> open_paths();
  rpc::Task<int32_t> pass();
  rpc::Task<void> emit(int32_t token);
  void undo_wrong();
  void report_failovers();
  void set_state(const char* state, const std::string& reason = "");
  void finish(const char* state, const std::string& reason);

  struct PendingFailover {
    FailoverNote note;
    kj::TimePoint since;
  };

  SessionNeeds& needs_;
  std::set<Session*>& live_;
  kj::Own<SessionShared> shared_;
  SessionRow row_;
  TokenReceiver& receiver_;
  std::optional<Detokenizer> detokenizer_;  // Never empty.
  std::vector<std::unique_ptr<StageRunner>> stages_;
  std::unique_ptr<DirectPaths> direct_;  // Null before the plan.
  SessionSummary summary_;
  int repairs_ = 0;  // On their way.
  bool receiver_gone_ = false;
  bool finished_ = false;
  std::optional<kj::TimePoint> last_token_at_;
  kj::TimePoint pass_began_;  // Or the last block of it that has been through all stages.
  std::vector<PendingFailover> pending_;  // Until the next token ends their gap.
};

}  // namespace shoal
