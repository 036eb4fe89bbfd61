#include "base/bytes.h"

namespace shoal {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";
constexpr char kBase64Digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

int base64url_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '-') return 62;
  if (c == '_') return 63;
  return -1;
}

Error bad_text(std::string_view what, size_t position) {
  return {ErrorCode::kInvalid, std::string(what) +
                                   " breaks off or has a wrong letter at position " +
                                   std::to_string(position)};
}

}  // namespace

std::string hex_encode(ByteSpan bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    text += kHexDigits[std::to_integer<int>(b) >> 4];
    text += kHexDigits[std::to_integer<int>(b) & 15];
  }
  return text;
}

Result<ByteVector> hex_decode(std::string_view text) {
  ByteVector bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_value(text[i]);
    const int low = i + 1 < text.size() ? hex_value(text[i + 1]) : -1;
    if (high < 0 || low < 0) return bad_text("hex text", high < 0 ? i : i + 1);
    bytes.push_back(static_cast<std::byte>(high << 4 | low));
  }
  return bytes;
}

std::string base64url_encode(ByteSpan bytes) {
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  uint32_t bits = 0;
  int count = 0;
  for (const std::byte b : bytes) {
    bits = bits << 8 | std::to_integer<uint32_t>(b);
    for (count += 8; count >= 6;) {
      count -= 6;
      text += kBase64Digits[bits >> count & 63];
    }
  }
  if (count > 0) text += kBase64Digits[bits << (6 - count) & 63];
  return text;
}

Result<ByteVector> base64url_decode(std::string_view text) {
  ByteVector bytes;
  bytes.reserve(text.size() * 3 / 4);
  uint32_t bits = 0;
  int count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const int value = base64url_value(text[i]);
    if (value < 0) return bad_text("base64url text", i);
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<std::byte>(bits >> count));
    }
  }
  const bool stray_bits = (bits & ((1u << count) - 1)) != 0;
  if (count >= 6 || stray_bits) return bad_text("base64url text", text.size());
  return bytes;
}

Result<ByteSpan> ByteReader::bytes(uint64_t count, std::string_view field) {
  if (count > left()) {
    return Error{ErrorCode::kCorrupt, std::string(field) + " needs " + std::to_string(count) +
                                          " bytes at offset " + std::to_string(position_) +
                                          " where " + std::to_string(left()) + " are left"};
  }
  const ByteSpan read = bytes_.subspan(position_, count);
  position_ += count;
  return read;
}

template <class T>
Result<T> ByteReader::number(std::string_view field) {
  const Result<ByteSpan> read = bytes(sizeof(T), field);
  if (!read.ok()) return read.error();
  return load_le<T>(read.value().data());
}

Result<uint8_t> ByteReader::u8(std::string_view field) { return number<uint8_t>(field); }
Result<uint16_t> ByteReader::u16(std::string_view field) { return number<uint16_t>(field); }
Result<uint32_t> ByteReader::u32(std::string_view field) { return number<uint32_t>(field); }
Result<uint64_t> ByteReader::u64(std::string_view field) { return number<uint64_t>(field); }

Result<float> ByteReader::f32(std::string_view field) {
  SHOAL_TRY_ASSIGN(bits, number<uint32_t>(field));
  return std::bit_cast<float>(bits);
}

Result<std::string_view> ByteReader::text(uint64_t count, std::string_view field) {
  SHOAL_TRY_ASSIGN(read, bytes(count, field));
  return as_text(read);
}

Result<void> ByteReader::skip(uint64_t count, std::string_view field) {
  const Result<ByteSpan> skipped = bytes(count, field);
  if (!skipped.ok()) return skipped.error();
  return {};
}

}  // namespace shoal
