// Hostile bytes at the hosts' door, in three depths. The first byte chooses: raw bytes as a stream;
// RPC messages that are well formed and mean what they like; calls with fields of any content and
// size, before and after a login. Behind the door stands the real coordinator with a model and a
// session's stage to lose. Method: whatever comes, nothing crashes, every call ends, and a
// well-behaved host is still served.

#include <capnp/rpc.capnp.h>
#include <capnp/serialize.h>
#include <kj/async-io.h>
#include <kj/debug.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>

#include "base/log.h"
#include "schema/login.h"
#include "tests/coordinator/world.h"

using namespace shoal;
using namespace shoal::test;

namespace {

constexpr int kRunsPerWorld = 500;  // Its store grows with each.
constexpr size_t kRepliesMax = size_t{8} << 20;

// KJ tells of each refused message; here they are the rule.
class Silence final : public kj::ExceptionCallback {
 public:
  void onRecoverableException(kj::Exception&& exception) override {
    next.onRecoverableException(kj::mv(exception));
  }
  void logMessage(kj::LogSeverity severity, const char* file, int line, int depth,
                  kj::String&& text) override {
    if (severity == kj::LogSeverity::FATAL)
      next.logMessage(severity, file, line, depth, kj::mv(text));
  }
};

// Draws choices and content from the input; zeros when it is used up.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool empty() const { return size_ == 0; }
  uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  uint64_t word() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }
  double real() {
    static constexpr double kOdd[] = {0, -0.0, -1, 1, 1e300, -1e300, 1e-310};
    const uint8_t choice = byte();
    if (choice == 255) return std::numeric_limits<double>::quiet_NaN();
    if (choice == 254) return std::numeric_limits<double>::infinity();
    return kOdd[choice % std::size(kOdd)];
  }
  // Short content as it comes, or a long stretch of one byte.
  std::string text() {
    const uint8_t choice = byte();
    if (choice >= 250) return std::string(size_t{1} << (choice - 240), static_cast<char>(byte()));
    std::string text;
    for (uint8_t i = 0; i < choice % 48 && size_ > 0; ++i) text += static_cast<char>(byte());
    return text;
  }
  kj::ArrayPtr<const kj::byte> rest() const { return {data_, size_}; }
  void skip(size_t count) { data_ += count, size_ -= count; }

 private:
  const uint8_t* data_;
  size_t size_;
};

kj::ArrayPtr<const kj::byte> raw(const std::string& text) {
  return {reinterpret_cast<const kj::byte*>(text.data()), text.size()};
}

// A peer that speaks what it likes over a pipe into the door.
struct RawPeer {
  explicit RawPeer(World& world) : pipe(kj::newTwoWayPipe()) {
    auto limit = kj::refcounted<rpc::ReceiveLimit>(limits::kLoginMessageBytesMax);
    rpc::Peer peer{"fuzz", kj::addRef(*limit)};
    door = kj::heap<rpc::Connection>(kj::mv(pipe.ends[0]), true,
                                     world.coordinator->host_door(kj::mv(peer)), kj::mv(limit));
  }

  // Reads what the door answers, as far as it does.
  kj::Promise<void> drain() {
    return pipe.ends[1]
        ->tryRead(buffer, 1, sizeof(buffer))
        .then([this](size_t count) -> kj::Promise<void> {
          replies += count;
          if (count == 0) return kj::READY_NOW;
          return drain();
        });
  }

  kj::TwoWayPipe pipe;
  kj::Own<rpc::Connection> door;
  kj::byte buffer[4096];
  size_t replies = 0;
};

void send(World& world, const kj::ArrayPtr<const kj::byte> bytes, bool listens) {
  RawPeer peer(world);
  kj::Promise<void> reading = kj::READY_NOW;
  if (listens) reading = peer.drain().eagerlyEvaluate([](kj::Exception&&) {});
  kj::Promise<void> writing =
      peer.pipe.ends[1]->write(bytes.begin(), bytes.size()).eagerlyEvaluate([](kj::Exception&&) {});
  world.settle();
  if (listens && peer.replies > kRepliesMax) std::abort();
  writing = kj::READY_NOW;
  reading = kj::READY_NOW;
  peer.pipe.ends[1] = nullptr;
  world.settle();
}

