#pragma once
// How servers and clients turn the world's errors and a peer's fields into failed calls. Decides
// nothing.

#include <capnp/blob.h>

#include <string>
#include <utility>

#include "base/result.h"
#include "schema/transport.h"

namespace shoal::rpc {

// The value; an error is thrown by throw_error().
template <class T>
T require(Result<T> result) {
  if (!result.ok()) throw_error(result.error());
  return std::move(result).value();
}
inline void require(const Result<void>& result) {
  if (!result.ok()) throw_error(result.error());
}

// A peer's text; throws when it has more than `bytes_max` bytes, naming the field.
inline std::string text_of(capnp::Text::Reader text, size_t bytes_max, const char* field) {
  require_at_most(text.size(), bytes_max, field);
  return {text.begin(), text.size()};
}

}  // namespace shoal::rpc
