#pragma once
// A coordinator and fake hosts in one thread: real RPC over in-process pipes, time moved by hand,
// faults on demand.

#include <kj/async.h>
#include <kj/timer.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/random.h"
#include "base/secrets.h"
#include "coordinator/coordinator.h"
#include "schema/admin.capnp.h"
#include "schema/coordinator.capnp.h"
#include "schema/direct.capnp.h"
#include "schema/receipt.h"
#include "schema/transport.h"
#include "tests/coordinator/toy_model.h"

namespace shoal::test {

enum class Fault {
  kNone,
  kDrop,       // The host's connection breaks in mid-step.
  kHang,       // The step is never answered, and the host falls silent.
  kStall,      // The step is never answered, but the host lives.
  kShort,      // An answer of the wrong size.
  kNonFinite,  // An answer with an infinity.
  kToken,      // A token beyond the vocabulary.
  kRefuse,     // The step fails.
  kNoOpen,     // A stage is refused.
  kDeny,       // A stage is refused because the owner does not want such work.
};

// How a host that passes rows on to its neighbours errs, from `path_fault_from` on.
enum class PathFault {
  kNone,
  kOtherRows,    // Sends its neighbour other rows than it says.
  kNothing,      // Sends its neighbour nothing.
  kHandsOther,   // Hands the coordinator other rows than it passed on.
  kHandsNothing  // Or none.
};

struct HostOptions {
  std::string name = "host";
  std::string invite;  // Empty: the world's own.
  uint64_t memory = 1'000'000'000;
  double bytes_per_second = 1e9;
  bool exact = true;
  std::vector<std::string> devices = {"cpu"};
  rpc::DeviceReport::State state = rpc::DeviceReport::State::READY;
  uint64_t available_ms = 0;
  bool has_worker = true;
  bool direct = false;   // Passes rows on to its neighbours.
  bool listens = false;  // And may be dialled by them.
};

class World;

// Between two stages, in this process.
struct FakePath : kj::Refcounted {
  struct Block {
    uint32_t first = 0;
    ByteVector hidden;
  };
  std::deque<Block> blocks;
  // Steps, in order. Empty: none can come any more.
  std::deque<kj::Own<kj::PromiseFulfiller<kj::Maybe<Block>>>> waiting;
  bool over = false;
  void wake() {
    while (!waiting.empty() && (over || !blocks.empty())) {
      kj::Maybe<Block> block;
      if (!blocks.empty()) {
        block = std::move(blocks.front());
        blocks.pop_front();
      }
      waiting.front()->fulfill(kj::mv(block));
      waiting.pop_front();
    }
  }
};

class FakeHost {
 public:
  FakeHost(World& world, HostOptions options);
  ~FakeHost() noexcept(false);

  // Logs in over a new connection and reports its devices. Throws what the coordinator answers.
  void connect();
  void report();
  kj::Promise<void> report_promise();
  kj::Promise<void> deny_promise(std::vector<JobClass> denied);
  // What a ping answers.
  capnp::Response<rpc::HostSession::PingResults> ping();
  std::vector<Receipt> receipts(uint64_t after = 0, uint32_t count_max = 1000);
  void kill();  // The connection breaks, now.
  bool connected() const { return client_side_.get() != nullptr; }
  // Reads a shard as a client would.
  ByteVector read_shard(const Digest& digest, uint64_t offset, uint32_t length);

  World& world;
  HostOptions options;
  SigningKey identity = SigningKey::generate();
  BoxKeyPair worker = BoxKeyPair::generate();
  uint64_t id = 0;
  bool trusted = false;

