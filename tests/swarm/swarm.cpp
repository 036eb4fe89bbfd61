#include "tests/swarm/swarm.h"

#include <capnp/message.h>
#include <kj/async-io.h>
#include <kj/debug.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/unit_runner.h"
#include "schema/login.h"
#include "schema/require.h"
#include "tests/coordinator/faulty_vfs.h"
#include "tests/swarm/job_calls.h"

namespace shoal::test {
namespace {

using client::CacheLimits;
using client::HostServer;
using client::ModelCache;
using client::ShardFetcher;
using client::StageWork;
using client::StepCost;
using client::UnitRunner;
using client::UnitStore;
using client::WorkList;

constexpr char kDevice[] = "cpu";
constexpr Millis kDay{86'400'000};
constexpr Millis kTroubleMax{7'200'000};  // Then nothing new goes wrong, so that it can end.
constexpr Millis kTimeMax = kDay;
constexpr int kTokensMax = 12;
constexpr uint64_t kJobSeed = 11;
const char* const kJob =
    "name = \"swarm\"\nseed = 11\n[[tasks]]\nname = \"write\"\nkind = \"generate\"\n"
    "model = \"toy\"\ninput = \"i\"\nmax_tokens = 12\n";

void swarm_settings(CoordinatorSettings& settings) {
  settings.ping_interval = Millis{10'000};
  settings.jobs.rules.ask_again_min = Millis{1'000};
  settings.jobs.rules.ask_again_max = Millis{10'000};
  settings.jobs.rules.claim_max = Millis{60'000};
  settings.jobs.rules.lease_slack = Millis{40'000};
  settings.jobs.rules.gone_grace = Millis{30'000};
  settings.jobs.rules.gather = Millis{5'000};
  settings.jobs.rules.unit_items_max = 4;
  settings.jobs.sequences_max = 2;
}

kj::Duration kj_time(Millis time) { return time.count * kj::MILLISECONDS; }
[[noreturn]] void throw_lost(const char* what) {
  kj::throwFatalException(
      kj::Exception(kj::Exception::Type::DISCONNECTED, __FILE__, __LINE__, kj::heapString(what)));
}

class Node;

class Swarm {
 public:
  explicit Swarm(const SwarmOptions& options);
  ~Swarm();
  SwarmOutcome run();

  Millis up_to(int64_t ms) { return Millis{static_cast<int64_t>(chance.below(ms)) + 1}; }
  // Whether what has that chance goes wrong.
  bool happens(double likely) { return in_trouble && chance.uniform() < likely; }
  // Runs beside everything else, and may fail.
  void add(kj::Promise<void> promise) {
    world.tasks().add(promise.catch_([](kj::Exception&&) {}));
  }

  World world;
  Random chance;
  SwarmOptions options;
  SwarmOutcome out;
  bool in_trouble = false;
  bool coordinator_up = true;
  uint64_t logins = 0;
  std::vector<std::unique_ptr<Node>> nodes;

 private:
  void move_time(Millis most);
  void pass(Millis time);
  void trouble();
  void stop_coordinator(bool in_order);
  void check(uint64_t job);
  std::string first_wrong_in_store();

  Millis fault_at_{0}, coordinator_back_at_{0};
};

// ---- One host ----------------------------------------------------------------------------------

class Node final : public HostServer::Needs, public UnitRunner::Needs {
 public:
  Node(Swarm& swarm, int number)
      : swarm_(swarm), number_(number), reported_(kj::Promise<void>(kj::READY_NOW).fork()) {
    step_time_ = Millis{100 + static_cast<int64_t>(swarm.chance.below(900))};
    lies_from_ = number == 1 ? static_cast<int>(swarm.chance.below(60)) : -1;
    start();
  }
  ~Node() noexcept(false) { kill(); }

  // The client's process, from its beginning to its end without a word.
  void start() {
    ++starts_;
    paused_ = false;
    life_ = std::make_unique<Life>();
    life_->cache = rpc::require(
        ModelCache::open(folder_ / "shards", CacheLimits{Bytes{1 << 24}, Bytes{0}}, clock_));
    life_->fetcher = std::make_unique<ShardFetcher>(*life_->cache, swarm_.world.timer, clock_);
    begin_worker();
    life_->runner =
        std::make_unique<UnitRunner>(swarm_.world.timer, clock_, *life_->cache, *life_->fetcher,
                                     *this, *this, UnitStore(folder_ / "units"), kDevice);
    life_->runner->allow(UnitRunner::Allowance::kYes);
    connecting_ = keep_connected().promise().eagerlyEvaluate(
        [](kj::Exception&& exception) { KJ_LOG(ERROR, exception); });
  }
  void kill() {
    connecting_ = nullptr;
    if (life_ != nullptr) life_->runner = nullptr;
    end_worker();
    cut();
    life_ = nullptr;
  }
  bool alive() const { return life_ != nullptr; }

  void cut() {
    line_ = nullptr;
    client_side_ = nullptr;
    server_side_ = nullptr;
    must_hang_up_ = false;
    if (life_ != nullptr && life_->runner != nullptr) life_->runner->look();
  }
  bool connected() const { return line_ != nullptr; }
  bool must_hang_up() const { return must_hang_up_; }

  // What its worker was given is gone; another one begins a little later.
  void kill_worker() {
    end_worker();
    report();
    life_->runner->allow(UnitRunner::Allowance::kSoon);
    swarm_.add(swarm_.world.timer.afterDelay(kj_time(swarm_.up_to(3'000)))
                   .then([this, generation = generation_] {
                     if (generation != generation_ || life_ == nullptr) return;
                     begin_worker();
                     report();
                     if (!paused_) life_->runner->allow(UnitRunner::Allowance::kYes);
                   }));
  }
  void pause() {
    if (paused_) return;
    paused_ = true;
    life_->runner->allow(UnitRunner::Allowance::kNo);
    report();
    swarm_.add(
        swarm_.world.timer.afterDelay(kj_time(swarm_.up_to(90'000))).then([this, starts = starts_] {
          if (starts != starts_ || life_ == nullptr) return;
          paused_ = false;
          report();
          life_->runner->allow(worker_alive_ ? UnitRunner::Allowance::kYes
                                             : UnitRunner::Allowance::kSoon);
        }));
  }
  void wake() { life_->runner->woke(); }
  void set_wall(Millis wall) { clock_.set_wall(wall); }
  Millis wall() const { return clock_.now_wall(); }
  void advance(Millis time) { clock_.advance(time); }
  uint64_t id() const { return id_; }

  // Of its worker.
  int generation() const { return generation_; }
  kj::Promise<void> device_works() {
    return workers_calls_.wrap(swarm_.world.timer.afterDelay(kj_time(step_time_)));
  }
  const BoxKeyPair& key() const { return *key_; }
  int32_t drawn(int32_t token) {
    if (lies_from_ < 0 || draws_++ < lies_from_) return token;
    ++swarm_.out.lies;
    return token == 40 ? 41 : 40;
  }

  // A desk that knows no faults, for what is sent once more; null while it is not connected.
  kj::Maybe<rpc::UnitDesk::Client> plain_desk() {
    if (line_ == nullptr) return nullptr;
    return line_->session.unitsRequest().send().getDesk();
  }
  Swarm& swarm() { return swarm_; }

 private:
  struct Life {
    WorkList list{[](const StageWork&, const Message&) {}};
    std::unique_ptr<ModelCache> cache;
    std::unique_ptr<ShardFetcher> fetcher;
    std::unique_ptr<UnitRunner> runner;
  };
  struct Login {
    rpc::HostSession::Client session, with_faults;
    uint64_t number = 0;
  };

  void begin_worker() {
    ++generation_;
    key_ = std::make_unique<BoxKeyPair>(BoxKeyPair::generate());
    worker_alive_ = true;
  }
  void end_worker() {
    ++generation_;
    worker_alive_ = false;
    workers_calls_.cancel("the worker ended");
  }

  kj::Promise<void> report_to(rpc::HostSession::Client session) {
    auto request = session.reportRequest();
    auto device = request.initDevices(1)[0];
    auto info = device.initInfo();
    info.setId(kDevice);
    info.setSelector(kDevice);
    info.setPlane("cpu");
    info.setName("a swarm's device");
    info.setMemoryBytes(1'000'000'000);
    if (worker_alive_) device.setWorkerKey(rpc::kj_bytes(key_->public_key().bytes));
    device.initSelfTest().setExact(true);
    auto benchmark = device.initBenchmark();
    benchmark.setWeightBytesPerSecond(1e9);
    benchmark.setFlopsPerSecond(1e9);
    benchmark.setMeasuredAtMs(1);
    device.setState(!worker_alive_ ? rpc::DeviceReport::State::STARTING
                    : paused_      ? rpc::DeviceReport::State::PAUSED
                                   : rpc::DeviceReport::State::READY);
    return request.send().ignoreResult();
  }
  void report() {
    if (line_ == nullptr) return;
    reported_ = report_to(line_->session).fork();
  }

  rpc::Task<void> dial();
  rpc::Task<void> keep_connected() {
    kj::Timer& timer = swarm_.world.timer;
    while (true) {
      if (line_ == nullptr && swarm_.coordinator_up && !must_hang_up_) {
        kj::Promise<void> dialling = dial();
        bool failed = false;
        try {
          co_await timer.timeoutAfter(20 * kj::SECONDS, kj::mv(dialling));
        } catch (const kj::Exception&) {
          failed = true;
        }
        if (failed) {
          must_hang_up_ = true;
        } else {
          life_->runner->look();
        }
      }
      co_await timer.afterDelay(kj_time(Millis{2'000} + swarm_.up_to(2'000)));
      if (line_ == nullptr || must_hang_up_) continue;
      kj::Promise<void> pinged = line_->session.pingRequest().send().ignoreResult();
      try {
        co_await timer.timeoutAfter(20 * kj::SECONDS, kj::mv(pinged));
      } catch (const kj::Exception&) {
        must_hang_up_ = true;  // By whom no call of the line is running in.
      }
    }
  }

  // HostServer::Needs
  Result<rpc::Worker::Client> worker_of(const std::string&) override;
  Result<void> consents(const std::string&, const JobClass&) override { return {}; }
  Result<void> may_fetch() override { return {}; }
  std::string coordinator_name(const std::string&) const override { return "swarm"; }
  WorkList& work_list() override { return life_->list; }
  void work_changed() override {}
  void step_began(const std::string&) override {}
  void step_ended(const std::string&) override {}
  void step_ran(const StageWork&, const StepCost&) override {}
  kj::Promise<void> may_send(Bytes) override { return kj::READY_NOW; }

  // UnitRunner::Needs
  std::vector<UnitRunner::Line> lines() override {
    std::vector<UnitRunner::Line> lines;
    if (line_ != nullptr) lines.push_back({swarm_.world.pin, line_->number, line_->with_faults});
    return lines;
  }
  bool attached(const std::string&) override { return true; }
  kj::Promise<void> devices_reported(const std::string&) override { return reported_.addBranch(); }
  ByteVector worker_key(const std::string&) override {
    return worker_alive_ ? to_vector(key_->public_key().bytes) : ByteVector();
  }
  std::optional<Millis> available(const std::string&) override { return {}; }
  bool may_use_network() override { return true; }
  Millis work_ahead() override { return Millis{60'000}; }
  Millis checkpoint_each() override { return Millis{2'000}; }
  void bytes_moved(Bytes, Bytes) override {}

  Swarm& swarm_;
  const int number_;
  TempDir folder_;
  ManualClock clock_;
  SigningKey identity_ = SigningKey::generate();
  std::unique_ptr<BoxKeyPair> key_;  // Of the worker. Never null once it began.
  kj::Canceler workers_calls_;
  Millis step_time_;
  int lies_from_ = -1;  // Draws before its first lie; -1: it is honest.
  int draws_ = 0;
  int generation_ = 0, starts_ = 0;  // Workers' beginnings and ends; client processes.
  bool worker_alive_ = false, paused_ = false, must_hang_up_ = false;
  uint64_t id_ = 0;
  std::unique_ptr<Life> life_;  // Null while the client does not run.
  kj::Own<rpc::Connection> server_side_, client_side_;
  std::unique_ptr<Login> line_;  // Null while it is not logged in.
  kj::ForkedPromise<void> reported_;
  kj::Promise<void> connecting_ = nullptr;
};

// ---- Its worker: a whole toy model, each step of which takes some virtual time -----------------

class SwarmStage final : public rpc::Stage::Server {
 public:
  SwarmStage(Node& node, uint32_t sequences)
      : node_(node),
        generation_(node.generation()),
        sequences_(sequences, ToyStage(0, kToyFragments - 1)) {}

  kj::Promise<void> shape(ShapeContext context) override {
    auto results = context.getResults();
    results.setBeginsWithTokens(true);
    results.setEndsWithLogits(true);
    results.setWidth(kToyWidth);
    results.setVocabulary(kToyVocabulary);
    return kj::READY_NOW;
  }

  kj::Promise<void> step(StepContext context) override {
    context.allowCancellation();
    if (generation_ != node_.generation()) throw_lost("its worker is gone");
    return node_.device_works().then([this, context]() mutable {
      const auto input = context.getParams().getInput();
      std::vector<std::vector<float>> rows;
      for (uint i = 0; i < input.getPositions().size(); ++i) {
        rows.push_back(
            sequences_.at(input.getSequences()[i])
                .step(input.getPositions()[i], {static_cast<float>(input.getTokens()[i])}));
        if (rows.back().empty())
          rpc::throw_error({ErrorCode::kInvalid, "earlier positions are missing"});
      }
      const auto draws = input.getDraws();
      auto tokens = context.getResults().initOutput().initTokens(draws.size());
      for (uint i = 0; i < draws.size(); ++i) {
        tokens.set(i, node_.drawn(ToyStage::draw(rows.at(draws[i].getRow()),
                                                 draws[i].getSampling().getSeed(),
                                                 draws[i].getPosition())));
      }
    });
  }

 private:
  Node& node_;
  const int generation_;
  std::vector<ToyStage> sequences_;
};

class SwarmLoader final : public rpc::StageLoader::Server {
 public:
  SwarmLoader(Node& node, rpc::StageSpec::Reader spec)
      : node_(node), sequences_(spec.getSequences()), found_(spec.getShards().size()) {
    for (const auto shard : spec.getShards())
      digests_.push_back(rpc::require(Digest::from_bytes(rpc::bytes_of(shard.getDigest()))));
  }
  kj::Promise<void> write(WriteContext context) override {
    const auto params = context.getParams();
    found_.at(params.getShard()).update(rpc::bytes_of(params.getBytes()));
    return kj::READY_NOW;
  }
  kj::Promise<void> finish(FinishContext context) override {
    for (size_t i = 0; i < digests_.size(); ++i) {
      if (found_[i].finish() != digests_[i])
        rpc::throw_error({ErrorCode::kCorrupt, "shard " + digests_[i].hex() + " is damaged"});
    }
    context.getResults().setStage(kj::heap<SwarmStage>(node_, sequences_));
    return kj::READY_NOW;
  }

 private:
  Node& node_;
  uint32_t sequences_;
  std::vector<DigestBuilder> found_;
  std::vector<Digest> digests_;
};

class SwarmWorker final : public rpc::Worker::Server {
 public:
  explicit SwarmWorker(Node& node) : node_(node) {}
  kj::Promise<void> openStage(OpenStageContext context) override {
    const auto spec = context.getParams().getSpec();
    for (const auto shard : spec.getShards()) {
      if (!open_sealed(node_.key(), rpc::bytes_of(shard.getSealedKey())).ok())
        rpc::throw_error({ErrorCode::kDenied, "the key was not sealed for this worker"});
    }
    context.getResults().setLoader(kj::heap<SwarmLoader>(node_, spec));
    return kj::READY_NOW;
  }

 private:
  Node& node_;
};

Result<rpc::Worker::Client> Node::worker_of(const std::string&) {
  if (!worker_alive_) return Error{ErrorCode::kUnavailable, "its worker starts"};
  return rpc::Worker::Client(kj::heap<SwarmWorker>(*this));
}

// ---- The wire between them: what it does to the calls of a desk --------------------------------

class FaultyDesk final : public capnp::Capability::Server {
 public:
  using Any = capnp::AnyPointer;

  FaultyDesk(Node& node, rpc::UnitDesk::Client inner)
      : node_(node), swarm_(node.swarm()), inner_(kj::mv(inner)) {}

  DispatchCallResult dispatchCall(uint64_t interface, uint16_t method,
                                  capnp::CallContext<Any, Any> context) override {
    return {pass(interface, method, context), false};
  }

 private:
  capnp::Request<Any, Any> request_for(uint64_t interface, uint16_t method,
                                       capnp::AnyPointer::Reader params) {
    auto request = inner_.typelessRequest(interface, method, nullptr);
    request.set(params);
    return request;
  }
  kj::Promise<void> wait(double likely) {
    if (!swarm_.happens(likely)) return kj::READY_NOW;
    ++swarm_.out.messages_hurt;
    return swarm_.world.timer.afterDelay(kj_time(swarm_.up_to(4'000)));
  }

  kj::Promise<void> pass(uint64_t interface, uint16_t method,
                         capnp::CallContext<Any, Any> context) {
    context.allowCancellation();
    constexpr uint16_t kSubmit = 3;
    if (method == kSubmit && swarm_.happens(0.2)) keep_for_later(context.getParams());
    if (swarm_.happens(0.04)) {  // It never arrives.
      ++swarm_.out.messages_hurt;
      return kj::NEVER_DONE;
    }
    auto request = request_for(interface, method, context.getParams());
    if (swarm_.happens(0.08)) {  // Twice, and one may overtake the other.
      ++swarm_.out.messages_hurt;
      swarm_.add(swarm_.world.timer.afterDelay(kj_time(swarm_.up_to(6'000)))
                     .then([again = request_for(interface, method, context.getParams())]() mutable {
                       return again.send().ignoreResult();
                     }));
    }
    const bool answer_lost = swarm_.happens(0.05);
    return wait(0.3).then(
        [this, request = kj::mv(request), answer_lost, context]() mutable -> kj::Promise<void> {
          return request.send().then(
              [this, answer_lost, context](capnp::Response<Any>&& response) mutable {
                if (answer_lost) {
                  ++swarm_.out.messages_hurt;
                  throw_lost("the answer was lost");
                }
                context.getResults().set(response);
                return wait(0.3);
              });
        });
  }

  // What a host once handed in comes again much later, whatever has become of it.
  void keep_for_later(capnp::AnyPointer::Reader params) {
    auto copy = kj::heap<capnp::MallocMessageBuilder>();
    copy->getRoot<capnp::AnyPointer>().set(params);
    ++swarm_.out.messages_hurt;
    swarm_.add(swarm_.world.timer.afterDelay(kj_time(swarm_.up_to(300'000)))
                   .then([&node = node_, copy = kj::mv(copy)]() mutable -> kj::Promise<void> {
                     kj::Maybe<rpc::UnitDesk::Client> desk = node.plain_desk();
                     KJ_IF_MAYBE (now, desk) {
                       auto request = now->submitRequest();
                       const auto params = copy->getRoot<rpc::UnitDesk::SubmitParams>().asReader();
                       request.setLeaseId(params.getLeaseId());
                       request.setOutput(params.getOutput());
                       return request.send().ignoreResult();
                     }
                     return kj::READY_NOW;
                   }));
  }

  Node& node_;
  Swarm& swarm_;
  rpc::UnitDesk::Client inner_;
};

// What a unit runner asks of a session.
class FaultySession final : public rpc::HostSession::Server {
 public:
  FaultySession(Node& node, rpc::HostSession::Client inner) : node_(node), inner_(kj::mv(inner)) {}

  kj::Promise<void> units(UnitsContext context) override {
    capnp::Capability::Client desk =
        kj::heap<FaultyDesk>(node_, inner_.unitsRequest().send().getDesk());
    context.getResults().setDesk(desk.castAs<rpc::UnitDesk>());
    return kj::READY_NOW;
  }
  kj::Promise<void> readShard(ReadShardContext context) override {
    const auto params = context.getParams();
    auto request = inner_.readShardRequest();
    request.setDigest(params.getDigest());
    request.setOffset(params.getOffset());
    request.setLength(params.getLength());
    return request.send().then(
        [context](auto&& response) mutable { context.getResults().setBytes(response.getBytes()); });
  }

 private:
  Node& node_;
  rpc::HostSession::Client inner_;
};

class QuietHost final : public rpc::Host::Server {
  kj::Promise<void> ping(PingContext) override { return kj::READY_NOW; }
};

rpc::Task<void> Node::dial() {
  auto pipe = kj::newTwoWayPipe();
  auto limit = kj::refcounted<rpc::ReceiveLimit>(limits::kLoginMessageBytesMax);
  rpc::Peer peer{"10.0." + std::to_string(number_) + ".1", kj::addRef(*limit)};
  server_side_ = kj::heap<rpc::Connection>(
      kj::mv(pipe.ends[0]), true, swarm_.world.coordinator->host_door(kj::mv(peer)), kj::mv(limit));
  client_side_ = kj::heap<rpc::Connection>(kj::mv(pipe.ends[1]), false, nullptr);
  auto door = client_side_->bootstrap().castAs<rpc::Coordinator>();
  auto hello = door.helloRequest();
  hello.setProtocolVersion(rpc::PROTOCOL_VERSION);
  auto greeting = co_await hello.send();
  auto request = door.loginRequest();
  auto login = request.initLogin();
  const Signature signature =
      identity_.sign(rpc::login_message(rpc::bytes_of(greeting.getNonce()), swarm_.world.pin));
  login.setPublicKey(rpc::kj_bytes(identity_.public_key().bytes));
  login.setSignature(rpc::kj_bytes(signature));
  login.setInvite(swarm_.world.invite);
  login.setHostName("node " + std::to_string(number_));
  login.setSystem("test");
  login.setVersion("1");
  request.setHost(kj::heap<QuietHost>());
  auto answer = co_await request.send();
  rpc::HostSession::Client session = answer.getSession();
  id_ = answer.getHostId();
  kj::Promise<void> reporting = report_to(session);
  co_await kj::mv(reporting);
  reported_ = kj::Promise<void>(kj::READY_NOW).fork();
  line_ = std::make_unique<Login>(
      Login{session, kj::heap<FaultySession>(*this, session), ++swarm_.logins});
}

// ---- The whole ---------------------------------------------------------------------------------

Swarm::Swarm(const SwarmOptions& options)
    : world(swarm_settings), chance(options.seed), options(options) {
  world.stop();
  world.store_vfs = faulty_vfs();
  fail_writes_after(-1);
  world.start();
  for (int i = 0; i < options.hosts; ++i) nodes.push_back(std::make_unique<Node>(*this, i));
}

Swarm::~Swarm() {
  fail_writes_after(-1);
  for (auto& node : nodes) node->kill();
}

// All that can happen now happens; then time goes on to what happens next.
void Swarm::move_time(Millis most) {
  world.settle();
  for (auto& node : nodes) {
    if (node->must_hang_up()) node->cut();
  }
  Millis step = most;
  KJ_IF_MAYBE (next, world.timer.nextEvent()) {
    const int64_t away = (*next - world.timer.now() + 999 * kj::MICROSECONDS) / kj::MILLISECONDS;
    step = std::clamp(Millis{away}, Millis{1}, most);
  }
  world.clock.advance(step);
  for (auto& node : nodes) node->advance(step);
  world.timer.advanceTo(world.timer.now() + kj_time(step));
}

void Swarm::pass(Millis time) {
  const Millis until = world.clock.now_monotonic() + time;
  while (world.clock.now_monotonic() < until) move_time(until - world.clock.now_monotonic());
  world.settle();
}

void Swarm::stop_coordinator(bool in_order) {
  if (in_order) {
    ++out.coordinators_stopped;
  } else {
    // From here on nothing more reaches the disk, in the middle of whatever is being written.
    ++out.coordinators_killed;
    fail_writes_after(static_cast<int>(chance.below(4)));
    pass(up_to(8'000));
  }
  coordinator_up = false;
  for (auto& node : nodes) node->cut();
  world.settle();
  world.stop();
  fail_writes_after(-1);
  coordinator_back_at_ = world.clock.now_monotonic() + up_to(60'000);
}

// One thing that goes wrong.
void Swarm::trouble() {
  Node& node = *nodes[chance.below(nodes.size())];
  const auto dice = chance.below(100);
  if (dice < 8) {
    if (coordinator_up) stop_coordinator(dice < 4);
  } else if (dice < 12) {
    ++out.clock_jumps;
    const Millis jump{(dice % 2 == 0 ? 30 : -30) * kDay.count};
    if (dice < 10) {
      world.clock.set_wall(world.clock.now_wall() + jump);
    } else {
      node.set_wall(node.wall() + jump);
    }
  } else if (!node.alive()) {
    return;
  } else if (dice < 40) {
    ++out.lines_cut;
    node.cut();
  } else if (dice < 60) {
    ++out.clients_killed;
    node.kill();
    add(world.timer.afterDelay(kj_time(up_to(60'000))).then([&node] {
      if (!node.alive()) node.start();
    }));
  } else if (dice < 72) {
    ++out.workers_killed;
    node.kill_worker();
  } else if (dice < 90) {
    node.pause();
  } else {
    node.wake();
  }
}

std::string Swarm::first_wrong_in_store() {
  const auto store = rpc::require(Store::open(world.folder / "data"));
  rpc::require(store->check_integrity());
  const std::pair<const char*, const char*> kNone[] = {
      {"a result is confirmed that is not its unit's",
       "SELECT l.id FROM unit_lease l JOIN unit u ON u.id = l.unit_id "
       "WHERE l.result = 'confirmed' AND l.digest <> u.digest"},
      {"a host is paid twice for a unit",
       "SELECT unit_id FROM unit_lease WHERE result = 'confirmed' "
       "GROUP BY unit_id, host_id HAVING count(*) > 1"},
      {"a unit is not done", "SELECT id FROM unit WHERE state <> 'done'"},
      {"items are in two units, or in none",
       "SELECT id FROM (SELECT id, first_item, "
       "lag(first_item + item_count, 1, 0) OVER (ORDER BY first_item) AS before FROM unit) "
       "WHERE first_item <> before"},
      {"a unit's result is not a confirmed one",
       "SELECT u.id FROM unit u LEFT JOIN unit_lease l ON l.id = u.lease_id "
       "WHERE l.result IS NULL OR l.result <> 'confirmed'"},
      {"a confirmed result is not in the ledger as confirmed",
       "SELECT l.id FROM unit_lease l WHERE l.result = 'confirmed' AND NOT EXISTS "
       "(SELECT 1 FROM ledger g JOIN receipt r ON r.ledger_id = g.id "
       "WHERE g.lease_id = l.id AND r.verdict = 'confirmed')"},
      {"the ledger confirms what no result is",
       "SELECT g.lease_id FROM ledger g JOIN receipt r ON r.ledger_id = g.id "
       "JOIN unit_lease l ON l.id = g.lease_id "
       "WHERE r.verdict = 'confirmed' AND l.result <> 'confirmed'"},
  };
  for (const auto& [what, sql] : kNone) {
    Query query = store->query(sql);
    if (rpc::require(query.row()))
      return std::string(what) + ": " + std::to_string(query.integer(0));
  }
  Query items = store->query("SELECT coalesce(sum(item_count), 0) FROM unit");
  rpc::require(items.row());
  if (items.integer(0) != options.prompts) return "units have another number of items";
  Query leases =
      store->query("SELECT count(*), coalesce(sum(end_reason <> 'submitted'), 0) FROM unit_lease");
  rpc::require(leases.row());
  out.leases = leases.integer(0);
  out.late = leases.integer(1);
  return "";
}

void Swarm::check(uint64_t job) {
  const auto lines = world.run(read_output(world.admin(), job).promise());
  if (lines.size() != static_cast<size_t>(options.prompts)) {
    out.wrong = "the output has " + std::to_string(lines.size()) + " lines";
    return;
  }
  for (int i = 0; i < options.prompts; ++i) {
    const auto line = nlohmann::json::parse(lines[static_cast<size_t>(i)]);
    if (!line.contains("tokens") ||
        line["tokens"].get<std::vector<int32_t>>() != numbered_answer(i, kTokensMax, kJobSeed)) {
      out.wrong = "item " + std::to_string(i) + " came out wrong: " + line.dump();
      return;
    }
  }
  {
    const auto response =
        world.run(kj::Promise<capnp::Response<rpc::Admin::ReconcileLedgerResults>>(
            world.admin().reconcileLedgerRequest().send()));
    const auto report = response.getReport();
    if (report.getProblemCount() > 0)
      out.wrong = std::string("the ledger: ") + report.getProblems()[0].cStr();
  }
  if (!out.wrong.empty()) return;
  for (auto& node : nodes) node->kill();
  world.settle();
  world.stop();
  world.coordinator = nullptr;
  out.wrong = first_wrong_in_store();
}

SwarmOutcome Swarm::run() {
  world.run(publish_toy(world.admin(), make_toy_model("toy", 100, 1'000'000)).promise());
  pass(Millis{10'000});
  world.run(trust_host(world.admin(), nodes[0]->id()).promise());
  const uint64_t job =
      world.run(submit_job(world.admin(), kJob, numbered_prompts(options.prompts)).promise());

  in_trouble = options.faults;
  const Millis began = world.clock.now_monotonic();
  SeenJob seen;
  while (!seen.ended && world.clock.now_monotonic() - began < kTimeMax) {
    const Millis now = world.clock.now_monotonic();
    if (!coordinator_up && now >= coordinator_back_at_) {
      world.start();
      coordinator_up = true;
    }
    if (now - began > kTroubleMax) in_trouble = false;
    if (in_trouble && now >= fault_at_) {
      trouble();
      fault_at_ = world.clock.now_monotonic() + up_to(8'000);
    }
    pass(Millis{1'000});
    if (coordinator_up) seen = world.run(see_job(world.admin(), job).promise());
  }
  out.took = world.clock.now_monotonic() - began;
  in_trouble = false;
  if (!coordinator_up) {
    world.start();
    coordinator_up = true;
  }
  if (!seen.done || seen.items_quarantined > 0) {
    out.wrong = "the job is not done: " + std::to_string(seen.items_done) + " of " +
                std::to_string(seen.items) + " items, " + std::to_string(seen.items_pending) +
                " pending, " + std::to_string(seen.items_quarantined) + " put aside";
    return out;
  }
  pass(Millis{400'000});  // What was kept for later comes now.
  check(job);
  return out;
}

}  // namespace

SwarmOutcome run_swarm(const SwarmOptions& options) { return Swarm(options).run(); }

}  // namespace shoal::test
