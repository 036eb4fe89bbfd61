#include "compute/tokenizer/split.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "compute/tokenizer/unicode.h"

namespace shoal {
namespace {

constexpr size_t kExpressionBytesMax = 4096;
// Per match: enough for a megabyte of blanks, which `\s*[\r\n]+` walks back one by one.
constexpr uint32_t kMatchLimit = 10'000'000;
constexpr uint32_t kHeapLimitKib = 64 * 1024;
constexpr uint32_t kParensNestMax = 64;

struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreeCompileContext {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

// \s here is Unicode's White_Space, as Oniguruma has it. PCRE2's own \s would add U+180E.
constexpr std::string_view kSpaceSet = R"(\p{Z}\x{09}-\x{0d}\x{85})";
// Oniguruma counts marks and connectors as parts of words.
constexpr std::string_view kWordSet = R"(\p{L}\p{M}\p{N}\p{Pc})";

// Spells an Oniguruma expression for PCRE2.
Result<std::string> translate(std::string_view expression) {
  std::string out;
  bool in_set = false;
  size_t set_begin = 0;  // Of the first member.
  for (size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c == '\\') {
      if (i + 1 == expression.size()) return Error{ErrorCode::kInvalid, "ends in a backslash"};
      const char escaped = expression[++i];
      const std::string_view set = escaped == 's' || escaped == 'S' ? kSpaceSet : kWordSet;
      if (escaped == 's' || escaped == 'w') {
        out.append(in_set ? "" : "[").append(set).append(in_set ? "" : "]");
      } else if ((escaped == 'S' || escaped == 'W') && !in_set) {
        out.append("[^").append(set).append("]");
      } else if (std::string_view("SWhHbBCQE").find(escaped) != std::string_view::npos) {
        // They mean something else here than there, or nothing there.
        return Error{ErrorCode::kUnsupported, std::string("\\") + escaped + " is not supported" +
                                                  (in_set ? " inside []" : "")};
      } else {
        out.push_back('\\');
        out.push_back(escaped);
      }
      continue;
    }
    if (in_set) {
      if (c == '[') return Error{ErrorCode::kUnsupported, "a set inside a set is not supported"};
      if (c == '&' && expression.substr(i, 2) == "&&") {
        return Error{ErrorCode::kUnsupported, "&& inside [] is not supported"};
      }
      if (c == ']' && i != set_begin) in_set = false;
    } else if (c == '[') {
      in_set = true;
      set_begin = expression.substr(i + 1, 1) == "^" ? i + 2 : i + 1;
    } else if (c == '(' && expression.substr(i, 2) == "(*") {
      return Error{ErrorCode::kUnsupported, "(* is not supported"};
    } else if (c == '(' && (expression.substr(i, 3) == "(?C" || expression.substr(i, 3) == "(?R")) {
      return Error{ErrorCode::kUnsupported, "(?C and (?R are not supported"};
    }
    out.push_back(c);
  }
  return out;
}

// A text cut into matches and what lies between them.
struct Segment {
  size_t begin;
  size_t end;
  bool match;
};

std::vector<Segment> segments_of(std::string_view text, const std::vector<Pattern::Match>& matches,
                                 bool invert) {
  std::vector<Segment> segments;
  size_t at = 0;
  for (const Pattern::Match& match : matches) {
    if (match.begin > at) segments.push_back({at, match.begin, invert});
    segments.push_back({match.begin, match.end, !invert});
    at = match.end;
  }
  if (at < text.size()) segments.push_back({at, text.size(), invert});
  return segments;
}

std::vector<Segment> behave(const std::vector<Segment>& segments, SplitBehavior behavior) {
  std::vector<Segment> out;
  for (size_t i = 0; i < segments.size(); ++i) {
    const Segment& segment = segments[i];
    const bool after_match = i > 0 && segments[i - 1].match;
    bool joins = false;  // To the word before it.
    switch (behavior) {
      case SplitBehavior::kRemoved:
        if (segment.match) continue;
        break;
      case SplitBehavior::kIsolated: break;
      case SplitBehavior::kMergedWithPrevious:
        joins = segment.match && i > 0 && !after_match;
        break;
      case SplitBehavior::kMergedWithNext: joins = !segment.match && after_match; break;
      case SplitBehavior::kContiguous: joins = i > 0 && segment.match == after_match; break;
    }
    if (joins) {
      out.back().end = segment.end;
    } else {
      out.push_back(segment);
    }
  }
  return out;
}

// Cuts `word` by `pattern` and hands each part on. `slow` tells that a pattern gave up before.
template <class Take>
void cut(const Word& word, const Pattern& pattern, SplitBehavior behavior, bool invert, bool& slow,
         const Take& take) {
  if (slow) {
    take(word.text, word.at_start);
    return;
  }
  bool complete = true;
  const std::vector<Pattern::Match> matches = pattern.find_all(word.text, complete);
  if (!complete) slow = true;
  for (const Segment& part : behave(segments_of(word.text, matches, invert), behavior)) {
    take(std::string_view(word.text).substr(part.begin, part.end - part.begin),
         word.at_start && part.begin == 0);
  }
}

void apply(const SplitStep& step, Word word, bool& slow, std::vector<Word>& out) {
  cut(word, step.pattern, step.behavior, step.invert, slow, [&](std::string_view text, bool start) {
    out.push_back({std::string(text), start});
  });
}

void apply(const ByteLevelStep& step, Word word, bool& slow, std::vector<Word>& out) {
  if (step.add_prefix_space && !word.text.starts_with(' ')) word.text.insert(0, 1, ' ');
  const auto take = [&](std::string_view text, bool start) {
    Word mapped{.at_start = start};
    mapped.text.reserve(text.size());
    for (const char c : text) append_byte_symbol(mapped.text, static_cast<uint8_t>(c));
    out.push_back(std::move(mapped));
  };
  if (step.words) {
    cut(word, *step.words, SplitBehavior::kIsolated, false, slow, take);
  } else {
    take(word.text, word.at_start);
  }
}

void apply(const MetaspaceStep& step, Word word, bool&, std::vector<Word>& out) {
  std::string text;
  for (const char c : word.text) {
    if (c == ' ') {
      text.append(step.replacement);
    } else {
      text.push_back(c);
    }
  }
  const bool wanted = step.prepend == MetaspaceStep::Prepend::kAlways ||
                      (step.prepend == MetaspaceStep::Prepend::kFirst && word.at_start);
  if (wanted && !text.starts_with(step.replacement)) text.insert(0, step.replacement);
  if (!step.split) {
    out.push_back({std::move(text), word.at_start});
    return;
  }
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(step.replacement, begin + 1), text.size());
    out.push_back({text.substr(begin, end - begin), word.at_start && begin == 0});
    begin = end;
  }
}

}  // namespace

