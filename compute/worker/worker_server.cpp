#include "compute/worker/worker_server.h"

#include <kj/async-io.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <variant>

#include "base/clock.h"
#include "base/log.h"
#include "base/secrets.h"
#include "compute/compute.h"
#include "compute/sampling/likelihood.h"
#include "compute/shards/shard.h"
#include "compute/worker/pacer.h"
#include "compute/worker/step_input.h"
#include "schema/limits.h"
#include "schema/task.h"
#include "schema/transport.h"
#include "schema/worker.capnp.h"

namespace shoal::worker {
namespace {

using StageNumber = uint64_t;

// The time of one op is less than a Clock's millisecond.
int64_t now_micros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The shards of a stage, in order: stages with the same ones share their weights.
using ShardList = std::vector<Digest>;

struct Loaded {
  std::unique_ptr<compute::LoadedFragments> fragments;
  int stages = 0;
};

struct OpenStage {
  ShardList shards;
  Loaded* loaded = nullptr;  // In its room. Outlives the stage.
  std::unique_ptr<compute::Stage> stage;
};

// What only the compute thread touches.
struct Room {
  std::unique_ptr<compute::Device> device;
  std::map<ShardList, Loaded> loaded;
  std::map<StageNumber, OpenStage> stages;

  // Of stages that were never opened, too.
  void close(StageNumber number) {
    const auto found = stages.find(number);
    if (found == stages.end()) return;
    const ShardList shards = std::move(found->second.shards);
    Loaded& of = *found->second.loaded;
    stages.erase(found);
    if (--of.stages == 0) loaded.erase(shards);
  }
};

struct StepResult {
  bool is_hidden = false;
  std::vector<float> hidden;  // Or the features.
  std::vector<int32_t> tokens;
  std::vector<float> log_likelihoods;
  uint64_t micros = 0;
};

// A step that was asked for.
struct WaitingStep {
  StageNumber stage = 0;
  StepRequest request;
  Pacer::StepNumber number = 0;
  kj::Own<kj::CrossThreadPromiseFulfiller<Result<StepResult>>> fulfiller;
};

// Later steps join the first one that waits while they add at most so many rows to it: more gain
// little, and would keep it waiting.
constexpr size_t kRowsJoining = 64;

std::vector<Result<StepResult>> run_steps(Room& room, std::span<const WaitingStep> steps,
                                          Pacer& pacer);

// The thread and the queue to it. Made and asked by the loop's thread. It never ends by itself: the
// process ends around it.
class ComputeThread {
 public:
  ComputeThread() {
    std::thread([this] { work(); }).detach();
  }
  KJ_DISALLOW_COPY(ComputeThread);

  // Runs `body(room)`, a Result<T>, there. A job that nobody waits for any more is passed over.
  template <class T, class Body>
  kj::Promise<Result<T>> run(Body body) {
    auto pair = kj::newPromiseAndCrossThreadFulfiller<Result<T>>();
    post([fulfiller = kj::mv(pair.fulfiller), body = kj::mv(body)](Room& room) mutable {
      if (!fulfiller->isWaiting()) return;
      fulfiller->fulfill(guarded<T>([&] { return body(room); }));
    });
    return kj::mv(pair.promise);
  }

  // Runs the step there, after what was asked for before, and together with steps that wait then.
  kj::Promise<Result<StepResult>> step(StageNumber stage, StepRequest request,
                                       Pacer::StepNumber number) {
    auto pair = kj::newPromiseAndCrossThreadFulfiller<Result<StepResult>>();
    push(WaitingStep{stage, std::move(request), number, kj::mv(pair.fulfiller)});
    return kj::mv(pair.promise);
  }

  // Steps rest by it, on that thread.
  Pacer& pacer() { return pacer_; }

  // Runs it whether or not anybody waits.
  void post(kj::Function<void(Room&)> job) { push(kj::mv(job)); }

 private:
  using Job = std::variant<kj::Function<void(Room&)>, WaitingStep>;

  void push(Job job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(kj::mv(job));
    }
    arrived_.notify_one();
  }

  // A stage that asks for more memory than there is fails alone.
  template <class T, class Body>
  static Result<T> guarded(Body body) {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      return Error{ErrorCode::kNoSpace, "the worker's memory is not enough"};
    } catch (const std::exception& exception) {
      return Error{ErrorCode::kIo, exception.what()};
    }
  }

