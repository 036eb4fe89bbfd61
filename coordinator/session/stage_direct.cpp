// Steps of a device whose neighbours pass the hidden rows on themselves.

#include <algorithm>

#include "coordinator/session/stage_device.h"
#include "schema/limits.h"
#include "schema/transport.h"

namespace shoal {

rpc::DirectStage::Client StageDevice::direct() {
  rpc::Stage::Client stage = KJ_ASSERT_NONNULL(stage_);
  return stage.castAs<rpc::DirectStage>();
}

kj::Promise<StageDevice::DirectResponse> StageDevice::send_direct(int64_t first, int64_t rows,
                                                                  int64_t draw_from, Ways ways) {
  SHOAL_CHECK(first >= filled_);
  rpc::DirectStage::Client stage = direct();
  auto request = stage.stepDirectRequest();
  request.setFromNeighbour(ways.from_neighbour);
  request.setToNeighbour(ways.to_neighbour);
  fill_step(request.initInput(), first, rows, draw_from, !ways.from_neighbour);
  return request.send();
}

rpc::Task<StageDevice::DirectResult> StageDevice::hear_direct(kj::Promise<DirectResponse> sent,
                                                              kj::TimePoint began, Ways ways,
                                                              int64_t rows, bool draw, bool alone) {
  SessionNeeds& needs = shared_.needs;
  const PlanDevice speed = speed_of(needs.pool, place_, use_ == Use::kStage);
  const Millis limit = step_timeout(needs.options.step, row_seconds_,
                                    stage_seconds(shared_.costs(stage_index_), speed, rows), rows);
  DirectResult result;
  try {
    kj::Promise<void> gone = needs.pool.gone(place_);
    kj::Promise<DirectResponse> guarded =
        needs.timer.timeoutAfter(duration_of(limit), kj::mv(sent))
            .exclusiveJoin(gone.then([]() -> kj::Promise<DirectResponse> {
              return KJ_EXCEPTION(DISCONNECTED, "its host has gone");
            }));
    const auto response = co_await kj::mv(guarded);
    const rpc::DirectOutput::Reader output = response.getOutput();
    if (output.hasReceived()) {
      const Result<Digest> received = Digest::from_bytes(rpc::bytes_of(output.getReceived()));
      if (received.ok()) result.received = received.value();
    }
    switch (output.which()) {
      case rpc::DirectOutput::NOT_DONE:
        result.not_done = "its neighbour's rows did not come, or its own cannot go";
        break;
      case rpc::DirectOutput::PASSED_ON: {
        if (!ways.to_neighbour) {
          result.not_done = "passed on what nobody takes";
          break;
        }
        const Result<Digest> passed = Digest::from_bytes(rpc::bytes_of(output.getPassedOn()));
        if (passed.ok()) {
          result.passed_on = passed.value();
        } else {
          result.not_done = "answered without a digest";
        }
        break;
      }
      case rpc::DirectOutput::OUTPUT: {
        if (ways.to_neighbour) {
          result.not_done = "did not pass on what it computed";
          break;
        }
        Result<StepResult> read = read_output(output.getOutput(), rows, draw ? 1 : 0);
        if (read.ok()) {
          result.step = std::move(read).value();
        } else {
          result.not_done = read.error().message;
        }
        break;
      }
      default: result.not_done = "answered what is not known";
    }
  } catch (const kj::Exception& exception) {
    result.not_done = cause_of(exception).stored;
  }
  if (!result.not_done.empty() || !alone) co_return kj::mv(result);
  double seconds = static_cast<double>((needs.timer.now() - began) / kj::MICROSECONDS) / 1e6;
  // Of a neighbour's rows we hear when they arrive, about; of ours the way there counts as well.
  const Pool::Host* const host = needs.pool.find(place_.host, place_.login);
  if (ways.from_neighbour && host != nullptr) seconds += host->hop_seconds / 2;
  note_time(seconds, rows);
  co_return kj::mv(result);
}

}  // namespace shoal
