#pragma once
// Decides how a text is cut into words before tokens are made of it: the pre-tokenizers of
// tokenizer.json as steps, with regular expressions run by PCRE2 under limits. Knows no token.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace shoal {

// A regular expression in Oniguruma's spelling, as tokenizer.json has it. Never changes once made,
// so it may be shared.
class Pattern {
 public:
  // kInvalid with the place of the mistake; kUnsupported for spellings that mean something else
  // here.
  static Result<Pattern> compile(std::string_view expression);
  // A pattern that finds `text` itself.
  static Result<Pattern> literal(std::string_view text);

  struct Match {
    size_t begin;
    size_t end;
  };
  // The matches in order, none of them empty. `complete` becomes false when PCRE2 gave up on its
  // limits: what follows the last match was then not searched. REQUIRES: `text` is valid UTF-8.
  std::vector<Match> find_all(std::string_view text, bool& complete) const;

 private:
  struct Code;
  explicit Pattern(std::shared_ptr<const Code> code) : code_(std::move(code)) {}
  std::shared_ptr<const Code> code_;
};

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct SplitStep {
  Pattern pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
};

// Writes every byte as its byte-level character, after the words were cut by GPT-2's pattern if
// there is one here.
struct ByteLevelStep {
  bool add_prefix_space = false;
  std::optional<Pattern> words;
};

struct MetaspaceStep {
  enum class Prepend { kNever, kFirst, kAlways };
  std::string replacement;
  Prepend prepend = Prepend::kAlways;
  bool split = true;
};

using WordStep = std::variant<SplitStep, ByteLevelStep, MetaspaceStep>;

struct Word {
  std::string text;
  bool at_start = false;  // Begins where the whole text begins.
};

// Applies the steps in order. A step whose pattern exceeds PCRE2's limits leaves the rest of that
// word whole, and no further pattern is run in this call: slow patterns cost once.
std::vector<Word> split_words(Word text, const std::vector<WordStep>& steps);

// The expressions by name: as llama.cpp and Hugging Face name them.
inline constexpr std::string_view kGpt2Expression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kO200kExpression =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kTekkenExpression =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kDigitExpression = R"(\p{N})";
inline constexpr std::string_view kPunctuationExpression = R"([!-/:-@\[-`{-~\p{P}])";

}  // namespace shoal
