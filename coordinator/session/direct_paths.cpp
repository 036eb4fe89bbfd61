#include "coordinator/session/direct_paths.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/log.h"
#include "base/random.h"
#include "schema/direct.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal {
namespace {

constexpr kj::Duration kMeetMax = 20 * kj::SECONDS;   // Longer than a dial may take.
constexpr kj::Duration kBringMax = 10 * kj::SECONDS;  // For an answer with rows.
constexpr kj::Duration kRetry = 10 * kj::SECONDS;
constexpr int kAttemptsMax = 4;    // Of one session, between two stages.
constexpr size_t kFlightsMax = 4;  // Blocks on their way in one run.
constexpr int64_t kBringBytesMax = int64_t{4}
                                   << 20;  // In one answer, but for a block that is larger.
// A way that is longer than the one through the coordinator by more than this is not taken: the
// coordinator's work and the doubled bytes are worth something.
constexpr double kDetourSeconds = 0.005;
constexpr uint32_t kExponentBits = 0x7f800000;  // All set: an infinity or no number.

bool is_finite(ByteSpan hidden) {
  for (size_t at = 0; at < hidden.size(); at += sizeof(float)) {
    if ((load_le<uint32_t>(hidden.data() + at) & kExponentBits) == kExponentBits) return false;
  }
  return true;
}

}  // namespace

DirectPaths::DirectPaths(SessionShared& shared,
                         std::span<const std::unique_ptr<StageRunner>> stages)
    : shared_(shared), stages_(stages) {
  paths_.resize(stages.size() - 1);
}

// What goes between stages is not seen here, so nobody can be checked or followed by it.
bool DirectPaths::may_have_paths() const {
  const SessionOptions& options = shared_.needs.options;
  if (!options.direct || options.standbys_max > 0) return false;
  return options.audits_max == 0 || std::ranges::all_of(stages_, [](const auto& stage) {
           return stage->who() && stage->who()->trusted;
         });
}

bool DirectPaths::is_usable(size_t path) const {
  const Path& joins = paths_[path];
  const StageRunner &from = *stages_[path], &to = *stages_[path + 1];
  return joins.state == Path::State::kOpen && from.is_ready() && to.is_ready() &&
         from.completed() == to.completed() && from.device()->lease() == joins.from &&
         to.device()->lease() == joins.to;
}

// ---- Opening -----------------------------------------------------------------------------------

void DirectPaths::open() {
  if (!may_have_paths()) return;
  const kj::TimePoint now = shared_.needs.timer.now();
  for (size_t i = 0; i < paths_.size(); ++i) {
    Path& path = paths_[i];
    const StageRunner &from = *stages_[i], &to = *stages_[i + 1];
    if (!from.is_ready() || !to.is_ready() || is_usable(i)) continue;
    const LeaseId from_lease = from.device()->lease(), to_lease = to.device()->lease();
    const bool is_same = path.from == from_lease && path.to == to_lease;
    if (path.state == Path::State::kOpening && is_same) continue;
    if (path.attempts >= kAttemptsMax || (is_same && now < path.not_before)) continue;
    // The stage keeps what it passed on until it has another path: it must be here by then.
    if (shared_.stages[i + 1].inputs->rows() < static_cast<uint64_t>(from.completed())) continue;
    if (from.place()->host == to.place()->host) continue;
    path.state = Path::State::kOpening;
    path.from = from_lease;
    path.to = to_lease;
    path.attempts += 1;
    path.not_before = now + kRetry;
    path.passed.clear();
    rpc::Task<void> opening = open_path(i);
    kj::Promise<void> open = kj::mv(opening);
    path.opening =
        open.then([] {},
                  [this, i](kj::Exception&& exception) {
                    paths_[i].state = Path::State::kClosed;
                    log_debug("session", "no_path",
                              {{"session", shared_.id}, {"cause", rpc::error_of(exception)}});
                  })
            .then([this, i] {
              if (paths_[i].opened.get() != nullptr) paths_[i].opened->fulfill();
            })
            .eagerlyEvaluate(nullptr);
  }
}

kj::Promise<void> DirectPaths::opened() {
  kj::Promise<void> all = kj::READY_NOW;
  for (Path& path : paths_) {
    if (path.state != Path::State::kOpening) continue;
    auto pair = kj::newPromiseAndFulfiller<void>();
    path.opened = kj::mv(pair.fulfiller);
    all = all.then([one = kj::mv(pair.promise)]() mutable { return kj::mv(one); });
  }
  return all;
}

