#include "client/host_server.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "client/stage_paths.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal::client {
namespace {

constexpr uint32_t kSilenceMsMin = 1'000, kSilenceMsMax = 86'400'000, kSilenceMsDefault = 600'000;

// A worker's stage as the coordinator sees it: counted, and over when its lease is, or when the
// owner needs the device.
class LeasedStage final : public rpc::DirectStage::Server {
 public:
  LeasedStage(kj::Timer& timer, HostServer::Needs& needs, kj::Own<WorkList::Entry> entry,
              kj::Duration silence_max, uint32_t rows_max, rpc::Stage::Client inner,
              std::vector<ModelCache::Hold> holds)
      : timer_(timer),
        needs_(needs),
        entry_(kj::mv(entry)),
        silence_max_(silence_max),
        rows_max_(std::min(rows_max, limits::kRowsMax)),
        inner_(kj::mv(inner)),
        holds_(std::move(holds)),
        last_step_(timer_.now()),
        watch_(watch_silence().promise().eagerlyEvaluate(nullptr)),
        ending_(entry_->must_end()
                    .catch_([this](kj::Exception&& why) { close(why.getDescription().cStr()); })
                    .eagerlyEvaluate(nullptr)) {
    entry_->work().state = StageWork::State::kReady;
    needs_.work_changed();
  }
  ~LeasedStage() noexcept(false) { close("the stage was dropped"); }

  kj::Promise<void> step(StepContext context) override {
    context.allowCancellation();
    return run_step(kj::mv(context));
  }

  kj::Promise<void> shape(ShapeContext context) override {
    context.allowCancellation();
    return context.tailCall(inner().shapeRequest(capnp::MessageSize{4, 0}));
  }

  kj::Promise<void> expect(ExpectContext context) override {
    context.allowCancellation();
    rpc::Task<StagePaths*> getting = paths();
    kj::Promise<StagePaths*> got = kj::mv(getting);
    return got.then(
        [context](StagePaths* paths) mutable { paths->expect(context.getParams().getEnd()); });
  }

  kj::Promise<void> dial(DialContext context) override {
    context.allowCancellation();
    return dial_neighbour(kj::mv(context));
  }

  kj::Promise<void> stepDirect(StepDirectContext context) override {
    context.allowCancellation();
    kj::Promise<void> stepped = step_direct(kj::mv(context));
    // Not even one that waits for its neighbour outlives the lease.
    return stepped.exclusiveJoin(must_end());
  }

  kj::Promise<void> outputs(OutputsContext context) override {
    context.allowCancellation();
    return hand_out(kj::mv(context));
  }

 private:
  using StepResponse = capnp::Response<rpc::Stage::StepResults>;

  // While a step runs the lease is not silent; its silence begins when the step ends, however it
  // ends.
  class Running {
   public:
    explicit Running(LeasedStage& stage) : stage_(stage) {
      ++stage_.running_;
      stage_.show();
    }
    ~Running() {
      --stage_.running_;
      stage_.last_step_ = stage_.timer_.now();
      stage_.show();
    }
    KJ_DISALLOW_COPY(Running);

   private:
    LeasedStage& stage_;
  };

  void show() {
    if (entry_.get() == nullptr) return;
    entry_->work().state = running_ > 0 ? StageWork::State::kWorking : StageWork::State::kReady;
  }

  rpc::Task<void> run_step(StepContext context) {
    const Running running(*this);
    StepCost cost;
    cost.rows = context.getParams().getInput().getPositions().size();
    cost.received = bytes_in(context.getParams().totalSize());
    auto request = inner().stepRequest(context.getParams().totalSize());
    request.setInput(context.getParams().getInput());
    context.releaseParams();
    kj::Promise<StepResponse> asked = ask(kj::mv(request));
    const StepResponse answer = co_await kj::mv(asked);
    cost.sent = bytes_in(answer.totalSize());
    note_step(answer.getOutput(), cost);
    kj::Promise<void> may_send = needs_.may_send(cost.sent);
    co_await kj::mv(may_send);
    context.getResults(answer.totalSize()).setOutput(answer.getOutput());
  }

  void note_step(rpc::StepOutput::Reader output, StepCost cost) {
    cost.device_micros = output.getComputeMicros();
    if (entry_.get() == nullptr) return;
    ++entry_->work().steps;
    entry_->work().rows += cost.rows;
    needs_.step_ran(entry_->work(), cost);
  }

