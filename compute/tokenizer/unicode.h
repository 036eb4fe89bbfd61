#pragma once
// Holds what the tokenizer must know of Unicode: reading UTF-8 step by step, white space, and the
// byte-level alphabet of GPT-2, which writes each of the 256 bytes as one printable character.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shoal {

enum class Utf8Kind { kValid, kInvalid, kUnfinished };

// The sequence at the start of a text. An invalid one spans the bytes that one U+FFFD replaces
// (Unicode's "maximal subpart"); an unfinished one spans all that is left and could still become
// valid.
struct Utf8Step {
  Utf8Kind kind;
  uint32_t size;
  uint32_t code_point;  // When valid.
};

// REQUIRES: !text.empty().
Utf8Step next_utf8(std::string_view text);

void append_utf8(std::string& out, uint32_t code_point);

// A copy in which U+FFFD stands for every sequence that is not valid UTF-8.
std::string valid_utf8(std::string_view text);

// In Unicode's normalization form C: characters and the marks after them as one where there is one.
// REQUIRES: `text` is valid UTF-8. The result may have kComposedExpansion times as many bytes.
std::string composed(const std::string& text);
inline constexpr size_t kComposedExpansion = 3;

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Unicode's White_Space. U+180E is none: it was one before Unicode 6.3, and PCRE2's \h keeps it.
bool is_white_space(uint32_t code_point);

// What Hugging Face's library counts as part of a word: letters, marks, decimal digits, connectors,
// joiners, and numbers and signs made of letters.
bool is_word_character(uint32_t code_point);

// Appends the byte-level character of `byte`.
void append_byte_symbol(std::string& out, uint8_t byte);

// The byte that a byte-level character stands for; nothing for a character outside the alphabet.
std::optional<uint8_t> byte_of_symbol(uint32_t code_point);

}  // namespace shoal
