#pragma once
// Holds quantities and names that must not be mixed up: bytes, operations, time, and the ids of
// things.

#include <compare>
#include <cstdint>
#include <functional>

namespace shoal {

// A count of one kind of thing. Only like is added to like; the count itself is public, for
// arithmetic that this type does not foresee.
template <class Tag>
struct Quantity {
  int64_t count = 0;

  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.count + b.count}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.count - b.count}; }
  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }
};

using Bytes = Quantity<struct BytesTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using Flops = Quantity<struct FlopsTag>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag>;
using Millis = Quantity<struct MillisTag>;

constexpr Bytes kKibibyte{int64_t{1} << 10};
constexpr Bytes kMebibyte{int64_t{1} << 20};
constexpr Bytes kGibibyte{int64_t{1} << 30};

// The name of one thing, as the coordinator's store numbers it. Zero names nothing.
template <class Tag>
struct Id {
  int64_t value = 0;

  friend constexpr auto operator<=>(const Id&, const Id&) = default;
  constexpr explicit operator bool() const { return value != 0; }
};

using HostId = Id<struct HostTag>;
using DeviceId = Id<struct DeviceTag>;
using ModelId = Id<struct ModelTag>;
using SessionId = Id<struct SessionTag>;
using LeaseId = Id<struct LeaseTag>;
using UnitId = Id<struct UnitTag>;
using JobId = Id<struct JobTag>;

}  // namespace shoal

template <class Tag>
struct std::hash<shoal::Id<Tag>> {
  size_t operator()(shoal::Id<Tag> id) const { return std::hash<int64_t>{}(id.value); }
};
