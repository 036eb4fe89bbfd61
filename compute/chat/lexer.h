#pragma once
// Decides where a template's tags begin and end, which white space around them goes, and what the
// words inside them are. Knows no grammar.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace shoal::chat {

enum class TokenType {
  kText,         // Outside of tags; `text` is what is printed.
  kBlockBegin,   // {%
  kBlockEnd,     // %}
  kOutputBegin,  // {{
  kOutputEnd,    // }}
  kName,
  kString,  // `text` is what it means, without quotes and escapes.
  kInteger,
  kFloat,
  kOperator,  // `text` is its spelling.
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  int line = 1;
  std::string text;
  int64_t integer = 0;
  double number = 0;
};

// The tokens of a template, the last one kEnd, with trim_blocks and lstrip_blocks on: the first
// newline after a block goes, and the white space before a block that begins its line. One newline
// at the template's end goes too. Errors name the line.
//
// REQUIRES: `source` is valid UTF-8.
Result<std::vector<Token>> read_tokens(std::string_view source);

// "chat template: line 7: what".
Error template_error(int line, std::string_view what, ErrorCode code = ErrorCode::kInvalid);

// The beginning of a text from a stranger, fit for a message.
std::string shown(std::string_view text);

}  // namespace shoal::chat