  Fault fault = Fault::kNone;
  int fault_at_step = 0;  // Counted over all its stages, from 0.
  int steps = 0;
  int stages_open = 0;
  int stages_opened = 0;
  // Its answers for positions from this one on are wrong, but look like answers. -1: none is.
  int64_t lies_from = -1;
  uint64_t step_ms = 0;  // How long a step takes.
  // When set, called at a step's beginning with its first position; the step is answered after it.
  std::function<kj::Promise<void>(uint32_t first)> before_answer;
  bool silent = false;  // Sends no pings.
  int full_opens = 0;   // Refuses so many openings, as it has no room.
  bool read_shards_on_open = true;
  std::vector<SecretBytes> keys_seen;
  PathFault path_fault = PathFault::kNone;
  int64_t path_fault_from = 0;
  bool unreachable = false;  // Whoever dials it is refused.
  int dialled = 0;           // By others.
  int64_t passed_rows = 0;   // To neighbours.
  std::string refusal;       // What its errors say; empty: something usual.

  kj::Maybe<rpc::HostSession::Client> session;

 private:
  kj::Own<rpc::Connection> server_side_, client_side_;
};

struct GenerateAsk {
  std::string model = "toy", prompt = "hello there";
  std::vector<std::pair<std::string, std::string>> chat;  // Roles and contents.
  uint32_t tokens_max = 12;
  uint64_t seed = 5;
  float temperature = 0.8f;
  float repetition_penalty = 1.0f;
  uint32_t stages_min = 3;
  std::vector<uint32_t> cuts;
  bool anchored = false, ignore_eos = false;
  std::string group;                           // Not empty: the level of privacy of that name.
  std::function<void(size_t count)> on_token;  // After each token, with how many there are.
};

struct Generated {
  std::vector<int32_t> streamed;
  std::string streamed_text;
  std::vector<int32_t> ids, prompt_ids;
  std::string text, finish_reason;
  uint64_t relayed_bytes = 0;
  std::vector<std::string> hosts;  // By stage, at the end.
  std::vector<uint32_t> first_fragments;
  struct Failover {
    uint32_t stage, at_token, gap_ms;
    std::string cause, replacement;
  };
  std::vector<Failover> failovers, streamed_failovers;
};

class World {
 public:
  explicit World(std::function<void(CoordinatorSettings&)> adjust = {});
  ~World() noexcept(false);

  void start();  // The coordinator, on the data folder. In the constructor, and after stop().
  void stop();
  // The coordinator is killed: what it has not stored is lost, and its orderly end never comes.
  void kill();

  FakeHost& add_host(const std::string& name, HostOptions options = {});  // Connected.
  void trust(const FakeHost& host);
  void publish(const ToyModel& model, const std::string& purpose = "",
               const std::string& group = "");
  rpc::Admin::Client admin() { return coordinator->admin_door().castAs<rpc::Admin>(); }

  // Runs the loop, and moves time whenever nothing else can happen.
  template <class T>
  T run(kj::Promise<T> promise) {
    move_time_until([&] { return promise.poll(wait_scope); });
    return promise.wait(wait_scope);
  }
  void pass_time(Millis time);
  void settle();  // Until nothing happens without time.

  kj::Promise<Generated> generate_promise(GenerateAsk ask);
  Generated generate(GenerateAsk ask) { return run(generate_promise(std::move(ask))); }
  // The error's message, or "" when it worked.
  std::string refusal_of(GenerateAsk ask);

  std::string events_text();  // Kinds and texts, a line each.

  TempDir folder;
  kj::EventLoop loop;
  kj::WaitScope wait_scope{loop};
  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};
  ManualClock clock;
  Random random{1};
  std::string pin, invite;
  const char* store_vfs = nullptr;  // For the next start().
  std::unique_ptr<Coordinator> coordinator;
  std::vector<std::unique_ptr<FakeHost>> hosts;
  // Whom hosts expect, by the token; and at which of them.
  struct Expected {
    kj::Own<FakePath> path;
    FakeHost* host = nullptr;
  };
  std::map<std::string, Expected> expected_paths;
  kj::TaskSet& tasks();

 private:
  void move_time_until(const std::function<bool()>& done);
  void tick(Millis time);

  std::function<void(CoordinatorSettings&)> adjust_;
  class Errors;
  std::unique_ptr<Errors> errors_;
  std::unique_ptr<kj::TaskSet> tasks_;
  Millis since_ping_;
};

}  // namespace shoal::test