rpc::Task<DirectPaths::Door> DirectPaths::door_of(DevicePlace place) {
  Pool::Host* const host = shared_.needs.pool.find(place.host, place.login);
  if (host == nullptr) rpc::throw_error({ErrorCode::kUnavailable, "its host has gone"});
  Door door;
  door.address = host->address;
  door.hop_seconds = host->hop_seconds;
  door.hop_measured = host->hop_measured;
  kj::Promise<capnp::Response<rpc::DirectHost::DoorResults>> asked =
      host->client.castAs<rpc::DirectHost>().doorRequest().send();
  const auto answer = co_await shared_.needs.timer.timeoutAfter(kMeetMax, kj::mv(asked));
  door.dials = answer.getDials();
  door.port = answer.getPort();
  door.pin = rpc::text_of(answer.getPin(), limits::kKeyBytesMax, "pin");
  if (door.address.size() > limits::kAddressBytesMax) door.port = 0;
  co_return kj::mv(door);
}

// The round trip between the two, as the one who dialled says.
rpc::Task<double> DirectPaths::meet(rpc::DirectStage::Client listens,
                                    rpc::DirectStage::Client dials, Door door, bool inputs_dial) {
  std::byte token[limits::kPathTokenBytes];
  fill_secret(token);
  const auto end = [&](rpc::PathEnd::Builder to, bool inputs) {
    to.setToken(rpc::kj_bytes(token));
    to.setSide(inputs ? rpc::PathEnd::Side::INPUTS : rpc::PathEnd::Side::OUTPUTS);
  };
  auto expect = listens.expectRequest();
  end(expect.initEnd(), !inputs_dial);
  kj::Promise<void> expected = expect.send().ignoreResult();
  co_await shared_.needs.timer.timeoutAfter(kMeetMax, kj::mv(expected));
  auto dial = dials.dialRequest();
  end(dial.initEnd(), inputs_dial);
  dial.setAddress(door.address);
  dial.setPort(door.port);
  dial.setPin(door.pin);
  kj::Promise<capnp::Response<rpc::DirectStage::DialResults>> dialled = dial.send();
  const auto met = co_await shared_.needs.timer.timeoutAfter(kMeetMax, kj::mv(dialled));
  co_return static_cast<double>(met.getRoundTripMicros()) / 1e6;
}

rpc::Task<void> DirectPaths::open_path(size_t path) {
  StageDevice &from = *stages_[path]->device(), &to = *stages_[path + 1]->device();
  const DevicePlace from_place = from.place(), to_place = to.place();
  rpc::DirectStage::Client from_stage = from.direct(), to_stage = to.direct();
  rpc::Task<Door> asking_from = door_of(from_place), asking_to = door_of(to_place);
  const Door from_door = co_await kj::mv(asking_from);
  const Door to_door = co_await kj::mv(asking_to);
  std::optional<double> round_trip;
  if (from_door.dials && to_door.port != 0 && !to_door.address.empty()) {
    try {
      rpc::Task<double> meeting = meet(to_stage, from_stage, to_door, /*inputs_dial=*/false);
      round_trip = co_await kj::mv(meeting);
    } catch (const kj::Exception& exception) {
      log_debug("session", "not_met", {{"cause", rpc::error_of(exception)}});
    }
  }
  if (!round_trip && to_door.dials && from_door.port != 0 && !from_door.address.empty()) {
    rpc::Task<double> meeting = meet(from_stage, to_stage, from_door, /*inputs_dial=*/true);
    round_trip = co_await kj::mv(meeting);
  }
  if (!round_trip) {
    rpc::throw_error({ErrorCode::kUnavailable, "neither host can reach the other"});
  }
  const double relayed = from_door.hop_seconds + to_door.hop_seconds;
  if (from_door.hop_measured && to_door.hop_measured && *round_trip > relayed + kDetourSeconds) {
    paths_[path].attempts = kAttemptsMax;
    rpc::throw_error({ErrorCode::kUnavailable, "the way through the coordinator is shorter"});
  }
  paths_[path].state = Path::State::kOpen;
  shared_.needs.journal.note("path_opened",
                             range_of(shared_.stages[path]) + " to " +
                                 range_of(shared_.stages[path + 1]) + ", " +
                                 std::to_string(int64_t(*round_trip * 1e6)) + " us there and back",
                             {}, shared_.id);
}

