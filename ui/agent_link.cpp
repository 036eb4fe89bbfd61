#include "ui/agent_link.h"

#include <kj/async-io.h>
#include <kj/debug.h>
#include <kj/function.h>

#include <QMetaObject>
#include <QPointer>
#include <QTimer>
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "schema/task.h"
#include "schema/transport.h"

namespace shoal::ui {
namespace {

constexpr Millis kRetryMin{100};
constexpr Millis kRetryMax{3'000};

kj::Duration kj_duration(Millis duration) { return duration.count * kj::MILLISECONDS; }

Error no_client() { return {ErrorCode::kUnavailable, "Shoal's background program does not run"}; }

}  // namespace

// Belongs to the KJ thread, but for post() and stop(), which any thread may call. The link waits
// for the thread's end before it goes, so `link_` outlives this.
class AgentLink::Wire {
 public:
  Wire(AgentLink& link, std::string socket, LinkPatience patience)
      : link_(link), socket_(std::move(socket)), patience_(patience) {}

  // Runs `act` on the KJ thread.
  void post(kj::Function<void()> act) {
    const std::lock_guard<std::mutex> lock(mutex_);
    acts_.push_back(kj::mv(act));
    wake();
  }
  void stop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    stops_ = true;
    wake();
  }

  // The thread's whole life.
  void run() {
    kj::AsyncIoContext io = kj::setupAsyncIo();
    io_ = &io;
    {
      kj::Promise<void> serving = serve().promise().eagerlyEvaluate(nullptr);
      while (take_acts(io.waitScope)) {
      }
      calls_.clear();
      ended_ = nullptr;
    }
    agent_ = nullptr;
    connection_ = nullptr;
    io_ = nullptr;
  }

  void start_call(uint64_t id, std::unique_ptr<capnp::MallocMessageBuilder> params, Sender sender,
                  Millis limit) {
    KJ_IF_MAYBE (agent, agent_) {
      try {
        calls_.insert_or_assign(
            id, timer()
                    .timeoutAfter(kj_duration(limit), sender(*agent, *params))
                    .then([this, id](Erased answer) { finish(id, std::move(answer)); },
                          [this, id, limit](kj::Exception&& exception) {
                            finish(id, error_in_call(exception, limit));
                          })
                    .eagerlyEvaluate(nullptr));
      } catch (const kj::Exception& exception) {
        finish(id, rpc::error_of(exception));
      }
    } else {
      finish(id, no_client());
    }
  }
  void cancel_call(uint64_t id) { calls_.erase(id); }
  void retry() {
    if (retry_.get() != nullptr && retry_->isWaiting()) retry_->fulfill();
  }
  void set_interval(Millis interval) { interval_ = interval; }

 private:
  kj::Timer& timer() { return io_->provider->getTimer(); }

  // REQUIRES: mutex_ is held.
  void wake() {
    if (waker_.get() != nullptr) {
      waker_->fulfill();
      waker_ = nullptr;
    }
  }

