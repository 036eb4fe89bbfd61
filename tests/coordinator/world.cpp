#include "tests/coordinator/world.h"

#include <capnp/message.h>
#include <kj/async-io.h>
#include <kj/debug.h>

#include <cmath>
#include <limits>

#include "coordinator/data_folder.h"
#include "schema/login.h"

namespace shoal::test {
namespace {

constexpr Millis kTick{10};
constexpr uint16_t kFakePort = 7412;
constexpr Millis kPingInterval{1000};
constexpr Millis kVirtualTimeMax{600'000};

bool is_finite(ByteSpan hidden) {
  for (size_t at = 0; at < hidden.size(); at += sizeof(float)) {
    if (!std::isfinite(std::bit_cast<float>(load_le<uint32_t>(hidden.data() + at)))) return false;
  }
  return true;
}

class FakeStageServer final : public rpc::DirectStage::Server {
 public:
  FakeStageServer(FakeHost& host, int first, int last) : host_(host), stage_(first, last) {
    host_.stages_open += 1;
    host_.stages_opened += 1;
  }
  ~FakeStageServer() noexcept(false) {
    host_.stages_open -= 1;
    leave(inputs_);
    leave(outputs_);
  }

  kj::Promise<void> shape(ShapeContext context) override {
    auto results = context.getResults();
    results.setBeginsWithTokens(stage_.is_head());
    results.setEndsWithLogits(stage_.is_tail());
    results.setWidth(kToyWidth);
    results.setVocabulary(stage_.is_tail() ? kToyVocabulary : 0);
    return kj::READY_NOW;
  }

  kj::Promise<void> step(StepContext context) override {
    context.allowCancellation();
    bool faulty = false;
    kj::Promise<void> begun = begin_step(context.getParams().getInput().getPositions()[0], faulty);
    return begun.then([this, context = kj::mv(context), faulty]() mutable {
      const auto input = context.getParams().getInput();
      const ByteSpan hidden = input.isHidden() ? rpc::bytes_of(input.getHidden()) : ByteSpan();
      answer(input, hidden, context.getResults().initOutput(), faulty);
    });
  }

  // ---- With neighbours

  kj::Promise<void> expect(ExpectContext context) override {
    require_direct(host_.options.listens);
    const auto end = context.getParams().getEnd();
    auto path = kj::refcounted<FakePath>();
    World::Expected& expected = host_.world.expected_paths[token_of(end)];
    expected.path = kj::addRef(*path);
    expected.host = &host_;
    take(end.getSide(), kj::mv(path));
    return kj::READY_NOW;
  }

  kj::Promise<void> dial(DialContext context) override {
    require_direct(true);
    const auto params = context.getParams();
    const auto found = host_.world.expected_paths.find(token_of(params.getEnd()));
    if (found == host_.world.expected_paths.end() || found->second.host->unreachable ||
        params.getPort() != kFakePort || params.getPin() != found->second.host->options.name) {
      rpc::throw_error({ErrorCode::kUnavailable, "nothing listens there"});
    }
    found->second.host->dialled += 1;
    take(params.getEnd().getSide(), kj::mv(found->second.path));
    host_.world.expected_paths.erase(found);
    context.getResults().setRoundTripMicros(10);
    return kj::READY_NOW;
  }

  kj::Promise<void> stepDirect(StepDirectContext context) override {
    require_direct(true);
    context.allowCancellation();
    bool faulty = false;
    kj::Promise<void> begun = begin_step(context.getParams().getInput().getPositions()[0], faulty);
    return begun.then([this, context = kj::mv(context), faulty]() mutable -> kj::Promise<void> {
      const auto params = context.getParams();
      if (!params.getFromNeighbour()) {
        const auto input = params.getInput();
        const ByteSpan hidden = input.isHidden() ? rpc::bytes_of(input.getHidden()) : ByteSpan();
        return answer_direct(context, to_vector(hidden), faulty);
      }
      return next_block().then(
          [this, context = kj::mv(context), faulty](kj::Maybe<FakePath::Block> came) mutable {
            KJ_IF_MAYBE (block, came) {
              if (!is_finite(block->hidden)) {
                context.getResults().initOutput().setNotDone("the rows are not finite");
                return kj::Promise<void>(kj::READY_NOW);
              }
              return answer_direct(context, block->hidden, faulty);
            }
            context.getResults().initOutput().setNotDone("the neighbour has gone");
            return kj::Promise<void>(kj::READY_NOW);
          });
    });
  }

  kj::Promise<void> outputs(OutputsContext context) override {
    require_direct(true);
    const auto params = context.getParams();
    ByteVector hidden;
    for (uint32_t i = 0; i < params.getRows(); ++i) {
      const auto row = passed_.find(params.getFirst() + i);
      if (row == passed_.end() || errs(PathFault::kHandsNothing, params.getFirst())) {
        rpc::throw_error({ErrorCode::kNotFound, "those rows were not passed on"});
      }
      hidden.insert(hidden.end(), row->second.begin(), row->second.end());
    }
    if (errs(PathFault::kHandsOther, params.getFirst() + params.getRows() - 1)) {
      hidden.back() ^= std::byte{1};
    }
    context.getResults().setHidden(rpc::kj_bytes(hidden));
    return kj::READY_NOW;
  }

 private:
  static std::string token_of(rpc::PathEnd::Reader end) {
    return hex_encode(rpc::bytes_of(end.getToken()));
  }
  void require_direct(bool allowed) const {
    if (!host_.options.direct || !allowed) {
      kj::throwFatalException(KJ_EXCEPTION(UNIMPLEMENTED, "an old host"));
    }
  }
  bool errs(PathFault fault, int64_t position) const {
    return host_.path_fault == fault && position >= host_.path_fault_from;
  }
  static void leave(kj::Own<FakePath>& path) {
    if (path.get() == nullptr) return;
    path->over = true;
    path->wake();
    path = nullptr;
  }
  void take(rpc::PathEnd::Side side, kj::Own<FakePath> path) {
    kj::Own<FakePath>& own = side == rpc::PathEnd::Side::INPUTS ? inputs_ : outputs_;
    leave(own);
    own = kj::mv(path);
    if (side == rpc::PathEnd::Side::OUTPUTS) passed_.clear();
  }
  // Empty when none can come any more.
  kj::Promise<kj::Maybe<FakePath::Block>> next_block() {
    if (inputs_.get() == nullptr) return kj::Maybe<FakePath::Block>();
    auto pair = kj::newPromiseAndFulfiller<kj::Maybe<FakePath::Block>>();
    inputs_->waiting.push_back(kj::mv(pair.fulfiller));
    inputs_->wake();
    return kj::mv(pair.promise);
  }

  kj::Promise<void> answer_direct(StepDirectContext context, const ByteVector& hidden,
                                  bool faulty) {
    const auto params = context.getParams();
    capnp::MallocMessageBuilder message;
    auto computed = message.initRoot<rpc::StepOutput>();
    answer(params.getInput(), hidden, computed, faulty);
    auto output = context.getResults().initOutput();
    if (params.getFromNeighbour()) {
      output.setReceived(rpc::kj_bytes(digest_of(hidden).bytes));
    }
    if (!params.getToNeighbour()) {
      output.setOutput(computed);
      return kj::READY_NOW;
    }
    ByteVector rows = to_vector(rpc::bytes_of(computed.getHidden()));
    const uint32_t first = params.getInput().getPositions()[0];
    const uint32_t count = params.getInput().getPositions().size();
    for (uint32_t i = 0; i < count; ++i) {
      const auto row = rows.begin() + static_cast<ptrdiff_t>(i * kToyWidth * sizeof(float));
      passed_[first + i] = ByteVector(row, row + kToyWidth * sizeof(float));
    }
    host_.passed_rows += count;
    output.setPassedOn(rpc::kj_bytes(digest_of(rows).bytes));
    if (errs(PathFault::kOtherRows, first)) rows.front() ^= std::byte{1};
    if (outputs_.get() != nullptr && !errs(PathFault::kNothing, first)) {
      outputs_->blocks.push_back({first, std::move(rows)});
      outputs_->wake();
    }
    return kj::READY_NOW;
  }

  // Waits for as long as a step takes, and errs where it is to.
  kj::Promise<void> begin_step(uint32_t first, bool& faulty) {
    faulty = host_.fault != Fault::kNone && host_.fault != Fault::kNoOpen &&
             host_.fault != Fault::kDeny && host_.steps++ == host_.fault_at_step;
    if (faulty) {
      if (host_.fault == Fault::kDrop) {
        host_.world.tasks().add(kj::evalLater([&host = host_] { host.kill(); }));
        return kj::NEVER_DONE;
      }
      if (host_.fault == Fault::kHang) host_.silent = true;
      if (host_.fault == Fault::kHang || host_.fault == Fault::kStall) return kj::NEVER_DONE;
      if (host_.fault == Fault::kRefuse)
        rpc::throw_error({ErrorCode::kNonFinite,
                          host_.refusal.empty() ? "an op made an infinity" : host_.refusal});
    }
    if (host_.before_answer) return host_.before_answer(first);
    if (host_.step_ms == 0) return kj::READY_NOW;
    return host_.world.timer.afterDelay(static_cast<int64_t>(host_.step_ms) * kj::MILLISECONDS);
  }

  bool lies_at(uint32_t position) const {
    return host_.lies_from >= 0 && position >= host_.lies_from;
  }

  void answer(rpc::StepInput::Reader input, ByteSpan hidden_rows, rpc::StepOutput::Builder output,
              bool faulty) {
    const auto positions = input.getPositions();
    std::vector<std::vector<float>> rows;
    for (uint i = 0; i < positions.size(); ++i) {
      std::vector<float> row(kToyWidth);
      if (stage_.is_head()) {
        row = {static_cast<float>(input.getTokens()[i])};
      } else {
        for (size_t k = 0; k < kToyWidth; ++k) {
          row[k] =
              std::bit_cast<float>(load_le<uint32_t>(hidden_rows.data() + (i * kToyWidth + k) * 4));
        }
      }
      row = stage_.step(positions[i], row);
      if (row.empty()) rpc::throw_error({ErrorCode::kInvalid, "earlier positions are missing"});
      rows.push_back(row);
    }
    if (stage_.is_tail()) {
      const auto draws = input.getDraws();
      auto tokens = output.initTokens(draws.size());
      for (uint i = 0; i < draws.size(); ++i) {
        tokens.set(i, ToyStage::draw(rows[draws[i].getRow()], draws[i].getSampling().getSeed(),
                                     draws[i].getPosition()));
        if (lies_at(positions[draws[i].getRow()])) tokens.set(i, tokens[i] == 40 ? 41 : 40);
        if (faulty && host_.fault == Fault::kToken) tokens.set(i, kToyVocabulary);
      }
      return;
    }
    ByteWriter hidden;
    for (uint i = 0; i < positions.size(); ++i) {
      if (lies_at(positions[i])) rows[i][1] += 1;
    }
    for (const auto& row : rows) {
      for (const float value : row) {
        hidden.f32(faulty && host_.fault == Fault::kNonFinite
                       ? std::numeric_limits<float>::infinity()
                       : value);
      }
    }
    ByteVector bytes = hidden.take();
    if (faulty && host_.fault == Fault::kShort) bytes.pop_back();
    output.setHidden(rpc::kj_bytes(bytes));
  }

  FakeHost& host_;
  ToyStage stage_;
  kj::Own<FakePath> inputs_, outputs_;     // Null: there is no path.
  std::map<uint32_t, ByteVector> passed_;  // Rows, by position.
};

class FakeHostServer final : public rpc::DirectHost::Server {
 public:
  explicit FakeHostServer(FakeHost& host) : host_(host) {}

  kj::Promise<void> openStage(OpenStageContext context) override {
    const auto lease = context.getParams().getLease();
    const auto spec = lease.getSpec();
    if (host_.fault == Fault::kDeny)
      rpc::throw_error({ErrorCode::kDenied, "the owner of this host does not allow it"});
    const bool is_full = host_.full_opens > 0 && host_.full_opens-- > 0;
    if (host_.fault == Fault::kNoOpen || is_full)
      rpc::throw_error(
          {ErrorCode::kNoSpace, host_.refusal.empty() ? "no room on this device" : host_.refusal});
    for (const auto shard : spec.getShards()) {
      auto key = open_sealed(host_.worker, rpc::bytes_of(shard.getSealedKey()));
      KJ_REQUIRE(key.ok(), "the key is not for this worker");
      host_.keys_seen.push_back(std::move(key).value());
    }
    const int first = static_cast<int>(lease.getFirstFragment());
    const int last = first + static_cast<int>(spec.getShards().size()) - 1;
    kj::Promise<void> read = kj::READY_NOW;
    if (host_.read_shards_on_open) {
      for (const auto shard : spec.getShards()) {
        auto request = KJ_ASSERT_NONNULL(host_.session).readShardRequest();
        request.setDigest(shard.getDigest());
        request.setLength(1024);
        read = read.then(
            [request = kj::mv(request)]() mutable { return request.send().ignoreResult(); });
      }
    }
    return read.then([this, first, last, context]() mutable {
      context.getResults().setStage(kj::heap<FakeStageServer>(host_, first, last));
    });
  }

  kj::Promise<void> ping(PingContext) override {
    if (host_.silent) return kj::NEVER_DONE;
    return kj::READY_NOW;
  }

  kj::Promise<void> door(DoorContext context) override {
    if (!host_.options.direct) kj::throwFatalException(KJ_EXCEPTION(UNIMPLEMENTED, "an old host"));
    auto results = context.getResults();
    results.setDials(true);
    if (host_.options.listens) {
      results.setPort(kFakePort);
      results.setPin(host_.options.name);
    }
    return kj::READY_NOW;
  }

 private:
  FakeHost& host_;
};

// Collects what a generate call streams.
class SinkServer final : public rpc::TokenSink::Server {
 public:
  SinkServer(Generated& out, std::function<void(size_t)> on_token)
      : out_(out), on_token_(std::move(on_token)) {}

  kj::Promise<void> token(TokenContext context) override {
    const auto params = context.getParams();
    out_.streamed.push_back(params.getId());
    out_.streamed_text += params.getText().cStr();
    if (on_token_) on_token_(out_.streamed.size());
    return kj::READY_NOW;
  }
  kj::Promise<void> stages(StagesContext) override { return kj::READY_NOW; }
  kj::Promise<void> failover(FailoverContext context) override {
    const auto event = context.getParams().getEvent();
    out_.streamed_failovers.push_back({event.getStage(), event.getAtToken(), event.getGapMs(),
                                       event.getCause().cStr(),
                                       event.getReplacement().getHostName().cStr()});
    return kj::READY_NOW;
  }

 private:
  Generated& out_;
  std::function<void(size_t)> on_token_;
};

}  // namespace

class World::Errors final : public kj::TaskSet::ErrorHandler {
 public:
  void taskFailed(kj::Exception&& exception) override { KJ_LOG(ERROR, exception); }
};

FakeHost::FakeHost(World& world, HostOptions options) : world(world), options(std::move(options)) {}
FakeHost::~FakeHost() noexcept(false) { kill(); }

void FakeHost::connect() {
  kill();
  auto pipe = kj::newTwoWayPipe();
  auto limit = kj::refcounted<rpc::ReceiveLimit>(limits::kLoginMessageBytesMax);
  rpc::Peer peer{"127.0.0.1", kj::addRef(*limit)};
  server_side_ = kj::heap<rpc::Connection>(
      kj::mv(pipe.ends[0]), true, world.coordinator->host_door(kj::mv(peer)), kj::mv(limit));
  rpc::Host::Client self = kj::heap<FakeHostServer>(*this);
  client_side_ = kj::heap<rpc::Connection>(kj::mv(pipe.ends[1]), false, nullptr);
  auto door = client_side_->bootstrap().castAs<rpc::Coordinator>();
  auto hello = door.helloRequest();
  hello.setProtocolVersion(rpc::PROTOCOL_VERSION);
  const auto greeting =
      world.run(kj::Promise<capnp::Response<rpc::Coordinator::HelloResults>>(hello.send()));
  auto request = door.loginRequest();
  auto login = request.initLogin();
  const Signature signature =
      identity.sign(rpc::login_message(rpc::bytes_of(greeting.getNonce()), world.pin));
  login.setPublicKey(rpc::kj_bytes(identity.public_key().bytes));
  login.setSignature(rpc::kj_bytes(signature));
  login.setInvite(options.invite.empty() ? world.invite : options.invite);
  login.setHostName(options.name);
  login.setSystem("test");
  login.setVersion("1");
  request.setHost(self);
  auto response =
      world.run(kj::Promise<capnp::Response<rpc::Coordinator::LoginResults>>(request.send()));
  session = response.getSession();
  id = response.getHostId();
  trusted = response.getTrusted();
  silent = false;
  report();
}

void FakeHost::report() { world.run(report_promise()); }

kj::Promise<void> FakeHost::deny_promise(std::vector<JobClass> denied) {
  auto request = KJ_ASSERT_NONNULL(session).setConsentRequest();
  auto list = request.initDenied(static_cast<uint>(denied.size()));
  for (uint i = 0; i < list.size(); ++i) write_job_class(denied[i], list[i]);
  return request.send().ignoreResult();
}

capnp::Response<rpc::HostSession::PingResults> FakeHost::ping() {
  return world.run(kj::Promise<capnp::Response<rpc::HostSession::PingResults>>(
      KJ_ASSERT_NONNULL(session).pingRequest().send()));
}

std::vector<Receipt> FakeHost::receipts(uint64_t after, uint32_t count_max) {
  auto request = KJ_ASSERT_NONNULL(session).readReceiptsRequest();
  request.setAfterNumber(after);
  request.setCountMax(count_max);
  const auto response = world.run(
      kj::Promise<capnp::Response<rpc::HostSession::ReadReceiptsResults>>(request.send()));
  std::vector<Receipt> receipts;
  for (const auto receipt : response.getReceipts()) receipts.push_back(read_receipt(receipt));
  return receipts;
}

kj::Promise<void> FakeHost::report_promise() {
  auto request = KJ_ASSERT_NONNULL(session).reportRequest();
  auto devices = request.initDevices(static_cast<uint>(options.devices.size()));
  for (uint i = 0; i < devices.size(); ++i) {
    auto info = devices[i].initInfo();
    info.setId(options.devices[i]);
    info.setSelector(options.devices[i]);
    info.setPlane("cpu");
    info.setName("Fake " + options.devices[i]);
    info.setMemoryBytes(options.memory);
    if (options.has_worker) devices[i].setWorkerKey(rpc::kj_bytes(worker.public_key().bytes));
    devices[i].initSelfTest().setExact(options.exact);
    auto benchmark = devices[i].initBenchmark();
    benchmark.setWeightBytesPerSecond(options.bytes_per_second);
    benchmark.setFlopsPerSecond(1e9);
    benchmark.setMeasuredAtMs(1);
    devices[i].setState(options.state);
    devices[i].setAvailableMs(options.available_ms);
  }
  return request.send().ignoreResult();
}

void FakeHost::kill() {
  session = nullptr;
  server_side_ = nullptr;
  client_side_ = nullptr;
}

ByteVector FakeHost::read_shard(const Digest& digest, uint64_t offset, uint32_t length) {
  auto request = KJ_ASSERT_NONNULL(session).readShardRequest();
  request.setDigest(rpc::kj_bytes(digest.bytes));
  request.setOffset(offset);
  request.setLength(length);
  const auto response =
      world.run(kj::Promise<capnp::Response<rpc::HostSession::ReadShardResults>>(request.send()));
  return to_vector(rpc::bytes_of(response.getBytes()));
}

World::World(std::function<void(CoordinatorSettings&)> adjust)
    : adjust_(std::move(adjust)),
      errors_(std::make_unique<Errors>()),
      tasks_(std::make_unique<kj::TaskSet>(*errors_)) {
  {
    const DataFolder made = make_data_folder(folder / "data", "").value();
    pin = made.pin;
    invite = make_invite(*made.store, clock, Millis{3'600'000}, 1000).value();
  }
  start();
}

World::~World() noexcept(false) {
  for (auto& host : hosts) host->kill();
  tasks_.reset();
  settle();
  hosts.clear();
}

kj::TaskSet& World::tasks() { return *tasks_; }

void World::start() {
  DataFolder data = open_data_folder(folder / "data", "").value();
  // Who wants these says so: they open stages, and take steps of hosts.
  data.settings.session.audits_max = 0;
  data.settings.session.standbys_max = 0;
  if (adjust_) adjust_(data.settings);
  if (store_vfs != nullptr) {
    data.store = nullptr;
    data.store = Store::open(folder / "data", {.vfs = store_vfs}).value();
  }
  auto opened = Coordinator::open(std::move(data), timer, clock, random);
  if (!opened.ok()) rpc::throw_error(opened.error());
  coordinator = std::move(opened).value();
}

void World::stop() {
  for (auto& host : hosts) host->kill();
  settle();
  coordinator.reset();
}

void World::kill() {
  // What a kill leaves is what the disk has now.
  std::filesystem::copy(folder / "data", folder / "killed",
                        std::filesystem::copy_options::recursive);
  stop();
  std::filesystem::remove_all(folder / "data");
  std::filesystem::rename(folder / "killed", folder / "data");
}

FakeHost& World::add_host(const std::string& name, HostOptions options) {
  options.name = name;
  hosts.push_back(std::make_unique<FakeHost>(*this, std::move(options)));
  hosts.back()->connect();
  return *hosts.back();
}

void World::trust(const FakeHost& host) {
  auto request = admin().setHostStandingRequest();
  request.setHostId(host.id);
  request.setStanding(rpc::HostInfo::Standing::TRUSTED);
  run(request.send().ignoreResult());
}

void World::publish(const ToyModel& model, const std::string& purpose, const std::string& group) {
  auto request = admin().publishModelRequest();
  request.setManifest(model.manifest);
  request.setPurpose(purpose);
  request.setGroup(group);
  auto keys = request.initKeys(static_cast<uint>(model.keys.size()));
  for (uint i = 0; i < keys.size(); ++i) keys.set(i, rpc::kj_bytes(model.keys[i].view()));
  auto upload = run(kj::Promise<capnp::Response<rpc::Admin::PublishModelResults>>(request.send()))
                    .getUpload();
  for (uint i = 0; i < model.shards.size(); ++i) {
    ByteSpan rest = model.shards[i];
    while (!rest.empty()) {
      const ByteSpan piece = rest.first(std::min<size_t>(rest.size(), limits::kChunkBytesMax));
      auto write = upload.writeRequest();
      write.setShard(i);
      write.setBytes(rpc::kj_bytes(piece));
      run(write.send());
      rest = rest.subspan(piece.size());
    }
  }
  run(upload.finishRequest().send().ignoreResult());
}

void World::tick(Millis time) {
  clock.advance(time);
  timer.advanceTo(timer.now() + time.count * kj::MILLISECONDS);
  since_ping_ += time;
  if (since_ping_ < kPingInterval) return;
  since_ping_ = {};
  for (auto& host : hosts) {
    if (host->silent) continue;
    KJ_IF_MAYBE (session, host->session) {
      tasks_->add(session->pingRequest().send().ignoreResult().catch_([](kj::Exception&&) {}));
    }
  }
}

void World::move_time_until(const std::function<bool()>& done) {
  Millis passed;
  while (!done()) {
    KJ_REQUIRE(passed < kVirtualTimeMax, "nothing happens any more");
    tick(kTick);
    passed += kTick;
  }
}

void World::pass_time(Millis time) {
  for (Millis passed; passed < time; passed += kTick) {
    settle();
    tick(kTick);
  }
  settle();
}

void World::settle() {
  // Long enough for any chain of messages that needs no time.
  kj::Promise<void> never = kj::NEVER_DONE;
  never.poll(wait_scope);
}

kj::Promise<Generated> World::generate_promise(GenerateAsk ask) {
  auto out = kj::heap<Generated>();
  auto call = admin().generateRequest();
  auto request = call.initRequest();
  request.setModel(ask.model);
  request.setPrompt(ask.prompt);
  auto chat = request.initChat(static_cast<uint>(ask.chat.size()));
  for (uint i = 0; i < chat.size(); ++i) {
    chat[i].setRole(ask.chat[i].first);
    chat[i].setContent(ask.chat[i].second);
  }
  request.setMaxTokens(ask.tokens_max);
  auto sampling = request.initSampling();
  sampling.setTemperature(ask.temperature);
  sampling.setSeed(ask.seed);
  sampling.setRepetitionPenalty(ask.repetition_penalty);
  request.setStagesMin(ask.stages_min);
  auto cuts = request.initCuts(static_cast<uint>(ask.cuts.size()));
  for (uint i = 0; i < cuts.size(); ++i) cuts.set(i, ask.cuts[i]);
  request.setPrivacy(ask.anchored        ? rpc::Privacy::ANCHORED
                     : ask.group.empty() ? rpc::Privacy::PUBLIC
                                         : rpc::Privacy::GROUP);
  request.setGroup(ask.group);
  request.setIgnoreEos(ask.ignore_eos);
  call.setSink(kj::heap<SinkServer>(*out, ask.on_token));
  kj::Promise<capnp::Response<rpc::Admin::GenerateResults>> sent = call.send();
  auto& collected = *out;
  return sent
      .then([&collected](capnp::Response<rpc::Admin::GenerateResults>&& response) {
        const auto summary = response.getSummary();
        for (const int32_t id : summary.getIds()) collected.ids.push_back(id);
        for (const int32_t id : summary.getPromptIds()) collected.prompt_ids.push_back(id);
        collected.text = summary.getText().cStr();
        collected.finish_reason = summary.getFinishReason().cStr();
        collected.relayed_bytes = summary.getRelayedBytes();
        for (const auto stage : summary.getStages()) {
          collected.hosts.push_back(stage.getHostName().cStr());
          collected.first_fragments.push_back(stage.getFirstFragment());
        }
        for (const auto event : summary.getFailovers()) {
          collected.failovers.push_back({event.getStage(), event.getAtToken(), event.getGapMs(),
                                         event.getCause().cStr(),
                                         event.getReplacement().getHostName().cStr()});
        }
        return collected;
      })
      .attach(kj::mv(out));
}

std::string World::refusal_of(GenerateAsk ask) {
  try {
    generate(std::move(ask));
  } catch (const kj::Exception& exception) {
    return rpc::error_of(exception).message;
  }
  return "";
}

std::string World::events_text() {
  auto request = admin().listEventsRequest();
  request.setCountMax(100'000);
  std::string text;
  const auto response =
      run(kj::Promise<capnp::Response<rpc::Admin::ListEventsResults>>(request.send()));
  for (const auto event : response.getEvents()) {
    text += std::string(event.getKind().cStr()) + ": " + event.getText().cStr() + "\n";
  }
  return text;
}

}  // namespace shoal::test
