#include "client/agent.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "client/device_wire.h"
#include "client/records/levels.h"
#include "schema/require.h"

namespace shoal::client {
namespace {

constexpr Millis kModeLengthMax{366 * int64_t{86'400'000}};
constexpr Millis kForgetDeviceAfter{14 * int64_t{86'400'000}};
constexpr Millis kMoved{60'000};      // So far was the clock set, and not merely put right.
constexpr size_t kWatchersMax = 256;  // Each is answered with a whole snapshot at the next change.
constexpr kj::Duration kStopMax = 2 * kj::SECONDS;
constexpr size_t kRefusedClassesMax = 64;  // Remembered, of one coordinator.

// While a host only enrols it runs nothing.
class NoHost final : public rpc::Host::Server {};

bool are_near(Millis a, Millis b) { return std::max(a, b) - std::min(a, b) <= kMoved; }

bool same_coordinator(const rpc::AttachUrl& a, const rpc::AttachUrl& b) {
  return a.host == b.host && a.port == b.port && a.pin == b.pin;
}

}  // namespace

std::string shown_url(const rpc::AttachUrl& url) {
  return url_without_query(rpc::format_attach_url(url));
}

rpc::Task<Attachment> enrol(Loop loop, rpc::AttachUrl url, const SigningKey& identity) {
  kj::Promise<LoggedIn> asked = log_in(loop.io.provider->getNetwork(), loop.timer, url, identity,
                                       own_host_card(), kj::heap<NoHost>());
  LoggedIn logged_in = co_await kj::mv(asked);
  auto request = logged_in.session.leaveRequest();
  request.setReason("enrolled");
  try {
    kj::Promise<void> left = request.send().ignoreResult();
    co_await loop.timer.timeoutAfter(2 * kj::SECONDS, kj::mv(left));
  } catch (const kj::Exception&) {
    // The enrolment stands, whatever became of the goodbye.
  }
  url.invite.clear();
  co_return Attachment{rpc::format_attach_url(url), logged_in.coordinator_name, logged_in.host_id};
}

Agent::Agent(AgentParts parts, AgentOptions options)
    : parts_(parts),
      options_(std::move(options)),
      started_at_(parts_.clock.now_wall()),
      stop_promise_(nullptr),
      fetcher_(parts_.cache, parts_.loop.timer, parts_.clock),
      paths_(parts_.loop),
      work_([this](const StageWork& work, const Message& why) {
        parts_.records.note_work({work.lease, work.session, work.coordinator_name, work.device,
                                  work.job_class, work.first_fragment, work.last_fragment,
                                  work.since, parts_.clock.now_wall(), work.steps, work.rows, why,
                                  work.unit});
      }) {
  auto stop = kj::newPromiseAndFulfiller<void>();
  stop_fulfiller_ = kj::mv(stop.fulfiller);
  stop_promise_ = stop.promise.fork();
  judged_at_ = governed_at_ = flushed_at_ = counted_at_ = parts_.clock.now_monotonic();
  judged_wall_ = started_at_;
  last_work_ = parts_.state.memory().last_work;
  for (int i = 0; i < kResourceCount; ++i) time_mode(i);

  for (const auto& [id, known] : parts_.state.memory().devices) {
    if (started_at_ - known.seen_at > kForgetDeviceAfter) continue;
    devices_.push_back(std::make_unique<LentDevice>(parts_.loop, parts_.clock, parts_.random,
                                                    static_cast<LentDevice::Needs&>(*this),
                                                    known.facts));
  }
  parts_.sensors.on_change([this] { judge_soon(); });
  settings_act();

  std::vector<std::string> urls;
  for (const Attachment& attachment : parts_.state.attachments()) urls.push_back(attachment.url);
  const std::vector<std::string>& more = parts_.settings.now().list("coordinators");
  urls.insert(urls.end(), more.begin(), more.end());
  for (const std::string& text : urls) {
    const Result<rpc::AttachUrl> url = rpc::parse_attach_url(text);
    if (url.ok()) {
      start_link(url.value());
    } else {
      log_error("agent", "bad_url", {{"url", url_without_query(text)}, {"cause", url.error()}});
    }
  }
  finder_ = std::make_unique<DeviceFinder>(parts_.loop.timer, parts_.clock, parts_.random,
                                           static_cast<DeviceFinder::Needs&>(*this),
                                           DeviceFinder::Waits{});
  judging_ = keep_judging().promise().eagerlyEvaluate([](kj::Exception&& exception) {
    log_error("agent", "gave_up", {{"cause", exception.getDescription().cStr()}});
  });
}

Agent::~Agent() noexcept(false) {
  parts_.sensors.on_change([] {});
  judging_ = nullptr;
  sleep_ = nullptr;
  remember_last_work();
  unit_runners_.clear();
  // Not while the list is walked by what their stages tell as they end.
  std::vector<kj::Own<CoordinatorLink>> links = std::move(links_);
  links_.clear();
}

void Agent::start_link(const rpc::AttachUrl& url) {
  for (const kj::Own<CoordinatorLink>& link : links_) {
    if (same_coordinator(link->url(), url)) return;
  }
  CoordinatorLink::Needs& needs = *this;
  links_.push_back(kj::heap<CoordinatorLink>(parts_.loop.io.provider->getNetwork(),
                                             parts_.loop.timer, parts_.clock, parts_.random, needs,
                                             url));
}

void Agent::changed() {
  ++revision_;
  figures_changed_ = false;
  for (auto& watcher : std::exchange(watchers_, {})) watcher->fulfill();
}

kj::Promise<void> Agent::changed_after(uint64_t revision) {
  if (revision != revision_) return kj::READY_NOW;
  // Those who gave up waiting, as a window that was closed, take nobody's place.
  std::erase_if(watchers_, [](auto& watcher) { return !watcher->isWaiting(); });
  if (watchers_.size() >= kWatchersMax) {
    return KJ_EXCEPTION(OVERLOADED, "too many wait for the next change");
  }
  auto pair = kj::newPromiseAndFulfiller<void>();
  watchers_.push_back(kj::mv(pair.fulfiller));
  return kj::mv(pair.promise);
}

LentDevice* Agent::find(const std::string& device_id) const {
  for (const auto& device : devices_) {
    if (device->facts().id == device_id) return device.get();
  }
  return nullptr;
}

CoordinatorLink* Agent::find_link(const std::string& pin) const {
  for (const auto& link : links_) {
    if (link->url().pin == pin) return const_cast<CoordinatorLink*>(link.get());
  }
  return nullptr;
}

std::string Agent::coordinator_name(const std::string& pin) const {
  const CoordinatorLink* const link = find_link(pin);
  if (link == nullptr) return "";
  if (!link->coordinator_name().empty()) return link->coordinator_name();
  // Not connected yet in this run, but known from the one in which it was joined.
  const Attachment* const known = attachment_of(pin);
  return known != nullptr && !known->name.empty() ? known->name : shown_url(link->url());
}

const Attachment* Agent::attachment_of(const std::string& pin) const {
  for (const Attachment& known : parts_.state.attachments()) {
    const Result<rpc::AttachUrl> url = rpc::parse_attach_url(known.url);
    if (url.ok() && url.value().pin == pin) return &known;
  }
  return nullptr;
}

uint64_t Agent::host_id_of(const CoordinatorLink& link) const {
  if (link.host_id() != 0) return link.host_id();
  const Attachment* const known = attachment_of(link.url().pin);
  return known == nullptr ? 0 : known->host_id;
}

std::vector<std::string> Agent::private_words() const {
  std::vector<std::string> words = options_.private_words;
  words.push_back(options_.cache_folder.string());
  for (const auto& link : links_) {
    words.push_back(link->url().host);
    words.push_back(link->coordinator_name());
  }
  return words;
}

std::map<std::string, HostStanding> Agent::standings() const {
  std::map<std::string, HostStanding> all;
  for (const auto& link : links_) {
    if (link->host_id() != 0) all[link->url().pin] = link->standing();
  }
  return all;
}

// --- What the owner orders ---

ModeChoice Agent::mode_of(Resource resource) const {
  const ClientMemory& memory = parts_.state.memory();
  const auto i = static_cast<int>(resource);
  const std::optional<ModeChoice>& passing = memory.passing[i];
  if (passing && !passing->until) return *passing;
  const Millis left = mode_ends_[i] - parts_.clock.now_monotonic();
  if (passing && left > Millis{0}) {
    const Millis until = parts_.clock.now_wall() + left;
    return {passing->mode, are_near(until, *passing->until) ? *passing->until : until,
            passing->length};
  }
  return memory.modes[i].value_or(ModeChoice{options_.start_mode, {}});
}

void Agent::forget_ended_modes(Millis now) {
  for (int i = 0; i < kResourceCount; ++i) {
    const std::optional<ModeChoice>& passing = parts_.state.memory().passing[i];
    if (!passing || !passing->until) continue;
    const Millis left = mode_ends_[i] - parts_.clock.now_monotonic();
    const bool over = left <= Millis{0};
    // After a restart the clock on the wall is all there is, so what is stored follows it.
    const Millis until = now + left;
    if (!over && are_near(until, *passing->until)) continue;
    log_info("agent", over ? "mode_over" : "mode_moved", {{"resource", i}});
    // When it cannot be stored it is over all the same: see mode_of().
    const Result<void> stored = parts_.state.change([&](ClientMemory& memory) {
      if (over) {
        memory.passing[i].reset();
      } else {
        memory.passing[i]->until = until;
      }
    });
    if (!stored.ok()) log_warning("agent", "not_stored", {{"cause", stored.error()}});
    changed();
  }
}

void Agent::time_mode(int resource) {
  const std::optional<ModeChoice>& passing = parts_.state.memory().passing[resource];
  if (!passing || !passing->until) return;
  const Millis left = std::clamp(*passing->until - parts_.clock.now_wall(), Millis{0},
                                 std::max(passing->length, Millis{0}));
  mode_ends_[resource] = parts_.clock.now_monotonic() + left;
}

Result<void> Agent::set_mode(Resource resource, Mode mode, Millis for_ms) {
  if (for_ms.count < 0 || for_ms > kModeLengthMax) {
    return Error{ErrorCode::kInvalid, "a mode can be set for a year at most"};
  }
  ModeChoice choice;
  choice.mode = mode;
  if (for_ms.count > 0) {
    choice.until = parts_.clock.now_wall() + for_ms;
    choice.length = for_ms;
  }
  SHOAL_TRY(parts_.state.change([&](ClientMemory& memory) {
    const auto i = static_cast<int>(resource);
    memory.passing[i].reset();
    (mode == Mode::kPaused || choice.until ? memory.passing : memory.modes)[i] = choice;
  }));
  time_mode(static_cast<int>(resource));
  log_info("agent", "mode_set",
           {{"resource", static_cast<int>(resource)},
            {"mode", static_cast<int>(mode)},
            {"for_ms", for_ms}});
  judge();
  changed();
  return {};
}

Result<void> Agent::resume(Resource resource) {
  const auto i = static_cast<int>(resource);
  const ModeChoice start{options_.start_mode, {}};
  const ClientMemory& now = parts_.state.memory();
  const bool paused_before = now.modes[i].value_or(start).mode == Mode::kPaused;
  if (!now.passing[i] && !paused_before) return {};
  SHOAL_TRY(parts_.state.change([&](ClientMemory& memory) {
    memory.passing[i].reset();
    // A client that was started paused has no mode to go back to.
    if (paused_before) memory.modes[i] = ModeChoice{};
  }));
  log_info("agent", "resumed", {{"resource", i}});
  judge();
  changed();
  return {};
}

Result<void> Agent::set_leave_by(std::optional<Millis> at) {
  if (at && *at <= parts_.clock.now_wall()) {
    return Error{ErrorCode::kInvalid, "that time is already over"};
  }
  SHOAL_TRY(parts_.state.change([&](ClientMemory& memory) { memory.leave_by = at; }));
  judge();
  changed();
  return {};
}

Result<void> Agent::change_settings(const std::vector<SettingChange>& changes) {
  SHOAL_TRY(parts_.settings.change(changes));
  for (const SettingChange& change : changes) {
    log_info("agent", "setting_changed", {{"key", change.key}});
  }
  // Whoever chooses what becomes of new classes has chosen for those that were lost, too.
  const bool chosen = std::ranges::any_of(
      changes, [](const SettingChange& change) { return change.key == "consent.new_classes"; });
  const Result<void> forgotten = chosen ? parts_.records.forget_lost_consents() : Result<void>();
  settings_act();
  judge();
  changed();
  return forgotten;
}

// What must follow when settings are others than before.
void Agent::settings_act() {
  const Settings& settings = parts_.settings.now();
  parts_.cache.set_limits({Bytes{settings.integer("cache.bytes_max")},
                           Bytes{settings.integer("cache.free_bytes_min")}});
  fetcher_.limit(BytesPerSecond{settings.integer("rules.download_bytes_per_second")});
  upload_.set(BytesPerSecond{settings.integer("rules.upload_bytes_per_second")});
  paths_.act_on(settings.flag("network.direct"), settings.text("network.direct_listen"));
  rule_texts_ = RuleTexts::of(settings);
  SensorWishes wishes;
  for (const char* const key : {"rules.exclusive_programs", "rules.exclusive_programs_gpu"}) {
    const std::vector<std::string>& programs = settings.list(key);
    wishes.exclusive_programs.insert(wishes.exclusive_programs.end(), programs.begin(),
                                     programs.end());
  }
  wishes.idle_source = settings.text("rules.idle_source");
  wishes.idle_threshold = Millis{settings.integer("rules.idle_seconds") * 1'000};
  wishes.cache_folder = options_.cache_folder;
  parts_.sensors.configure(std::move(wishes));
  choose_lent();
  for (const auto& device : devices_) device->note_settings();
  end_denied_work();
  for (auto& link : links_) link->consent_changed();
  if (settings_changed_) settings_changed_();
}

Result<void> Agent::set_device_lent(const std::string& device_id, bool lent) {
  const LentDevice* const device = find(device_id);
  if (device == nullptr) return Error{ErrorCode::kNotFound, "no device \"" + device_id + "\" here"};
  if (device->lent == lent) return {};
  std::vector<std::string> words;
  for (const auto& other : devices_) {
    if (other.get() != device && other->lent) words.push_back(other->facts().id);
  }
  if (lent) words.push_back(device_id);
  // Words for devices that never came stay.
  for (const std::string& word : words_without_device()) words.push_back(word);
  if (words.empty()) words.emplace_back(kNoDeviceWord);
  return change_settings({{"compute.devices", words}});
}

bool Agent::is_allowed(const std::string& pin, const JobClass& job_class) const {
  const std::optional<bool> judged = parts_.records.consent(pin, job_class);
  return judged.value_or(!parts_.records.consents_lost() &&
                         parts_.settings.now().text("consent.new_classes") == "allow");
}

void Agent::note_refused(const std::string& pin, const JobClass& job_class) {
  std::vector<JobClass>& refused = refused_classes_[pin];
  if (std::ranges::find(refused, job_class) == refused.end()) {
    if (refused.size() >= kRefusedClassesMax) refused.erase(refused.begin());
    refused.push_back(job_class);
  }
  if (CoordinatorLink* const link = find_link(pin)) link->card_outdated();
}

void Agent::end_denied_work() {
  const Message why{"work.class_denied", {}};
  work_.end([this](const StageWork& work) { return !is_allowed(work.coordinator, work.job_class); },
            why, why);
  for (const auto& [id, runner] : unit_runners_) runner->consent_changed();
}

Result<void> Agent::set_consent(const std::string& url, const JobClass& job_class, bool allowed) {
  const auto link = std::ranges::find_if(links_, [&url](const kj::Own<CoordinatorLink>& known) {
    return shown_url(known->url()) == url_without_query(url);
  });
  if (link == links_.end()) {
    return Error{ErrorCode::kNotFound, "not attached to " + url_without_query(url)};
  }
  SHOAL_TRY(parts_.records.set_consent((*link)->url().pin, job_class, allowed));
  (*link)->consent_changed();
  end_denied_work();
  changed();
  return {};
}

// --- Devices ---

WorkerOptions Agent::worker_options(const DeviceFacts& facts) {
  const Settings& settings = parts_.settings.now();
  WorkerOptions worker;
  worker.argv = {options_.worker_program};
  worker.argv.insert(worker.argv.end(), options_.worker_arguments.begin(),
                     options_.worker_arguments.end());
  worker.argv.insert(worker.argv.end(), {"--device", facts.id, "--threads",
                                         std::to_string(settings.integer("compute.threads"))});
  if (const int64_t most = settings.integer("worker.memory_bytes_max"); most > 0) {
    worker.argv.insert(worker.argv.end(), {"--memory-max", std::to_string(most)});
  }
  worker.hang_max = settings.integer("worker.hang_ms_max") * kj::MILLISECONDS;
  worker.ping_each = std::min(worker.ping_each, worker.hang_max / 3);
  return worker;
}

const Measurement* Agent::measurement_of(const DeviceFacts& facts) {
  return parts_.state.measurement(facts);
}

void Agent::measured(const DeviceFacts& facts, const Measurement& measurement) {
  if (const Result<void> saved = parts_.state.remember(facts, measurement); !saved.ok()) {
    log_warning("agent", "measurement_not_saved", {{"cause", saved.error()}});
  }
}

void Agent::device_changed(LentDevice&) {
  // Not judged here: what calls may be the worker that is to be ended.
  judge_soon();
  changed();
}

void Agent::device_given_back(LentDevice& device, Millis stop) {
  const auto freeing = freeing_.find(device.facts().id);
  if (freeing == freeing_.end()) {
    // Nobody can see its memory, or there was none of ours: that went with the process.
    parts_.records.note_yield({parts_.clock.now_wall(), device.facts().id, stop, stop});
    return;
  }
  freeing->second.stop = stop;
  // The next regular answer may be seconds away.
  asks_gpu_ = kj::evalNow([this] {
                return parts_.sensors.test("gpu").ignoreResult();
              }).catch_([](kj::Exception&&) {
                }).eagerlyEvaluate(nullptr);
}

kj::Promise<std::vector<DeviceFacts>> Agent::list_devices() {
  std::vector<std::string> argv = {options_.worker_program};
  argv.insert(argv.end(), options_.worker_arguments.begin(), options_.worker_arguments.end());
  return client::list_devices(parts_.loop, std::move(argv));
}

void Agent::devices_found(std::vector<DeviceFacts> found) {
  const Millis now = parts_.clock.now_wall();
  std::map<std::string, KnownDevice> known = parts_.state.memory().devices;
  bool other = false;
  for (const auto& device : devices_) {
    const bool here = std::ranges::any_of(
        found, [&device](const DeviceFacts& facts) { return facts.id == device->facts().id; });
    if (here == device->present) continue;
    device->present = here;
    log_info("devices", here ? "came" : "gone", {{"device", device->facts().id}});
  }
  for (const DeviceFacts& facts : found) {
    if (LentDevice* const device = find(facts.id)) {
      // A worker knows its driver better than a list does.
      if (device->worker() == nullptr) device->found(facts);
    } else {
      devices_.push_back(std::make_unique<LentDevice>(
          parts_.loop, parts_.clock, parts_.random, static_cast<LentDevice::Needs&>(*this), facts));
      devices_.back()->present = true;
      log_info("devices", "found", {{"device", facts.id}, {"name", facts.name}});
    }
    KnownDevice& entry = known[facts.id];
    other |= now - entry.seen_at >= kDay;
    entry = {facts, now};
  }
  if (other) {
    std::erase_if(known, [now](const auto& entry) {
      return now - entry.second.seen_at > kForgetDeviceAfter;
    });
    const Result<void> stored =
        parts_.state.change([&known](ClientMemory& memory) { memory.devices = known; });
    if (!stored.ok()) log_warning("agent", "not_stored", {{"cause", stored.error()}});
  }
  choose_lent();
  judge_soon();
  changed();
}

bool Agent::device_missing() const {
  if (devices_.empty() || !words_without_device().empty()) return true;
  return std::ranges::any_of(devices_, [](const auto& d) { return d->lent && !d->present; });
}

std::vector<std::string> Agent::words_without_device() const {
  std::vector<std::string> words;
  for (const std::string& word : parts_.settings.now().list("compute.devices")) {
    const bool is_known = std::ranges::any_of(
        devices_, [&word](const auto& known) { return fits(word, known->facts()); });
    if (!is_known && word != kNoDeviceWord) words.push_back(word);
  }
  return words;
}

void Agent::choose_lent() {
  std::vector<DeviceFacts> here, gone;
  for (const auto& device : devices_) (device->present ? here : gone).push_back(device->facts());
  const std::vector<DeviceFacts> chosen =
      devices_to_lend(here, gone, parts_.settings.now().list("compute.devices"));
  for (const auto& device : devices_) {
    device->lent = std::ranges::any_of(
        chosen, [&device](const DeviceFacts& facts) { return facts.id == device->facts().id; });
  }
  // A mistyped word must not look like a device that is late. Nothing is said before a first list.
  std::vector<std::string> unknown;
  if (!here.empty()) unknown = words_without_device();
  for (const std::string& word : unknown) {
    if (std::ranges::find(unknown_words_, word) != unknown_words_.end()) continue;
    log_warning("devices", "no_such_device", {{"word", word}, {"there_are", selectors()}});
  }
  unknown_words_ = std::move(unknown);
}

std::string Agent::selectors() const {
  std::string names;
  for (const auto& device : devices_) {
    if (device->present) names += (names.empty() ? "" : ", ") + device->facts().selector;
  }
  return names;
}

rpc::Task<Measurement> Agent::measure(std::string device_id) {
  LentDevice* const device = find(device_id);
  if (device == nullptr || !device->present) {
    rpc::throw_error({ErrorCode::kNotFound, "no device \"" + device_id + "\" here now"});
  }
  while (work_.stages(device_id) > 0 && !shutting_down_) co_await changed_after(revision_);
  if (shutting_down_) rpc::throw_error({ErrorCode::kUnavailable, "the client stops"});
  device->owner_was_away = owner_is_away(device->resource());
  if (const std::optional<Message> why = forbids_measuring(*device)) {
    rpc::throw_error({ErrorCode::kUnavailable, english(*why)});
  }
  kj::Promise<Measurement> measuring = device->measure();
  allow_units(*device);  // Not while it is measured.
  judge_soon();          // Coordinators give it no work meanwhile.
  const Measurement measured = co_await kj::mv(measuring);
  changed();
  for (auto& link : links_) link->devices_changed();
  co_return measured;
}

// --- Coordinators ---

rpc::Host::Client Agent::make_host(CoordinatorLink& link, kj::Own<SessionSlot> slot) {
  HostServer::Needs& needs = *this;
  return kj::heap<HostServer>(parts_.loop.timer, parts_.clock, parts_.cache, fetcher_, needs,
                              link.url().pin, kj::mv(slot));
}

void Agent::link_changed(CoordinatorLink&) {
  judge_soon();
  changed();
}

void Agent::standing_changed(CoordinatorLink&) { figures_changed(); }

std::vector<JobClass> Agent::denied(const CoordinatorLink& link) {
  const std::string& pin = link.url().pin;
  std::vector<JobClass> denied = parts_.records.denied(pin);
  const auto consider = [&](const JobClass& job_class) {
    if (is_allowed(pin, job_class)) return;
    if (std::ranges::find(denied, job_class) == denied.end()) denied.push_back(job_class);
  };
  for (const CoordinatorCard::Offer& offer : link.card().offers) consider(offer.job_class);
  const auto refused = refused_classes_.find(pin);
  if (refused != refused_classes_.end()) std::ranges::for_each(refused->second, consider);
  return denied;
}

Result<void> Agent::receipt_key_shown(const CoordinatorLink& link, const SigningPublicKey& key) {
  Result<void> known = parts_.records.know_coordinator(
      link.url().pin, link.coordinator_name(), key, HostId{static_cast<int64_t>(link.host_id())});
  const bool readable = parts_.records.problem().empty();
  if (known.ok() || (readable && known.error().code == ErrorCode::kDenied)) return known;
  // Records that cannot be used are no reason to leave: its receipts come later.
  log_warning("agent", "coordinator_not_noted", {{"cause", known.error()}});
  return {};
}

std::optional<uint64_t> Agent::receipts_wanted(const CoordinatorLink& link) {
  const uint64_t newest = parts_.records.receipt_progress(link.url().pin).newest;
  if (link.standing().newest_receipt <= newest) return {};
  return newest;
}

Result<void> Agent::receipts_came(const CoordinatorLink& link,
                                  const std::vector<Receipt>& receipts) {
  SHOAL_TRY(parts_.records.accept_receipts(link.url().pin, receipts));
  figures_changed();
  return {};
}

std::optional<CoordinatorLink::Needs::DayWanted> Agent::day_wanted(const CoordinatorLink& link) {
  // Proofs are checked against receipts that are here.
  if (receipts_wanted(link)) return {};
  const Records::DayWanted wanted = parts_.records.day_wanted(link.url().pin);
  if (link.standing().newest_day < wanted.from_day || link.standing().newest_day == 0) return {};
  return DayWanted{wanted.from_day, wanted.after_number};
}

Result<void> Agent::day_came(const CoordinatorLink& link, const LedgerDay& day,
                             const std::vector<ReceiptProof>& proofs, bool more) {
  return parts_.records.accept_day(link.url().pin, day, proofs, more);
}

rpc::Task<CoordinatorCard> Agent::preview(std::string text) {
  const Result<rpc::AttachUrl> url = rpc::parse_attach_url(text);
  if (!url.ok()) rpc::throw_error(url.error());
  kj::Promise<CoordinatorCard> asked =
      client::preview(parts_.loop.io.provider->getNetwork(), parts_.loop.timer, url.value());
  CoordinatorCard card = co_await kj::mv(asked);
  co_return card;
}

rpc::Task<uint32_t> Agent::attach(std::string text, std::vector<JobClass> denied) {
  const Result<rpc::AttachUrl> parsed = rpc::parse_attach_url(text);
  if (!parsed.ok()) rpc::throw_error(parsed.error());
  kj::Promise<Attachment> enrolling = enrol(parts_.loop, parsed.value(), parts_.identity);
  Attachment attachment = co_await kj::mv(enrolling);
  const Result<rpc::AttachUrl> url = rpc::parse_attach_url(attachment.url);
  for (const JobClass& job_class : denied) {
    rpc::require(parts_.records.set_consent(url.value().pin, job_class, false));
  }
  end_denied_work();
  if (const Result<void> saved = parts_.state.attach(std::move(attachment)); !saved.ok()) {
    rpc::throw_error(saved.error());
  }
  start_link(url.value());
  judge_soon();
  changed();
  for (uint32_t i = 0; i < links_.size(); ++i) {
    if (!same_coordinator(links_[i]->url(), url.value())) continue;
    // One that was there before may wait for an hour after a refusal.
    links_[i]->look_now();
    links_[i]->consent_changed();
    co_return i;
  }
  SHOAL_UNREACHABLE();
}

rpc::Task<int> Agent::detach(std::string url) {
  const Result<int> count = parts_.state.detach(url);
  if (!count.ok()) rpc::throw_error(count.error());
  std::vector<kj::Own<CoordinatorLink>> leaving;
  for (auto it = links_.begin(); it != links_.end();) {
    if (url.empty() || shown_url((*it)->url()) == url_without_query(url)) {
      leaving.push_back(kj::mv(*it));
      it = links_.erase(it);
    } else {
      ++it;
    }
  }
  judge_soon();
  changed();
  for (kj::Own<CoordinatorLink>& link : leaving) {
    for (const auto& [id, runner] : unit_runners_) {
      kj::Promise<void> forgotten = runner->forget(link->url().pin);
      co_await kj::mv(forgotten);
    }
    kj::Promise<void> left = link->leave("the owner detached this host");
    co_await kj::mv(left);
  }
  co_return std::max(count.value(), static_cast<int>(leaving.size()));
}

// --- Work ---

Result<rpc::Worker::Client> Agent::worker_of(const std::string& device_id) {
  LentDevice* const device = find(device_id);
  if (device == nullptr || !device->lent) {
    return Error{ErrorCode::kNotFound, "device " + device_id + " is not lent"};
  }
  if (!device->may_work) {
    return Error{ErrorCode::kUnavailable, "the owner needs device " + device_id};
  }
  if (device->measuring()) {
    return Error{ErrorCode::kUnavailable, "device " + device_id + " is being measured"};
  }
  KJ_IF_MAYBE (client, device->client()) {
    return *client;
  }
  return Error{ErrorCode::kUnavailable,
               "device " + device_id + " is not ready" +
                   (device->worker() == nullptr ? "" : ": " + device->worker()->reason())};
}

Result<void> Agent::consents(const std::string& pin, const JobClass& job_class) {
  if (is_allowed(pin, job_class)) return {};
  if (!parts_.records.consent(pin, job_class)) note_refused(pin, job_class);
  return Error{ErrorCode::kDenied, "the owner of this host does not allow \"" + job_class.kind +
                                       "\" on \"" + job_class.model + "\""};
}

Result<void> Agent::may_fetch() {
  const bool allowed = verdicts_.of(Resource::kNetwork).verdict.allowed() &&
                       std::ranges::any_of(devices_, [](const auto& device) {
                         return device->lent && device->present && device->may_work;
                       });
  if (allowed) return {};
  return Error{ErrorCode::kUnavailable, "the owner of this host lends nothing now"};
}

void Agent::work_changed() {
  judge_soon();  // A stage of a session takes the device from units.
  changed();
}

void Agent::step_began(const std::string& device_id) {
  LentDevice* const device = find(device_id);
  if (device != nullptr) device->own_load.begin(OwnLoad::What::kStep, parts_.clock.now_monotonic());
}

void Agent::step_ended(const std::string& device_id) {
  LentDevice* const device = find(device_id);
  if (device != nullptr) device->own_load.end(OwnLoad::What::kStep, parts_.clock.now_monotonic());
}

void Agent::step_ran(const StageWork& work, const StepCost& cost) {
  bytes_down_ += cost.received.count;
  bytes_up_ += cost.sent.count;
  last_work_[work.coordinator] = parts_.clock.now_wall();
  last_work_stored_ = false;
  figures_changed();
  LentDevice* const device = find(work.device);
  if (device == nullptr) return;
  ++device->steps;
  device->rows += cost.rows;
  ++device->usage.steps;
  device->usage.rows += static_cast<int64_t>(cost.rows);
  device->busy_micros += cost.device_micros;
  device->duty.add(parts_.clock.now_monotonic(), cost.device_micros);
}

kj::Promise<void> Agent::may_send(Bytes bytes) {
  const Millis wait = upload_.take(bytes, parts_.clock.now_monotonic());
  if (wait.count == 0) return kj::READY_NOW;
  return parts_.loop.timer.afterDelay(wait.count * kj::MILLISECONDS);
}

// --- Units ---

std::vector<UnitRunner::Line> Agent::lines() {
  std::vector<UnitRunner::Line> lines;
  for (auto& link : links_) {
    KJ_IF_MAYBE (session, link->session()) {
      lines.push_back({link->url().pin, link->logins(), *session});
    }
  }
  return lines;
}

kj::Promise<void> Agent::devices_reported(const std::string& pin) {
  tell_coordinators_if_other();
  CoordinatorLink* const link = find_link(pin);
  return link == nullptr ? kj::Promise<void>(kj::READY_NOW) : link->reported();
}

ByteVector Agent::worker_key(const std::string& device_id) {
  LentDevice* const device = find(device_id);
  if (device == nullptr || device->client() == nullptr) return {};
  return to_vector(device->worker()->public_key());
}

std::optional<Millis> Agent::available(const std::string& device_id) {
  const LentDevice* const device = find(device_id);
  return device == nullptr ? std::nullopt : available_for(*device);
}

bool Agent::may_use_network() { return verdicts_.of(Resource::kNetwork).verdict.allowed(); }

Millis Agent::work_ahead() {
  return Millis{parts_.settings.now().integer("work.ahead_minutes") * 60'000};
}

Millis Agent::checkpoint_each() {
  return Millis{parts_.settings.now().integer("work.checkpoint_seconds") * 1'000};
}

void Agent::bytes_moved(Bytes received, Bytes sent) {
  bytes_down_ += received.count;
  bytes_up_ += sent.count;
}

void Agent::remember_last_work() {
  if (last_work_stored_) return;
  last_work_stored_ =
      parts_.state.change([this](ClientMemory& memory) { memory.last_work = last_work_; }).ok();
}

// --- The end ---

void Agent::remote_door_is(bool listens, std::string problem) {
  remote_listens_ = listens;
  remote_problem_ = std::move(problem);
  changed();
}

void Agent::request_stop() { stop_fulfiller_->fulfill(); }

kj::Promise<void> Agent::stop_requested() { return stop_promise_.addBranch(); }

rpc::Task<void> Agent::shut_down() {
  shutting_down_ = true;
  judging_ = nullptr;
  finder_ = nullptr;
  changed();  // Who waits for a device to be free learns that it will not be.
  auto ending = kj::heapArrayBuilder<kj::Promise<void>>(unit_runners_.size());
  for (const auto& [id, runner] : unit_runners_) ending.add(runner->shut_down());
  kj::Promise<void> ended = kj::joinPromises(ending.finish());
  co_await kj::mv(ended);
  auto leaving = kj::heapArrayBuilder<kj::Promise<void>>(links_.size());
  for (kj::Own<CoordinatorLink>& link : links_) leaving.add(link->leave("the client stops"));
  kj::Promise<void> left = kj::joinPromises(leaving.finish());
  co_await kj::mv(left);
  links_.clear();
  auto stopping = kj::heapArrayBuilder<kj::Promise<void>>(devices_.size());
  for (auto& device : devices_) {
    device->end(1 * kj::SECONDS);
    stopping.add(device->gone());
  }
  kj::Promise<void> all = kj::joinPromises(stopping.finish());
  // What is not gone by then is killed as this process ends.
  kj::Promise<void> stopped = all.exclusiveJoin(parts_.loop.timer.afterDelay(kStopMax));
  co_await kj::mv(stopped);
  remember_last_work();
  parts_.records.flush();
}

}  // namespace shoal::client