void fill_capabilities(Input& in, capnp::List<capnp::rpc::CapDescriptor>::Builder table) {
  for (auto descriptor : table) {
    switch (in.byte() % 6) {
      case 0: descriptor.setNone(); break;
      case 1: descriptor.setSenderHosted(in.byte()); break;
      case 2: descriptor.setSenderPromise(in.byte()); break;
      case 3: descriptor.setReceiverHosted(in.byte()); break;
      case 4: {
        auto answer = descriptor.initReceiverAnswer();
        answer.setQuestionId(in.byte() % 8);
        answer.initTransform(in.byte() % 3);
        break;
      }
      default: descriptor.initThirdPartyHosted().setVineId(in.byte()); break;
    }
  }
}

void fill_payload(Input& in, capnp::rpc::Payload::Builder payload) {
  const uint8_t kind = in.byte();
  if (kind % 3 == 0) {
    auto login = payload.getContent().initAs<rpc::Coordinator::LoginParams>().initLogin();
    login.setHostName(in.text());
  } else if (kind % 3 == 1) {
    payload.getContent().initAs<rpc::Coordinator::HelloParams>().setProtocolVersion(in.byte() % 2);
  } else {
    payload.getContent().initAsAnyList(capnp::ElementSize::VOID, static_cast<uint>(in.word()) >> 3);
  }
  fill_capabilities(in, payload.initCapTable(in.byte() % 4));
}

void fill_target(Input& in, capnp::rpc::MessageTarget::Builder target) {
  if (in.byte() % 2 == 0) {
    target.setImportedCap(in.byte() % 8);
    return;
  }
  auto answer = target.initPromisedAnswer();
  answer.setQuestionId(in.byte() % 8);
  auto path = answer.initTransform(in.byte() % 3);
  for (auto op : path) op.setGetPointerField(in.byte() % 4);
}

// One message of the RPC protocol; ids are few, so that they meet.
void fill_message(Input& in, capnp::rpc::Message::Builder message) {
  switch (in.byte() % 11) {
    case 0: message.initBootstrap().setQuestionId(in.byte() % 8); break;
    case 1: {
      auto call = message.initCall();
      call.setQuestionId(in.byte() % 8);
      fill_target(in, call.initTarget());
      const uint8_t interface = in.byte() % 4;
      call.setInterfaceId(interface == 0   ? in.word()
                          : interface == 1 ? capnp::typeId<rpc::HostSession>()
                                           : capnp::typeId<rpc::Coordinator>());
      call.setMethodId(in.byte() % 5);
      fill_payload(in, call.initParams());
      if (in.byte() % 4 == 0) call.initSendResultsTo().setYourself();
      break;
    }
    case 2: {
      auto answer = message.initReturn();
      answer.setAnswerId(in.byte() % 8);
      switch (in.byte() % 4) {
        case 0: fill_payload(in, answer.initResults()); break;
        case 1: answer.initException().setReason(in.text()); break;
        case 2: answer.setCanceled(); break;
        default: answer.setTakeFromOtherQuestion(in.byte() % 8); break;
      }
      break;
    }
    case 3: {
      auto finish = message.initFinish();
      finish.setQuestionId(in.byte() % 8);
      finish.setReleaseResultCaps(in.byte() % 2 == 0);
      break;
    }
    case 4: {
      auto resolve = message.initResolve();
      resolve.setPromiseId(in.byte() % 8);
      if (in.byte() % 2 == 0) {
        resolve.initException().setReason(in.text());
      } else {
        resolve.initCap().setSenderHosted(in.byte() % 8);
      }
      break;
    }
    case 5: {
      auto release = message.initRelease();
      release.setId(in.byte() % 8);
      release.setReferenceCount(in.byte() % 3);
      break;
    }
    case 6: {
      auto disembargo = message.initDisembargo();
      fill_target(in, disembargo.initTarget());
      auto context = disembargo.initContext();
      switch (in.byte() % 4) {
        case 0: context.setSenderLoopback(in.byte()); break;
        case 1: context.setReceiverLoopback(in.byte()); break;
        case 2: context.setAccept(); break;
        default: context.setProvide(in.byte()); break;
      }
      break;
    }
    case 7: message.initAbort().setReason(in.text()); break;
    case 8: fill_target(in, message.initProvide().initTarget()); break;
    case 9: message.initUnimplemented().initBootstrap().setQuestionId(in.byte() % 8); break;
    default: message.initJoin().setQuestionId(in.byte()); break;
  }
}

