#include "coordinator/sim/world.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <queue>

namespace shoal::sim {
namespace {

constexpr double kHourMs = 3'600'000;
constexpr Millis kSecond{1'000};
constexpr Millis kMinute{60'000};
constexpr Flops kItem{20'000'000'000'000};
constexpr Millis kWanted{1'200'000};  // A host keeps so much work ahead.
constexpr Millis kRenewEvery{900'000};
constexpr Millis kSampleEvery{600'000};
constexpr Millis kSendAgain{30'000};
constexpr double kDrainHoursMax = 240;
constexpr uint32_t kClasses = 12;

struct Held {
  LeaseName name;
  int64_t items = 0;
  Purpose purpose = Purpose::kWork;
};

struct SimHost {
  HostFacts facts;
  double speed = 1;  // FLOP/s.
  double measured = 1;
  double round_trip_ms = 60;
  double zone_hours = 0;
  bool on = false, asleep = false, always_on = false;
  bool asking = false;  // A question is under way.
  uint32_t life = 0;    // Events of former lives are ignored ...
  uint32_t work = 0;    // ... and those of work that it gave up.
  uint64_t serial = 0;
  Millis lies_from{INT64_MAX};
  double lies_share = 1;
  bool careful = false;           // Never lies where it can tell that it checks another.
  int64_t pair = 0;               // Not 0: lies like the other one of the pair.
  std::vector<Held> held;         // The first is being computed.
  std::vector<LeaseName> let_go;  // For its partner to take, and to speak up for later.
  Millis began{0};                // The first, or its rest.
  Millis needs{0};                // From then on.
  Millis computed{0};             // Of it, before then.
  std::vector<uint32_t> outbox;   // Messages that wait for the host to be there again.
};

enum class What : uint8_t { kCome, kLeave, kCrash, kDone, kReport, kAsk, kRenew, kJump, kSample };

struct Event {
  Millis at;
  uint32_t subject = 0;  // A host, or a message.
  uint32_t life = 0;
  What what = What::kSample;
  friend bool operator<(const Event& a, const Event& b) { return a.at > b.at; }
};

struct Message {
  uint32_t host = 0;
  Submission submission;
  bool failed = false;  // The unit ended with an error.
  bool again = false;   // The second copy of a message.
};

class World {
 public:
  World(const Options& options, const std::function<void(double)>& progress)
      : options_(options),
        scenario_(options.scenario),
        chance_(options.seed),
        broker_(options.rules, Random(options.seed ^ 0x5DEECE66D)),
        progress_(progress) {
    report_.options = options;
  }

  Report run();

 private:
  // ---- Chance.
  double normal();
  double log_normal(double median, double spread) {
    return median * std::exp(std::log(spread) * normal());
  }
  bool likely(double share) { return share > 0 && chance_.uniform() < share; }
  Millis exponential(double per_hour);
  Millis millis(double ms) const { return {static_cast<int64_t>(std::min(ms, 1e15))}; }

  // ---- Setting up.
  void make_hosts();
  void plan_outages();
  DeviceFacts device_of(uint32_t host) const;
  void submit_job_if_due();

  // ---- Events.
  void at(Millis when, What what, uint32_t subject, uint32_t life = 0) {
    events_.push({when, subject, life, what});
  }
  void handle(const Event& event);
  void come(uint32_t host);
  void leave(uint32_t host);
  void crash(uint32_t host);
  void start_first(uint32_t host);
  void done(uint32_t host);
  uint32_t add_message(const Message& message);
  void remove_message(uint32_t message) { free_messages_.push_back(message); }
  void submit(const Submission& submission);
  void deliver(uint32_t message);
  void ask_soon(uint32_t host);
  void ask(uint32_t host);
  void renew(uint32_t host);
  bool renew_held(uint32_t host);
  void let_one_go(uint32_t host);
  void speak_up(const Held& held, const Digest& lie, uint32_t host);
  void jump(uint32_t host);
  void drop_all(SimHost& host, bool silently, bool give_back);
  void say_gone(uint32_t host);
  void sample();
  void keep() {
    broker_.take_changes(changes_);
    if (!changes_.empty()) report_.truth.apply(changes_, now_);
  }
  bool away() const { return away_until_ > now_; }
  // A way that the host's message takes.
  Millis way(const SimHost& host) { return millis(host.round_trip_ms * (0.5 + chance_.uniform())); }

  Options options_;
  Scenario scenario_;
  Random chance_;
  Broker broker_;
  const std::function<void(double)>& progress_;
  Report report_;
  Millis now_{0}, end_{0}, away_until_{0};
  std::vector<std::pair<Millis, Millis>> outages_;
  size_t next_outage_ = 0;
  std::vector<SimHost> hosts_;
  std::vector<Message> messages_;
  std::vector<uint32_t> free_messages_;  // Places in messages_.
  std::priority_queue<Event> events_;
  std::vector<Change> changes_;
  int64_t jobs_ = 0, hosts_on_ = 0;
  double speed_on_ = 0;
  bool draining_ = false, over_ = false;
  Spent at_warm_;
  double flops_at_warm_ = 0;
  int64_t units_at_warm_ = 0, lies_at_warm_ = 0, confirmed_at_warm_ = 0;
  bool warm_ = false;
};

double World::normal() {
  const double u = 1 - chance_.uniform(), v = chance_.uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

Millis World::exponential(double per_hour) {
  if (per_hour <= 0) return {INT64_MAX / 4};
  return millis(-std::log(1 - chance_.uniform()) / per_hour * kHourMs);
}

void World::make_hosts() {
  const auto count = static_cast<size_t>(options_.hosts);
  hosts_.resize(count);
  report_.truth.hosts(count);
  const auto trusted =
      std::max<size_t>(2, static_cast<size_t>(scenario_.trusted * static_cast<double>(count)));
  BrokerRows rows;
  int64_t owner = 0;
  for (uint32_t i = 0; i < count; ++i) {
    SimHost& host = hosts_[i];
    host.facts.host = {i + 1};
    // Some owners have two hosts, which stand at one address.
    const bool shared = i > 0 && i >= trusted && likely(scenario_.owners_shared / 2);
    if (!shared) ++owner;
    host.facts.owner = {owner};
    host.facts.address_block =
        shared ? hosts_[i - 1].facts.address_block : 1 + chance_.below(1 + count / 2);
    host.facts.trusted = i < trusted;
    host.speed = 1e12 * log_normal(scenario_.teraflops, scenario_.teraflops_spread);
    host.speed = std::clamp(host.speed, 5e11, 2e14);
    host.measured = host.speed * log_normal(1, scenario_.measured_spread);
    host.round_trip_ms =
        std::min(log_normal(scenario_.round_trip_ms, scenario_.round_trip_spread), 5000.0);
    host.always_on = host.facts.trusted || likely(scenario_.always_on);
    host.zone_hours = scenario_.day_swing > 0 ? 0 : 24 * chance_.uniform();
    KnownHostRow row;
    row.facts = host.facts;
    const bool late = !host.facts.trusted && likely(scenario_.late_share);
    if (!late && likely(scenario_.experienced)) {
      row.record.valid_in_row = static_cast<int64_t>(std::pow(10, 1 + 2.5 * chance_.uniform()));
    }
    rows.hosts.push_back(row);
    if (!host.facts.trusted) {
      if (likely(scenario_.liars + scenario_.careful)) {
        host.careful = scenario_.careful > 0;
        host.lies_from = millis(chance_.uniform() * options_.hours * kHourMs);
      } else if (likely(scenario_.sly)) {
        host.lies_from = {0};
        host.lies_share = scenario_.sly_lies;
      }
      // The one who begins a pair is followed by its partner, of another owner.
      if (i % 2 == 1 && i > trusted && host.facts.owner != hosts_[i - 1].facts.owner &&
          likely(scenario_.pairs)) {
        const Millis from = millis(chance_.uniform() * options_.hours * kHourMs);
        for (const uint32_t each : {i - 1, i}) {
          hosts_[each].lies_from = from;
          hosts_[each].lies_share = 1;
          hosts_[each].pair = i;
          if (each != i) report_.truth.liar(hosts_[each].facts.host, true);
        }
        ++report_.liars;
      }
    }
    const bool lies = host.lies_from.count != INT64_MAX;
    report_.liars += lies;
    report_.truth.liar(host.facts.host, lies);
    // Where each of them is in its day when it all begins.
    if (late) {
      at(millis((scenario_.late_at * options_.hours + 0.5 * chance_.uniform()) * kHourMs),
         What::kCome, i);
    } else if (host.always_on) {
      at(millis(600'000 * chance_.uniform()), What::kCome, i);
    } else {
      const double on = scenario_.on_hours, off = scenario_.off_hours;
      const bool there = likely(on / (on + off));
      at(there ? millis(600'000 * chance_.uniform())
               : millis(log_normal(off, scenario_.off_spread) * chance_.uniform() * kHourMs),
         What::kCome, i);
    }
    at(exponential(scenario_.clock_jump_per_day / 24), What::kJump, i);
  }
  SHOAL_CHECK(broker_.restore(rows, now_).ok());
}

void World::plan_outages() {
  for (int i = 0; i < scenario_.outages; ++i) {
    const double share = (i + 0.5 + 0.3 * chance_.uniform()) / scenario_.outages;
    const Millis from = millis(share * options_.hours * kHourMs);
    outages_.emplace_back(from, from + millis(scenario_.outage_hours * kHourMs));
  }
}

DeviceFacts World::device_of(uint32_t i) const {
  const SimHost& host = hosts_[i];
  return {.device = {int64_t{i} + 1},
          .host = host.facts.host,
          .device_class = static_cast<uint32_t>(host.facts.host.value * 7919 % kClasses),
          .memory = {int64_t{24} << 30},
          .flops_per_second = host.measured,
          .exact = true};
}

// There is always work: a job for some hours of all that is there, and smaller ones at the end.
void World::submit_job_if_due() {
  if (draining_ || speed_on_ <= 0) return;
  double left = 0;
  for (int64_t job = std::max<int64_t>(1, jobs_ - 3); job <= jobs_; ++job) {
    left += broker_.progress({job}).flops_left;
  }
  if (left > 0.4 * 3600 * speed_on_) return;
  const double hours_left = static_cast<double>((end_ - now_).count) / kHourMs;
  const double hours = std::min(options_.job_hours, std::max(hours_left * 0.95, 0.5));
  ++jobs_;
  JobSpec spec{.job = {jobs_},
               .tasks = {{.task = {jobs_},
                          .job_class = {1},
                          .model = {1},
                          .memory = {int64_t{8} << 30},
                          .flops_per_item = kItem}}};
  spec.tasks[0].items =
      std::max<int64_t>(1, static_cast<int64_t>(hours * 3600 * speed_on_ / double(kItem.count)));
  report_.truth.job(spec);
  SHOAL_CHECK(broker_.submit_job(spec, now_).ok());
  keep();
}

// ---- A host's day ------------------------------------------------------------------------------

void World::come(uint32_t i) {
  SimHost& host = hosts_[i];
  if (host.on) return;
  if (away()) return at(away_until_ + millis(600'000 * chance_.uniform()), What::kCome, i);
  host.on = true;
  ++host.life;
  ++hosts_on_;
  speed_on_ += host.speed;
  host.asking = false;
  broker_.device_ready(device_of(i), now_);
  keep();
  if (!host.always_on) {
    // Later in the night they leave sooner, and in the evening they stay.
    const double hour = static_cast<double>(now_.count) / kHourMs + host.zone_hours;
    const double day = 1 + scenario_.day_swing * std::sin(2 * std::numbers::pi * hour / 24);
    at(now_ + millis(log_normal(scenario_.on_hours * day, scenario_.on_spread) * kHourMs),
       What::kLeave, i, host.life);
  }
  at(now_ + exponential(scenario_.crash_per_hour), What::kCrash, i, host.life);
  at(now_ + kRenewEvery, What::kRenew, i, host.life);
  for (const uint32_t message : host.outbox) at(now_ + way(host), What::kReport, message);
  host.outbox.clear();
  if (host.asleep) {
    // What it held is still in its memory.
    host.asleep = false;
    host.began = now_;
    const bool first_gone = renew_held(i);
    for (const Held& held : host.held) report_.truth.resumed(held.name.unit);
    if (!host.held.empty() && first_gone) start_first(i);
    if (!host.held.empty() && !first_gone) at(now_ + host.needs, What::kDone, i, host.work);
  }
  ask_soon(i);
}

void World::say_gone(uint32_t i) {
  SimHost& host = hosts_[i];
  host.on = false;
  ++host.life;
  --hosts_on_;
  speed_on_ -= host.speed;
  if (away()) return;  // Nobody notices; the broker learns that it is back by its next report.
  broker_.device_gone({int64_t{i} + 1}, now_);
  keep();
}

void World::drop_all(SimHost& host, bool silently, bool give_back) {
  for (size_t k = 0; k < host.held.size(); ++k) {
    const Held& held = host.held[k];
    if (k == 0) report_.truth.abandoned(host.computed + (now_ - host.began));
    report_.truth.lost(held.name.unit, now_, silently);
    if (give_back && !away()) broker_.give_back(held.name, now_);
  }
  host.held.clear();
  host.computed = {};
  ++host.work;
}

void World::leave(uint32_t i) {
  SimHost& host = hosts_[i];
  const double how = chance_.uniform();
  if (how < scenario_.leaves_asleep) {
    ++report_.sleeps;
    host.asleep = true;
    if (!host.held.empty()) {
      host.computed += now_ - host.began;
      host.needs = std::max(host.needs - (now_ - host.began), Millis{1});
      ++host.work;
    }
    for (const Held& held : host.held) report_.truth.lost(held.name.unit, now_, /*silently=*/true);
  } else if (how < scenario_.leaves_asleep + scenario_.leaves_crashed) {
    ++report_.crashes;
    drop_all(host, /*silently=*/true, /*give_back=*/false);
  } else {
    ++report_.returns;
    drop_all(host, /*silently=*/false, /*give_back=*/true);
  }
  say_gone(i);
  const double hour = static_cast<double>(now_.count) / kHourMs + host.zone_hours;
  const double day = 1 - scenario_.day_swing * std::sin(2 * std::numbers::pi * hour / 24);
  at(now_ + millis(log_normal(scenario_.off_hours * day, scenario_.off_spread) * kHourMs),
     What::kCome, i);
}

void World::crash(uint32_t i) {
  SimHost& host = hosts_[i];
  ++report_.crashes;
  drop_all(host, /*silently=*/true, /*give_back=*/false);
  say_gone(i);
  at(now_ + kMinute + exponential(12), What::kCome, i);
}

// A clock that jumps makes all leases look over: the host returns what it has and asks again.
void World::jump(uint32_t i) {
  SimHost& host = hosts_[i];
  if (!over_) at(now_ + exponential(scenario_.clock_jump_per_day / 24), What::kJump, i);
  if (!host.on) return;
  drop_all(host, /*silently=*/false, /*give_back=*/true);
  keep();
  ask_soon(i);
}

// ---- Working -----------------------------------------------------------------------------------

void World::start_first(uint32_t i) {
  SimHost& host = hosts_[i];
  const double flops = static_cast<double>(host.held[0].items) * static_cast<double>(kItem.count);
  const double seconds = flops / host.speed * log_normal(1, scenario_.time_spread);
  host.began = now_;
  host.computed = {};
  host.needs = std::max(millis(seconds * 1000), Millis{1});
  at(now_ + host.needs, What::kDone, i, host.work);
}

void World::done(uint32_t i) {
  SimHost& host = hosts_[i];
  SHOAL_CHECK(!host.held.empty());
  const Held held = host.held.front();
  host.held.erase(host.held.begin());
  const Millis time = host.computed + (now_ - host.began);
  host.computed = {};
  Message message;
  message.host = i;
  message.submission.name = held.name;
  if (likely(scenario_.failure_per_unit)) {
    message.failed = true;
    report_.truth.abandoned(time);
  } else {
    const bool told = host.careful && held.purpose != Purpose::kWork;
    const bool lie = now_ >= host.lies_from && !told && likely(host.lies_share);
    Digest digest = Truth::right_digest(held.name.unit);
    if (lie) {
      digest.bytes[31] = std::byte{1};
      const int64_t who = host.pair != 0 ? -host.pair : held.name.lease.value;
      std::memcpy(digest.bytes.data() + 16, &who, sizeof who);
    }
    message.submission.digest = digest;
    // Every other liar says that its lies were finished long ago, among what was checked.
    message.submission.serial = ++host.serial;
    if (lie && i % 2 == 1) message.submission.serial = 1;
    report_.truth.computed(held.name.lease, time, lie);
    if (lie && host.pair == i) speak_up(held, digest, i - 1);
  }
  at(now_ + way(host), What::kReport, add_message(message));
  if (!host.held.empty()) start_first(i);
}

// The first of a pair gives a unit back at once, so that its partner may get it ...
void World::let_one_go(uint32_t i) {
  SimHost& host = hosts_[i];
  if (host.pair == 0 || host.pair == i || now_ < host.lies_from || host.held.size() < 2) return;
  const LeaseName name = host.held.back().name;
  host.held.pop_back();
  report_.truth.lost(name.unit, now_, /*silently=*/false);
  broker_.give_back(name, now_);
  keep();
  host.let_go.push_back(name);
  if (hosts_[i + 1].on && !hosts_[i + 1].asking) ask(i + 1);
}

// ... and tells the same lie of it, under the lease that it had.
void World::speak_up(const Held& held, const Digest& lie, uint32_t first) {
  SimHost& host = hosts_[first];
  for (const LeaseName& name : host.let_go) {
    if (name.unit != held.name.unit) continue;
    report_.truth.computed(name.lease, {}, /*lie=*/true);
    const uint32_t message = add_message(
        {.host = first, .submission = {.name = name, .digest = lie, .serial = ++host.serial}});
    at(now_ + way(host) + kMinute, What::kReport, message);
    ++report_.spoken_up;
  }
}

uint32_t World::add_message(const Message& message) {
  if (free_messages_.empty()) {
    messages_.push_back(message);
    return static_cast<uint32_t>(messages_.size() - 1);
  }
  const uint32_t place = free_messages_.back();
  free_messages_.pop_back();
  messages_[place] = message;
  return place;
}

void World::submit(const Submission& submission) {
  const SubmitAnswer answer = broker_.submit(submission, now_);
  if (answer != SubmitAnswer::kNotNeeded && answer != SubmitAnswer::kUnknown) return;
  report_.truth.refused(submission.name.lease);
}

// A report reaches the coordinator, or not; the host asks for more work with the same call.
void World::deliver(uint32_t slot) {
  const Message message = messages_[slot];
  const uint32_t i = message.host;
  SimHost& host = hosts_[i];
  if (!message.again) {
    if (!host.on) {
      host.outbox.push_back(slot);
      return;
    }
    if (away()) {
      at(away_until_ + millis(600'000 * chance_.uniform()), What::kReport, slot);
      return;
    }
    if (likely(scenario_.message_loss)) {
      // The way there or the way back: then it arrives twice.
      ++report_.messages_lost;
      at(now_ + kSendAgain, What::kReport, slot);
      if (likely(0.5)) return;
      if (!message.failed) submit(message.submission);
      keep();
      return;
    }
    if (likely(scenario_.message_twice)) {
      ++report_.messages_twice;
      const uint32_t copy = add_message(message);
      messages_[copy].again = true;
      at(now_ + millis(chance_.uniform() * scenario_.twice_hours * kHourMs), What::kReport, copy);
    }
  } else if (away()) {
    remove_message(slot);
    return;
  }
  if (message.failed) {
    broker_.fail(message.submission.name, now_);
  } else {
    submit(message.submission);
  }
  keep();
  const bool again = message.again;
  remove_message(slot);
  if (!again && host.on && !host.asking) ask(i);
}

void World::ask_soon(uint32_t i) {
  SimHost& host = hosts_[i];
  if (host.asking) return;
  host.asking = true;
  at(now_ + way(host), What::kAsk, i, host.life);
}

void World::ask(uint32_t i) {
  SimHost& host = hosts_[i];
  host.asking = false;
  const auto later = [&](Millis when) {
    host.asking = true;
    at(when, What::kAsk, i, host.life);
  };
  if (away()) return later(away_until_ + millis(600'000 * chance_.uniform()));
  if (likely(scenario_.message_loss)) {
    ++report_.messages_lost;
    return later(now_ + kSendAgain);
  }
  const LeaseAnswer answer = broker_.lease({.device = {int64_t{i} + 1}, .wanted = kWanted}, now_);
  keep();
  if (answer.why == NoWork::kUnknownDevice) {
    broker_.device_ready(device_of(i), now_);
    return later(now_ + kSecond);
  }
  const bool idle = host.held.empty();
  for (const Grant& grant : answer.grants) {
    host.held.push_back({{grant.unit, grant.lease, host.facts.host}, grant.items, grant.purpose});
  }
  if (idle && !host.held.empty()) start_first(i);
  if (!answer.grants.empty()) let_one_go(i);
  if (host.held.empty()) later(std::max(answer.ask_again, now_ + kSecond));
}

// Whether it gave up the unit that it was computing.
bool World::renew_held(uint32_t i) {
  SimHost& host = hosts_[i];
  bool first_gone = false;
  for (size_t k = 0, place = 0; k < host.held.size(); ++place) {
    const RenewAnswer answer = broker_.renew(host.held[k].name, now_).answer;
    // One that it lost may still be of use if it is begun; others are not worth beginning.
    if (answer == RenewAnswer::kRenewed || (answer == RenewAnswer::kLost && place == 0)) {
      ++k;
      continue;
    }
    if (place == 0) {
      first_gone = true;
      report_.truth.abandoned(host.computed + (now_ - host.began));
    }
    broker_.give_back(host.held[k].name, now_);
    host.held.erase(host.held.begin() + static_cast<ptrdiff_t>(k));
  }
  keep();
  if (first_gone) ++host.work;
  return first_gone;
}

void World::renew(uint32_t i) {
  if (away() || !renew_held(i)) return;
  if (!hosts_[i].held.empty()) start_first(i);
  ask_soon(i);
}

// ---- The run -----------------------------------------------------------------------------------

void World::sample() {
  const double hour = static_cast<double>(now_.count) / kHourMs;
  const Truth& truth = report_.truth;
  if (!warm_ && hour >= options_.warm_hours) {
    warm_ = true;
    at_warm_ = truth.spent();
    flops_at_warm_ = truth.flops_done();
    units_at_warm_ = truth.units_done();
    lies_at_warm_ = truth.lies();
    confirmed_at_warm_ = truth.confirmed_wrong();
  }
  if (!draining_) {
    report_.samples.push_back({hour, hosts_on_, truth.flops_done(), truth.spent(), truth.pending(),
                               truth.lies(), truth.confirmed_wrong()});
  }
  report_.live_units_max =
      std::max(report_.live_units_max, static_cast<int64_t>(broker_.live_units()));
  if (now_ >= end_ && !draining_) {
    draining_ = true;
    report_.whole = truth.spent();
    report_.steady = truth.spent() - at_warm_;
    report_.flops_steady = truth.flops_done() - flops_at_warm_;
    report_.units_steady = truth.units_done() - units_at_warm_;
    report_.lies_steady = truth.lies() - lies_at_warm_;
    report_.lies_confirmed_steady = truth.confirmed_wrong() - confirmed_at_warm_;
  }
  submit_job_if_due();
  if (draining_) {
    int64_t unfinished = 0;
    for (int64_t job = 1; job <= jobs_; ++job) unfinished += broker_.progress({job}).items > 0;
    report_.jobs_unfinished = unfinished;
    over_ = unfinished == 0 || hour > options_.hours + kDrainHoursMax;
    report_.drain_hours = hour - options_.hours;
  }
  if (!over_) at(now_ + kSampleEvery, What::kSample, 0);
  if (progress_) progress_(hour);
}

void World::handle(const Event& event) {
  const uint32_t i = event.subject;
  switch (event.what) {
    case What::kSample: return sample();
    case What::kReport: return deliver(i);
    case What::kCome: return come(i);
    case What::kJump: return jump(i);
    default: break;
  }
  const uint32_t life = event.what == What::kDone ? hosts_[i].work : hosts_[i].life;
  if (!hosts_[i].on || life != event.life) return;
  switch (event.what) {
    case What::kLeave: return leave(i);
    case What::kCrash: return crash(i);
    case What::kDone: return done(i);
    case What::kAsk: return ask(i);
    case What::kRenew: at(now_ + kRenewEvery, What::kRenew, i, event.life); return renew(i);
    default: SHOAL_UNREACHABLE();
  }
}

Report World::run() {
  end_ = millis(options_.hours * kHourMs);
  now_ = {1};
  make_hosts();
  plan_outages();
  at(now_ + kMinute, What::kSample, 0);
  while (!over_ && !events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    ++report_.events;
    now_ = event.at;
    if (next_outage_ < outages_.size() && outages_[next_outage_].first <= now_) {
      away_until_ = outages_[next_outage_].second;
      ++next_outage_;
    } else if (away_until_.count != 0 && away_until_ <= now_) {
      broker_.outage(outages_[next_outage_ - 1].first, away_until_);
      for (uint32_t i = 0; i < hosts_.size(); ++i) {
        if (!hosts_[i].on) broker_.device_gone({int64_t{i} + 1}, now_);
      }
      away_until_ = {};
      keep();
    }
    // Nobody ticks a coordinator that is away.
    if (away_until_.count == 0 && broker_.next_due() <= now_) {
      broker_.tick(now_);
      keep();
    }
    handle(event);
  }
  report_.jobs = jobs_;
  return std::move(report_);
}

}  // namespace

Report run(const Options& options, const std::function<void(double)>& progress) {
  return World(options, progress).run();
}

}  // namespace shoal::sim
