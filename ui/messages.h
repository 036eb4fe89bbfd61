#pragma once
// The client's and the coordinators' sentences (schema/message.h) in the reader's language.

#include <QString>
#include <string>

#include "base/result.h"
#include "schema/message.h"

namespace shoal::ui {

// Empty for an empty message. A code that this program does not know, as from a newer one, reads
// as the code with its parameters.
QString sentence(const Message& message);
QString sentence(rpc::Message::Reader message);

// A text about something amiss that the client hands on (schema/reasons.h); as it is, when it is
// none that this program knows.
QString problem_text(const std::string& text);
QString problem_text(capnp::Text::Reader text);

// An error that a call was answered with, as a sentence that ends with a period.
QString sentence(const Error& error);

}  // namespace shoal::ui