  void work() {
    Room room;
    while (true) {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [this] { return !jobs_.empty(); });
      if (std::holds_alternative<WaitingStep>(jobs_.front())) {
        std::vector<WaitingStep> steps = take_steps(room);
        lock.unlock();
        run(room, steps);
        continue;
      }
      auto job = std::get<kj::Function<void(Room&)>>(kj::mv(jobs_.front()));
      jobs_.pop_front();
      lock.unlock();
      job(room);
    }
  }

  // The first step of the queue and those that can run with it: of stages that share its weights,
  // each stage's in their order, and none from behind a job of another kind, which may change what
  // they find. Nobody may wait for any of them. REQUIRES: a step is first; mutex_ is held.
  std::vector<WaitingStep> take_steps(const Room& room) {
    std::vector<WaitingStep> steps;
    std::set<StageNumber> passed;  // Stages whose later steps have to wait.
    const Loaded* loaded = nullptr;
    size_t joining = 0;
    for (auto job = jobs_.begin();
         job != jobs_.end() && std::holds_alternative<WaitingStep>(*job);) {
      auto& step = std::get<WaitingStep>(*job);
      if (!step.fulfiller->isWaiting()) {
        job = jobs_.erase(job);
        continue;
      }
      const bool is_next = passed.insert(step.stage).second;
      const Loaded* of = room.stages.at(step.stage).loaded;
      const size_t rows = steps.empty() ? 0 : step.request.rows.size();
      if (!is_next || (loaded != nullptr && of != loaded) || joining + rows > kRowsJoining) {
        ++job;
        continue;
      }
      loaded = of;
      joining += rows;
      steps.push_back(kj::mv(step));
      job = jobs_.erase(job);
    }
    return steps;
  }

  void run(Room& room, std::span<WaitingStep> steps) {
    if (steps.empty()) return;
    using Results = std::vector<Result<StepResult>>;
    Result<Results> done =
        guarded<Results>([&] { return Result<Results>(run_steps(room, steps, pacer_)); });
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i].fulfiller->fulfill(done.ok() ? std::move(done.value()[i])
                                            : Result<StepResult>(done.error()));
    }
  }

  Pacer pacer_{now_micros};

  // The queue is what both threads touch, with the pacer.
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Job> jobs_;  // GUARDED_BY(mutex_)
};

struct Done {};  // Result of a job that answers nothing.

// Hands the world's errors to the peer. A lost device takes this process down: its successor opens
// it anew.
template <class T>
T or_throw(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  if (result.error().code == ErrorCode::kUnavailable) {
    log_error("worker", "device_lost", {{"cause", result.error()}});
    std::_Exit(3);
  }
  rpc::throw_error(result.error());
}
template <>
void or_throw(Result<void> result) {
  if (!result.ok()) rpc::throw_error(result.error());
}

struct OpenedStage {
  compute::StageShape shape;
  int64_t device_bytes = 0;
};

// What a step's output comes to.
Result<StepResult> finish_step(const compute::StageShape& shape, const StepRequest& request,
                               std::vector<float> output) {
  StepResult result;
  result.is_hidden = !shape.ends_with_logits || request.wants_features;
  if (result.is_hidden) {
    result.hidden = std::move(output);
  } else {
    const auto vocabulary = static_cast<size_t>(shape.vocabulary);
    const auto logits_of = [&](size_t i) {
      return std::span<const float>(output).subspan(i * vocabulary, vocabulary);
    };
    for (const DrawRequest& draw : request.draws) {
      SHOAL_TRY_ASSIGN(token,
                       sample(logits_of(draw.output), draw.sampling, draw.history, draw.position));
      result.tokens.push_back(token);
    }
    for (const ScoreRequest& score : request.scores) {
      SHOAL_TRY_ASSIGN(value, log_likelihood(logits_of(score.output), score.token));
      result.log_likelihoods.push_back(value);
    }
  }
  return result;
}

