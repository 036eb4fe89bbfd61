#pragma once
// Holds the sentences about what is amiss that programs hand on as plain text: why a line to a
// coordinator is down, why a sensor does not know. Tells which one a text is, so that a user
// interface can say it in its reader's language; who writes such a text writes it as it stands
// here. Pure.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal {

struct KnownReason {
  std::string_view sentence;        // "nothing listens at {0} (connection refused)"
  std::vector<std::string> places;  // What stands at {0}, {1} and so on; itself one, at times.
};

std::span<const std::string_view> reason_table();
// None: a text that is not in the table, as from another version.
std::optional<KnownReason> find_reason(std::string_view text);

}  // namespace shoal
