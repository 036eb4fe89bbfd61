#pragma once
// Every sentence that one program of Shoal says to a person through another: a code and what fills
// its places. Holds the catalogue in English; a user interface says it in its reader's language.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"
#include "schema/common.capnp.h"

namespace shoal {

struct Celsius {
  double value = 0;
};
struct Watts {
  double value = 0;
};
struct Percent {
  double value = 0;  // 25.0 is a quarter.
};
struct Count {
  int64_t value = 0;
};
struct WallTime {
  Millis at{0};
};
struct KilowattHours {
  double value = 0;
};

using MessageParameter = std::variant<std::string, Millis, Bytes, Celsius, Watts, Percent, Count,
                                      WallTime, KilowattHours>;

struct Message {
  std::string code;  // Empty: nothing to say.
  std::vector<MessageParameter> parameters;

  bool empty() const { return code.empty(); }
};

struct MessageSpec {
  std::string_view code;  // "rule.owner_active"
  std::string_view text;  // "You used this computer {0} ago." Places are numbered from 0.
};

// In the order of their codes.
std::span<const MessageSpec> message_table();
const MessageSpec* find_message(std::string_view code);  // Null when there is none.

// The sentence for the command line and the log. An unknown code, as from a newer program, reads as
// the code with its parameters.
std::string english(const Message& message);
std::string english(const MessageParameter& parameter);

// `text` with {0}, {1}, ... replaced; a place without a parameter stays empty.
std::string fill_places(std::string_view text, std::span<const std::string> parameters);

void write_message(const Message& message, rpc::Message::Builder to);
// Texts are cut and control characters removed; at most kMessageParametersMax parameters.
Message read_message(rpc::Message::Reader from);

}  // namespace shoal