void speak_protocol(World& world, Input in) {
  kj::VectorOutputStream stream;
  const bool listens = in.byte() % 8 != 0;
  for (int i = 0; i < 64 && !in.empty(); ++i) {
    capnp::MallocMessageBuilder builder;
    fill_message(in, builder.initRoot<capnp::rpc::Message>());
    if (capnp::computeSerializedSizeInWords(builder) * sizeof(capnp::word) >
        limits::kMessageBytesMax)
      continue;
    capnp::writeMessage(stream, builder);
  }
  send(world, stream.getArray(), listens);
}

// Waits for what a call gives; its failure is the callee's good right.
template <class T>
void finish(World& world, T&& promise) {
  try {
    world.run(promise.ignoreResult());
  } catch (const kj::Exception&) {
  }
}

class OddStage final : public rpc::Stage::Server {
 public:
  explicit OddStage(Input& in) : in_(in) {}

  kj::Promise<void> shape(ShapeContext context) override {
    auto results = context.getResults();
    results.setBeginsWithTokens(in_.byte() % 8 != 1);
    results.setEndsWithLogits(in_.byte() % 8 != 1);
    results.setWidth(in_.byte() % 8 == 1 ? static_cast<uint32_t>(in_.word()) : kToyWidth);
    results.setVocabulary(in_.byte() % 8 == 1 ? static_cast<uint32_t>(in_.word()) : kToyVocabulary);
    return kj::READY_NOW;
  }

  kj::Promise<void> step(StepContext context) override {
    auto output = context.getResults().initOutput();
    switch (in_.byte() % 6) {
      case 0: output.setHidden(raw(in_.text())); break;
      case 1: throw_or_not(); break;
      default: {
        const uint8_t odd = in_.byte();
        auto tokens = output.initTokens(
            odd == 1 ? in_.byte() : context.getParams().getInput().getDraws().size());
        for (uint i = 0; i < tokens.size(); ++i) {
          tokens.set(i, odd == 2 ? static_cast<int32_t>(in_.word()) : int32_t{in_.byte()});
        }
        break;
      }
    }
    return kj::READY_NOW;
  }

 private:
  void throw_or_not() {
    if (in_.byte() % 2 == 0) kj::throwFatalException(KJ_EXCEPTION(FAILED, in_.text()));
  }
  Input& in_;
};

class OddHost final : public rpc::Host::Server {
 public:
  explicit OddHost(Input& in) : in_(in) {}

  kj::Promise<void> openStage(OpenStageContext context) override {
    if (in_.byte() % 8 == 1) kj::throwFatalException(KJ_EXCEPTION(FAILED, in_.text()));
    if (in_.byte() % 8 != 1) context.getResults().setStage(kj::heap<OddStage>(in_));
    return kj::READY_NOW;
  }
  kj::Promise<void> ping(PingContext) override { return kj::READY_NOW; }

 private:
  Input& in_;
};

void report(World& world, Input& in, rpc::HostSession::Client& session) {
  auto request = session.reportRequest();
  const uint8_t count = in.byte();
  auto devices = request.initDevices(count >= 250 ? 65 : count % 3);
  for (uint i = 0; i < devices.size(); ++i) {
    auto device = devices[i];
    auto info = device.initInfo();
    const bool plain = in.byte() % 2 == 0;
    info.setId(plain ? "device " + std::to_string(i) : in.text());
    info.setName(in.text());
    info.setMemoryBytes(plain ? 1'000'000 : in.word());
    const std::string key = plain ? std::string(32, 'k') : in.text();
    device.setWorkerKey(raw(key));
    device.initSelfTest().setExact(in.byte() % 4 != 1);
    auto benchmark = device.initBenchmark();
    benchmark.setWeightBytesPerSecond(plain ? 1e9 : in.real());
    benchmark.setFlopsPerSecond(plain ? 1e9 : in.real());
    benchmark.setMeasuredAtMs(plain ? 1 : static_cast<int64_t>(in.word()));
    device.setState(static_cast<rpc::DeviceReport::State>(plain ? 0 : in.byte() % 6));
    device.setReason(in.text());
  }
  finish(world, request.send());
}

