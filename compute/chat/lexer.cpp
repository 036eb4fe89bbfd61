#include "compute/chat/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "compute/chat/characters.h"
#include "compute/tokenizer/unicode.h"

namespace shoal::chat {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return begins_name(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Any newline is one newline, and the last of the template is none.
std::string with_plain_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
    } else {
      out.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) SHOAL_TRY(outside());
    put(TokenType::kEnd);
    return std::move(tokens_);
  }

 private:
  Error fail(std::string_view what) const {
    return template_error(line_, what, ErrorCode::kCorrupt);
  }

  std::string_view rest() const { return source_.substr(at_); }

  void advance(size_t count) {
    const std::string_view passed = source_.substr(at_, count);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    if (!passed.empty()) line_begins_ = passed.back() == '\n';
    at_ += passed.size();
  }

  Token& put(TokenType type, std::string text = {}) {
    tokens_.push_back({.type = type, .line = line_, .text = std::move(text)});
    return tokens_.back();
  }

  // Where the next tag begins, or the end.
  size_t next_tag(size_t from) const {
    for (size_t at = from; (at = source_.find('{', at)) != source_.npos; ++at) {
      const char next = at + 1 < source_.size() ? source_[at + 1] : '\0';
      if (next == '%' || next == '{' || next == '#') return at;
    }
    return source_.size();
  }

  // The text before a tag without what the tag takes away.
  std::string_view before_tag(std::string_view text, char kind, char sign) const {
    if (sign == '-') {
      while (!text.empty()) {
        size_t begin = text.size() - 1;
        while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
        if (!is_python_space(next_utf8(text.substr(begin)).code_point)) break;
        text = text.substr(0, begin);
      }
      return text;
    }
    if (sign == '+' || kind == '{') return text;
    const size_t newline = text.rfind('\n');
    const size_t line = newline == text.npos ? 0 : newline + 1;
    if (line == 0 && !line_begins_) return text;
    return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(line), text.end(), is_space)
               ? text.substr(0, line)
               : text;
  }

  void skip_space() {
    while (at_ < source_.size()) {
      const Utf8Step step = next_utf8(rest());
      if (!is_python_space(step.code_point)) break;
      advance(step.size);
    }
  }

  // After a tag's end: "-" takes all white space, a block else one newline unless "+" says no.
  void after_tag(char sign, bool trims) {
    if (sign == '-') {
      skip_space();
    } else if (trims && sign != '+' && rest().starts_with('\n')) {
      advance(1);
    }
  }

  Result<void> outside() {
    const size_t tag = next_tag(at_);
    std::string_view text = source_.substr(at_, tag - at_);
    if (tag == source_.size()) {
      put(TokenType::kText, std::string(text));
      advance(text.size());
      return {};
    }
    const char kind = source_[tag + 1];
    const char third = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const char sign = third == '-' || (third == '+' && kind != '{') ? third : '\0';
    const std::string_view kept = before_tag(text, kind, sign);
    if (!kept.empty()) put(TokenType::kText, std::string(kept));
    advance(text.size() + (sign == '\0' ? 2 : 3));
    if (kind == '#') return comment();
    if (kind == '%') {
      if (const auto raw = raw_block()) return *raw;
    }
    put(kind == '%' ? TokenType::kBlockBegin : TokenType::kOutputBegin);
    return inside(kind == '%');
  }

  Result<void> comment() {
    const size_t end = source_.find("#}", at_);
    if (end == source_.npos) return fail("a comment is not closed by #}");
    const char before = end > at_ ? source_[end - 1] : '\0';
    const char sign = before == '-' || before == '+' ? before : '\0';
    advance(end + 2 - at_);
    after_tag(sign, /*trims=*/true);
    return {};
  }

  // The size of the tag "{% name %}" without its beginning, if one stands at `at`; and its sign.
  struct NamedTag {
    size_t size = 0;
    char sign = '\0';
  };
  std::optional<NamedTag> named_tag(size_t at, std::string_view name) const {
    const size_t begin = at;
    const auto spaces = [&] {
      while (at < source_.size() && is_space(source_[at])) ++at;
    };
    spaces();
    if (!source_.substr(at).starts_with(name)) return std::nullopt;
    at += name.size();
    spaces();
    NamedTag tag;
    if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) tag.sign = source_[at++];
    if (!source_.substr(at).starts_with("%}")) return std::nullopt;
    tag.size = at + 2 - begin;
    return tag;
  }

  // {% raw %} to {% endraw %}: text as it stands. Nothing when no such block begins here.
  std::optional<Result<void>> raw_block() {
    const auto head = named_tag(at_, "raw");
    if (!head) return std::nullopt;
    advance(head->size);
    after_tag(head->sign, /*trims=*/true);
    for (size_t at = at_; (at = source_.find("{%", at)) != source_.npos; ++at) {
      const char third = at + 2 < source_.size() ? source_[at + 2] : '\0';
      const char sign = third == '-' || third == '+' ? third : '\0';
      const size_t begin = at + (sign == '\0' ? 2 : 3);
      const auto tail = named_tag(begin, "endraw");
      if (!tail) continue;
      const std::string_view text = before_tag(source_.substr(at_, at - at_), '%', sign);
      if (!text.empty()) put(TokenType::kText, std::string(text));
      advance(begin + tail->size - at_);
      after_tag(tail->sign, /*trims=*/true);
      return Result<void>();
    }
    return Result<void>(fail("a raw block is not closed by {% endraw %}"));
  }

  Result<void> inside(bool block) {
    const std::string_view end = block ? "%}" : "}}";
    std::string open;  // The closing brackets that are waited for.
    for (;;) {
      skip_space();
      if (at_ == source_.size()) return fail("a tag is not closed by " + std::string(end));
      const char c = source_[at_];
      const bool signed_end =
          (c == '-' || (c == '+' && block)) && source_.substr(at_ + 1).starts_with(end);
      if (open.empty() && (signed_end || rest().starts_with(end))) {
        put(block ? TokenType::kBlockEnd : TokenType::kOutputEnd);
        advance(signed_end ? 3 : 2);
        after_tag(signed_end ? c : '\0', /*trims=*/block);
        return {};
      }
      if (begins_name(c)) {
        size_t size = 1;
        while (at_ + size < source_.size() && continues_name(source_[at_ + size])) ++size;
        put(TokenType::kName, std::string(source_.substr(at_, size)));
        advance(size);
      } else if (is_digit(c)) {
        SHOAL_TRY(number());
      } else if (c == '"' || c == '\'') {
        SHOAL_TRY(string(c));
      } else {
        SHOAL_TRY(symbol(open));
      }
    }
  }

  Result<void> symbol(std::string& open) {
    static constexpr std::array<std::string_view, 27> kOperators = {
        "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">",
        "=",  "|",  ".",  ",",  ":",  "(",  ")", "[", "]", "{", "}", ";", "!"};
    for (const std::string_view op : kOperators) {
      if (!rest().starts_with(op)) continue;
      if (op == "(") open.push_back(')');
      if (op == "[") open.push_back(']');
      if (op == "{") open.push_back('}');
      if (op == ")" || op == "]" || op == "}") {
        if (open.empty() || open.back() != op[0])
          return fail("\"" + std::string(op) + "\" closes nothing");
        open.pop_back();
      }
      put(TokenType::kOperator, std::string(op));
      advance(op.size());
      return {};
    }
    return fail(shown(rest().substr(0, next_utf8(rest()).size)) + " has no meaning in a tag");
  }

  Result<void> number() {
    size_t size = 0;
    std::string digits;
    bool is_float = false;
    const auto take_digits = [&] {
      while (at_ + size < source_.size() &&
             (is_digit(source_[at_ + size]) ||
              (source_[at_ + size] == '_' && size > 0 && is_digit(source_[at_ + size - 1])))) {
        if (source_[at_ + size] != '_') digits.push_back(source_[at_ + size]);
        ++size;
      }
    };
    const auto peek = [&](size_t ahead) {
      return at_ + size + ahead < source_.size() ? source_[at_ + size + ahead] : '\0';
    };
    take_digits();
    if (peek(0) == '.' && is_digit(peek(1))) {
      is_float = true;
      digits.push_back('.');
      ++size;
      take_digits();
    }
    if (peek(0) == 'e' || peek(0) == 'E') {
      const bool sign = peek(1) == '-' || peek(1) == '+';
      if (is_digit(peek(sign ? 2 : 1))) {
        is_float = true;
        digits.push_back('e');
        if (peek(1) == '-') digits.push_back('-');
        size += sign ? 2 : 1;
        take_digits();
      }
    }
    Token& token = put(is_float ? TokenType::kFloat : TokenType::kInteger);
    const char* const begin = digits.data();
    const char* const end = begin + digits.size();
    const auto read = is_float ? std::from_chars(begin, end, token.number)
                               : std::from_chars(begin, end, token.integer);
    if (read.ec != std::errc() || read.ptr != end)
      return fail("the number " + shown(digits) + " is out of range");
    advance(size);
    return {};
  }

  // As Python reads them: an escape that it does not know stays as it is written.
  Result<void> string(char quote) {
    std::string out;
    size_t at = at_ + 1;
    for (;; ++at) {
      if (at >= source_.size()) return fail("a text is not closed by its quote");
      const char c = source_[at];
      if (c == quote) break;
      if (c != '\\') {
        out.push_back(c);
        continue;
      }
      if (++at >= source_.size()) return fail("a text is not closed by its quote");
      SHOAL_TRY(escape(at, out));
    }
    put(TokenType::kString, std::move(out));
    advance(at + 1 - at_);
    return {};
  }

  // `at` stands on the character after the backslash, and then on the escape's last one.
  Result<void> escape(size_t& at, std::string& out) const {
    static constexpr std::string_view kFrom = "abfnrtv\\'\"";
    static constexpr std::string_view kTo = "\a\b\f\n\r\t\v\\'\"";
    const char c = source_[at];
    if (c == '\n') return {};
    if (const size_t known = kFrom.find(c); known != kFrom.npos) {
      out.push_back(kTo[known]);
      return {};
    }
    if (c == 'x' || c == 'u' || c == 'U') {
      const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      const std::string_view hex = source_.substr(at + 1, digits);
      uint32_t code_point = 0;
      const auto read = std::from_chars(hex.data(), hex.data() + hex.size(), code_point, 16);
      const bool whole =
          hex.size() == digits && read.ec == std::errc() && read.ptr == hex.data() + hex.size();
      if (!whole || code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000))
        return fail("an escape in a text names no character");
      append_utf8(out, code_point);
      at += digits;
      return {};
    }
    if (c >= '0' && c <= '7') {
      uint32_t code_point = 0;
      size_t size = 0;
      for (; size < 3 && at + size < source_.size(); ++size) {
        const char digit = source_[at + size];
        if (digit < '0' || digit > '7') break;
        code_point = code_point * 8 + static_cast<uint32_t>(digit - '0');
      }
      append_utf8(out, code_point);
      at += size - 1;
      return {};
    }
    if (c == 'N') return fail("a text names a character by \\N, which is not supported");
    out.push_back('\\');
    out.push_back(c);
    return {};
  }

  std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_begins_ = true;  // What was passed last ended a line.
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> read_tokens(std::string_view source) {
  const std::string plain = with_plain_newlines(source);
  return Lexer(plain).run();
}

Error template_error(int line, std::string_view what, ErrorCode code) {
  return {code, "chat template: line " + std::to_string(line) + ": " + std::string(what)};
}

std::string shown(std::string_view text) {
  constexpr size_t kShownMax = 60;
  std::string out = "\"";
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Step step = next_utf8(rest);
    if (out.size() + step.size > kShownMax) {
      out += "…";
      break;
    }
    if (step.code_point < 0x20 || step.code_point == 0x7F) {
      out += ' ';
    } else {
      out += rest.substr(0, step.size);
    }
    rest.remove_prefix(step.size);
  }
  return out + "\"";
}

}  // namespace shoal::chat
