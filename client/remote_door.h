#pragma once
// Lets user interfaces of other machines in: off unless the setting remote.listen says where, and
// nobody whom the owner did not pair. TLS with a certificate of this client's own.
//
// Belongs to the KJ loop's thread.

#include <capnp/membrane.h>
#include <kj/async.h>

#include <map>
#include <string>

#include "client/agent_server.h"
#include "client/pairing_codes.h"
#include "schema/transport.h"

namespace shoal::client {

class RemoteDoor final : public Pairer {
 public:
  // `agent` outlives the door. `certificate_file` is made when it is first needed. Opens at once,
  // if the settings say so.
  RemoteDoor(Agent& agent, std::filesystem::path certificate_file);
  ~RemoteDoor() noexcept(false);
  KJ_DISALLOW_COPY(RemoteDoor);

  uint16_t port() const;  // 0 while it is closed.
  // Why it is closed although the settings want it open; empty: it is as they want.
  const std::string& problem() const { return problem_; }

  Result<Invitation> invite() override;
  Result<void> unpair(uint64_t id) override;

 private:
  class Guest;
  class Door;

  // Opens, moves or closes the door as the settings say now.
  void act_on_settings();
  void show();
  rpc::Task<void> open(std::string address);
  Result<rpc::Certificate> certificate();
  // What somebody with this token gets; kDenied when it is nobody's.
  struct Admitted {
    uint64_t id = 0;
    std::string token;
  };
  Result<Admitted> admit(const std::string& token, const std::string& name);
  rpc::Agent::Client agent_for(uint64_t id);

  Agent& agent_;
  std::filesystem::path certificate_file_;
  std::string address_;  // Where it listens, or tries to; empty: closed.
  std::string host_;     // Of the address, as the pairing URL names it.
  std::string pin_;
  std::string problem_;
  PairingCodes codes_;
  std::map<uint64_t, kj::Own<Guest>> guests_;  // By their pairing.
  kj::Own<rpc::Listener> listener_;            // Null while it is closed.
  kj::Promise<void> opening_ = nullptr;
  kj::Promise<void> acting_ = nullptr;
};

}  // namespace shoal::client
