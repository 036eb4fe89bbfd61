#pragma once
// The hosts that are connected now, their devices and what is taken of them; which shards each host
// may read. Decides nothing: work/ chooses among what this room lists.
//
// Belongs to the coordinator's one thread. Outlives the sessions that hold places in it.

#include <kj/async.h>
#include <kj/time.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/secrets.h"
#include "coordinator/store/host_table.h"
#include "coordinator/work/planner.h"
#include "coordinator/work/standing.h"
#include "coordinator/work/step_fit.h"
#include "schema/coordinator.capnp.h"
#include "schema/receipt.h"

namespace shoal {

struct PoolDevice {
  DeviceRow row;  // Who it is and what it measured.
  DeviceState state = DeviceState::kStarting;
  std::string reason;
  std::optional<BoxPublicKey> worker_key;        // Empty: no worker now.
  std::optional<kj::TimePoint> available_until;  // Empty: its owner names no end.
};

// What stages hold of a device.
struct Taken {
  Bytes bytes;
  int stages = 0;
};

// A device of a host, as one login of it knows it.
struct DevicePlace {
  HostId host;
  uint64_t login = 0;  // Numbers the host's logins; another login is another place.
  std::string device;

  friend auto operator<=>(const DevicePlace&, const DevicePlace&) = default;
};

// What of a device's memory stages may take: the rest is its owner's, its driver's, and for our own
// small buffers.
Bytes usable_memory(Bytes memory);

// What a class of work is known by in the lists of what owners deny: a name may be long.
Digest digest_of_class(const JobClass& job_class);

class Pool {
 public:
  struct Host {
    HostId id;
    uint64_t login = 0;
    std::string name;
    bool trusted = false;
    Membership membership;
    // Who answers for it (0: it is its own owner's), and the network that it comes from.
    int64_t owner = 0;
    uint64_t address_block = 0;
    std::string address;  // As its connection shows it, without the port; empty: not known.
    rpc::Host::Client client;
    double hop_seconds = 0;
    bool hop_measured = false;
    std::vector<PoolDevice> devices;
    // By the device's name. Whatever the host reports, or leaves out of a report: what was
    // promised to a stage is promised until the stage ends.
    std::map<std::string, Taken> taken;
    std::map<std::string, StepFit> fits;  // Likewise: how fast its steps were.
    std::map<Digest, int> readable;       // Shards that it was given, and how often.
    // Memory on loan, by the device's name: as soon as a stage or a unit takes the device, its
    // borrower is asked to go.
    std::map<std::string, std::map<uint64_t, std::function<void()>>> loans;
    std::set<Digest> given;  // All that this login was ever given: likely to be on its disk.
    kj::ForkedPromise<void> gone;
    kj::Own<kj::PromiseFulfiller<void>> go;
    uint64_t reads = 0;  // Shard reads so far: how a long opening shows that it goes on.

    Host(rpc::Host::Client client, kj::PromiseFulfillerPair<void> gone_pair)
        : client(kj::mv(client)), gone(gone_pair.promise.fork()), go(kj::mv(gone_pair.fulfiller)) {}
    Taken taken_of(const std::string& device) const;
  };

  // Memory of a device taken by a stage, and its host's right to read the stage's shards. Given
  // back at the end of its life. Holds no more when the host has gone meanwhile.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept;
    Hold& operator=(Hold&& other) noexcept;
    ~Hold();
    // A loan ended for it: what was lent may be in the device's memory for moments yet.
    bool ended_loan() const { return ended_loan_; }

   private:
    friend class Pool;
    Pool* pool_ = nullptr;  // Null when it holds nothing.
    DevicePlace place_;
    Bytes bytes_;
    std::vector<Digest> shards_;
    uint64_t loan_ = 0;  // 0: it is none.
    bool ended_loan_ = false;
  };

  Pool() = default;
  KJ_DISALLOW_COPY(Pool);

  // A host that logs in takes the place of its former login. Returns the login's number.
  uint64_t attach(HostId id, const std::string& name, bool trusted, rpc::Host::Client client,
                  const Membership& membership = {});
  // Nothing when that login is over already. What is lost by a host that leaves `in_order` is not
  // its failure.
  void detach(HostId id, uint64_t login, bool in_order = false);
  bool is_current(HostId id, uint64_t login) const;
  void report(HostId id, uint64_t login, std::vector<PoolDevice> devices);
  void set_trusted(HostId id, bool trusted);
  void set_whereabouts(HostId id, uint64_t login, int64_t owner, uint64_t address_block,
                       std::string address);
  // What the host's owner denies. It holds over logins, until the host says otherwise: so nothing
  // denied is given to a host that has just come back and has not spoken of it yet.
  void set_denied(HostId id, uint64_t login, std::span<const JobClass> denied);
  bool denies(HostId id, const Digest& class_digest) const;
  void note_hop(HostId id, uint64_t login, double seconds);  // A round trip, as measured.

  // A step took so long, with the way there and back. Counts when the device had no other stage.
  void note_step(const DevicePlace& place, StepSample sample);
  // How fast a device is: by its steps once there are enough of them, before that by its report.
  StepFactors factors(const DevicePlace& place) const;

  const std::map<HostId, std::unique_ptr<Host>>& hosts() const { return hosts_; }
  // Who answers for the host; one whose owner is not known is its own.
  int64_t owner_of(HostId id) const;
  uint64_t address_of(HostId id) const;
  Host* find(HostId id, uint64_t login);       // Null when that login is over.
  PoolDevice* find(const DevicePlace& place);  // Null likewise, or when it is no longer enabled.
  Taken taken(const DevicePlace& place) const;

  // Whether its owner, or the host in order, has taken the device back.
  bool is_taken_back(const DevicePlace& place) const;

  // Devices that may take a stage of such work now, with what is free of them. With a `group`, only
  // those of its hosts.
  struct Offer {
    DevicePlace place;
    PlanDevice plan;
  };
  std::vector<Offer> offers(kj::TimePoint now, const JobClass& job_class,
                            const std::string& group = {}) const;
  bool was_given(const DevicePlace& place, std::span<const Digest> shards);

  Hold hold(const DevicePlace& place, Bytes bytes, std::vector<Digest> shards);
  // Memory that nobody else wants now: it is not counted as taken, and `give_way` is called, once,
  // before anybody else is given any of the device. It must drop the hold and all that uses it.
  Hold borrow(const DevicePlace& place, std::vector<Digest> shards, std::function<void()> give_way);
  bool is_lent(const DevicePlace& place) const;
  bool may_read(HostId id, const Digest& shard) const;

  kj::Promise<void> gone(const DevicePlace& place);  // When the host's login is over.
  kj::Promise<void> changed();                       // At the next change of hosts or devices.

 private:
  void give(Host& host, const DevicePlace& place, std::vector<Digest> shards, Hold& hold);
  void release(const Hold& hold);
  void note_change();

  std::map<HostId, std::unique_ptr<Host>> hosts_;
  // By digest: a host may name a thousand classes of long names, and costs no more than this.
  std::map<HostId, std::set<Digest>> denied_;
  std::map<HostId, uint64_t> left_in_order_;  // The last login that each host left so.
  uint64_t logins_ = 0, loans_ = 0;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting_;
};

}  // namespace shoal
