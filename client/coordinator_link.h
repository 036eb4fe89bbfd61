#pragma once
// Keeps this host logged in at one coordinator: dials, proves its identity, reports devices, shows
// that it is alive, and comes back after a loss with growing waits. What the coordinator may ask of
// the host is a Host capability that the link's owner makes.
//
// Belongs to the KJ loop's thread.

#include <kj/async-io.h>
#include <kj/refcount.h>

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/secrets.h"
#include "client/back_off.h"
#include "schema/coordinator.capnp.h"
#include "schema/task.h"
#include "schema/transport.h"

namespace shoal::client {

// What a host says of itself when it logs in.
struct HostCard {
  std::string name, system, version;
};
HostCard own_host_card();

// A connection on which the coordinator knows who we are.
struct LoggedIn {
  kj::Own<rpc::Connection> connection;
  rpc::HostSession::Client session;
  std::string coordinator_name;
  uint64_t host_id = 0;
  bool trusted = false;
};

// Whether a failure is the coordinator's answer rather than the network's: trying again soon is no
// use.
struct LoginFailure {
  Error error;
  bool refused = false;
};
LoginFailure login_failure_of(const kj::Exception& exception);

// Dials and logs in. `identity` outlives the call.
rpc::Task<LoggedIn> log_in(kj::Network& network, kj::Timer& timer, rpc::AttachUrl url,
                           const SigningKey& identity, HostCard card, rpc::Host::Client host);

// Where a host's capability finds the session of its connection, which exists only after the login.
struct SessionSlot : kj::Refcounted {
  kj::Maybe<rpc::HostSession::Client> session;
};

class CoordinatorLink {
 public:
  enum class State { kConnecting, kConnected, kWaiting, kRefused };

  class Needs {
   public:
    virtual ~Needs() noexcept(false) = default;
    virtual const SigningKey& identity() const = 0;
    virtual rpc::Host::Client make_host(kj::Own<SessionSlot> slot) = 0;  // Once for each attempt.
    virtual void write_report(rpc::HostSession::ReportParams::Builder report) = 0;
    virtual void link_changed(CoordinatorLink& link) = 0;
  };

  struct Waits {
    Millis first{500}, most{60'000};
    Millis refused_first{30'000}, refused_most{3'600'000};
    kj::Duration answer_max = 20 * kj::SECONDS;  // Of a ping or a report.
  };

  // All of these outlive the object. Starts at once.
  CoordinatorLink(kj::Network& network, kj::Timer& timer, const Clock& clock, Random& random,
                  Needs& needs, rpc::AttachUrl url, Waits waits);
  CoordinatorLink(kj::Network& network, kj::Timer& timer, const Clock& clock, Random& random,
                  Needs& needs, rpc::AttachUrl url)
      : CoordinatorLink(network, timer, clock, random, needs, std::move(url), Waits{}) {}
  ~CoordinatorLink();
  KJ_DISALLOW_COPY(CoordinatorLink);

  const rpc::AttachUrl& url() const { return url_; }
  State state() const { return state_; }
  const std::string& reason() const { return reason_; }  // Why it is not connected, for a person.
  Millis retry_in() const;                               // 0 unless it waits.
  const std::string& coordinator_name() const { return name_; }
  uint64_t host_id() const { return host_id_; }
  bool trusted() const { return trusted_; }

  void devices_changed();  // Reports them again, soon.

  // Says goodbye if it can do so quickly. Nothing is tried after this.
  kj::Promise<void> leave(std::string reason);

 private:
  rpc::Task<void> keep_connected();
  rpc::Task<void> be_connected();
  rpc::Task<void> report_changes();
  rpc::Task<void> show_life();
  void set_state(State state, std::string reason);
  void drop_connection();

  kj::Network& network_;
  kj::Timer& timer_;
  const Clock& clock_;
  Needs& needs_;
  rpc::AttachUrl url_;
  Waits waits_;
  BackOff back_off_;
  BackOff refused_back_off_;
  State state_ = State::kConnecting;
  std::string reason_;
  Millis retry_at_{0};
  std::string name_;
  uint64_t host_id_ = 0;
  bool trusted_ = false;
  bool report_due_ = false;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> report_wanted_;
  kj::Own<SessionSlot> slot_;
  kj::Maybe<LoggedIn> logged_in_;
  kj::Promise<void> life_;  // Last: it uses all of the above.
};

}  // namespace shoal::client
