#pragma once
// A message as a line of JSON, for a column of the records.

#include <string>
#include <string_view>

#include "schema/message.h"

namespace shoal::client {

std::string message_to_text(const Message& message);
// A text that is none, as of a damaged row, is an empty message.
Message message_from_text(std::string_view text);

}  // namespace shoal::client
