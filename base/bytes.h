#pragma once
// Bytes as views: text forms, little-endian numbers, and a reader and a writer that cannot leave
// their bounds. Holds no memory but what it returns.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace shoal {

using ByteSpan = std::span<const std::byte>;
using ByteVector = std::vector<std::byte>;

inline ByteSpan as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string_view as_text(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline ByteVector to_vector(ByteSpan bytes) { return {bytes.begin(), bytes.end()}; }

std::string hex_encode(ByteSpan bytes);                // Lower case.
Result<ByteVector> hex_decode(std::string_view text);  // Either case; nothing but digits.

// RFC 4648 section 5, without padding. Decoding refuses padding, other letters and stray last bits,
// so that equal bytes have one text only.
std::string base64url_encode(ByteSpan bytes);
Result<ByteVector> base64url_decode(std::string_view text);

// REQUIRES: sizeof(T) bytes can be read or written at `at`, which needs no alignment.
template <class T>
requires std::unsigned_integral<T> || std::signed_integral<T> T load_le(const std::byte* at) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
requires std::unsigned_integral<T> || std::signed_integral<T>
void store_le(std::byte* at, T value) {
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(at, &value, sizeof value);
}

// Reads from the front. A read beyond the end fails, names `field`, and moves nothing.
class ByteReader {
 public:
  explicit ByteReader(ByteSpan bytes) : bytes_(bytes) {}  // The bytes outlive the reader.

  Result<uint8_t> u8(std::string_view field = "u8");
  Result<uint16_t> u16(std::string_view field = "u16");
  Result<uint32_t> u32(std::string_view field = "u32");
  Result<uint64_t> u64(std::string_view field = "u64");
  Result<float> f32(std::string_view field = "f32");
  Result<ByteSpan> bytes(uint64_t count, std::string_view field = "bytes");
  Result<std::string_view> text(uint64_t count, std::string_view field = "text");
  Result<void> skip(uint64_t count, std::string_view field = "padding");

  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }
  bool at_end() const { return left() == 0; }

 private:
  template <class T>
  Result<T> number(std::string_view field);

  ByteSpan bytes_;
  size_t position_ = 0;
};

class ByteWriter {
 public:
  void u8(uint8_t value) { number(value); }
  void u16(uint16_t value) { number(value); }
  void u32(uint32_t value) { number(value); }
  void u64(uint64_t value) { number(value); }
  void f32(float value) { number(std::bit_cast<uint32_t>(value)); }
  void bytes(ByteSpan value) { bytes_.insert(bytes_.end(), value.begin(), value.end()); }
  void text(std::string_view value) { bytes(as_bytes(value)); }  // Without its length.

  ByteSpan view() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  ByteVector take() { return std::move(bytes_); }

 private:
  template <class T>
  void number(T value) {
    bytes_.resize(bytes_.size() + sizeof value);
    store_le(bytes_.data() + bytes_.size() - sizeof value, value);
  }

  ByteVector bytes_;
};

}  // namespace shoal
