#pragma once
// Turns a conversation into the text that a model was taught to answer, by the model's own chat
// template: Jinja from a stranger's file, run under limits. Pure: no clock, no file.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compute/tokenizer/tokenizer.h"

namespace shoal {

constexpr size_t kChatVariablesBytesMax = 8u << 20;

// What a rendering needs besides the conversation. These texts count as the template's own.
struct ChatSettings {
  std::string bos_token;
  std::string eos_token;
  std::optional<int64_t> now_ms;  // For strftime_now, as UTC; without it the function is undefined.
};

// A value that never changes: cheap to copy, usable by several threads at once.
class ChatTemplate {
 public:
  // Errors name line and cause: kCorrupt, kUnsupported, or kNoSpace for what passes a limit.
  static Result<ChatTemplate> parse(std::string_view source);

  // `variables` is one JSON object: "messages", and what else the template knows ("tools",
  // "add_generation_prompt", "enable_thinking", ...). Every text in it is marked as a message's in
  // what comes out, but for the usual roles, as templates make marks of them. An error names the
  // template's line and the cause; kNoSpace when it takes too many steps, too much memory, or makes
  // too long a text.
  Result<std::vector<TextPart>> render(std::string_view variables,
                                       const ChatSettings& settings) const;

 private:
  struct Data;
  explicit ChatTemplate(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

// The variables of a conversation of texts alone: {"messages": [...], "add_generation_prompt":
// true}.
struct ChatMessage {
  std::string role;
  std::string content;
};
std::string chat_variables(const std::vector<ChatMessage>& messages);

// The tokens that a model is to go on from: `variables` through the model's own template. kNotFound
// when the model has none of this name.
Result<std::vector<int32_t>> encode_chat(const Tokenizer& tokenizer, std::string_view variables,
                                         std::optional<int64_t> now_ms,
                                         std::string_view template_name = "default");

}  // namespace shoal
