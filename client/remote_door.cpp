#include "client/remote_door.h"

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/text.h"
#include "client/rules/validate_rules.h"
#include "schema/limits.h"
#include "schema/pairing_url.h"
#include "schema/require.h"

namespace shoal::client {
namespace {

constexpr size_t kPairingsMax = 32;
constexpr size_t kTokenBytesMax = 128;
constexpr int kTriesMax = 5;  // Of one connection.

rpc::ListenLimits door_limits() {
  rpc::ListenLimits limits;
  limits.connections_max = 64;
  limits.connections_per_address_max = 16;
  return limits;
}

}  // namespace

// What all connections of one pairing have in common: they end together.
class RemoteDoor::Guest final : public capnp::MembranePolicy, public kj::Refcounted {
 public:
  Guest() : over_(nullptr) {
    auto pair = kj::newPromiseAndFulfiller<void>();
    fulfiller_ = kj::mv(pair.fulfiller);
    over_ = pair.promise.fork();
  }
  void end() {
    fulfiller_->reject(KJ_EXCEPTION(DISCONNECTED, "this user interface is no longer paired"));
  }

  kj::Maybe<capnp::Capability::Client> inboundCall(uint64_t, uint16_t,
                                                   capnp::Capability::Client) override {
    return nullptr;  // Passes.
  }
  kj::Maybe<capnp::Capability::Client> outboundCall(uint64_t, uint16_t,
                                                    capnp::Capability::Client) override {
    return nullptr;
  }
  kj::Own<capnp::MembranePolicy> addRef() override { return kj::addRef(*this); }
  kj::Maybe<kj::Promise<void>> onRevoked() override { return over_.addBranch(); }

 private:
  kj::Own<kj::PromiseFulfiller<void>> fulfiller_;
  kj::ForkedPromise<void> over_;
};

// All that a stranger has.
class RemoteDoor::Door final : public rpc::RemoteAgent::Server {
 public:
  Door(RemoteDoor& door, rpc::Peer peer) : door_(door), peer_(kj::mv(peer)) {}

  kj::Promise<void> open(OpenContext context) override {
    const auto params = context.getParams();
    const std::string token = rpc::text_of(params.getToken(), kTokenBytesMax, "token");
    const std::string name =
        printable(rpc::text_of(params.getName(), limits::kNameBytesMax, "name"));
    // A stranger's guesses cost him his connection, and the owner's invitation nothing.
    if (refused_ >= kTriesMax) {
      rpc::throw_error({ErrorCode::kDenied, "too many wrong tokens: connect anew"});
    }
    const Result<Admitted> found = door_.admit(token, name);
    if (!found.ok()) ++refused_;
    const Admitted admitted = rpc::require(found);
    peer_.limit->bytes = limits::kMessageBytesMax;
    auto results = context.getResults();
    results.setAgent(door_.agent_for(admitted.id));
    results.setToken(admitted.token);
    return kj::READY_NOW;
  }

