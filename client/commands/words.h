#pragma once
// What people type and read on the command line: durations, dates, resources, states.

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "schema/agent.capnp.h"
#include "schema/message.h"

namespace shoal::client {

// "90s", "15m", "1h", "2d": a whole number and one unit, from a second to a year.
Result<Millis> parse_duration(std::string_view text);

// "18:00" as the wall time at which this machine's clock shows it next, after `now`.
Result<Millis> parse_next_time(std::string_view text, Millis now);

// "2026-07-01" or "2026-07-01 14:30" in this machine's time zone, as a wall time.
Result<Millis> parse_date(std::string_view text);

const char* word_of(rpc::Resource resource);  // "gpu"
const char* word_of(rpc::Mode mode);          // "rules"
const char* word_of(rpc::Activity activity);  // "working"
// Of what the rules say of a resource: that it may work is not that it does.
const char* permission_of(rpc::Activity activity);  // "allowed"
const char* word_of(rpc::DeviceReport::State state);
const char* word_of(rpc::Privacy privacy);
const char* word_of(rpc::Receipt::Verdict verdict);

// In English, as schema/message.h says such figures.
std::string text_of(Millis duration);
std::string text_of(Bytes bytes);
std::string time_text(int64_t wall_ms);  // "-" for 0.
std::string rounded(double value, int digits = 1);
constexpr int kCreditDigits = 4;  // The first credits of a small device are small.
constexpr int kMoneyDigits = 2;
std::string sentence(rpc::Message::Reader message);
// What would change it, with commands where the window has pages.
std::string remedy_text(const Message& remedy);

}  // namespace shoal::client
