#include "client/device_finder.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "client/loop.h"
#include "schema/transport.h"

namespace shoal::client {

DeviceFinder::DeviceFinder(kj::Timer& timer, const Clock& clock, Random& random, Needs& needs,
                           Waits waits)
    : timer_(timer),
      clock_(clock),
      needs_(needs),
      waits_(waits),
      back_off_(waits.failed_first, waits.failed_most, random),
      early_until_(clock.now_monotonic() + waits.early_for),
      life_(look_on().promise().eagerlyEvaluate([](kj::Exception&& exception) {
        log_error("devices", "gave_up", {{"cause", exception.getDescription().cStr()}});
      })) {}

void DeviceFinder::look_now() {
  early_until_ = clock_.now_monotonic() + waits_.early_for;
  asked_for_ = true;
  KJ_IF_MAYBE (look, look_) {
    kj::Own<kj::PromiseFulfiller<void>> fulfiller = kj::mv(*look);
    look_ = nullptr;
    fulfiller->fulfill();
  }
}

rpc::Task<void> DeviceFinder::look_on() {
  // Not inside the constructor: what needs us is not built yet.
  co_await kj::evalLater([] {});
  std::string nodes;
  Millis listed_at{0};
  while (true) {
    const Millis now = clock_.now_monotonic();
    Millis wait = now < early_until_ ? waits_.early : waits_.later;
    std::string nodes_now = needs_.device_nodes();
    if (std::exchange(asked_for_, false) || !problem_.empty() || needs_.device_missing() ||
        nodes_now != nodes || now - listed_at >= waits_.anyhow) {
      std::vector<DeviceFacts> devices;
      std::string problem;
      try {
        kj::Promise<std::vector<DeviceFacts>> listing = needs_.list_devices();
        devices = co_await kj::mv(listing);
      } catch (const kj::Exception& exception) {
        problem = rpc::error_of(exception).message;
      }
      if (problem.empty()) {
        nodes = std::move(nodes_now);
        listed_at = now;
        problem_.clear();
        looking_ = false;
        back_off_.reset();
        needs_.devices_found(std::move(devices));
      } else {
        if (problem != problem_) log_warning("devices", "not_listed", {{"cause", problem}});
        problem_ = std::move(problem);
        needs_.devices_not_found();
        wait = back_off_.next();
      }
    }
    auto pair = kj::newPromiseAndFulfiller<void>();
    look_ = kj::mv(pair.fulfiller);
    kj::Promise<void> next =
        timer_.afterDelay(until_whole(clock_.now_monotonic(), wait).count * kj::MILLISECONDS)
            .exclusiveJoin(kj::mv(pair.promise));
    co_await kj::mv(next);
    look_ = nullptr;
  }
}

std::string system_device_nodes() {
  std::vector<std::string> names;
  for (const char* const folder : {"/dev", "/dev/dri"}) {
    std::error_code code;
    for (std::filesystem::directory_iterator entry(folder, code), end; !code && entry != end;
         entry.increment(code)) {
      std::string name = entry->path().filename().string();
      if (name.starts_with("nvidia") || name.starts_with("render") || name == "kfd") {
        names.push_back(std::move(name));
      }
    }
  }
  std::ranges::sort(names);
  std::string text;
  for (const std::string& name : names) text += name + " ";
  return text;
}

}  // namespace shoal::client