  // Waits for acts and does them; false when the thread shall end.
  bool take_acts(kj::WaitScope& scope) {
    kj::Promise<void> woken = nullptr;
    std::vector<kj::Function<void()>> acts;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stops_) return false;
      acts.swap(acts_);
      if (acts.empty()) {
        auto pair = kj::newPromiseAndCrossThreadFulfiller<void>();
        woken = kj::mv(pair.promise);
        waker_ = kj::mv(pair.fulfiller);
      }
    }
    if (acts.empty()) {
      woken.wait(scope);
    } else {
      for (auto& act : acts) act();
    }
    return true;
  }

  static Error error_in_call(const kj::Exception& exception, Millis limit) {
    Error error = rpc::error_of(exception);
    if (exception.getType() == kj::Exception::Type::OVERLOADED &&
        error.message.find("timed out") != std::string::npos) {
      return {ErrorCode::kTimeout, "Shoal's background program did not answer within " +
                                       std::to_string(limit.count / 1000) + " seconds"};
    }
    if (exception.getType() == kj::Exception::Type::DISCONNECTED) return no_client();
    return error;
  }

  void finish(uint64_t id, Result<Erased> answer) {
    // This may run inside the call's own promise, which must not destroy itself.
    const auto call = calls_.find(id);
    if (call != calls_.end()) {
      ended_ = kj::mv(call->second);
      calls_.erase(call);
    }
    QMetaObject::invokeMethod(
        &link_, [&link = link_, id, answer = std::move(answer)] { link.finish_call(id, answer); },
        Qt::QueuedConnection);
  }
  void tell_state(LinkState state, const std::string& why) {
    if (told_ == state) return;
    told_ = state;
    {
      // What is shown from now on comes after this.
      const std::lock_guard<std::mutex> lock(mutex_);
      showing_ = false;
    }
    QMetaObject::invokeMethod(
        &link_,
        [&link = link_, state, why = QString::fromStdString(why)] { link.take_state(state, why); },
        Qt::QueuedConnection);
  }

  // Connects, and again whenever the connection is lost.
  rpc::Task<void> serve() {
    Millis wait = kRetryMin;
    while (true) {
      std::string why;
      try {
        kj::Promise<kj::Own<rpc::Connection>> dialing =
            rpc::dial_unix(io_->provider->getNetwork(), timer(), socket_);
        connection_ = co_await kj::mv(dialing);
        agent_ = connection_->bootstrap().castAs<rpc::Agent>();
        kj::Promise<void> probing = probe();
        kj::Promise<void> reading = read_snapshots(wait);
        co_await reading.exclusiveJoin(connection_->closed()).exclusiveJoin(kj::mv(probing));
        why = no_client().message;
      } catch (const kj::Exception& exception) {
        why = exception.getType() == kj::Exception::Type::DISCONNECTED
                  ? no_client().message
                  : rpc::error_of(exception).message;
      }
      agent_ = nullptr;
      connection_ = nullptr;
      last_ = nullptr;
      tell_state(LinkState::kAbsent, why);
      auto pair = kj::newPromiseAndFulfiller<void>();
      retry_ = kj::mv(pair.fulfiller);
      co_await pair.promise.exclusiveJoin(timer().afterDelay(kj_duration(wait)));
      wait = std::min(Millis{wait.count * 2}, kRetryMax);
    }
  }

  // Ends only by an exception. `wait` is set back once the client has answered.
  rpc::Task<void> read_snapshots(Millis& wait) {
    uint64_t revision = 0;
    while (true) {
      auto request = KJ_ASSERT_NONNULL(agent_).snapshotRequest();
      request.setAfterRevision(revision);
      auto response =
          co_await kj::Promise<capnp::Response<rpc::Agent::SnapshotResults>>(request.send());
      wait = kRetryMin;
      heard_ = timer().now();
      last_ = std::make_shared<const Snapshot>(response.getSnapshot());
      revision = last_->reader().getRevision();
      tell_snapshot();
      if (interval_.count > 0) co_await timer().afterDelay(kj_duration(interval_));
    }
  }

  // A client may tell more than can be shown: those between are left out, so that nothing piles up.
  void tell_snapshot() {
    tell_state(LinkState::kConnected, "");
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      newest_ = last_;
      if (std::exchange(showing_, true)) return;
    }
    QMetaObject::invokeMethod(
        &link_, [this] { show_newest(); }, Qt::QueuedConnection);
  }
  // On the Qt thread.
  void show_newest() {
    SnapshotPtr newest;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      newest = newest_;
    }
    link_.take_snapshot(newest);
    // By a timer, so that all other timers, and who paints, have their turn before the next one.
    QTimer::singleShot(0, &link_, [this, newest] {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (newest_ == newest) showing_ = false;
        if (!showing_) return;
      }
      show_newest();
    });
  }

  // Tells a client that hangs from one without news, by a small question.
  rpc::Task<void> probe() {
    heard_ = timer().now();
    while (true) {
      co_await timer().afterDelay(kj_duration(patience_.probe_every));
      if (told_ == LinkState::kConnected &&
          timer().now() - heard_ < kj_duration(patience_.probe_every)) {
        continue;
      }
      auto request = KJ_ASSERT_NONNULL(agent_).logRequest();
      request.setAfterId(UINT64_MAX);
      kj::Promise<void> answered =
          request.send().ignoreResult().catch_([](kj::Exception&& exception) {
            // An older client does not know the question, yet it lives.
            if (exception.getType() == kj::Exception::Type::DISCONNECTED) {
              kj::throwRecoverableException(kj::mv(exception));
            }
          });
      kj::Promise<bool> in_time =
          answered.then([] { return true; })
              .exclusiveJoin(
                  timer().afterDelay(kj_duration(patience_.probe_max)).then([] { return false; }));
      const bool lives = co_await kj::mv(in_time);
      if (lives) {
        heard_ = timer().now();
        // It was only slow: what it said last still holds, and what it was asked stays asked.
        if (told_ == LinkState::kSilent && last_ != nullptr) tell_snapshot();
      } else {
        tell_state(LinkState::kSilent, "Shoal's background program does not answer");
      }
    }
  }

  AgentLink& link_;
  const std::string socket_;
  const LinkPatience patience_;

  // Both threads hand acts over here; nothing is done while it is held.
  std::mutex mutex_;
  std::vector<kj::Function<void()>> acts_;                // GUARDED_BY(mutex_)
  kj::Own<kj::CrossThreadPromiseFulfiller<void>> waker_;  // GUARDED_BY(mutex_)
  bool stops_ = false;                                    // GUARDED_BY(mutex_)
  SnapshotPtr newest_;                                    // GUARDED_BY(mutex_)
  bool showing_ = false;  // GUARDED_BY(mutex_). The Qt thread will look for the newest.

  kj::AsyncIoContext* io_ = nullptr;  // Null before and after run().
  kj::Own<rpc::Connection> connection_;
  kj::Maybe<rpc::Agent::Client> agent_;
  kj::Own<kj::PromiseFulfiller<void>> retry_;
  std::map<uint64_t, kj::Promise<void>> calls_;
  kj::Promise<void> ended_ = nullptr;
  kj::TimePoint heard_ = kj::origin<kj::TimePoint>();
  LinkState told_ = LinkState::kConnecting;
  SnapshotPtr last_;  // Of this connection.
  Millis interval_{0};
};