  // What fails on a path is told, not thrown: it says nothing of this stage. Several may be on
  // their way at once; they are in order.
  rpc::Task<void> step_direct(StepDirectContext context) {
    const Running running(*this);
    const auto params = context.getParams();
    const auto input = params.getInput();
    const uint32_t rows = input.getPositions().size();
    const uint32_t first = rows == 0 ? 0 : input.getPositions()[0];
    require_one_block(input);
    const bool from = params.getFromNeighbour(), to = params.getToNeighbour();
    rpc::Task<StagePaths*> getting = paths();
    StagePaths* const paths = co_await kj::mv(getting);
    std::string missing;
    if (to) {
      const Result<void> may = paths->may_pass_on(rows);
      if (!may.ok()) missing = may.error().message;
    }
    ByteVector hidden;
    if (from && missing.empty()) {
      try {
        kj::Promise<ByteVector> taken = paths->take(first, rows);
        hidden = co_await kj::mv(taken);
      } catch (const kj::Exception& exception) {
        missing = rpc::error_of(exception).message;
      }
    }
    if (!missing.empty()) {
      context.getResults().initOutput().setNotDone(
          std::string(cut_utf8(missing, limits::kReasonBytesMax / 2)));
      co_return;
    }
    StepCost cost;
    cost.rows = rows;
    cost.received = bytes_in(params.totalSize());
    cost.received.count += static_cast<int64_t>(hidden.size());
    auto request = inner().stepRequest();
    request.setInput(input);
    if (from) request.getInput().setHidden(rpc::kj_bytes(hidden));
    context.releaseParams();
    kj::Promise<StepResponse> asked = ask(kj::mv(request));
    const StepResponse answer = co_await kj::mv(asked);
    cost.sent = bytes_in(answer.totalSize());
    note_step(answer.getOutput(), cost);
    kj::Promise<void> may_send = needs_.may_send(cost.sent);
    co_await kj::mv(may_send);

    if (to) {
      const auto computed = answer.getOutput();
      if (!computed.isHidden() || computed.getHidden().size() != rows * paths->row_bytes()) {
        rpc::throw_error({ErrorCode::kUnsupported, "this stage has no hidden rows to pass on"});
      }
      const Result<Digest> digest = paths->pass_on(first, rpc::bytes_of(computed.getHidden()));
      auto output = context.getResults().initOutput();
      if (!digest.ok()) {
        output.setNotDone(digest.error().message);
        co_return;
      }
      output.setPassedOn(rpc::kj_bytes(digest.value().bytes));
      if (from) output.setReceived(rpc::kj_bytes(digest_of(hidden).bytes));
    } else {
      auto output = context.getResults(answer.totalSize()).initOutput();
      output.setOutput(answer.getOutput());
      if (from) output.setReceived(rpc::kj_bytes(digest_of(hidden).bytes));
    }
  }

  static void require_one_block(rpc::StepInput::Reader input) {
    const auto positions = input.getPositions();
    const auto sequences = input.getSequences();
    bool is_one = positions.size() > 0 && positions.size() <= limits::kRowsMax &&
                  sequences.size() == positions.size();
    for (uint32_t i = 0; is_one && i < positions.size(); ++i) {
      is_one = sequences[i] == sequences[0] && positions[i] == uint64_t{positions[0]} + i;
    }
    if (!is_one) {
      rpc::throw_error({ErrorCode::kInvalid, "a direct step is no block of rows that follow"});
    }
  }

  rpc::Task<void> dial_neighbour(DialContext context) {
    rpc::Task<StagePaths*> getting = paths();
    StagePaths* const paths = co_await kj::mv(getting);
    rpc::Task<uint32_t> dialling = paths->dial(context.getParams());
    const uint32_t micros = co_await kj::mv(dialling);
    context.getResults().setRoundTripMicros(micros);
  }

  rpc::Task<void> hand_out(OutputsContext context) {
    rpc::Task<StagePaths*> getting = paths();
    StagePaths* const paths = co_await kj::mv(getting);
    const auto params = context.getParams();
    const ByteSpan kept = rpc::require(paths->outputs(params.getFirst(), params.getRows()));
    if (kept.size() > limits::kHiddenBytesMax) {
      rpc::throw_error({ErrorCode::kInvalid, "more rows are asked for than go into one answer"});
    }
    const auto size = static_cast<int64_t>(kept.size());
    kj::Promise<void> may_send = needs_.may_send(Bytes{size});
    co_await kj::mv(may_send);
    // They may have gone meanwhile.
    const ByteSpan hidden = rpc::require(paths->outputs(params.getFirst(), params.getRows()));
    context.getResults(capnp::MessageSize{hidden.size() / 8 + 16, 0})
        .setHidden(rpc::kj_bytes(hidden));
  }