// Steps of stages that share their weights, as one.
std::vector<Result<StepResult>> run_steps(Room& room, std::span<const WaitingStep> steps,
                                          Pacer& pacer) {
  std::vector<Pacer::StepNumber> numbers;
  for (const WaitingStep& step : steps) numbers.push_back(step.number);
  if (const Result<void> begun = pacer.begin(std::move(numbers)); !begun.ok())
    return {steps.size(), Result<StepResult>(begun.error())};
  const auto ended = kj::defer([&pacer] { pacer.end(); });

  std::vector<compute::StepInput> inputs;
  std::vector<compute::LoadedFragments::StageStep> together;
  inputs.reserve(steps.size());  // Their addresses stay.
  uint64_t rows = 0;
  for (const WaitingStep& step : steps) {
    const StepRequest& request = step.request;
    inputs.push_back({request.rows, request.tokens, request.hidden, request.output_rows,
                      request.wants_features});
    together.push_back({room.stages.at(step.stage).stage.get(), &inputs.back()});
    rows += request.rows.size();
  }
  Loaded& loaded = *room.stages.at(steps[0].stage).loaded;
  std::vector<Result<std::vector<float>>> outputs = loaded.fragments->step(together, &pacer);
  std::vector<Result<StepResult>> results;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!outputs[i].ok()) {
      results.push_back(outputs[i].error());
      continue;
    }
    results.push_back(
        finish_step(together[i].stage->shape(), steps[i].request, std::move(outputs[i]).value()));
  }
  pacer.end();
  // Each has its rows' part of the time.
  for (size_t i = 0; i < steps.size(); ++i) {
    if (results[i].ok())
      results[i].value().micros = pacer.micros() * steps[i].request.rows.size() / rows;
  }
  return results;
}

// A number that a stage has, or is about to have, on the compute thread. However its owner ends,
// the stage does.
class StageNumberOwner {
 public:
  StageNumberOwner(ComputeThread& compute, StageNumber number)
      : compute_(compute), number_(number) {}
  ~StageNumberOwner() {
    compute_.post([number = number_](Room& room) { room.close(number); });
  }
  KJ_DISALLOW_COPY(StageNumberOwner);

  StageNumber number() const { return number_; }

 private:
  ComputeThread& compute_;
  StageNumber number_;
};

class StageServer final : public rpc::Stage::Server {
 public:
  StageServer(ComputeThread& compute, kj::Own<StageNumberOwner> number, OpenedStage stage,
              const compute::StageOptions& options)
      : compute_(compute), number_(kj::mv(number)), stage_(stage), options_(options) {}
  ~StageServer() { log_info("worker", "stage_closed", {{"stage", number_->number()}}); }

  kj::Promise<void> step(StepContext context) override {
    context.allowCancellation();
    StepRequest request =
        or_throw(read_step(context.getParams().getInput(), stage_.shape, options_));
    context.releaseParams();
    Pacer& pacer = compute_.pacer();
    const Pacer::StepNumber step = pacer.expect_step();
    return compute_
        .step(number_->number(), std::move(request), step)
        // However it ends: a step that is dropped in the middle of a rest is over.
        .attach(kj::defer([&pacer, step] { pacer.drop_step(step); }))
        .then([this, context](Result<StepResult> result) mutable {
          answer(or_throw(std::move(result)), context);
        });
  }

  kj::Promise<void> shape(ShapeContext context) override {
    auto results = context.getResults();
    results.setBeginsWithTokens(stage_.shape.begins_with_tokens);
    results.setEndsWithLogits(stage_.shape.ends_with_logits);
    results.setWidth(static_cast<uint32_t>(stage_.shape.width));
    results.setVocabulary(static_cast<uint32_t>(stage_.shape.vocabulary));
    results.setDeviceBytes(static_cast<uint64_t>(stage_.device_bytes));
    return kj::READY_NOW;
  }

 private:
  void answer(const StepResult& result, StepContext& context) {
    const size_t bytes = (result.hidden.size() + result.log_likelihoods.size()) * sizeof(float) +
                         result.tokens.size() * sizeof(int32_t);
    auto output =
        context.getResults(capnp::MessageSize{bytes / sizeof(capnp::word) + 32, 0}).initOutput();
    output.setComputeMicros(result.micros);
    if (result.is_hidden) {
      output.setHidden(rpc::kj_bytes(std::as_bytes(std::span(result.hidden))));
      return;
    }
    auto tokens = output.initTokens(static_cast<uint32_t>(result.tokens.size()));
    for (uint32_t i = 0; i < tokens.size(); ++i) tokens.set(i, result.tokens[i]);
    auto values = output.initLogLikelihoods(static_cast<uint32_t>(result.log_likelihoods.size()));
    for (uint32_t i = 0; i < values.size(); ++i) values.set(i, result.log_likelihoods[i]);
  }