void call_methods(World& world, const SigningKey& identity, Input in) {
  auto pipe = kj::newTwoWayPipe();
  auto limit = kj::refcounted<rpc::ReceiveLimit>(limits::kLoginMessageBytesMax);
  rpc::Peer peer{"fuzz", kj::addRef(*limit)};
  auto server = kj::heap<rpc::Connection>(
      kj::mv(pipe.ends[0]), true, world.coordinator->host_door(kj::mv(peer)), kj::mv(limit));
  auto client = kj::heap<rpc::Connection>(kj::mv(pipe.ends[1]), false, nullptr);
  auto door = client->bootstrap().castAs<rpc::Coordinator>();
  kj::Maybe<rpc::HostSession::Client> session;
  ByteVector nonce;
  for (int i = 0; i < 24 && !in.empty(); ++i) {
    switch (in.byte() % 8) {
      case 0: {
        auto request = door.helloRequest();
        request.setProtocolVersion(in.byte() % 4 == 1 ? static_cast<uint32_t>(in.word())
                                                      : rpc::PROTOCOL_VERSION);
        try {
          nonce = to_vector(rpc::bytes_of(
              world
                  .run(kj::Promise<capnp::Response<rpc::Coordinator::HelloResults>>(request.send()))
                  .getNonce()));
        } catch (const kj::Exception&) {
        }
        break;
      }
      case 1: {
        auto request = door.loginRequest();
        auto login = request.initLogin();
        const uint8_t odd = in.byte();
        const Signature signature = identity.sign(rpc::login_message(nonce, world.pin));
        login.setPublicKey(rpc::kj_bytes(identity.public_key().bytes));
        login.setSignature(rpc::kj_bytes(signature));
        login.setInvite(world.invite);
        const std::string some = in.text();
        if (odd % 8 == 1) login.setPublicKey(raw(some));
        if (odd % 8 == 2) login.setSignature(raw(some));
        if (odd % 8 == 3) login.setInvite(some);
        login.setHostName(in.text());
        login.setSystem(in.text());
        if (odd % 8 != 4) request.setHost(kj::heap<OddHost>(in));
        try {
          session =
              world
                  .run(kj::Promise<capnp::Response<rpc::Coordinator::LoginResults>>(request.send()))
                  .getSession();
        } catch (const kj::Exception&) {
        }
        break;
      }
      case 2:
      case 3:
        KJ_IF_MAYBE (held, session) report(world, in, *held);
        break;
      case 4:
        KJ_IF_MAYBE (held, session) {
          auto request = held->readShardRequest();
          request.setDigest(
              raw(in.byte() % 2 == 0 ? std::string(32, static_cast<char>(in.byte())) : in.text()));
          request.setOffset(in.word());
          request.setLength(static_cast<uint32_t>(in.word()));
          finish(world, request.send());
        }
        break;
      case 5:
        KJ_IF_MAYBE (held, session) {
          if (in.byte() % 2 == 0) {
            auto request = held->leaveRequest();
            request.setReason(in.text());
            finish(world, request.send());
          } else {
            finish(world, held->pingRequest().send());
          }
        }
        break;
      default: {
        GenerateAsk ask;
        ask.stages_min = in.byte() % 2;
        ask.tokens_max = 1 + in.byte() % 8;
        world.refusal_of(ask);
        break;
      }
    }
  }
  session = nullptr;
  client = nullptr;
  world.settle();
  server = nullptr;
  world.settle();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = [] {
    set_log_level(LogLevel::kOff);
    return true;
  }();
  (void)quiet;
  static const SigningKey identity = SigningKey::generate();
  static std::unique_ptr<World> world;
  static int runs = 0;
  Silence silence;
  if (runs++ % kRunsPerWorld == 0) {
    world.reset();
    world = std::make_unique<World>([](CoordinatorSettings& settings) {
      settings.session.repair_wait = Millis{50};  // What nobody can take fails soon.
    });
    world->publish(make_toy_model("toy"));
  }
  Input in(data, size);
  switch (in.byte() % 3) {
    case 0: {
      const bool listens = in.byte() % 8 != 0;
      send(*world, in.rest(), listens);
      break;
    }
    case 1: speak_protocol(*world, in); break;
    default: call_methods(*world, identity, in); break;
  }
  if (!world->coordinator->settings().name.size()) std::abort();
  return 0;
}
