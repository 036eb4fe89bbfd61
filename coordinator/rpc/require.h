#pragma once
// How servers turn the world's errors and a peer's fields into failed calls. Decides nothing.

#include <capnp/blob.h>

#include <string>
#include <utility>

#include "base/result.h"
#include "schema/transport.h"

namespace shoal {

template <class T>
T require(Result<T> result) {
  if (!result.ok()) rpc::throw_error(result.error());
  return std::move(result).value();
}
inline void require(const Result<void>& result) {
  if (!result.ok()) rpc::throw_error(result.error());
}

inline std::string text_of(capnp::Text::Reader text, size_t limit, const char* field) {
  rpc::require_at_most(text.size(), limit, field);
  return {text.begin(), text.size()};
}

}  // namespace shoal