void DirectPaths::close(size_t path, const std::string& why) {
  Path& joins = paths_[path];
  if (joins.state != Path::State::kOpen) return;
  joins.state = Path::State::kClosed;
  joins.not_before = shared_.needs.timer.now() + kRetry;
  shared_.needs.journal.note(
      "path_closed",
      range_of(shared_.stages[path]) + " to " + range_of(shared_.stages[path + 1]) + ": " + why, {},
      shared_.id);
}

// ---- Steps -------------------------------------------------------------------------------------

size_t DirectPaths::run_end(size_t stage) {
  while (stage < paths_.size() && is_usable(stage)) ++stage;
  return stage;
}

DirectPaths::Flight DirectPaths::send(size_t from, size_t to, const Block& block) {
  Flight flight{block, {}};
  const int64_t end = block.first + block.rows;
  for (size_t i = from; i <= to; ++i) {
    const int64_t draw_from = block.draw && i == to ? end - 1 : end;
    flight.answers.push_back(
        stages_[i]->device()->send_direct(block.first, block.rows, draw_from, {i > from, i < to}));
  }
  return flight;
}

rpc::Task<std::optional<StepResult>> DirectPaths::hear(size_t from, size_t to, Flight& flight,
                                                       bool alone) {
  const Block block = flight.block;
  std::vector<StageDevice::DirectResult> results;
  std::string failed;
  size_t failed_at = from;
  kj::TimePoint began = shared_.needs.timer.now();
  for (size_t i = from; i <= to && failed.empty(); ++i) {
    rpc::Task<StageDevice::DirectResult> hearing = stages_[i]->device()->hear_direct(
        kj::mv(flight.answers[i - from]), began, {i > from, i < to}, block.rows,
        block.draw && i == to, alone);
    StageDevice::DirectResult result = co_await kj::mv(hearing);
    began = shared_.needs.timer.now();
    failed_at = i;
    if (!result.not_done.empty()) {
      failed = result.not_done;
    } else if (i > from && result.received != results.back().passed_on) {
      failed = "what arrived is not what was sent";
    }
    results.push_back(std::move(result));
  }
  std::optional<StepResult> answer;
  if (!failed.empty()) {
    const std::optional<StageWho>& who = stages_[failed_at]->who();
    for (size_t i = from; i < to; ++i) close(i, (who ? who->host_name + ": " : "") + failed);
    co_return kj::mv(answer);
  }
  for (size_t i = from; i <= to; ++i) {
    stages_[i]->note_direct(block.first, block.rows);
    if (i == to) break;
    std::vector<Passed>& passed = paths_[i].passed;
    while (!passed.empty() && passed.back().first >= block.first) passed.pop_back();
    passed.push_back({block.first, block.rows, results[i - from].passed_on});
  }
  answer = std::move(results.back().step);
  co_return kj::mv(answer);
}

rpc::Task<bool> DirectPaths::run(size_t from, size_t to, int64_t end, int64_t block_rows,
                                 Done done) {
  SHOAL_CHECK(from < to);
  const bool tail = to + 1 == stages_.size();
  const auto window = std::min<size_t>(to - from + 1, kFlightsMax);
  int64_t sent = stages_[from]->completed();
  std::deque<Flight> flights;
  bool alone = true;
  while (!shared_.wrong) {
    const int64_t given =
        from == 0 ? end : static_cast<int64_t>(shared_.stages[from].inputs->rows());
    while (flights.size() < window && sent < given) {
      const int64_t rows = std::min(block_rows, given - sent);
      flights.push_back(send(from, to, {sent, rows, tail && sent + rows == end}));
      sent += rows;
    }
    if (flights.empty()) co_return true;
    // What is measured while others are on their way says nothing of a step.
    alone = alone && flights.size() == 1;
    rpc::Task<std::optional<StepResult>> hearing = hear(from, to, flights.front(), alone);
    std::optional<StepResult> result = co_await kj::mv(hearing);
    if (!result) break;
    const Block block = flights.front().block;
    flights.pop_front();
    done(block, std::move(*result));
  }
  flights.clear();  // Who still waits for rows need not any more.
  if (shared_.wrong) co_return true;
  for (size_t i = from + 1; i <= to; ++i) {
    rpc::Task<void> bringing = bring(i, stages_[i]->completed());
    co_await kj::mv(bringing);
  }
  co_return false;
}