 private:
  RemoteDoor& door_;
  rpc::Peer peer_;
  int refused_ = 0;
};

RemoteDoor::RemoteDoor(Agent& agent, std::filesystem::path certificate_file)
    : agent_(agent), certificate_file_(std::move(certificate_file)) {
  agent_.on_settings_changed([this] {
    // Not within the call that changed them: that may have come through the door itself.
    acting_ =
        kj::evalLater([this] { act_on_settings(); }).eagerlyEvaluate([](kj::Exception&& exception) {
          log_error("remote", "gave_up", {{"cause", exception.getDescription().cStr()}});
        });
  });
  act_on_settings();
}

RemoteDoor::~RemoteDoor() noexcept(false) {
  agent_.on_settings_changed([] {});
}

uint16_t RemoteDoor::port() const { return listener_.get() == nullptr ? 0 : listener_->port(); }

Result<rpc::Certificate> RemoteDoor::certificate() {
  const StateFile file(certificate_file_);
  const Result<StateFile::Loaded> loaded = file.load();
  if (loaded.ok()) {
    const auto json = nlohmann::json::parse(as_text(loaded.value().bytes), nullptr, false);
    if (json.is_object() && json.contains("der") && json.contains("key")) {
      const Result<ByteVector> der = hex_decode(json["der"].get<std::string>());
      if (der.ok()) return rpc::Certificate{der.value(), json["key"].get<std::string>()};
    }
    return Error{ErrorCode::kCorrupt, certificate_file_.string() +
                                          " is damaged: remove it, and "
                                          "pair anew"};
  }
  if (loaded.error().code != ErrorCode::kNotFound) return loaded.error();
  SHOAL_TRY_ASSIGN(made, rpc::make_certificate());
  const nlohmann::json json = {{"der", hex_encode(made.der)}, {"key", made.private_key_pem}};
  SHOAL_TRY(file.save(as_bytes(json.dump())));
  return made;
}

void RemoteDoor::show() { agent_.remote_door_is(listener_.get() != nullptr, problem_); }

void RemoteDoor::act_on_settings() {
  const std::string& wanted = agent_.parts().settings.now().text("remote.listen");
  if (wanted == address_ && (wanted.empty() || listener_.get() != nullptr)) return;
  address_ = wanted;
  problem_.clear();
  codes_.close();
  opening_ = nullptr;
  listener_ = nullptr;
  show();
  if (wanted.empty()) return;
  opening_ = open(wanted).promise().eagerlyEvaluate([this](kj::Exception&& exception) {
    problem_ = rpc::error_of(exception).message;
    log_error("remote", "not_open", {{"cause", problem_}});
    show();
  });
}

rpc::Task<void> RemoteDoor::open(std::string text) {
  const ListenAddress address = rpc::require(parse_listen_address(text));
  const rpc::Certificate certificate = rpc::require(this->certificate());
  const Loop loop = agent_.parts().loop;
  kj::Promise<kj::Own<rpc::Listener>> listening = rpc::listen_tls(
      loop.io.provider->getNetwork(), loop.timer, address.host, address.port, certificate,
      [this](rpc::Peer peer) -> capnp::Capability::Client {
        return kj::heap<Door>(*this, kj::mv(peer));
      },
      door_limits());
  listener_ = co_await kj::mv(listening);
  pin_ = rpc::pin_of(certificate.der);
  const bool everywhere = address.host == "0.0.0.0" || address.host == "::" || address.host == "*";
  host_ = everywhere ? host_name() : address.host;
  show();
  log_info("remote", "open", {{"port", int{listener_->port()}}});
}

Result<Pairer::Invitation> RemoteDoor::invite() {
  if (address_.empty()) {
    return Error{ErrorCode::kUnavailable,
                 "other machines may not connect: the setting remote.listen is empty"};
  }
  if (listener_.get() == nullptr) {
    return Error{ErrorCode::kUnavailable,
                 problem_.empty() ? "the door for other machines is just opening" : problem_};
  }
  const AgentParts& parts = agent_.parts();
  const std::string token = codes_.open(parts.clock.now_monotonic());
  log_info("remote", "pairing_open");
  return Invitation{rpc::format_pairing_url({host_, listener_->port(), pin_, token}),
                    parts.clock.now_wall() + PairingCodes::kOpenFor};
}

Result<RemoteDoor::Admitted> RemoteDoor::admit(const std::string& token, const std::string& name) {
  ClientState& state = agent_.parts().state;
  const Millis now = agent_.parts().clock.now_wall();
  if (const Pairing* known = find_pairing(state.memory().pairings, token)) {
    const uint64_t id = known->id;
    const Result<void> stored = state.change([id, now](ClientMemory& memory) {
      for (Pairing& pairing : memory.pairings) {
        if (pairing.id == id) pairing.last_used = now;
      }
    });
    if (!stored.ok()) log_warning("remote", "not_stored", {{"cause", stored.error()}});
    return Admitted{id, token};
  }
  if (!codes_.use(token, agent_.parts().clock.now_monotonic())) {
    log_warning("remote", "refused");
    return Error{ErrorCode::kDenied,
                 "this user interface is not paired, or the pairing URL is used up or too old: "
                 "ask for another one on the computer itself"};
  }
  if (state.memory().pairings.size() >= kPairingsMax) {
    return Error{ErrorCode::kNoSpace, "too many user interfaces are paired: remove one first"};
  }
  Admitted admitted{1, make_token()};
  for (const Pairing& pairing : state.memory().pairings) {
    admitted.id = std::max(admitted.id, pairing.id + 1);
  }
  SHOAL_TRY(state.change([&](ClientMemory& memory) {
    memory.pairings.push_back({admitted.id, name, token_digest(admitted.token), now, now});
  }));
  log_info("remote", "paired", {{"id", admitted.id}});
  return admitted;
}

rpc::Agent::Client RemoteDoor::agent_for(uint64_t id) {
  kj::Own<Guest>& guest = guests_[id];
  if (guest.get() == nullptr) guest = kj::refcounted<Guest>();
  rpc::Agent::Client agent = kj::heap<AgentServer>(agent_, *this, Asker::kGuest);
  return capnp::membrane(kj::mv(agent), kj::addRef(*guest)).castAs<rpc::Agent>();
}

Result<void> RemoteDoor::unpair(uint64_t id) {
  const std::vector<Pairing>& pairings = agent_.parts().state.memory().pairings;
  const bool known = std::ranges::find(pairings, id, &Pairing::id) != pairings.end();
  if (!known) return Error{ErrorCode::kNotFound, "no user interface is paired with that number"};
  SHOAL_TRY(agent_.parts().state.change([id](ClientMemory& memory) {
    std::erase_if(memory.pairings, [id](const Pairing& pairing) { return pairing.id == id; });
  }));
  const auto guest = guests_.find(id);
  if (guest != guests_.end()) {
    guest->second->end();
    guests_.erase(guest);
  }
  log_info("remote", "unpaired", {{"id", id}});
  return {};
}

}  // namespace shoal::client
