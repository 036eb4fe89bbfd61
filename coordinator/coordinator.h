#pragma once
// The door: a coordinator on a data folder, a timer, a clock and a seed. Opens no socket: main()
// and the tests bring the streams.

#include <capnp/capability.h>
#include <kj/async.h>
#include <kj/timer.h>

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "coordinator/data_folder.h"
#include "schema/transport.h"

namespace shoal {

struct Parts;

// Belongs to the thread of its KJ loop.
class Coordinator {
 public:
  // Timer, clock and random outlive it. Sessions that a former process left are marked failed.
  static Result<std::unique_ptr<Coordinator>> open(DataFolder folder, kj::Timer& timer,
                                                   const Clock& clock, Random& random);
  ~Coordinator() noexcept(false);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  capnp::Capability::Client host_door(rpc::Peer peer);  // For one connection of a host.
  capnp::Capability::Client admin_door();

  void set_port(uint16_t port);  // Of the hosts' door, for attach URLs.
  std::string attach_url(const std::string& invite = "") const;
  const CoordinatorSettings& settings() const;
  const rpc::Certificate& certificate() const;

  // Refuses new sessions; done when the live ones have ended or the time for it is over.
  kj::Promise<void> drain();

  explicit Coordinator(std::unique_ptr<Parts> parts);  // For open() alone.

 private:
  kj::Promise<void> wait_for_end(kj::TimePoint until);
  kj::Promise<void> keep_days();

  std::unique_ptr<Parts> parts_;
  kj::Promise<void> days_;  // Last: it uses the parts.
};

}  // namespace shoal