  // Made when they are first asked for: most stages have none.
  rpc::Task<StagePaths*> paths() {
    if (paths_ == nullptr) {
      PathDoor* const door = needs_.path_door();
      if (door == nullptr || !door->dials()) {
        rpc::throw_error({ErrorCode::kUnsupported, "this host passes no rows on by itself"});
      }
      kj::Promise<capnp::Response<rpc::Stage::ShapeResults>> asked =
          inner().shapeRequest(capnp::MessageSize{4, 0}).send();
      const auto shape = co_await kj::mv(asked);
      const size_t row_bytes = shape.getWidth() * sizeof(float);
      if (row_bytes == 0 || row_bytes > limits::kHiddenBytesMax / std::max(rows_max_, 1u)) {
        rpc::throw_error({ErrorCode::kUnsupported, "this stage's rows are too large to pass on"});
      }
      if (paths_ == nullptr) paths_ = std::make_unique<StagePaths>(*door, row_bytes, rows_max_);
    }
    co_return paths_.get();
  }

  kj::Promise<void> must_end() {
    if (entry_.get() == nullptr) return kj::NEVER_DONE;
    return entry_->must_end().then([]() -> kj::Promise<void> { return kj::NEVER_DONE; });
  }

  static Bytes bytes_in(capnp::MessageSize size) {
    return {static_cast<int64_t>(size.wordCount * sizeof(capnp::word))};
  }

  kj::Promise<StepResponse> ask(
      capnp::Request<rpc::Stage::StepParams, rpc::Stage::StepResults> request) {
    if (entry_.get() == nullptr) (void)inner();  // Throws: the lease has ended meanwhile.
    kj::Promise<StepResponse> answer = request.send();
    const std::string& device = entry_->work().device;
    needs_.step_began(device);
    // Ends with the answer: what follows takes none of the device's time.
    auto ended = kj::defer([&needs = needs_, device] { needs.step_ended(device); });
    return answer
        .then([ended = kj::mv(ended)](StepResponse&& response) mutable {
          const auto over = kj::mv(ended);
          return kj::mv(response);
        })
        .exclusiveJoin(
            entry_->must_end().then([]() -> kj::Promise<StepResponse> { return kj::NEVER_DONE; }));
  }

  // A coordinator that forgot its stage must not keep the device's memory.
  rpc::Task<void> watch_silence() {
    while (true) {
      const kj::Duration silence = running_ > 0 ? 0 * kj::SECONDS : timer_.now() - last_step_;
      if (silence >= silence_max_) break;
      co_await timer_.afterDelay(silence_max_ - silence);
    }
    if (entry_.get() != nullptr) {
      log_warning("host", "lease_silent",
                  {{"lease", entry_->work().lease}, {"device", entry_->work().device}});
      entry_->ended({"work.silent", {}});
    }
    close("the lease is over: no step came for too long");
  }

  // Gives the device's memory and the shards back; the capability may outlive this.
  void close(const char* why) {
    if (inner_ == nullptr) return;
    over_ = why;
    if (paths_ != nullptr) paths_->end();
    inner_ = nullptr;
    holds_.clear();
    log_info("host", "stage_closed",
             {{"lease", entry_->work().lease}, {"device", entry_->work().device}, {"cause", why}});
    entry_ = nullptr;
    needs_.work_changed();
  }

  rpc::Stage::Client inner() {
    KJ_IF_MAYBE (stage, inner_) {
      return *stage;
    }
    kj::throwFatalException(kj::Exception(kj::Exception::Type::DISCONNECTED, __FILE__, __LINE__,
                                          kj::heapString(over_.c_str())));
  }

  kj::Timer& timer_;
  HostServer::Needs& needs_;
  kj::Own<WorkList::Entry> entry_;  // Null once it is closed.
  kj::Duration silence_max_;
  const uint32_t rows_max_;
  kj::Maybe<rpc::Stage::Client> inner_;
  std::string over_;  // Why it is closed.
  std::vector<ModelCache::Hold> holds_;
  kj::TimePoint last_step_;
  int running_ = 0;
  std::unique_ptr<StagePaths> paths_;  // Null until a coordinator asks for a path.
  // Last: they use all of the above.
  kj::Promise<void> watch_;
  kj::Promise<void> ending_;
};

}  // namespace

