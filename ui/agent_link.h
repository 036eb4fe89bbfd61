#pragma once
// The only room that knows both event loops: speaks to the client over its Unix socket on a thread
// of its own, and hands snapshots and answers to the Qt thread. Decides nothing about what is
// shown.
//
// Belongs to the Qt thread, which never waits for it: a client that is busy, hung or dead costs the
// window nothing but its news.

#include <capnp/any.h>
#include <kj/async.h>

#include <QObject>
#include <QString>
#include <functional>
#include <memory>

#include "base/result.h"
#include "base/units.h"
#include "ui/snapshot.h"

namespace shoal::ui {

enum class LinkState {
  kConnecting,  // Not tried yet.
  kConnected,
  kSilent,  // The client holds the connection and does not answer.
  kAbsent,  // Nothing answers at the socket.
};

// How soon a client that says nothing is asked whether it lives, and how long it may take to
// answer.
struct LinkPatience {
  Millis probe_every{5'000};
  Millis probe_max{5'000};
};

// Takes apart a method such as &rpc::Agent::Client::statisticsRequest.
template <auto kMethod>
struct MethodOf;
template <class P, class R,
          capnp::Request<P, R> (rpc::Agent::Client::*kMethod)(kj::Maybe<capnp::MessageSize>)>
struct MethodOf<kMethod> {
  using Params = P;
  using Results = R;
};

// What a call is answered with: AnswerOf<&rpc::Agent::Client::statisticsRequest>.
template <auto kMethod>
using AnswerOf = Result<std::shared_ptr<const Kept<typename MethodOf<kMethod>::Results>>>;

class AgentLink : public QObject {
  Q_OBJECT

 public:
  // `socket`: the path of the client's agent.sock. Tries to connect at once, and for ever.
  explicit AgentLink(QString socket, LinkPatience patience = {}, QObject* parent = nullptr);
  ~AgentLink() override;

  LinkState state() const { return state_; }
  const QString& socket() const { return socket_; }
  const SnapshotPtr& snapshot() const { return snapshot_; }  // Null while not connected.
  size_t calls_open() const;                                 // How many are not answered yet.

  // Tries to connect now rather than when the back-off ends.
  void retry();
  // Snapshots come no closer together than this: a hidden window needs fewer of them.
  void set_snapshot_interval(Millis interval);

  // Asks the client. `fill` sets the parameters, here and now; `take` gets the answer on this
  // thread, later, and never after `receiver` is gone. The errors: kUnavailable without a client,
  // kTimeout after `limit`, or the client's own, whose message is a sentence for the owner.
  //
  //   link.call<&rpc::Agent::Client::setModeRequest>(
  //       this, [&](auto params) { params.setForMs(0); },
  //       [this](AnswerOf<&rpc::Agent::Client::setModeRequest> answer) { ... });
  template <auto kMethod, class Fill, class Take>
  void call(QObject* receiver, Fill fill, Take take, Millis limit = Millis{15'000}) {
    using Params = typename MethodOf<kMethod>::Params;
    using Results = typename MethodOf<kMethod>::Results;
    auto message = std::make_unique<capnp::MallocMessageBuilder>();
    fill(message->template initRoot<Params>());
    const Sender sender = [](rpc::Agent::Client& agent, capnp::MessageBuilder& from) {
      auto request = (agent.*kMethod)(nullptr);
      copy_struct(from.getRoot<Params>(), typename Params::Builder(request));
      return request.send().then([](capnp::Response<Results>&& response) -> Erased {
        return std::make_shared<const Kept<Results>>(response);
      });
    };
    start_call(
        receiver, std::move(message), sender,
        [take = std::move(take)](Result<Erased> answer) mutable {
          if (!answer.ok()) return take(AnswerOf<kMethod>(answer.error()));
          take(AnswerOf<kMethod>(std::static_pointer_cast<const Kept<Results>>(answer.value())));
        },
        limit);
  }

 Q_SIGNALS:
  void snapshot_arrived(const shoal::ui::SnapshotPtr& snapshot);
  // To anything but kConnected: snapshot() is null from here on, and `why` says what failed.
  void state_changed(shoal::ui::LinkState state, const QString& why);

 private:
  using Erased = std::shared_ptr<const void>;
  using Sender = kj::Promise<Erased> (*)(rpc::Agent::Client& agent, capnp::MessageBuilder& params);
  using Taker = std::function<void(Result<Erased>)>;
  class Wire;   // What lives on the KJ thread.
  struct Call;  // One that is not answered yet.
  struct Parts;

  static void copy_struct(capnp::AnyStruct::Builder from, capnp::AnyStruct::Builder to);
  void start_call(QObject* receiver, std::unique_ptr<capnp::MallocMessageBuilder> params,
                  Sender sender, Taker take, Millis limit);
  void finish_call(uint64_t id, Result<Erased> answer);
  void take_snapshot(SnapshotPtr snapshot);
  void take_state(LinkState state, const QString& why);

  QString socket_;
  LinkPatience patience_;
  LinkState state_ = LinkState::kConnecting;
  SnapshotPtr snapshot_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace shoal::ui
