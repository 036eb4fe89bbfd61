#include "client/worker_process.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/log.h"
#include "base/secrets.h"
#include "client/device_json.h"
#include "client/device_wire.h"
#include "schema/require.h"

namespace shoal::client {
namespace {

constexpr int kFailuresUntilFailed = 5;
constexpr kj::Duration kLastBreath =
    500 * kj::MILLISECONDS;  // From a closed pipe to the exit code.
constexpr kj::Duration kListMax = 30 * kj::SECONDS;
constexpr uint64_t kListBytesMax = 1 << 20;

std::string seconds_text(kj::Duration duration) {
  return std::to_string(duration / kj::MILLISECONDS) + " ms";
}

}  // namespace

WorkerProcess::WorkerProcess(Loop loop, const Clock& clock, Random& random, Needs& needs,
                             WorkerOptions options)
    : loop_(loop),
      clock_(clock),
      needs_(needs),
      options_(std::move(options)),
      back_off_(options_.back_off_first, options_.back_off_most, random),
      reason_("its worker is starting"),
      life_(keep_alive().promise().eagerlyEvaluate([](kj::Exception&& exception) {
        log_error("worker", "gave_up", {{"cause", exception.getDescription().cStr()}});
      })) {}

WorkerProcess::~WorkerProcess() {
  life_ = nullptr;
  drop_connection();
}

kj::Maybe<rpc::Worker::Client> WorkerProcess::client() {
  if (state_ != State::kReady) return nullptr;
  return client_;
}

void WorkerProcess::set_state(State state, std::string reason) {
  state_ = state;
  reason_ = std::move(reason);
  needs_.worker_changed(*this);
}

void WorkerProcess::drop_connection() {
  client_ = nullptr;
  public_key_.clear();
  connection_ = nullptr;
  exit_observer_ = nullptr;
}

rpc::Task<void> WorkerProcess::keep_alive() {
  // Not inside the constructor: what needs us is not built yet.
  co_await kj::evalLater([] {});
  while (true) {
    const Millis started = clock_.now_monotonic();
    std::string cause;
    bool ended_by_itself = false;
    try {
      kj::Promise<std::string> life = live_once();
      cause = co_await kj::mv(life);
    } catch (const kj::Exception& exception) {
      cause = rpc::error_of(exception).message;
      ended_by_itself = child_.has_value();
    }
    if (ended_by_itself) {
      // A pipe breaks a moment before its process can be reaped; how that ended says more.
      exit_observer_ = nullptr;
      exit_observer_ = observe_exit(loop_, *child_);
      try {
        kj::Promise<std::string> ended =
            loop_.timer.timeoutAfter(kLastBreath, child_ended().promise());
        cause = co_await kj::mv(ended);
      } catch (const kj::Exception&) {
        // It lives on: the cause stays what it was.
      }
    }
    drop_connection();
    child_.reset();  // Kills it, if it still runs.
    if (clock_.now_monotonic() - started >= options_.stays_up) back_off_.reset();
    const Millis wait = back_off_.next();
    ++restarts_;
    log_warning("worker", "ended",
                {{"device", facts_.id}, {"cause", cause}, {"restart_in_ms", wait}});
    set_state(back_off_.failures() >= kFailuresUntilFailed ? State::kFailed : State::kStarting,
              cause);
    co_await loop_.timer.afterDelay(wait.count * kj::MILLISECONDS);
  }
}

rpc::Task<std::string> WorkerProcess::live_once() {
  auto [ours, theirs] = rpc::require(make_socket_pair());
  ChildOptions child;
  child.argv = options_.argv;
  child.argv.insert(child.argv.end(), {"--rpc-fd", std::to_string(kChildChannelFd)});
  child.channel = std::move(theirs);
  child_ = rpc::require(ChildProcess::spawn(std::move(child)));
  exit_observer_ = observe_exit(loop_, *child_);
  connection_ =
      kj::heap<rpc::Connection>(stream_of(loop_, std::move(ours)), /*is_server=*/false, nullptr);
  auto client = connection_->bootstrap().castAs<rpc::Worker>();
  kj::Promise<std::string> over = child_ended()
                                      .promise()
                                      .exclusiveJoin(watch_pings(client))
                                      .exclusiveJoin(become_ready(client));
  std::string cause = co_await kj::mv(over);
  co_return cause;
}

rpc::Task<std::string> WorkerProcess::child_ended() {
  co_await exit_observer_->whenBecomesReadable();
  const std::optional<ChildExit> exit = child_->try_wait();
  co_return "its worker ended with " + (exit ? exit->text() : "an unknown status");
}

rpc::Task<bool> WorkerProcess::answers(rpc::Worker::Client client, kj::Duration limit) {
  kj::Promise<bool> answered = client.pingRequest().send().then([](auto&&) { return true; });
  kj::Promise<bool> over = loop_.timer.afterDelay(limit).then([] { return false; });
  kj::Promise<bool> first = answered.exclusiveJoin(kj::mv(over));
  const bool in_time = co_await kj::mv(first);
  co_return in_time;
}

rpc::Task<std::string> WorkerProcess::watch_pings(rpc::Worker::Client client) {
  const Millis each{options_.ping_each / kj::MILLISECONDS};
  const kj::Duration again = std::min(options_.ping_each, 1 * kj::SECONDS);
  kj::TimePoint heard = loop_.timer.now();
  while (true) {
    co_await loop_.timer.afterDelay(until_whole(clock_.now_monotonic(), each).count *
                                    kj::MILLISECONDS);
    // The silence began with the last sign; but in it this process may have been stopped itself.
    const kj::Duration left = options_.hang_max - again - (loop_.timer.now() - heard);
    kj::Promise<bool> answered = answers(client, std::max(left, options_.hang_max / 4));
    bool lives = co_await kj::mv(answered);
    if (!lives) {
      // Or just now, with the answer waiting: so it asks again.
      answered = answers(client, again);
      lives = co_await kj::mv(answered);
    }
    if (lives) {
      heard = loop_.timer.now();
      continue;
    }
    co_return "its worker gave no sign of life for " + seconds_text(options_.hang_max);
  }
}

rpc::Task<std::string> WorkerProcess::become_ready(rpc::Worker::Client client) {
  {
    kj::Promise<capnp::Response<rpc::Worker::DescribeResults>> described =
        client.describeRequest().send();
    const auto answer = co_await loop_.timer.timeoutAfter(options_.start_max, kj::mv(described));
    facts_ = read_facts(answer.getDevice());
    const ByteSpan key = rpc::bytes_of(answer.getPublicKey());
    if (key.size() != sizeof(BoxPublicKey::bytes)) {
      rpc::throw_error({ErrorCode::kCorrupt, "its worker gave a public key of a wrong size"});
    }
    public_key_ = to_vector(key);
  }
  kj::Promise<void> prepared = needs_.prepare(*this, client, facts_);
  co_await kj::mv(prepared);
  client_ = kj::mv(client);
  log_info("worker", "ready", {{"device", facts_.id}, {"pid", pid()}});
  set_state(State::kReady, "");
  co_await kj::Promise<void>(kj::NEVER_DONE);
  co_return "";
}

rpc::Task<bool> WorkerProcess::stop(kj::Duration gently) {
  life_ = nullptr;
  drop_connection();
  if (!child_) co_return false;
  exit_observer_ = observe_exit(loop_, *child_);
  kj::Promise<bool> ended = child_ended().promise().then([](std::string&&) { return false; });
  kj::Promise<bool> late = loop_.timer.afterDelay(gently).then([] { return true; });
  kj::Promise<bool> first = ended.exclusiveJoin(kj::mv(late));
  const bool killed = co_await kj::mv(first);
  if (killed) {
    log_warning("worker", "killed", {{"device", facts_.id}, {"pid", pid()}});
    child_->kill();
    // A driver may hold a dying process for a while; the loop goes on meanwhile.
    exit_observer_ = nullptr;
    exit_observer_ = observe_exit(loop_, *child_);
    kj::Promise<std::string> gone = child_ended();
    (void)co_await kj::mv(gone);
  }
  exit_observer_ = nullptr;
  child_.reset();
  co_return killed;
}

rpc::Task<std::vector<DeviceFacts>> list_devices(Loop loop, std::vector<std::string> argv) {
  auto [ours, theirs] = rpc::require(make_socket_pair());
  const std::string program = argv.front();
  ChildOptions options;
  options.argv = std::move(argv);
  options.argv.push_back("--list");
  options.stdout_fd = theirs.get();
  ChildProcess child = rpc::require(ChildProcess::spawn(std::move(options)));
  theirs.reset();
  auto stream = stream_of(loop, std::move(ours));
  kj::Promise<kj::String> answer = stream->readAllText(kListBytesMax);
  kj::String text;
  try {
    text = co_await loop.timer.timeoutAfter(kListMax, kj::mv(answer));
  } catch (const kj::Exception& exception) {
    rpc::throw_error({ErrorCode::kUnavailable,
                      program + " did not list its devices: " + exception.getDescription().cStr()});
  }
  std::vector<DeviceFacts> devices;
  try {
    for (const auto& entry : nlohmann::ordered_json::parse(text.cStr())) {
      devices.push_back(facts_of(entry));
    }
  } catch (const nlohmann::json::exception&) {
    const std::optional<ChildExit> exit = child.wait(Millis{100});
    rpc::throw_error({ErrorCode::kUnavailable,
                      program + " did not list its devices" + (exit ? ": " + exit->text() : "")});
  }
  co_return kj::mv(devices);
}

}  // namespace shoal::client
