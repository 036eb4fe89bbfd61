#include "coordinator/session/pool.h"

#include <algorithm>
#include <utility>

namespace shoal {
namespace {

constexpr double kHopRise = 0.1;
constexpr int64_t kFitSamplesMin = 20;  // Before that a device's report tells more than its steps.
constexpr double kStepPartMin = 0.1;    // Of a step's time, at least so much is not the way.

}  // namespace

Digest digest_of_class(const JobClass& job_class) {
  DigestBuilder builder;
  for (const std::string& text : {job_class.kind, job_class.model}) {
    ByteWriter size;
    size.u64(text.size());
    builder.update(size.view());
    builder.update(as_bytes(text));
  }
  builder.update(as_bytes(job_class.group ? "g" : job_class.anchored ? "a" : "p"));
  return builder.finish();
}

Bytes usable_memory(Bytes memory) { return Bytes{memory.count / 10 * 9}; }

Pool::Hold::Hold(Hold&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      place_(std::move(other.place_)),
      bytes_(other.bytes_),
      shards_(std::move(other.shards_)),
      loan_(other.loan_),
      ended_loan_(other.ended_loan_) {}

Pool::Hold& Pool::Hold::operator=(Hold&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(place_, other.place_);
  std::swap(bytes_, other.bytes_);
  std::swap(shards_, other.shards_);
  std::swap(loan_, other.loan_);
  std::swap(ended_loan_, other.ended_loan_);
  return *this;
}

Pool::Hold::~Hold() {
  if (pool_ != nullptr) pool_->release(*this);
}

uint64_t Pool::attach(HostId id, const std::string& name, bool trusted, rpc::Host::Client client,
                      const Membership& membership) {
  if (const auto former = hosts_.find(id); former != hosts_.end())
    detach(id, former->second->login);
  auto host = std::make_unique<Host>(kj::mv(client), kj::newPromiseAndFulfiller<void>());
  host->id = id;
  host->login = ++logins_;
  host->name = name;
  host->trusted = trusted;
  host->membership = membership;
  hosts_[id] = std::move(host);
  note_change();
  return logins_;
}

void Pool::detach(HostId id, uint64_t login, bool in_order) {
  if (!is_current(id, login)) return;
  if (in_order) left_in_order_[id] = login;
  const auto node = hosts_.extract(id);
  node.mapped()->go->fulfill();
  note_change();
}

bool Pool::is_current(HostId id, uint64_t login) const {
  const auto found = hosts_.find(id);
  return found != hosts_.end() && found->second->login == login;
}

void Pool::report(HostId id, uint64_t login, std::vector<PoolDevice> devices) {
  Host* const host = find(id, login);
  if (host == nullptr) return;
  host->devices = std::move(devices);
  note_change();
}

void Pool::set_trusted(HostId id, bool trusted) {
  if (const auto found = hosts_.find(id); found != hosts_.end()) {
    found->second->trusted = trusted;
    note_change();
  }
}

void Pool::set_whereabouts(HostId id, uint64_t login, int64_t owner, uint64_t address_block,
                           std::string address) {
  if (Host* const host = find(id, login)) {
    host->owner = owner;
    host->address_block = address_block;
    host->address = std::move(address);
  }
}

int64_t Pool::owner_of(HostId id) const {
  const auto host = hosts_.find(id);
  return host == hosts_.end() || host->second->owner == 0 ? -id.value : host->second->owner;
}

uint64_t Pool::address_of(HostId id) const {
  const auto host = hosts_.find(id);
  return host == hosts_.end() ? 0 : host->second->address_block;
}

void Pool::set_denied(HostId id, uint64_t login, std::span<const JobClass> denied) {
  if (!is_current(id, login)) return;
  std::set<Digest> digests;
  for (const JobClass& job_class : denied) digests.insert(digest_of_class(job_class));
  if (digests.empty()) {
    denied_.erase(id);
  } else {
    denied_[id] = std::move(digests);
  }
  note_change();
}

bool Pool::denies(HostId id, const Digest& class_digest) const {
  const auto found = denied_.find(id);
  return found != denied_.end() && found->second.contains(class_digest);
}

void Pool::note_hop(HostId id, uint64_t login, double seconds) {
  Host* const host = find(id, login);
  if (host == nullptr) return;
  // The shortest time is the way itself; what is longer was mostly spent waiting, and counts
  // slowly.
  double& hop = host->hop_seconds;
  hop = host->hop_measured && seconds > hop ? hop + kHopRise * (seconds - hop) : seconds;
  host->hop_measured = true;
}

void Pool::note_step(const DevicePlace& place, StepSample sample) {
  Host* const host = find(place.host, place.login);
  const PoolDevice* const device = find(place);
  if (device == nullptr || host->taken_of(place.device).stages != 1) return;
  const DeviceRow& row = device->row;
  if (row.weight_bytes_per_second <= 0 || row.flops_per_second <= 0) return;
  sample.seconds = std::max(sample.seconds - host->hop_seconds, kStepPartMin * sample.seconds);
  const StepFactors reported{row.weight_bytes_per_second, row.flops_per_second, 0};
  host->fits.try_emplace(place.device, reported).first->second.add(sample);
}

StepFactors Pool::factors(const DevicePlace& place) const {
  const auto host = hosts_.find(place.host);
  if (host == hosts_.end() || host->second->login != place.login) return {};
  const auto fit = host->second->fits.find(place.device);
  if (fit != host->second->fits.end() && fit->second.samples() >= kFitSamplesMin)
    return fit->second.factors();
  for (const PoolDevice& device : host->second->devices) {
    if (device.row.name_on_host != place.device) continue;
    return {device.row.weight_bytes_per_second, device.row.flops_per_second, 0};
  }
  return {};
}

Pool::Host* Pool::find(HostId id, uint64_t login) {
  return is_current(id, login) ? hosts_.at(id).get() : nullptr;
}

PoolDevice* Pool::find(const DevicePlace& place) {
  Host* const host = find(place.host, place.login);
  if (host == nullptr) return nullptr;
  const auto found = std::ranges::find_if(host->devices, [&](const PoolDevice& device) {
    return device.row.name_on_host == place.device;
  });
  return found == host->devices.end() ? nullptr : &*found;
}

bool Pool::is_taken_back(const DevicePlace& place) const {
  if (!is_current(place.host, place.login)) {
    const auto left = left_in_order_.find(place.host);
    return left != left_in_order_.end() && left->second == place.login;
  }
  const std::vector<PoolDevice>& devices = hosts_.at(place.host)->devices;
  return std::ranges::any_of(devices, [&](const PoolDevice& device) {
    return device.row.name_on_host == place.device &&
           (device.state == DeviceState::kPaused || device.state == DeviceState::kDraining);
  });
}

std::vector<Pool::Offer> Pool::offers(kj::TimePoint now, const JobClass& job_class,
                                      const std::string& group) const {
  std::vector<Offer> offers;
  const Digest class_digest = digest_of_class(job_class);
  for (const auto& [id, host] : hosts_) {
    if (!group.empty() && host->membership.group != group) continue;
    const bool denied = denies(id, class_digest);
    for (const PoolDevice& device : host->devices) {
      if (device.state != DeviceState::kReady || !device.worker_key) continue;
      const Taken taken = host->taken_of(device.row.name_on_host);
      PlanDevice plan;
      plan.host = id;
      plan.trusted = host->trusted;
      plan.exact = device.row.exact;
      plan.memory_free = std::max(usable_memory(device.row.memory) - taken.bytes, Bytes{0});
      const StepFactors speed = factors({id, host->login, device.row.name_on_host});
      plan.weight_bytes_per_second = speed.weight_bytes_per_second;
      plan.flops_per_second = speed.flops_per_second;
      plan.fixed_seconds = speed.fixed_seconds;
      plan.hop_seconds = host->hop_seconds;
      plan.sessions = taken.stages;
      plan.denied = denied;
      if (device.available_until) {
        const kj::Duration left = *device.available_until - now;
        plan.seconds_available = static_cast<double>(left / kj::MILLISECONDS) / 1000;
      }
      offers.push_back({{id, host->login, device.row.name_on_host}, plan});
    }
  }
  return offers;
}

bool Pool::was_given(const DevicePlace& place, std::span<const Digest> shards) {
  const Host* const host = find(place.host, place.login);
  return host != nullptr && std::ranges::all_of(shards, [&](const Digest& shard) {
           return host->given.contains(shard);
         });
}

Pool::Hold Pool::hold(const DevicePlace& place, Bytes bytes, std::vector<Digest> shards) {
  Hold hold;
  Host* const host = find(place.host, place.login);
  if (host == nullptr || find(place) == nullptr) return hold;
  if (const auto loans = host->loans.extract(place.device)) {
    hold.ended_loan_ = true;
    for (const auto& [loan, give_way] : loans.mapped()) give_way();
  }
  Taken& taken = host->taken[place.device];
  taken.bytes += bytes;
  taken.stages += 1;
  hold.bytes_ = bytes;
  give(*host, place, std::move(shards), hold);
  return hold;
}

Pool::Hold Pool::borrow(const DevicePlace& place, std::vector<Digest> shards,
                        std::function<void()> give_way) {
  Hold hold;
  Host* const host = find(place.host, place.login);
  if (host == nullptr || find(place) == nullptr) return hold;
  hold.loan_ = ++loans_;
  host->loans[place.device].emplace(hold.loan_, std::move(give_way));
  give(*host, place, std::move(shards), hold);
  return hold;
}

bool Pool::is_lent(const DevicePlace& place) const {
  const auto host = hosts_.find(place.host);
  return host != hosts_.end() && host->second->loans.contains(place.device);
}

void Pool::give(Host& host, const DevicePlace& place, std::vector<Digest> shards, Hold& hold) {
  for (const Digest& shard : shards) {
    host.readable[shard] += 1;
    host.given.insert(shard);
  }
  hold.pool_ = this;
  hold.place_ = place;
  hold.shards_ = std::move(shards);
}

void Pool::release(const Hold& hold) {
  Host* const host = find(hold.place_.host, hold.place_.login);
  if (host == nullptr) return;
  for (const Digest& shard : hold.shards_) {
    const auto found = host->readable.find(shard);
    if (found != host->readable.end() && --found->second == 0) host->readable.erase(found);
  }
  if (hold.loan_ != 0) {
    const auto loans = host->loans.find(hold.place_.device);
    if (loans != host->loans.end()) {
      loans->second.erase(hold.loan_);
      if (loans->second.empty()) host->loans.erase(loans);
    }
    note_change();
    return;
  }
  const auto taken = host->taken.find(hold.place_.device);
  SHOAL_CHECK(taken != host->taken.end());
  taken->second.bytes -= hold.bytes_;
  if (--taken->second.stages == 0) host->taken.erase(taken);
  note_change();
}

Taken Pool::Host::taken_of(const std::string& device) const {
  const auto found = taken.find(device);
  return found == taken.end() ? Taken{} : found->second;
}

Taken Pool::taken(const DevicePlace& place) const {
  const auto host = hosts_.find(place.host);
  return host == hosts_.end() || host->second->login != place.login
             ? Taken{}
             : host->second->taken_of(place.device);
}

bool Pool::may_read(HostId id, const Digest& shard) const {
  const auto found = hosts_.find(id);
  return found != hosts_.end() && found->second->readable.contains(shard);
}

kj::Promise<void> Pool::gone(const DevicePlace& place) {
  Host* const host = find(place.host, place.login);
  if (host == nullptr) return kj::READY_NOW;
  return host->gone.addBranch();
}

kj::Promise<void> Pool::changed() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  std::erase_if(waiting_, [](auto& fulfiller) { return !fulfiller->isWaiting(); });
  waiting_.push_back(kj::mv(pair.fulfiller));
  return kj::mv(pair.promise);
}

void Pool::note_change() {
  for (auto& fulfiller : std::exchange(waiting_, {})) fulfiller->fulfill();
}

}  // namespace shoal