StageLoader::SessionNow HostServer::session_now() {
  return [this] { return slot_->session; };
}

kj::Own<WorkList::Entry> HostServer::enter(rpc::StageLease::Reader lease) {
  StageWork work;
  work.lease = lease.getLeaseId();
  work.session = lease.getSessionId();
  work.coordinator = pin_;
  work.coordinator_name = needs_.coordinator_name(pin_);
  work.device = rpc::text_of(lease.getDeviceId(), limits::kNameBytesMax, "lease.deviceId");
  rpc::require_at_most(lease.getModel().size(), limits::kNameBytesMax, "lease.model");
  work.job_class = read_job_class(lease.getJobClass());
  work.first_fragment = lease.getFirstFragment();
  work.last_fragment =
      work.first_fragment + std::max<uint32_t>(lease.getSpec().getShards().size(), 1) - 1;
  work.since = clock_.now_wall();
  rpc::require(needs_.consents(pin_, work.job_class));
  (void)rpc::require(needs_.worker_of(work.device));
  return kj::heap<WorkList::Entry>(needs_.work_list(), std::move(work));
}

rpc::Task<void> HostServer::open_stage(OpenStageContext context, kj::Own<WorkList::Entry> entry) {
  const rpc::StageLease::Reader lease = context.getParams().getLease();
  const std::vector<ShardFetcher::Wanted> wanted =
      rpc::require(read_shards(lease.getSpec().getShards(), pin_));
  const std::string device_id = entry->work().device;
  rpc::Worker::Client worker = rpc::require(needs_.worker_of(device_id));
  for (const ShardFetcher::Wanted& shard : wanted) entry->work().bytes += shard.size;
  log_info("host", "stage_asked",
           {{"lease", lease.getLeaseId()}, {"device", device_id}, {"shards", wanted.size()}});
  needs_.work_changed();

  std::vector<ModelCache::Hold> holds;
  for (const ShardFetcher::Wanted& shard : wanted) holds.emplace_back(cache_, shard.digest);
  kj::Promise<rpc::Stage::Client> opening = loader_.open(
      session_now(), kj::mv(worker), lease.getSpec(), wanted, [this, &work = entry->work()] {
        work.state = StageWork::State::kLoading;
        needs_.work_changed();
      });
  rpc::Stage::Client stage = co_await kj::mv(opening);
  const uint32_t silence_ms =
      lease.getSilenceMaxMs() == 0
          ? kSilenceMsDefault
          : std::clamp(lease.getSilenceMaxMs(), kSilenceMsMin, kSilenceMsMax);
  log_info("host", "stage_opened", {{"lease", lease.getLeaseId()}, {"device", device_id}});
  context.getResults().setStage(
      kj::heap<LeasedStage>(timer_, needs_, kj::mv(entry), silence_ms * kj::MILLISECONDS,
                            lease.getSpec().getRowsMax(), kj::mv(stage), std::move(holds)));
}

kj::Promise<void> HostServer::openStage(OpenStageContext context) {
  context.allowCancellation();
  kj::Promise<void> opening = kj::evalNow([&]() -> kj::Promise<void> {
    kj::Own<WorkList::Entry> entry = enter(context.getParams().getLease());
    kj::Promise<void> must_end =
        entry->must_end().then([]() -> kj::Promise<void> { return kj::NEVER_DONE; });
    kj::Promise<void> opened = open_stage(context, kj::mv(entry));
    return opened.exclusiveJoin(kj::mv(must_end));
  });
  return opening.catch_([](kj::Exception&& exception) {
    log_warning("host", "stage_not_opened", {{"cause", rpc::error_of(exception)}});
    kj::throwFatalException(kj::mv(exception));
  });
}

kj::Promise<void> HostServer::door(DoorContext context) {
  PathDoor* const door = needs_.path_door();
  if (door == nullptr) return kj::READY_NOW;
  auto results = context.getResults();
  results.setDials(door->dials());
  results.setPort(door->port());
  results.setPin(door->pin());
  return kj::READY_NOW;
}

kj::Promise<void> HostServer::fetchShards(FetchShardsContext context) {
  context.allowCancellation();
  rpc::require(needs_.may_fetch());
  return loader_.fetch(session_now(),
                       rpc::require(read_shards(context.getParams().getShards(), pin_)));
}

}  // namespace shoal::client