struct AgentLink::Call {
  QPointer<QObject> receiver;
  QMetaObject::Connection watch;
  Taker take;
};

struct AgentLink::Parts {
  explicit Parts(AgentLink& link) : wire(link, link.socket_.toStdString(), link.patience_) {}

  Wire wire;
  std::map<uint64_t, Call> calls;
  uint64_t next_call = 1;
  std::thread thread;
};

AgentLink::AgentLink(QString socket, LinkPatience patience, QObject* parent)
    : QObject(parent),
      socket_(std::move(socket)),
      patience_(patience),
      parts_(std::make_unique<Parts>(*this)) {
  parts_->thread = std::thread([&wire = parts_->wire] {
    try {
      wire.run();
    } catch (const kj::Exception& exception) {
      // Only the loop itself can fail here, as when no descriptor is left.
      log_error("ui", "link_failed", {{"why", exception.getDescription().cStr()}});
    }
  });
}

AgentLink::~AgentLink() {
  parts_->wire.stop();
  parts_->thread.join();
}

size_t AgentLink::calls_open() const { return parts_->calls.size(); }

void AgentLink::retry() {
  parts_->wire.post([&wire = parts_->wire] { wire.retry(); });
}

void AgentLink::set_snapshot_interval(Millis interval) {
  parts_->wire.post([&wire = parts_->wire, interval] { wire.set_interval(interval); });
}

void AgentLink::copy_struct(capnp::AnyStruct::Builder from, capnp::AnyStruct::Builder to) {
  const auto data = from.asReader().getDataSection();
  auto target = to.getDataSection();
  SHOAL_CHECK(data.size() == target.size());
  if (data.size() > 0) std::memcpy(target.begin(), data.begin(), data.size());
  auto pointers = from.asReader().getPointerSection();
  auto targets = to.getPointerSection();
  for (uint32_t i = 0; i < pointers.size(); ++i) targets[i].set(pointers[i]);
}

void AgentLink::start_call(QObject* receiver, std::unique_ptr<capnp::MallocMessageBuilder> params,
                           Sender sender, Taker take, Millis limit) {
  const uint64_t id = parts_->next_call++;
  const auto watch = connect(receiver, &QObject::destroyed, this, [this, id] {
    if (parts_->calls.erase(id) == 0) return;
    parts_->wire.post([&wire = parts_->wire, id] { wire.cancel_call(id); });
  });
  parts_->calls.emplace(id, Call{receiver, watch, std::move(take)});
  parts_->wire.post([&wire = parts_->wire, id, sender, limit, held = std::move(params)]() mutable {
    wire.start_call(id, std::move(held), sender, limit);
  });
}

void AgentLink::finish_call(uint64_t id, Result<Erased> answer) {
  auto node = parts_->calls.extract(id);
  if (node.empty()) return;
  Call& call = node.mapped();
  disconnect(call.watch);
  if (call.receiver != nullptr) call.take(std::move(answer));
}

void AgentLink::take_snapshot(SnapshotPtr snapshot) {
  if (state_ != LinkState::kConnected) return;  // Late: the connection is gone again.
  snapshot_ = std::move(snapshot);
  Q_EMIT snapshot_arrived(snapshot_);
}

void AgentLink::take_state(LinkState state, const QString& why) {
  state_ = state;
  if (state != LinkState::kConnected) snapshot_ = nullptr;
  Q_EMIT state_changed(state, why);
}

}  // namespace shoal::ui
