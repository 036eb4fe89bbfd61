#pragma once
// Bounds of schema/direct.capnp that are its own.

#include <cstddef>

namespace shoal::limits {

constexpr size_t kPathTokenBytes = 32;
constexpr size_t kAddressBytesMax = 64;  // Of a neighbour: an IPv4 or IPv6 address.

}  // namespace shoal::limits
