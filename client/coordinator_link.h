#pragma once
// Keeps this host logged in at one coordinator: dials, proves its identity, says what its owner
// denies, reports devices, shows that it is alive, brings receipts, and comes back after a loss
// with growing waits. What the coordinator may ask of the host is a Host capability that the link's
// owner makes.
//
// Belongs to the KJ loop's thread.

#include <kj/async-io.h>
#include <kj/refcount.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/secrets.h"
#include "client/back_off.h"
#include "client/coordinator_facts.h"
#include "client/loop.h"
#include "schema/coordinator.capnp.h"
#include "schema/ledger_day.h"
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

// What a coordinator asks of hosts, without joining it.
rpc::Task<CoordinatorCard> preview(kj::Network& network, kj::Timer& timer, rpc::AttachUrl url);

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
    // Once for each attempt.
    virtual rpc::Host::Client make_host(CoordinatorLink& link, kj::Own<SessionSlot> slot) = 0;
    virtual void write_report(rpc::HostSession::ReportParams::Builder report) = 0;
    virtual void link_changed(CoordinatorLink& link) = 0;
    virtual void standing_changed(CoordinatorLink& link) = 0;

    // Of the classes on the link's card and of those judged before.
    virtual std::vector<JobClass> denied(const CoordinatorLink& link) = 0;
    // The key that signs this coordinator's receipts. An error refuses the coordinator.
    virtual Result<void> receipt_key_shown(const CoordinatorLink& link,
                                           const SigningPublicKey& key) = 0;
    // After which number receipts are wanted; none: there is nothing to bring.
    virtual std::optional<uint64_t> receipts_wanted(const CoordinatorLink& link) = 0;
    // An error ends the bringing for a while that grows.
    virtual Result<void> receipts_came(const CoordinatorLink& link,
                                       const std::vector<Receipt>& receipts) = 0;
    // Which day's root is wanted, and proofs after which receipt; none: there is nothing to bring.
    struct DayWanted {
      int64_t from_day = 0;
      uint64_t after_number = 0;
    };
    virtual std::optional<DayWanted> day_wanted(const CoordinatorLink&) { return {}; }
    // Likewise.
    virtual Result<void> day_came(const CoordinatorLink&, const LedgerDay&,
                                  const std::vector<ReceiptProof>&, bool /*more*/) {
      return {};
    }
  };

  struct Waits {
    Millis first{500}, most{60'000};
    Millis refused_first{30'000}, refused_most{3'600'000};
    kj::Duration answer_max = 20 * kj::SECONDS;  // Of a ping or a report.
    kj::Duration probe_max = 3 * kj::SECONDS;    // Of a ping after a sleep.
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

  // Null unless connected; another one for each of logins().
  kj::Maybe<rpc::HostSession::Client> session();
  uint64_t logins() const { return logins_; }

  Millis connected_since() const { return connected_since_; }  // Wall time; 0 unless connected.
  const HostStanding& standing() const { return standing_; }   // As last told.
  const CoordinatorCard& card() const { return card_; }        // Likewise.
  bool knows_card() const { return knows_card_; }

  void devices_changed();  // Reports them again, soon.
  void consent_changed();  // Tells it again, soon.
  // It speaks of work that is not on the card: reads that again, then tells what is denied.
  void card_outdated();
  // After a sleep: dials at once when it waits, and asks for a sign of life when it is connected.
  void look_now();
  // Resolves when the coordinator has heard the newest report, or cannot.
  kj::Promise<void> reported();

  // Says goodbye if it can do so quickly. Nothing is tried after this.
  kj::Promise<void> leave(std::string reason);

 private:
  rpc::Task<void> keep_connected();
  rpc::Task<void> be_connected();
  rpc::Task<void> report_changes();
  rpc::Task<void> show_life();
  rpc::Task<void> tend();
  rpc::Task<void> describe();
  rpc::Task<void> bring_receipts();
  rpc::Task<void> bring_days();
  // What the coordinator tells of the past: what fails of it costs no connection.
  struct PutOff {
    BackOff back_off;
    Millis not_before{0};  // Monotonic.
  };
  void put_off(PutOff& what, const char* event, const Error& cause);
  // Throws on what ends the connection; what an older coordinator does not know is done without.
  void put_off(PutOff& what, const char* event, const kj::Exception& cause);
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
  PutOff receipts_off_, days_off_;
  State state_ = State::kConnecting;
  std::string reason_;
  Millis retry_at_{0};
  std::string name_;
  uint64_t host_id_ = 0;
  bool trusted_ = false;
  uint64_t logins_ = 0;
  Millis connected_since_{0};
  HostStanding standing_;
  CoordinatorCard card_;
  bool knows_card_ = false;
  bool refused_ = false;  // By us: see receipt_key_shown().
  bool report_due_ = false, consent_due_ = false, card_due_ = false, receipts_due_ = false;
  bool reporting_ = false;
  Signal report_wanted_, tend_wanted_, look_wanted_;
  kj::Own<kj::PromiseFulfiller<void>> broken_;      // Ends the connection that is.
  kj::Own<kj::PromiseFulfiller<void>> introduced_;  // The owner's no has been told.
  kj::Promise<void> introduction_ = nullptr;        // When it has.
  kj::Promise<void> probe_ = nullptr;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> report_waiting_;
  kj::Own<SessionSlot> slot_;
  kj::Maybe<LoggedIn> logged_in_;
  kj::Promise<void> life_;  // Last: it uses all of the above.
};

}  // namespace shoal::client
