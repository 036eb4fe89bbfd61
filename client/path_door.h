#pragma once
// Where stages of this host meet their neighbours on other hosts: the door that the owner may open
// for them, and the dialling. Whoever comes must name a token that a coordinator gave both. Knows
// nothing of steps.
//
// Belongs to the KJ loop's thread.

#include <kj/async.h>

#include <functional>
#include <map>
#include <string>

#include "base/bytes.h"
#include "base/digest.h"
#include "client/loop.h"
#include "schema/direct.capnp.h"
#include "schema/task.h"
#include "schema/transport.h"

namespace shoal::client {

class PathDoor {
 public:
  explicit PathDoor(Loop loop);
  ~PathDoor() noexcept(false);
  KJ_DISALLOW_COPY(PathDoor);

  // As the owner's settings are now. `listen` is an address with a port, or empty: nobody may dial.
  void act_on(bool allowed, const std::string& listen);
  bool dials() const { return allowed_; }
  uint16_t port() const { return listener_.get() == nullptr ? 0 : listener_->port(); }
  // Of a certificate that lives as long as this process; empty while nobody may dial.
  const std::string& pin() const { return pin_; }

  // One connection with a neighbour, as one end of a path has it. Dropped, it hears no more.
  struct Meeting {
    kj::Maybe<rpc::PathInlet::Client> inlet;  // The neighbour's, if it has the path's inputs.
    kj::Own<rpc::Connection> connection;      // Null on the side that was dialled;
    kj::Own<rpc::ReceiveLimit> limit;         // and this one is on the other.
    uint32_t round_trip_micros = 0;

    Meeting() = default;
    Meeting(Meeting&&) = default;
    Meeting& operator=(Meeting&&) = default;
    ~Meeting() noexcept(false);
  };

  // Waits for a neighbour until it is dropped. The door outlives it.
  class Expectation {
   public:
    Expectation(PathDoor& door, Digest token)
        : door_(door), token_(token) {}  // For expect() alone.
    ~Expectation();
    KJ_DISALLOW_COPY(Expectation);

   private:
    PathDoor& door_;
    const Digest token_;
  };
  // `own` is what the neighbour gets, if this end has the path's inputs; then it sends no message
  // that is larger than `bytes_max`. `met` may drop the expectation.
  std::unique_ptr<Expectation> expect(ByteSpan token, kj::Maybe<rpc::PathInlet::Client> own,
                                      size_t bytes_max, std::function<void(Meeting)> met);

  // Fails in a sentence that says why there is no path.
  rpc::Task<Meeting> dial(rpc::AttachUrl url, ByteVector token,
                          kj::Maybe<rpc::PathInlet::Client> own);

  // What stages of this host keep of what they passed on, in bytes.
  int64_t& kept_bytes() { return kept_bytes_; }

 private:
  class Visitor;
  struct Expected {
    kj::Maybe<rpc::PathInlet::Client> own;
    size_t bytes_max = 0;
    std::function<void(Meeting)> met;
  };

  rpc::Task<void> open(std::string text);

  Loop loop_;
  bool allowed_ = false;
  std::string address_;  // Where it listens, or tries to; empty: nowhere.
  std::string pin_;
  std::map<Digest, Expected> expected_;  // By a digest of the token.
  int64_t kept_bytes_ = 0;
  kj::Own<rpc::Listener> listener_;  // Null while nobody may dial.
  kj::Promise<void> opening_ = nullptr;
};

}  // namespace shoal::client
