#include "client/records/records.h"

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "client/records/records_state.h"

namespace shoal::client {
namespace {

constexpr int kApplicationId = 0x53485231;  // "SHR1": the file says whose it is.
// A daemon has other things to do than to wait for a file: what cannot be written waits in memory.
constexpr Millis kBusy{2};
constexpr Millis kLockPatience{5'000};
constexpr size_t kWaitingMax = 5'000;
constexpr size_t kConsentsMax = 10'000;
constexpr Bytes kConsentBytesMax{4 << 20};
constexpr const char* kLostWord = "lost";  // In the list: others were in it before.

std::filesystem::path file_of(const std::filesystem::path& folder) { return folder / "records.db"; }

}  // namespace

Records::Records(const std::filesystem::path& folder, const Clock& clock, Options options)
    : state_(std::make_unique<State>(folder, clock, options)) {
  if (const Result<void> done = state_->write_waiting(); !done.ok()) {
    log_warning("records", "not_usable", {{"cause", done.error()}});
  }
}

Records::~Records() {
  state_->end_spans(state_->now());
  if (const Result<void> done = state_->write_waiting(); !done.ok()) {
    log_warning("records", "lost", {{"cause", done.error()}});
  }
}

void Records::flush() {
  if (!state_->write_waiting().ok()) return;
  const Result<void> done = state_->forget_old();
  if (!done.ok()) state_->note_error(done.error());
}

const Message& Records::problem() const { return state_->problem; }
bool Records::disk_is_full() const { return state_->problem.code == "attention.disk_full"; }
const std::vector<Message>& Records::notices() const { return state_->notices; }

Records::State::State(std::filesystem::path folder_, const Clock& clock_, Options options_)
    : folder(std::move(folder_)),
      clock(clock_),
      options(options_),
      started_at(now()),
      consent_file(folder / "consents.state") {
  load_consents();
}

// -- The file.

Result<void> Records::State::open_database() {
  if (database) return {};
  SHOAL_TRY_ASSIGN(opened, Database::open(file_of(folder), {.name = "records",
                                                            .application_id = kApplicationId,
                                                            .migrations = record_migrations(),
                                                            .busy = kBusy,
                                                            .vfs = options.vfs,
                                                            .synchronous_full = false}));
  database = std::move(opened);
  names.clear();
  day.reset();
  Result<void> ready = database->transaction([this] { return recover(); });
  if (ready.ok()) ready = load_ever();
  if (ready.ok()) ready = load_yields();
  if (ready.ok()) ready = load_coordinators();
  if (!ready.ok()) database.reset();  // Tried again from the start.
  return ready;
}

Result<void> Records::State::write_waiting_once() {
  SHOAL_TRY(open_database());
  Result<void> done = database->transaction([this]() -> Result<void> {
    SHOAL_TRY(write_sums());
    for (const std::function<Result<void>()>& body : waiting) SHOAL_TRY(body());
    return set_mark("alive_at_ms", now().count);
  });
  if (!done.ok()) {
    names.clear();  // Some may have been undone.
    return done;
  }
  waiting_sums.clear();
  waiting.clear();
  problem = {};
  locked_since.reset();
  return {};
}

Result<void> Records::State::write_waiting() {
  Result<void> done = write_waiting_once();
  if (done.ok()) return done;
  note_error(done.error());
  // A damaged file has made room for a new one.
  if (done.error().code == ErrorCode::kCorrupt) done = write_waiting_once();
  return done;
}

void Records::State::note_error(const Error& error) {
  const std::string path = file_of(folder).string();
  switch (error.code) {
    case ErrorCode::kCorrupt: set_aside(); return;
    case ErrorCode::kUnavailable:
      // A backup takes a moment, and nobody need hear of it.
      if (!locked_since) locked_since = clock.now_monotonic();
      if (clock.now_monotonic() - *locked_since >= kLockPatience) problem = {"records.locked", {}};
      return;
    case ErrorCode::kNoSpace: problem = {"attention.disk_full", {path}}; return;
    case ErrorCode::kUnsupported: problem = {"records.newer", {}}; return;
    default: problem = {"records.failed", {error.message}}; return;
  }
}

void Records::State::set_aside() {
  database.reset();
  for (auto& [pin, coordinator] : coordinators) carried_over[pin] = coordinator;
  coordinators.clear();
  const std::filesystem::path path = file_of(folder);
  const std::string name = "records.db.damaged-" + format_utc(now()).substr(0, 10);
  std::filesystem::path aside = folder / name;
  std::error_code code;
  for (int i = 2; i < 100 && std::filesystem::exists(aside, code); ++i) {
    aside = folder / (name + "-" + std::to_string(i));
  }
  std::filesystem::rename(path, aside, code);
  if (code) {
    problem = {"records.failed", {path.string() + " is damaged, and " + code.message()}};
    return;
  }
  // What belongs to the old file must not be taken for the new one's.
  for (const char* part : {"-wal", "-shm"}) {
    const std::filesystem::path from = path.string() + part;
    if (std::filesystem::exists(from, code)) {
      std::filesystem::rename(from, aside.string() + part, code);
    }
  }
  log_warning("records", "set_aside", {{"file", aside.string()}});
  notices.push_back({"records.damaged", {aside.filename().string()}});
  // What this process does goes on in the new file.
  for (int i = 0; i < kResourceCount; ++i) {
    if (open_spans[i]) begin_span(static_cast<Resource>(i), *open_spans[i]);
  }
  last_condition.clear();
}

void Records::State::later(std::function<Result<void>()> body) {
  // Only a file that cannot be written for hours fills it.
  if (waiting.size() >= kWaitingMax) waiting.pop_front();
  waiting.push_back(std::move(body));
}

Result<Database*> Records::State::readable() {
  if (database != nullptr && waiting.empty() && waiting_sums.empty()) return database.get();
  // A full disk keeps what is there from nobody who only reads.
  const Result<void> written = write_waiting();
  if (!written.ok() && (database == nullptr || written.error().code != ErrorCode::kNoSpace)) {
    return written.error();
  }
  return database.get();
}

Result<std::optional<int64_t>> Records::State::mark(std::string_view key) {
  Query query = database->query("SELECT value FROM mark WHERE key = ?");
  query.bind(key);
  SHOAL_TRY_ASSIGN(some, query.row());
  return some ? std::optional<int64_t>(query.integer(0)) : std::optional<int64_t>();
}

Result<void> Records::State::set_mark(std::string_view key, int64_t value) {
  return database
      ->query(
          "INSERT INTO mark (key, value) VALUES (?1, ?2) "
          "ON CONFLICT (key) DO UPDATE SET value = excluded.value")
      .bind(key)
      .bind(value)
      .run();
}

Result<void> Records::State::forget_old() {
  SHOAL_TRY(database->transaction([this] { return forget_statistics(); }));
  SHOAL_TRY(database->transaction([this] { return forget_trace(); }));
  return fold_some();
}

// -- Consent.

void Records::State::load_consents() {
  const auto lost = [this](const std::string& why) {
    consents_lost = {"records.consents_lost", {why}};
    notices.push_back(*consents_lost);
  };
  const Result<StateFile::Loaded> loaded = consent_file.load();
  if (!loaded.ok()) {
    if (loaded.error().code != ErrorCode::kNotFound) lost(loaded.error().message);
    return;
  }
  const nlohmann::json list = nlohmann::json::parse(as_text(loaded.value().bytes), nullptr,
                                                    /*allow_exceptions=*/false);
  if (!list.is_array()) return lost("consents.state holds no list");
  for (const nlohmann::json& entry : list) {
    if (entry == kLostWord) {
      lost("some were lost earlier");
      continue;
    }
    try {
      const JobClass job_class{entry.at("kind").get<std::string>(),
                               entry.at("model").get<std::string>(),
                               entry.at("anchored").get<bool>(), entry.value("group", false)};
      consents[{entry.at("pin").get<std::string>(), job_class}] = entry.at("allowed").get<bool>();
    } catch (const nlohmann::json::exception&) {
      if (!consents_lost) lost("consents.state has an entry that makes no sense");
    }
  }
}

Result<void> Records::State::save_consents(const Consents& from, bool lost) {
  if (from.size() > kConsentsMax) {
    return Error{ErrorCode::kNoSpace, "there is no room for more decisions on kinds of work"};
  }
  nlohmann::json list = nlohmann::json::array();
  if (lost) list.push_back(kLostWord);
  for (const auto& [key, value] : from) {
    list.push_back({{"pin", key.first},
                    {"kind", key.second.kind},
                    {"model", key.second.model},
                    {"anchored", key.second.anchored},
                    {"group", key.second.group},
                    {"allowed", value}});
  }
  const std::string text = list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (static_cast<int64_t>(text.size()) > kConsentBytesMax.count) {
    return Error{ErrorCode::kNoSpace, "there is no room for more decisions on kinds of work"};
  }
  return consent_file.save(as_bytes(text));
}

Result<void> Records::set_consent(const std::string& pin, const JobClass& job_class, bool allowed) {
  auto consents = state_->consents;
  consents[{pin, job_class}] = allowed;
  SHOAL_TRY(state_->save_consents(consents, state_->consents_lost.has_value()));
  state_->consents = std::move(consents);
  return {};
}

const std::optional<Message>& Records::consents_lost() const { return state_->consents_lost; }

Result<void> Records::forget_lost_consents() {
  if (!state_->consents_lost) return {};
  SHOAL_TRY(state_->save_consents(state_->consents, /*lost=*/false));
  std::erase_if(state_->notices,
                [&](const Message& notice) { return notice.code == state_->consents_lost->code; });
  state_->consents_lost.reset();
  return {};
}

std::optional<bool> Records::consent(const std::string& pin, const JobClass& job_class) const {
  const auto found = state_->consents.find({pin, job_class});
  return found == state_->consents.end() ? std::optional<bool>() : found->second;
}

std::vector<JobClass> Records::denied(const std::string& pin) const {
  std::vector<JobClass> denied;
  for (const auto& [key, allowed] : state_->consents) {
    if (key.first == pin && !allowed) denied.push_back(key.second);
  }
  return denied;
}

}  // namespace shoal::client
