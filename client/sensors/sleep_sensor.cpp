// Says at once that the computer is about to sleep or to end, and holds it for the moment that the
// client needs to let go of its devices.

#include <fcntl.h>

#include "base/host.h"
#include "client/sensors/bus.h"
#include "client/sensors/sensor.h"

namespace shoal::client {
namespace {

constexpr Millis kEach{10'000};
// The system's own patience is five seconds unless its administrator changed it.
constexpr Millis kHoldMax{5'000};

class SleepSensor final : public Sensor {
 public:
  std::string_view name() const override { return "sleep"; }

  std::optional<SensorAnswer> read(const SensorRequest& request) override {
    const Result<void> heard = listen(request);
    const Millis now = request.clock.now_monotonic();
    const bool sleeping = sleep_coming_ || end_coming_;
    std::string problem;
    if (!heard.ok()) {
      // Whoever held the computer through a lost connection holds it no more; and what was said
      // there may be over.
      sleep_coming_ = end_coming_ = false;
      hold_.reset();
      asked_ = false;
      SensorAnswer answer = SensorAnswer::unknown(
          "nothing here says when the computer is about to sleep: " + heard.error().message);
      answer.values["sleeping"] = false;
      answer.backends = {{"logind", false, heard.error().message, {}}};
      return answer;
    }
    if (sleeping) {
      if (!let_go_at_) let_go_at_ = now + kHoldMax;
      if (request.released || now >= *let_go_at_) hold_.reset();
    } else {
      let_go_at_.reset();
      if (hold_.get() < 0) problem = take_hold(request);
    }
    SensorAnswer answer;
    answer.backend = "logind";
    answer.values["sleeping"] = sleeping;
    answer.values["holds"] = hold_.get() >= 0;  // For who looks into it: nothing decides by it.
    answer.problem = problem;
    answer.backends = {{"logind", true, problem, {}}};
    answer.next = kEach;
    if (hold_.get() >= 0 && let_go_at_) answer.next = std::max(Millis{1}, *let_go_at_ - now);
    // Taking hold may have let a signal in behind our back.
    (void)bus_.receive(request);
    if (sleeping != (sleep_coming_ || end_coming_)) answer.next = Millis{0};
    return answer;
  }

  SensorWake wake() override { return bus_.wake(); }

 private:
  Result<void> listen(const SensorRequest& request) {
    SHOAL_TRY(bus_.receive(request));
    if (bus_.connection() != heard_connection_) {
      SHOAL_TRY(bus_.on_signal(request, kLogind, "PrepareForSleep", on_sleep_));
      SHOAL_TRY(bus_.on_signal(request, kLogind, "PrepareForShutdown", on_end_));
      hold_.reset();
      heard_connection_ = bus_.connection();
      asked_ = false;
    }
    if (asked_) return {};
    // A signal may have been missed before there was a connection. Asked once: while the computer
    // falls asleep these go back to false, and only a signal says that it is over.
    SHOAL_TRY_ASSIGN(sleep, bus_.property(request, kLogind, "PreparingForSleep"));
    SHOAL_TRY_ASSIGN(end, bus_.property(request, kLogind, "PreparingForShutdown"));
    sleep_coming_ = as_flag(sleep).value_or(false);
    end_coming_ = as_flag(end).value_or(false);
    asked_ = true;
    return {};
  }

  static void take(sd_bus_message* signal, bool& coming) {
    int value = 0;
    if (sd_bus_message_read_basic(signal, 'b', &value) > 0) coming = value != 0;
  }

  // Why it could not.
  std::string take_hold(const SensorRequest& request) {
    const auto reply = bus_.call(
        request, kLogind, "Inhibit",
        {"sleep:shutdown", "Shoal", "Stops computing and frees the graphics cards", "delay"});
    if (!reply.ok()) return "the computer may sleep too early: " + reply.error().message;
    int fd = -1;
    if (sd_bus_message_read_basic(reply.value().get(), 'h', &fd) <= 0 || fd < 0) {
      return "the computer may sleep too early: the login service gave nothing to hold it by";
    }
    // The message closes its own.
    hold_ = OwnedFd(fcntl(fd, F_DUPFD_CLOEXEC, 3));
    return "";
  }

  bool sleep_coming_ = false, end_coming_ = false;
  const BusListener on_sleep_ = [this](sd_bus_message* signal) { take(signal, sleep_coming_); };
  const BusListener on_end_ = [this](sd_bus_message* signal) { take(signal, end_coming_); };
  OwnedFd hold_;
  std::optional<Millis> let_go_at_;
  uint64_t heard_connection_ = 0;
  bool asked_ = false;
  Bus bus_{Bus::Which::kSystem};  // Last: it calls the above.
};

}  // namespace

std::unique_ptr<Sensor> make_sleep_sensor() { return std::make_unique<SleepSensor>(); }

}  // namespace shoal::client
