#include "compute/chat/chat_template.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <limits>

#include "compute/chat/evaluator.h"
#include "compute/chat/lexer.h"
#include "compute/tokenizer/unicode.h"

namespace shoal {
namespace {

using namespace chat;
using Json = nlohmann::json;

constexpr size_t kVariablesDepthMax = 64;

// Makes values of JSON as it is read.
class Reader : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(Heap& heap) : heap_(heap) {}

  Value root;
  std::optional<Error> error;

  bool null() override { return put(Value(None{})); }
  bool boolean(bool value) override { return put(Value(value)); }
  bool number_integer(number_integer_t value) override { return put(Value(int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return put(Value(static_cast<int64_t>(value)));
    return put(Value(static_cast<double>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override { return put(Value(value)); }
  bool string(string_t& value) override {
    const bool is_usual_role = is_role() && is_known_role(value);
    const auto text = heap_.text(value, /*from_message=*/!is_usual_role);
    return text.ok() ? put(text.value()) : fail(text.error());
  }
  bool binary(binary_t&) override { return fail({ErrorCode::kCorrupt, "holds binary data"}); }
  bool start_object(std::size_t) override {
    const auto dict = heap_.dict();
    return dict.ok() ? open(Value(dict.value())) : fail(dict.error());
  }
  bool start_array(std::size_t) override {
    const auto list = heap_.list({});
    return list.ok() ? open(Value(list.value())) : fail(list.error());
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    const auto text = heap_.text(name, /*from_message=*/true);
    if (!text.ok()) return fail(text.error());
    open_.back().key = text.value();
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    return fail({ErrorCode::kInvalid, "is no JSON at byte " + std::to_string(position)});
  }

 private:
  struct Open {
    Value value;
    Value key;
  };

  bool fail(Error why) {
    if (!error) error = std::move(why);
    return false;
  }

  // Whether what comes now is messages[i].role.
  bool is_role() const {
    return open_.size() == 3 && key_is(open_[0], "messages") &&
           list_of(open_[1].value) != nullptr && key_is(open_[2], "role");
  }
  static bool key_is(const Open& open, std::string_view name) {
    const Text* const key = text_of(open.key);
    return dict_of(open.value) != nullptr && key != nullptr && key->view() == name;
  }
  static bool is_known_role(std::string_view role) {
    static constexpr std::string_view kRoles[] = {"system", "developer", "user",    "assistant",
                                                  "tool",   "function",  "ipython", "model"};
    return std::find(std::begin(kRoles), std::end(kRoles), role) != std::end(kRoles);
  }

  bool put(Value value) {
    if (open_.empty()) {
      root = value;
      return true;
    }
    Open& inside = open_.back();
    if (List* const list = list_of(inside.value)) {
      const auto pushed = heap_.push(*list, value);
      return pushed.ok() || fail(pushed.error());
    }
    const auto stored = heap_.put(*dict_of(inside.value), inside.key, value);
    return stored.ok() || fail(stored.error());
  }
  bool open(Value value) {
    if (open_.size() == kVariablesDepthMax) {
      return fail({ErrorCode::kNoSpace,
                   "is nested deeper than " + std::to_string(kVariablesDepthMax) + " levels"});
    }
    if (!put(value)) return false;
    open_.push_back({value, {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Heap& heap_;
  std::vector<Open> open_;
};

Result<Dict*> read_variables(Heap& heap, std::string_view json) {
  const auto context = [](const Error& error) { return with_context(error, "chat variables"); };
  if (json.size() > kChatVariablesBytesMax) {
    return Error{ErrorCode::kNoSpace, "chat variables: are longer than " +
                                          std::to_string(kChatVariablesBytesMax) + " bytes"};
  }
  Reader reader(heap);
  if (!Json::sax_parse(json, &reader))
    return context(reader.error.value_or(Error{ErrorCode::kInvalid, "are no JSON"}));
  Dict* const dict = dict_of(reader.root);
  if (dict == nullptr) return context({ErrorCode::kInvalid, "are not a JSON object"});
  return dict;
}

}  // namespace

struct ChatTemplate::Data {
  Tree tree;
};

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  SHOAL_TRY_ASSIGN(tree, parse_template(source));
  return ChatTemplate(std::make_shared<const Data>(Data{std::move(tree)}));
}

Result<std::vector<TextPart>> ChatTemplate::render(std::string_view variables,
                                                   const ChatSettings& settings) const {
  Heap heap{Limits{}};
  SHOAL_TRY_ASSIGN(given, read_variables(heap, variables));
  SHOAL_TRY_ASSIGN(globals, heap.scope(nullptr));
  // Not the conversation's to say: a template prints them as its own.
  for (const auto& [name, text] :
       {std::pair<std::string_view, const std::string*>("bos_token", &settings.bos_token),
        std::pair<std::string_view, const std::string*>("eos_token", &settings.eos_token)}) {
    SHOAL_TRY_ASSIGN(value, heap.text(valid_utf8(*text), /*from_message=*/false));
    globals->names.emplace_back(name, value);
  }
  for (const auto& [key, value] : given->entries) {
    const std::string_view name = text_of(key)->view();
    if (name == "bos_token" || name == "eos_token") continue;
    SHOAL_TRY(heap.take(2 * sizeof(Value)));
    globals->names.emplace_back(name, value);
  }
  SHOAL_TRY_ASSIGN(text, Evaluator(data_->tree, heap, settings.now_ms).run(*globals));

  std::vector<TextPart> parts;
  const std::string_view bytes = text.view();
  for (size_t begin = 0; begin < bytes.size();) {
    const bool from_message = text.from_message(begin);
    size_t end = begin + 1;
    while (end < bytes.size() && text.from_message(end) == from_message) ++end;
    parts.push_back({std::string(bytes.substr(begin, end - begin)), from_message});
    begin = end;
  }
  return parts;
}

std::string chat_variables(const std::vector<ChatMessage>& messages) {
  Json list = Json::array();
  for (const ChatMessage& message : messages) {
    list.push_back({{"role", valid_utf8(message.role)}, {"content", valid_utf8(message.content)}});
  }
  return Json({{"messages", std::move(list)}, {"add_generation_prompt", true}}).dump();
}

Result<std::vector<int32_t>> encode_chat(const Tokenizer& tokenizer, std::string_view variables,
                                         std::optional<int64_t> now_ms,
                                         std::string_view template_name) {
  const auto source = tokenizer.chat_template(template_name);
  if (!source) {
    std::string others;
    for (const std::string_view name : tokenizer.chat_template_names())
      others += (others.empty() ? "" : ", ") + shown(name);
    if (!others.empty()) {
      return Error{ErrorCode::kNotFound,
                   "the model has no chat template " + shown(template_name) + ", but " + others};
    }
    return Error{ErrorCode::kNotFound,
                 "the model has no chat template, so it can only continue a prompt"};
  }
  SHOAL_TRY_ASSIGN(chat, ChatTemplate::parse(*source));
  SHOAL_TRY_ASSIGN(parts, chat.render(variables, {.bos_token = tokenizer.bos_text(),
                                                  .eos_token = tokenizer.eos_text(),
                                                  .now_ms = now_ms}));
  return tokenizer.encode_parts(parts);
}

}  // namespace shoal
