#include "compute/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "base/check.h"

namespace shoal {
namespace {

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) ||
         (byte >= 174 && byte <= 255);
}

struct ByteAlphabet {
  std::array<uint16_t, 256> symbol{};
  std::array<int16_t, 256 + 68> byte{};  // By code point; -1 for none.
};

constexpr ByteAlphabet make_alphabet() {
  ByteAlphabet alphabet;
  for (int16_t& byte : alphabet.byte) byte = -1;
  uint16_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint16_t symbol = stands_for_itself(byte) ? static_cast<uint16_t>(byte) : next++;
    alphabet.symbol[byte] = symbol;
    alphabet.byte[symbol] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr ByteAlphabet kAlphabet = make_alphabet();

}  // namespace

Utf8Step next_utf8(std::string_view text) {
  SHOAL_CHECK(!text.empty());
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {Utf8Kind::kValid, 1, lead};

  uint32_t size = 0;
  uint32_t code_point = 0;
  // The second byte's range excludes overlong forms, surrogates and what lies beyond U+10FFFF.
  uint32_t low = 0x80, high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    size = 2;
    code_point = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    size = 3;
    code_point = lead & 0x0F;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    size = 4;
    code_point = lead & 0x07;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {Utf8Kind::kInvalid, 1, 0};
  }
  for (uint32_t i = 1; i < size; ++i) {
    if (i == text.size()) return {Utf8Kind::kUnfinished, i, 0};
    if (byte(i) < low || byte(i) > high) return {Utf8Kind::kInvalid, i, 0};
    code_point = (code_point << 6) | (byte(i) & 0x3Fu);
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Kind::kValid, size, code_point};
}

void append_utf8(std::string& out, uint32_t c) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

std::string composed(const std::string& text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return text;
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &made,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, &std::free);
  SHOAL_CHECK(size >= 0);  // It fails on bytes that are no UTF-8, and without memory.
  return std::string(reinterpret_cast<const char*>(made), static_cast<size_t>(size));
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Step step = next_utf8(text);
    out.append(step.kind == Utf8Kind::kValid ? text.substr(0, step.size) : kReplacementCharacter);
    text.remove_prefix(step.size);
  }
  return out;
}

bool is_white_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_word_character(uint32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: break;
  }
  // The joiners, and the letters in circles and squares that Unicode files among the symbols.
  return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
         (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

void append_byte_symbol(std::string& out, uint8_t byte) {
  append_utf8(out, kAlphabet.symbol[byte]);
}

std::optional<uint8_t> byte_of_symbol(uint32_t code_point) {
  if (code_point >= kAlphabet.byte.size() || kAlphabet.byte[code_point] < 0) return std::nullopt;
  return static_cast<uint8_t>(kAlphabet.byte[code_point]);
}

}  // namespace shoal