// ---- What the coordinator was not sent ---------------------------------------------------------

rpc::Task<void> DirectPaths::bring(size_t stage, int64_t rows) {
  if (stage == 0) co_return;
  const KeptInputs& inputs = *shared_.stages[stage].inputs;
  while (inputs.rows() < static_cast<uint64_t>(rows)) {
    rpc::Task<bool> reading = read_outputs(stage - 1);
    const bool read = co_await kj::mv(reading);
    if (read) continue;
    // Who had them is lost, or does not hand them out: they are computed again.
    StageRunner& before = *stages_[stage - 1];
    rpc::Task<void> bringing = bring(stage - 1, before.completed());
    co_await kj::mv(bringing);
    before.compute_again_from(static_cast<int64_t>(inputs.rows()));
    rpc::Task<void> computing = before.make_ready();
    co_await kj::mv(computing);
    SHOAL_CHECK(inputs.rows() >= static_cast<uint64_t>(rows));
  }
}

// Some of the rows that stage + 1 lacks, from the device that passed them on. False: it has none.
rpc::Task<bool> DirectPaths::read_outputs(size_t stage) {
  SessionNeeds& needs = shared_.needs;
  KeptInputs& inputs = *shared_.stages[stage + 1].inputs;
  const Path& path = paths_[stage];
  StageRunner& runner = *stages_[stage];
  if (!runner.is_ready() || runner.device()->lease() != path.from) co_return false;
  const auto have = static_cast<int64_t>(inputs.rows());
  const auto row_bytes = shared_.model->manifest.width * static_cast<int64_t>(sizeof(float));
  // Whole blocks, as only those have a digest.
  std::vector<Passed> blocks;
  int64_t end = have;
  for (const Passed& block : path.passed) {
    if (block.first > end || block.first + block.rows <= end) continue;
    const int64_t bytes = (block.first + block.rows - have) * row_bytes;
    if (!blocks.empty() && bytes > kBringBytesMax) break;
    blocks.push_back(block);
    end = block.first + block.rows;
  }
  if (blocks.empty()) co_return false;
  const int64_t first = blocks.front().first;

  ByteVector hidden;
  bool answered = false;
  try {
    rpc::DirectStage::Client client = runner.device()->direct();
    auto request = client.outputsRequest();
    request.setFirst(static_cast<uint32_t>(first));
    request.setRows(static_cast<uint32_t>(end - first));
    kj::Promise<capnp::Response<rpc::DirectStage::OutputsResults>> asked = request.send();
    kj::Promise<capnp::Response<rpc::DirectStage::OutputsResults>> guarded =
        needs.timer.timeoutAfter(kBringMax, kj::mv(asked));
    const DevicePlace place = runner.device()->place();
    kj::Promise<void> gone = needs.pool.gone(place);
    const auto answer = co_await guarded.exclusiveJoin(
        gone.then([]() -> kj::Promise<capnp::Response<rpc::DirectStage::OutputsResults>> {
          return KJ_EXCEPTION(DISCONNECTED, "its host has gone");
        }));
    hidden = to_vector(rpc::bytes_of(answer.getHidden()));
    answered = true;
  } catch (const kj::Exception& exception) {
    log_info("session", "rows_not_handed_out",
             {{"session", shared_.id}, {"cause", rpc::error_of(exception)}});
  }
  if (!answered) co_return false;
  bool good = hidden.size() == static_cast<size_t>((end - first) * row_bytes) && is_finite(hidden);
  for (size_t i = 0; good && i < blocks.size(); ++i) {
    const ByteSpan block =
        ByteSpan(hidden).subspan(static_cast<size_t>((blocks[i].first - first) * row_bytes),
                                 static_cast<size_t>(blocks[i].rows * row_bytes));
    good = digest_of(block) == blocks[i].digest;
  }
  if (!good) {
    // It said itself what it had passed on.
    StepFailure failure{in_our_words("handed out other rows than it had passed on")};
    failure.distrust = true;
    runner.give_up(failure);
    co_return false;
  }
  shared_.relayed_bytes += static_cast<int64_t>(hidden.size());
  const Result<void> kept =
      inputs.append(ByteSpan(hidden).subspan(static_cast<size_t>((have - first) * row_bytes)));
  if (!kept.ok()) rpc::throw_error(kept.error());
  co_return true;
}

}  // namespace shoal
