#pragma once
// Holds what a tokenizer is made of, read from one JSON text and checked as hostile input. Runs
// nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compute/tokenizer/bpe.h"
#include "compute/tokenizer/split.h"

namespace shoal {

enum class TokenKind : uint8_t {
  kNormal,   // Made by joining symbols.
  kByte,     // One byte of a character that is no token; `byte` holds it.
  kAdded,    // Found in text before all else.
  kSpecial,  // A mark for the model: found in text only when asked for, shown only when asked for.
  kUnused,   // An id that text never becomes.
};

struct TokenDefinition {
  std::string text;  // As the vocabulary spells it.
  TokenKind kind = TokenKind::kUnused;
  uint8_t byte = 0;
  bool joins = false;  // Joining symbols may make it: every normal token, some added ones.
  float score = 0.0f;
  bool strip_left = false;   // An added or special token takes the white space before it along,
  bool strip_right = false;  // or after it.
  bool normalized = false;   // It is looked for in the normalized text.
  bool single_word = false;  // It is found only where no word goes on before or behind it.
  bool mark =
      false;  // Added, and a mark for the model too: a chat template writes it, or it looks so.
};

// Replaces `pattern` by `content` all over a text; with an empty pattern, puts `content` before it.
// Or brings the text to Unicode's normalization form C.
struct NormalizeStep {
  std::string pattern;
  std::string content;
  bool composes = false;
};

struct NamedTemplate {
  std::string name;
  std::string source;
};

struct TokenizerDefinition {
  std::vector<TokenDefinition> tokens;  // By id.
  size_t token_bytes_max = 0;           // Of all texts.
  std::vector<NormalizeStep> normalize;
  std::vector<WordStep> split;

  bool by_score = false;  // Neighbours join by the score of the token they make, else by `merges`.
  MergeTable merges;
  bool ignore_merges = false;  // A word that is a token stays whole.
  bool byte_fallback = false;
  bool fuse_unknown = false;
  std::optional<int32_t> unknown;

  bool byte_level = false;  // Tokens are spelled in the byte-level alphabet.
  std::vector<NormalizeStep> decode_replace;
  bool decodes_added = false;  // Added and special tokens as well; else they are shown as spelled.
  uint32_t decode_strip_spaces = 0;  // Leading spaces of a whole text that decoding takes off.

  std::optional<int32_t> bos;
  std::vector<int32_t> eos;  // Ascending.
  bool adds_bos = false;

  // What chat templates are, and are told of the two tokens.
  std::vector<NamedTemplate> chat_templates;
  std::string bos_text;
  std::string eos_text;
};

// kCorrupt or kUnsupported, naming the field.
Result<TokenizerDefinition> read_tokenizer_definition(std::string_view json);

}  // namespace shoal