  ComputeThread& compute_;
  kj::Own<StageNumberOwner> number_;
  OpenedStage stage_;
  compute::StageOptions options_;
};

// Takes ciphertext. Unsealing is done on the loop's thread, a chunk at a time: 1 MiB takes about 3
// ms, and the compute thread has a session's steps to do.
class StageLoaderServer final : public rpc::StageLoader::Server {
 public:
  struct Sealed {
    Digest digest;
    uint64_t bytes = 0;
    SecretBytes key;
  };

  StageLoaderServer(ComputeThread& compute, StageNumber number, std::vector<Sealed> sealed,
                    const compute::StageOptions& options)
      : compute_(compute), number_(number), sealed_(std::move(sealed)), options_(options) {}

  kj::Promise<void> write(WriteContext context) override {
    const auto params = context.getParams();
    rpc::require_at_most(params.getBytes().size(), limits::kChunkBytesMax, "shard bytes");
    if (finished_) rpc::throw_error({ErrorCode::kInvalid, "the loader is finished"});
    // A shard without any bytes is none, so the next one begins when the one before is whole.
    const uint32_t expected = static_cast<uint32_t>(plain_.size());
    if (params.getShard() != expected || expected == sealed_.size()) {
      rpc::throw_error({ErrorCode::kInvalid, "shard " + std::to_string(params.getShard()) +
                                                 " is out of order: shard " +
                                                 std::to_string(expected) + " of " +
                                                 std::to_string(sealed_.size()) + " is due"});
    }
    const Sealed& sealed = sealed_[expected];
    if (!opener_) opener_.emplace(sealed.key, sealed.digest, sealed.bytes);
    or_throw(opener_->feed(rpc::bytes_of(params.getBytes())));
    if (opener_->fed() == sealed.bytes) {
      plain_.push_back(or_throw(opener_->finish()));
      opener_.reset();
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> finish(FinishContext context) override {
    context.allowCancellation();
    if (finished_) rpc::throw_error({ErrorCode::kInvalid, "the loader is finished already"});
    if (plain_.size() != sealed_.size()) {
      rpc::throw_error({ErrorCode::kInvalid, "only " + std::to_string(plain_.size()) + " of " +
                                                 std::to_string(sealed_.size()) +
                                                 " shards are whole"});
    }
    finished_ = true;
    ShardList shards;
    for (const Sealed& sealed : sealed_) shards.push_back(sealed.digest);
    sealed_.clear();  // The keys have done their work.
    auto owner = kj::heap<StageNumberOwner>(compute_, number_);
    return compute_
        .run<OpenedStage>([number = number_, shards = std::move(shards), plain = std::move(plain_),
                           options = options_](Room& room) mutable {
          return open_stage(room, number, std::move(shards), std::move(plain), options);
        })
        // Who asked may be gone when the stage is open: then it ends with its number's owner.
        .then([this, context, owner = kj::mv(owner)](Result<OpenedStage> opened) mutable {
          const OpenedStage stage = or_throw(std::move(opened));
          log_info("worker", "stage_opened",
                   {{"stage", number_}, {"device_bytes", stage.device_bytes}});
          context.getResults().setStage(
              kj::heap<StageServer>(compute_, kj::mv(owner), stage, options_));
        });
  }

 private:
  static Result<OpenedStage> open_stage(Room& room, StageNumber number, ShardList shards,
                                        std::vector<compute::PlainShard> plain,
                                        const compute::StageOptions& options) {
    auto found = room.loaded.find(shards);
    if (found == room.loaded.end()) {
      std::vector<compute::Fragment> fragments;
      for (const compute::PlainShard& shard : plain) fragments.push_back(shard.fragment());
      SHOAL_TRY_ASSIGN(loaded, compute::LoadedFragments::load(*room.device, fragments, options));
      found = room.loaded.emplace(shards, Loaded{std::move(loaded)}).first;
    }
    plain.clear();  // Wipes the plain bytes: from here on only the device holds them.
    Loaded& loaded = found->second;
    Result<std::unique_ptr<compute::Stage>> stage = loaded.fragments->open(options);
    if (!stage.ok()) {
      if (loaded.stages == 0) room.loaded.erase(found);
      return stage.error();
    }
    ++loaded.stages;
    const OpenedStage opened{stage.value()->shape(), stage.value()->device_bytes()};
    room.stages[number] = {std::move(shards), &loaded, std::move(stage).value()};
    return opened;
  }

  ComputeThread& compute_;
  StageNumber number_;
  std::vector<Sealed> sealed_;
  compute::StageOptions options_;
  std::vector<compute::PlainShard> plain_;
  std::optional<compute::ShardOpener> opener_;
  bool finished_ = false;
};

class WorkerServer final : public rpc::Worker::Server {
 public:
  WorkerServer(ComputeThread& compute, const WorkerOptions& options)
      : compute_(compute), keys_(BoxKeyPair::generate()), ready_(open_device(options).fork()) {}

  kj::Promise<void> describe(DescribeContext context) override {
    return ready_.addBranch().then([this, context]() mutable {
      auto results = context.getResults();
      auto device = results.initDevice();
      device.setId(info_.id);
      device.setSelector(info_.selector);
      device.setPlane(info_.plane);
      device.setName(info_.name);
      device.setDriver(info_.driver);
      device.setMemoryBytes(static_cast<uint64_t>(info_.memory_bytes));
      device.setSoftware(info_.software);
      results.setPublicKey(rpc::kj_bytes(keys_.public_key().bytes));
      results.setPid(static_cast<uint32_t>(own_pid()));
    });
  }

  kj::Promise<void> openStage(OpenStageContext context) override {
    return ready_.addBranch().then([this, context]() mutable {
      const rpc::StageSpec::Reader spec = context.getParams().getSpec();
      const compute::StageOptions options = or_throw(read_stage_options(spec));
      std::vector<StageLoaderServer::Sealed> sealed;
      for (const rpc::SealedShard::Reader shard : spec.getShards()) {
        sealed.push_back(or_throw(open_key(shard)));
      }
      or_throw(fits_memory(sealed));
      context.getResults().setLoader(
          kj::heap<StageLoaderServer>(compute_, ++last_stage_, std::move(sealed), options));
    });
  }

  kj::Promise<void> selfTest(SelfTestContext context) override {
    context.allowCancellation();
    return ready_.addBranch()
        .then([this] {
          return compute_.run<compute::SelfTestReport>(
              [](Room& room) { return compute::self_test(*room.device); });
        })
        .then([context](Result<compute::SelfTestReport> result) mutable {
          const compute::SelfTestReport report = or_throw(std::move(result));
          auto to = context.getResults().initReport();
          to.setExact(report.exact);
          to.setSamples(static_cast<uint32_t>(report.samples));
          to.setFailed(static_cast<uint32_t>(report.failed));
          to.setUnsupported(static_cast<uint32_t>(report.unsupported));
          to.setFirstFailure(report.first_failure);
        });
  }

  kj::Promise<void> benchmark(BenchmarkContext context) override {
    context.allowCancellation();
    return ready_.addBranch()
        .then([this] {
          return compute_.run<compute::BenchReport>(
              [](Room& room) { return compute::bench(*room.device); });
        })
        .then([context](Result<compute::BenchReport> result) mutable {
          const compute::BenchReport report = or_throw(std::move(result));
          auto to = context.getResults().initReport();
          to.setDecodeRowsPerSecond(report.decode_rows_per_second);
          to.setPrefillRowsPerSecond(report.prefill_rows_per_second);
          to.setWeightBytesPerSecond(report.weight_bytes_per_second);
          to.setFlopsPerSecond(report.flops_per_second);
          to.setCopyBytesPerSecond(report.copy_bytes_per_second);
          to.setMeasuredAtMs(SystemClock().now_wall().count);
        });
  }

  kj::Promise<void> ping(PingContext) override { return kj::READY_NOW; }

  kj::Promise<void> setPace(SetPaceContext context) override {
    const auto params = context.getParams();
    if (params.getDutyPercent() < 1 || params.getDutyPercent() > 100) {
      rpc::throw_error(
          {ErrorCode::kInvalid,
           "dutyPercent is " + std::to_string(params.getDutyPercent()) + ", not within 1 to 100"});
    }
    rpc::require_at_most(params.getRowsMax(), limits::kRowsMax, "rowsMax");
    compute_.pacer().set(params.getDutyPercent(), params.getRowsMax());
    return kj::READY_NOW;
  }

 private:
  // The device first, because drivers need more than a worker may have afterwards; then the
  // sandbox, on all threads, before any shard or step can come.
  kj::Promise<void> open_device(const WorkerOptions& options) {
    return compute_
        .run<compute::DeviceInfo>([options](Room& room) -> Result<compute::DeviceInfo> {
          SHOAL_TRY_ASSIGN(device, compute::open_device(options.device, options.threads));
          room.device = std::move(device);
          return room.device->info();
        })
        .then([this, memory_max = options.memory_max](Result<compute::DeviceInfo> opened) {
          if (!opened.ok()) rpc::throw_error(opened.error());  // Told to whoever asks; not "lost".
          info_ = std::move(opened).value();
          if (memory_max.count > 0) or_throw(limit_own_memory(memory_max));
          or_throw(enter_sandbox());
          log_info("worker", "ready", {{"device", info_.id}, {"name", info_.name}});
        });
  }

  Result<StageLoaderServer::Sealed> open_key(rpc::SealedShard::Reader shard) {
    rpc::require_at_most(shard.getSealedKey().size(), limits::kKeyBytesMax, "shard.sealedKey");
    const Result<Digest> digest = Digest::from_bytes(rpc::bytes_of(shard.getDigest()));
    if (!digest.ok()) return with_context(digest.error(), "shard.digest");
    const uint64_t bytes = shard.getSealedBytes();
    if (bytes == 0 || bytes > limits::kShardBytesMax) {
      return Error{ErrorCode::kInvalid, "shard.sealedBytes is " + std::to_string(bytes) +
                                            ", not within 1 to " +
                                            std::to_string(limits::kShardBytesMax)};
    }
    Result<SecretBytes> key = open_sealed(keys_, rpc::bytes_of(shard.getSealedKey()));
    if (!key.ok() || key.value().size() != kKeyBytes) {
      return Error{ErrorCode::kDenied,
                   "the key of shard " + digest.value().hex() + " was not sealed for this worker"};
    }
    return StageLoaderServer::Sealed{digest.value(), bytes, std::move(key).value()};
  }

  // The plain bytes of all shards are held until they are on the device.
  static Result<void> fits_memory(const std::vector<StageLoaderServer::Sealed>& sealed) {
    int64_t need = 0;
    for (const StageLoaderServer::Sealed& shard : sealed) need += static_cast<int64_t>(shard.bytes);
    const Result<MemoryInfo> memory = memory_info();
    if (!memory.ok() || need <= memory.value().available.count) return {};
    return Error{ErrorCode::kNoSpace,
                 "the stage's shards take " + std::to_string(need) + " bytes and " +
                     std::to_string(memory.value().available.count) + " bytes of memory are free"};
  }

  ComputeThread& compute_;
  BoxKeyPair keys_;
  compute::DeviceInfo info_;
  StageNumber last_stage_ = 0;
  kj::ForkedPromise<void> ready_;  // Last: it sets the above.
};

}  // namespace

void run_worker(const WorkerOptions& options) {
  // Mesa's disk cache would be refused its files anyway; without it nothing is tried.
  setenv("MESA_SHADER_CACHE_DISABLE", "true", /*overwrite=*/0);
  try {
    kj::AsyncIoContext io = kj::setupAsyncIo();
    // Lives as long as the process, which ends below without unwinding it under the thread's feet.
    static ComputeThread compute;
    auto stream = io.lowLevelProvider->wrapSocketFd(options.rpc_fd,
                                                    kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP);
    rpc::Connection connection(kj::mv(stream), /*is_server=*/true,
                               capnp::Capability::Client(kj::heap<WorkerServer>(compute, options)));
    connection.closed().wait(io.waitScope);
    log_info("worker", "ends", {{"cause", "its pipe was closed"}});
    std::_Exit(0);
  } catch (const kj::Exception& exception) {
    log_error("worker", "failed", {{"cause", exception.getDescription().cStr()}});
  }
  std::_Exit(1);
}

std::string list_devices_json() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const compute::DeviceInfo& device : compute::list_devices()) {
    list.push_back({{"id", device.id},
                    {"selector", device.selector},
                    {"plane", device.plane},
                    {"name", device.name},
                    {"driver", device.driver},
                    {"memory_bytes", device.memory_bytes},
                    {"software", device.software}});
  }
  return list.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace shoal::worker