struct Pattern::Code {
  pcre2_code* code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

Result<Pattern> Pattern::compile(std::string_view expression) {
  if (expression.size() > kExpressionBytesMax) {
    return Error{ErrorCode::kInvalid, "expression is longer than 4096 bytes"};
  }
  SHOAL_TRY_ASSIGN(translated, translate(expression));
  std::unique_ptr<pcre2_compile_context, FreeCompileContext> context(
      pcre2_compile_context_create(nullptr));
  SHOAL_CHECK(context != nullptr);
  pcre2_set_parens_nest_limit(context.get(), kParensNestMax);

  int error = 0;
  PCRE2_SIZE offset = 0;
  auto code = std::make_shared<Code>();
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset,
                             context.get());
  if (code->code == nullptr) {
    std::array<PCRE2_UCHAR, 256> message{};
    pcre2_get_error_message(error, message.data(), message.size());
    return Error{ErrorCode::kInvalid, std::string("expression is refused by PCRE2: ") +
                                          reinterpret_cast<const char*>(message.data()) + " at " +
                                          std::to_string(offset)};
  }
  return Pattern(std::move(code));
}

Result<Pattern> Pattern::literal(std::string_view text) {
  std::string expression;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == ' ' || c == '\n' || (c & 0x80) != 0;
    if (!plain) expression.push_back('\\');
    expression.push_back(c);
  }
  return compile(expression);
}

std::vector<Pattern::Match> Pattern::find_all(std::string_view text, bool& complete) const {
  complete = true;
  std::vector<Match> matches;
  std::unique_ptr<pcre2_match_data, FreeMatchData> data(
      pcre2_match_data_create_from_pattern(code_->code, nullptr));
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context(
      pcre2_match_context_create(nullptr));
  SHOAL_CHECK(data != nullptr && context != nullptr);
  pcre2_set_match_limit(context.get(), kMatchLimit);
  pcre2_set_heap_limit(context.get(), kHeapLimitKib);

  size_t at = 0;
  while (at < text.size()) {
    // The text was checked once; checking it again at each word would cost its whole length.
    const int found = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(), at, PCRE2_NO_UTF_CHECK, data.get(), context.get());
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      complete = false;
      break;
    }
    const PCRE2_SIZE* place = pcre2_get_ovector_pointer(data.get());
    // \K in a look-around can put the start behind the end, or before where the search began.
    if (place[0] < at || place[1] <= place[0]) {
      at = std::max<size_t>(at, place[0]);
      if (at >= text.size()) break;
      at += next_utf8(text.substr(at)).size;
      continue;
    }
    matches.push_back({place[0], place[1]});
    at = place[1];
  }
  return matches;
}

std::vector<Word> split_words(Word text, const std::vector<WordStep>& steps) {
  std::vector<Word> words;
  words.push_back(std::move(text));
  bool slow = false;
  for (const WordStep& step : steps) {
    std::vector<Word> next;
    for (Word& word : words) {
      std::visit([&](const auto& kind) { apply(kind, std::move(word), slow, next); }, step);
    }
    words = std::move(next);
  }
  return words;
}

}  // namespace shoal
