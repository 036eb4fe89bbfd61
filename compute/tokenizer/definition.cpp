#include "compute/tokenizer/definition.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <unordered_set>

#include "compute/tokenizer/tokenizer.h"
#include "compute/tokenizer/unicode.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr size_t kJsonValuesMax = 6'000'000;
constexpr size_t kJsonDepthMax = 64;
constexpr size_t kStepsMax = 32;
// How much longer normalizers together may make a text.
constexpr size_t kExpansionMax = 64;

Error bad(std::string_view field, std::string_view why, ErrorCode code = ErrorCode::kCorrupt) {
  return {code, "tokenizer definition: " + std::string(field) + " " + std::string(why)};
}

Error unsupported(std::string_view field, std::string_view why) {
  return bad(field, why, ErrorCode::kUnsupported);
}

// For a message: what came, shortened, so that a hostile name cannot fill a log.
std::string shown(std::string_view text) {
  return "\"" + valid_utf8(text.substr(0, 60)) + (text.size() > 60 ? "…\"" : "\"");
}

// Builds the document, and stops at a repeated key, at too many values, and at too deep a nest.
class Builder : public nlohmann::json_sax<json> {
 public:
  json root;
  std::string error;

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return fail("holds binary data"); }

  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (stack_.back()->contains(name)) return fail("repeats the key " + shown(name));
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    return fail("is no JSON at byte " + std::to_string(position));
  }

 private:
  bool fail(std::string why) {
    if (error.empty()) error = std::move(why);
    return false;
  }

  json* place(json value) {
    if (stack_.empty()) {
      root = std::move(value);
      return &root;
    }
    json& top = *stack_.back();
    if (top.is_array()) {
      top.push_back(std::move(value));
      return &top.back();
    }
    json& slot = top[key_];
    slot = std::move(value);
    return &slot;
  }

  bool put(json value) {
    if (++values_ > kJsonValuesMax) return fail("holds too many values");
    place(std::move(value));
    return true;
  }

  bool open(json value) {
    if (++values_ > kJsonValuesMax) return fail("holds too many values");
    if (stack_.size() >= kJsonDepthMax) return fail("is nested too deeply");
    stack_.push_back(place(std::move(value)));
    return true;
  }

  bool close() {
    stack_.pop_back();
    return true;
  }

  std::vector<json*> stack_;  // The last one is still being filled, so the others stay in place.
  std::string key_;
  size_t values_ = 0;
};

Result<void> only_keys(const json& object, std::string_view field,
                       std::initializer_list<std::string_view> keys) {
  if (!object.is_object()) return bad(field, "is not an object");
  for (const auto& item : object.items()) {
    if (std::find(keys.begin(), keys.end(), item.key()) == keys.end()) {
      return unsupported(field, "has the unknown key " + shown(item.key()));
    }
  }
  return {};
}

// A missing key and null are the same.
const json* find(const json& object, const char* key) {
  const auto item = object.find(key);
  return item == object.end() || item->is_null() ? nullptr : &*item;
}

Result<bool> read_bool(const json& object, std::string_view field, const char* key,
                       bool otherwise) {
  const json* value = find(object, key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) return bad(std::string(field) + "." + key, "is not true or false");
  return value->get<bool>();
}

Result<std::string> read_string(const json& object, std::string_view field, const char* key,
                                std::optional<std::string> otherwise = std::nullopt) {
  const json* value = find(object, key);
  if (value == nullptr && otherwise) return *std::move(otherwise);
  if (value == nullptr || !value->is_string()) {
    return bad(std::string(field) + "." + key, "is not a text");
  }
  return value->get<std::string>();
}

Result<int32_t> read_id(const json& value, std::string_view field, size_t count) {
  if (!value.is_number_integer()) return bad(field, "is not a token id");
  const bool fits = value.is_number_unsigned()
                        ? value.get<uint64_t>() < count
                        : value.get<int64_t>() >= 0 && value.get<uint64_t>() < count;
  if (!fits) {
    return bad(field,
               "is the token id " + value.dump() + " of " + std::to_string(count) + " tokens");
  }
  return value.get<int32_t>();
}

Result<std::vector<int32_t>> read_ids(const json& object, std::string_view field, const char* key,
                                      size_t count) {
  std::vector<int32_t> ids;
  const std::string name = std::string(field) + key;
  const json* list = find(object, key);
  if (list == nullptr) return ids;
  if (!list->is_array()) return bad(name, "is not a list");
  for (size_t i = 0; i < list->size(); ++i) {
    SHOAL_TRY_ASSIGN(id, read_id((*list)[i], name + "[" + std::to_string(i) + "]", count));
    ids.push_back(id);
  }
  return ids;
}

// "<0x0A>" and only that.
std::optional<uint8_t> byte_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  uint32_t value = 0;
  for (const char c : text.substr(3, 2)) {
    if (c >= '0' && c <= '9') {
      value = value * 16 + static_cast<uint32_t>(c - '0');
    } else if (c >= 'A' && c <= 'F') {
      value = value * 16 + static_cast<uint32_t>(c - 'A' + 10);
    } else {
      return std::nullopt;
    }
  }
  return static_cast<uint8_t>(value);
}

// Texts to ids while reading; refuses a text that is there already.
class Names {
 public:
  std::optional<int32_t> find(std::string_view text) const {
    const auto item = ids_.find(std::string(text));
    if (item == ids_.end()) return std::nullopt;
    return item->second;
  }
  bool add(const std::string& text, int32_t id) { return ids_.emplace(text, id).second; }

 private:
  std::unordered_map<std::string, int32_t> ids_;
};

Result<void> add_merge(TokenizerDefinition& out, const Names& names, std::string_view left,
                       std::string_view right, uint32_t rank, const std::string& field) {
  const auto left_id = names.find(left);
  const auto right_id = names.find(right);
  if (!left_id) return bad(field, "names the unknown token " + shown(left));
  if (!right_id) return bad(field, "names the unknown token " + shown(right));
  const std::string joined = std::string(left) + std::string(right);
  const auto result = names.find(joined);
  if (!result) return bad(field, "makes the unknown token " + shown(joined));
  // A merge that would turn plain text into a mark for the model is left out.
  const bool joins = out.tokens[static_cast<size_t>(*result)].joins;
  if (!out.merges
           .emplace(merge_key(*left_id, *right_id), MergeRule{rank, joins ? *result : kNoToken})
           .second) {
    return bad(field, "repeats the merge of " + shown(left) + " and " + shown(right));
  }
  return {};
}

Result<void> read_merges(TokenizerDefinition& out, const Names& names, const json& merges,
                         const std::string& field) {
  if (!merges.is_array()) return bad(field, "is not a list");
  if (merges.size() > kTokenizerMergesMax) return bad(field, "is too long");
  out.merges.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const json& merge = merges[i];
    const std::string name = field + "[" + std::to_string(i) + "]";
    const uint32_t rank = static_cast<uint32_t>(i);
    if (merge.is_string()) {
      const std::string& text = merge.get_ref<const std::string&>();
      const size_t space =
          text.find(' ', 1);  // A left part may be a space, never begin a longer one.
      if (space == std::string::npos || space + 1 >= text.size())
        return bad(name, "is not \"a b\"");
      SHOAL_TRY(add_merge(out, names, std::string_view(text).substr(0, space),
                          std::string_view(text).substr(space + 1), rank, name));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      SHOAL_TRY(add_merge(out, names, merge[0].get_ref<const std::string&>(),
                          merge[1].get_ref<const std::string&>(), rank, name));
    } else {
      return bad(name, "is neither \"a b\" nor [a, b]");
    }
  }
  std::erase_if(out.merges, [](const auto& merge) { return merge.second.result == kNoToken; });
  return {};
}

void make_special(TokenDefinition& token) {
  token.kind = TokenKind::kSpecial;
  token.joins = false;
}

void finish_ids(TokenizerDefinition& out) {
  std::sort(out.eos.begin(), out.eos.end());
  out.eos.erase(std::unique(out.eos.begin(), out.eos.end()), out.eos.end());
  for (const TokenDefinition& token : out.tokens) {
    out.token_bytes_max = std::max(out.token_bytes_max, token.text.size());
  }
}

// --- tokenizer.json ---

Result<void> read_normalizer(TokenizerDefinition& out, const json& node, const std::string& field) {
  if (!node.is_object()) return bad(field, "is not an object");
  SHOAL_TRY_ASSIGN(type, read_string(node, field, "type"));
  if (type == "Sequence") {
    SHOAL_TRY(only_keys(node, field, {"type", "normalizers"}));
    const json* list = find(node, "normalizers");
    if (list == nullptr || !list->is_array()) return bad(field + ".normalizers", "is not a list");
    for (size_t i = 0; i < list->size(); ++i) {
      SHOAL_TRY(
          read_normalizer(out, (*list)[i], field + ".normalizers[" + std::to_string(i) + "]"));
    }
    return {};
  }
  NormalizeStep step;
  if (type == "Prepend") {
    SHOAL_TRY(only_keys(node, field, {"type", "prepend"}));
    SHOAL_TRY_ASSIGN(prepend, read_string(node, field, "prepend"));
    if (prepend.size() > 16) return unsupported(field + ".prepend", "is longer than 16 bytes");
    step.content = std::move(prepend);
  } else if (type == "Replace") {
    SHOAL_TRY(only_keys(node, field, {"type", "pattern", "content"}));
    const json* pattern = find(node, "pattern");
    if (pattern == nullptr || !pattern->is_object())
      return bad(field + ".pattern", "is not an object");
    if (!pattern->contains("String") || pattern->size() != 1) {
      return unsupported(field + ".pattern", "is not a String");
    }
    SHOAL_TRY_ASSIGN(text, read_string(*pattern, field + ".pattern", "String"));
    SHOAL_TRY_ASSIGN(content, read_string(node, field, "content"));
    if (text.empty()) return bad(field + ".pattern.String", "is empty");
    if (content.size() > text.size() * 4) return unsupported(field + ".content", "is too long");
    step = {std::move(text), std::move(content)};
  } else if (type == "NFC") {
    SHOAL_TRY(only_keys(node, field, {"type"}));
    step.composes = true;
  } else {
    return unsupported(field + ".type", shown(type) + " is not supported");
  }
  out.normalize.push_back(std::move(step));
  if (out.normalize.size() > kStepsMax) return unsupported(field, "is one step too many");
  return {};
}

Result<SplitBehavior> read_behavior(const json& node, const std::string& field) {
  SHOAL_TRY_ASSIGN(name, read_string(node, field, "behavior", "Isolated"));
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return unsupported(field + ".behavior", shown(name) + " is not supported");
}

Result<Pattern> compile(std::string_view expression, const std::string& field) {
  Result<Pattern> pattern = Pattern::compile(expression);
  if (!pattern.ok()) return bad(field, pattern.error().message, pattern.error().code);
  return pattern;
}

Result<SplitStep> read_split(const json& node, const std::string& field) {
  SHOAL_TRY(only_keys(node, field, {"type", "pattern", "behavior", "invert"}));
  const json* pattern = find(node, "pattern");
  if (pattern == nullptr || !pattern->is_object() || pattern->size() != 1) {
    return bad(field + ".pattern", "is neither {\"Regex\": …} nor {\"String\": …}");
  }
  const bool regex = pattern->contains("Regex");
  SHOAL_TRY_ASSIGN(text, read_string(*pattern, field + ".pattern", regex ? "Regex" : "String"));
  if (text.empty()) return bad(field + ".pattern", "is empty");
  Result<Pattern> compiled = regex ? Pattern::compile(text) : Pattern::literal(text);
  if (!compiled.ok()) {
    return bad(field + ".pattern", compiled.error().message, compiled.error().code);
  }
  SHOAL_TRY_ASSIGN(behavior, read_behavior(node, field));
  SHOAL_TRY_ASSIGN(invert, read_bool(node, field, "invert", false));
  return SplitStep{std::move(compiled).value(), behavior, invert};
}

// One character of any length in bytes.
Result<std::string> read_replacement(const json& node, const std::string& field) {
  SHOAL_TRY_ASSIGN(text, read_string(node, field, "replacement", "▁"));
  if (text.empty() || next_utf8(text).size != text.size()) {
    return bad(field + ".replacement", "is not one character");
  }
  return text;
}

Result<MetaspaceStep> read_metaspace(const json& node, const std::string& field) {
  SHOAL_TRY(
      only_keys(node, field,
                {"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"}));
  MetaspaceStep step;
  SHOAL_TRY_ASSIGN(replacement, read_replacement(node, field));
  SHOAL_TRY_ASSIGN(prefix, read_bool(node, field, "add_prefix_space", true));
  SHOAL_TRY_ASSIGN(scheme, read_string(node, field, "prepend_scheme", prefix ? "always" : "never"));
  SHOAL_TRY_ASSIGN(split, read_bool(node, field, "split", true));
  step.replacement = std::move(replacement);
  step.split = split;
  if (scheme == "always") {
    step.prepend = MetaspaceStep::Prepend::kAlways;
  } else if (scheme == "first") {
    step.prepend = MetaspaceStep::Prepend::kFirst;
  } else if (scheme == "never") {
    step.prepend = MetaspaceStep::Prepend::kNever;
  } else {
    return unsupported(field + ".prepend_scheme", shown(scheme) + " is not supported");
  }
  return step;
}

Result<void> read_pre_tokenizer(TokenizerDefinition& out, const json& node,
                                const std::string& field) {
  if (!node.is_object()) return bad(field, "is not an object");
  SHOAL_TRY_ASSIGN(type, read_string(node, field, "type"));
  if (type == "Sequence") {
    SHOAL_TRY(only_keys(node, field, {"type", "pretokenizers"}));
    const json* list = find(node, "pretokenizers");
    if (list == nullptr || !list->is_array()) return bad(field + ".pretokenizers", "is not a list");
    for (size_t i = 0; i < list->size(); ++i) {
      SHOAL_TRY(
          read_pre_tokenizer(out, (*list)[i], field + ".pretokenizers[" + std::to_string(i) + "]"));
    }
    return {};
  }
  if (type == "Split") {
    SHOAL_TRY_ASSIGN(step, read_split(node, field));
    out.split.push_back(std::move(step));
  } else if (type == "ByteLevel") {
    // trim_offsets only moves offsets, which we do not give.
    SHOAL_TRY(only_keys(node, field, {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    if (out.byte_level) return unsupported(field, "is a second ByteLevel");
    ByteLevelStep step;
    SHOAL_TRY_ASSIGN(prefix, read_bool(node, field, "add_prefix_space", true));
    SHOAL_TRY_ASSIGN(use_regex, read_bool(node, field, "use_regex", true));
    step.add_prefix_space = prefix;
    if (use_regex) {
      SHOAL_TRY_ASSIGN(pattern, compile(kGpt2Expression, field));
      step.words = std::move(pattern);
    }
    out.byte_level = true;
    out.split.push_back(std::move(step));
  } else if (type == "Digits") {
    SHOAL_TRY(only_keys(node, field, {"type", "individual_digits"}));
    SHOAL_TRY_ASSIGN(individual, read_bool(node, field, "individual_digits", false));
    SHOAL_TRY_ASSIGN(pattern, compile(kDigitExpression, field));
    out.split.push_back(SplitStep{
        std::move(pattern), individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous});
  } else if (type == "Punctuation") {
    SHOAL_TRY(only_keys(node, field, {"type", "behavior"}));
    SHOAL_TRY_ASSIGN(behavior, read_behavior(node, field));
    SHOAL_TRY_ASSIGN(pattern, compile(kPunctuationExpression, field));
    out.split.push_back(SplitStep{std::move(pattern), behavior});
  } else if (type == "Metaspace") {
    SHOAL_TRY_ASSIGN(step, read_metaspace(node, field));
    out.split.push_back(std::move(step));
  } else {
    return unsupported(field + ".type", shown(type) + " is not supported");
  }
  if (out.split.size() > kStepsMax) return unsupported(field, "is one step too many");
  return {};
}

// What the decoder says, held against what the pre-tokenizer does.
struct DecoderFacts {
  bool byte_level = false;
  bool byte_fallback = false;
};

Result<void> read_decoder(TokenizerDefinition& out, DecoderFacts& facts, const json& node,
                          const std::string& field) {
  if (!node.is_object()) return bad(field, "is not an object");
  SHOAL_TRY_ASSIGN(type, read_string(node, field, "type"));
  if (type == "Sequence") {
    SHOAL_TRY(only_keys(node, field, {"type", "decoders"}));
    const json* list = find(node, "decoders");
    if (list == nullptr || !list->is_array()) return bad(field + ".decoders", "is not a list");
    for (size_t i = 0; i < list->size(); ++i) {
      SHOAL_TRY(
          read_decoder(out, facts, (*list)[i], field + ".decoders[" + std::to_string(i) + "]"));
    }
  } else if (type == "ByteLevel") {
    SHOAL_TRY(only_keys(node, field, {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    facts.byte_level = true;
  } else if (type == "ByteFallback") {
    SHOAL_TRY(only_keys(node, field, {"type"}));
    facts.byte_fallback = true;
  } else if (type == "Fuse") {
    SHOAL_TRY(only_keys(node, field, {"type"}));
  } else if (type == "Replace") {
    SHOAL_TRY(only_keys(node, field, {"type", "pattern", "content"}));
    const json* pattern = find(node, "pattern");
    if (pattern == nullptr || !pattern->is_object() || !pattern->contains("String")) {
      return unsupported(field + ".pattern", "is not a String");
    }
    SHOAL_TRY_ASSIGN(text, read_string(*pattern, field + ".pattern", "String"));
    SHOAL_TRY_ASSIGN(content, read_string(node, field, "content"));
    if (text.empty()) return bad(field + ".pattern.String", "is empty");
    if (content.size() > text.size() * 4) return unsupported(field + ".content", "is too long");
    out.decode_replace.push_back({std::move(text), std::move(content)});
    if (out.decode_replace.size() > 3) return unsupported(field, "is one Replace too many");
  } else if (type == "Strip") {
    SHOAL_TRY(only_keys(node, field, {"type", "content", "start", "stop"}));
    SHOAL_TRY_ASSIGN(content, read_string(node, field, "content"));
    const json* start = find(node, "start");
    const json* stop = find(node, "stop");
    if (content != " ") return unsupported(field + ".content", "is not a space");
    if (start == nullptr || !start->is_number_unsigned() || start->get<uint64_t>() > 16) {
      return unsupported(field + ".start", "is not a number up to 16");
    }
    if (stop == nullptr || !stop->is_number_unsigned() || stop->get<uint64_t>() != 0) {
      return unsupported(field + ".stop", "is not 0");
    }
    out.decode_strip_spaces = start->get<uint32_t>();
  } else if (type == "Metaspace") {
    SHOAL_TRY_ASSIGN(metaspace, read_metaspace(node, field));
    out.decode_replace.push_back({metaspace.replacement, " "});
    out.decode_strip_spaces = metaspace.prepend == MetaspaceStep::Prepend::kNever ? 0 : 1;
  } else {
    return unsupported(field + ".type", shown(type) + " is not supported");
  }
  return {};
}

// The ids that a post-processor puts before a text.
Result<void> read_post_processor(const json& node, const std::string& field, size_t count,
                                 std::vector<int32_t>& before) {
  if (!node.is_object()) return bad(field, "is not an object");
  SHOAL_TRY_ASSIGN(type, read_string(node, field, "type"));
  if (type == "Sequence") {
    SHOAL_TRY(only_keys(node, field, {"type", "processors"}));
    const json* list = find(node, "processors");
    if (list == nullptr || !list->is_array()) return bad(field + ".processors", "is not a list");
    for (size_t i = 0; i < list->size(); ++i) {
      SHOAL_TRY(read_post_processor((*list)[i], field + ".processors[" + std::to_string(i) + "]",
                                    count, before));
    }
    return {};
  }
  if (type == "ByteLevel") return {};  // Moves offsets only.
  if (type != "TemplateProcessing") {
    return unsupported(field + ".type", shown(type) + " is not supported");
  }
  SHOAL_TRY(only_keys(node, field, {"type", "single", "pair", "special_tokens"}));
  const json* single = find(node, "single");
  const json* special = find(node, "special_tokens");
  if (single == nullptr || !single->is_array()) return bad(field + ".single", "is not a list");
  for (size_t i = 0; i < single->size(); ++i) {
    const std::string name = field + ".single[" + std::to_string(i) + "]";
    const json& part = (*single)[i];
    if (!part.is_object()) return bad(name, "is not an object");
    if (part.contains("Sequence")) break;
    const json* mark = find(part, "SpecialToken");
    if (mark == nullptr || !mark->is_object())
      return bad(name, "is neither Sequence nor SpecialToken");
    SHOAL_TRY_ASSIGN(id, read_string(*mark, name + ".SpecialToken", "id"));
    const std::string entry = field + ".special_tokens[" + shown(id) + "]";
    const json* token =
        special == nullptr || !special->is_object() ? nullptr : find(*special, id.c_str());
    if (token == nullptr || !token->is_object()) return bad(entry, "is missing");
    SHOAL_TRY_ASSIGN(ids, read_ids(*token, entry + ".", "ids", count));
    before.insert(before.end(), ids.begin(), ids.end());
  }
  return {};
}

Result<void> read_vocabulary(TokenizerDefinition& out, Names& names, const json& vocabulary,
                             const std::string& field) {
  if (!vocabulary.is_object()) return bad(field, "is not an object");
  std::vector<bool> taken(kTokenizerTokensMax);
  for (const auto& item : vocabulary.items()) {
    const std::string name = field + "[" + shown(item.key()) + "]";
    SHOAL_TRY_ASSIGN(id, read_id(item.value(), name, kTokenizerTokensMax));
    if (item.key().size() > kTokenizerTokenBytesMax) return bad(name, "is longer than 1024 bytes");
    const size_t place = static_cast<size_t>(id);
    if (taken[place]) return bad(name, "repeats the id " + std::to_string(id));
    taken[place] = true;
    if (out.tokens.size() <= place) out.tokens.resize(place + 1);
    TokenDefinition& token = out.tokens[place];
    token.text = item.key();
    token.kind = TokenKind::kNormal;
    token.joins = true;
    names.add(item.key(), id);
    if (const auto byte = byte_token(item.key()); byte && out.byte_fallback) {
      token.kind = TokenKind::kByte;
      token.byte = *byte;
      token.joins = false;
    }
  }
  return {};
}

Result<void> read_added_tokens(TokenizerDefinition& out, Names& names, const json& list,
                               const std::string& field) {
  if (!list.is_array()) return bad(field, "is not a list");
  std::unordered_set<int32_t> seen;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string name = field + "[" + std::to_string(i) + "]";
    const json& node = list[i];
    SHOAL_TRY(only_keys(
        node, name, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
    const json* id_value = find(node, "id");
    if (id_value == nullptr) return bad(name + ".id", "is missing");
    SHOAL_TRY_ASSIGN(id, read_id(*id_value, name + ".id", kTokenizerTokensMax));
    SHOAL_TRY_ASSIGN(content, read_string(node, name, "content"));
    if (content.empty()) return bad(name + ".content", "is empty");
    if (content.size() > kTokenizerTokenBytesMax) {
      return bad(name + ".content", "is longer than 1024 bytes");
    }
    SHOAL_TRY_ASSIGN(single_word, read_bool(node, name, "single_word", false));
    SHOAL_TRY_ASSIGN(special, read_bool(node, name, "special", false));
    SHOAL_TRY_ASSIGN(strip_left, read_bool(node, name, "lstrip", false));
    SHOAL_TRY_ASSIGN(strip_right, read_bool(node, name, "rstrip", false));
    SHOAL_TRY_ASSIGN(normalized, read_bool(node, name, "normalized", !special));

    const size_t place = static_cast<size_t>(id);
    if (out.tokens.size() <= place) out.tokens.resize(place + 1);
    TokenDefinition& token = out.tokens[place];
    if (!seen.insert(id).second) return bad(name + ".id", "is repeated");
    const auto known = names.find(content);
    if (known ? *known != id : token.kind != TokenKind::kUnused) {
      return bad(name, "gives " + shown(content) + " the id " + std::to_string(id) +
                           ", which the vocabulary contradicts");
    }
    names.add(content, id);
    token.text = std::move(content);
    token.kind = TokenKind::kAdded;  // One of the vocabulary may still be made by joining.
    if (special) make_special(token);
    token.strip_left = strip_left;
    token.strip_right = strip_right;
    token.normalized = normalized;
    token.single_word = single_word;
  }
  return {};
}

// A token named in tokenizer_config.json: a text, or an object with its content.
Result<std::optional<int32_t>> read_named_token(const json& config, const char* key,
                                                const Names& names) {
  const json* value = find(config, key);
  if (value == nullptr) return std::optional<int32_t>();
  const std::string field = std::string("config.") + key;
  if (value->is_object()) value = find(*value, "content");
  if (value == nullptr || !value->is_string()) return bad(field, "is not a text");
  const auto id = names.find(value->get_ref<const std::string&>());
  if (!id) return bad(field, "names the unknown token " + shown(value->get<std::string>()));
  return id;
}

Result<void> read_bpe(TokenizerDefinition& out, Names& names, const json& model,
                      const std::string& field) {
  SHOAL_TRY(
      only_keys(model, field,
                {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                 "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"}));
  SHOAL_TRY_ASSIGN(type, read_string(model, field, "type", "BPE"));
  if (type != "BPE") return unsupported(field + ".type", shown(type) + " is not supported");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    SHOAL_TRY_ASSIGN(affix, read_string(model, field, key, ""));
    if (!affix.empty()) return unsupported(field + "." + key, shown(affix) + " is not supported");
  }
  if (const json* dropout = find(model, "dropout");
      dropout != nullptr && !(dropout->is_number() && dropout->get<double>() == 0.0)) {
    return unsupported(field + ".dropout", "other than 0 is not supported");
  }
  SHOAL_TRY_ASSIGN(byte_fallback, read_bool(model, field, "byte_fallback", false));
  SHOAL_TRY_ASSIGN(fuse_unknown, read_bool(model, field, "fuse_unk", false));
  SHOAL_TRY_ASSIGN(ignore_merges, read_bool(model, field, "ignore_merges", false));
  out.byte_fallback = byte_fallback;
  out.fuse_unknown = fuse_unknown;
  out.ignore_merges = ignore_merges;
  const json* vocabulary = find(model, "vocab");
  if (vocabulary == nullptr) return bad(field + ".vocab", "is missing");
  return read_vocabulary(out, names, *vocabulary, field + ".vocab");
}

// One text, or a list of {"name", "template"}. What it says is for who runs it to judge.
Result<void> read_chat_templates(TokenizerDefinition& out, const json& object,
                                 std::string_view field) {
  const json* value = find(object, "chat_template");
  if (value == nullptr) return {};
  const std::string place = std::string(field) + ".chat_template";
  size_t bytes = 0;
  const auto keep = [&](std::string name, std::string source) -> Result<void> {
    bytes += source.size();
    if (bytes > kTokenizerTemplateBytesMax) {
      return unsupported(place, "is longer than " + std::to_string(kTokenizerTemplateBytesMax) +
                                    " bytes, all templates together");
    }
    out.chat_templates.push_back({std::move(name), std::move(source)});
    return {};
  };
  if (value->is_string()) return keep("default", value->get<std::string>());
  if (!value->is_array() || value->size() > kTokenizerTemplatesMax)
    return bad(place, "is neither a text nor a short list");
  for (const json& item : *value) {
    if (!item.is_object()) return bad(place, "holds what is no object");
    SHOAL_TRY_ASSIGN(name, read_string(item, place, "name"));
    SHOAL_TRY_ASSIGN(source, read_string(item, place, "template"));
    SHOAL_TRY(keep(std::move(name), std::move(source)));
  }
  return {};
}

// Answers for many texts whether the chat templates hold them: the templates may be long and the
// texts many, so places in order are searched, not all of the templates for each.
class TemplateSearch {
 public:
  explicit TemplateSearch(const std::vector<NamedTemplate>& templates) {
    for (const NamedTemplate& one : templates) all_ += one.source + '\xFF';  // In no text.
    places_.resize(all_.size());
    std::iota(places_.begin(), places_.end(), uint32_t{0});
    std::sort(places_.begin(), places_.end(),
              [this](uint32_t a, uint32_t b) { return from(a) < from(b); });
  }

  bool holds(std::string_view text) const {
    const auto place =
        std::lower_bound(places_.begin(), places_.end(), text,
                         [this](uint32_t at, std::string_view what) { return from(at) < what; });
    return place != places_.end() && from(*place).starts_with(text);
  }

 private:
  std::string_view from(uint32_t place) const {
    return std::string_view(all_).substr(place, kTokenizerTokenBytesMax);
  }

  std::string all_;
  std::vector<uint32_t> places_;  // By what stands there, as far as a token can be long.
};

// Added tokens that are no special ones, but that a conversation is built with.
void find_marks(TokenizerDefinition& out) {
  const TemplateSearch templates(out.chat_templates);
  for (TokenDefinition& token : out.tokens) {
    if (token.kind != TokenKind::kAdded) continue;
    const std::string_view text = token.text;
    const bool blank = text.find_first_not_of(" \t\r\n") == text.npos;
    token.mark =
        !blank && (text.starts_with("<|") || text.starts_with("<｜") || templates.holds(text));
  }
}

// The text of a token that config names, whether or not it is one; else the text of `id`.
std::string named_text(const TokenizerDefinition& out, const json& config, const char* key,
                       std::optional<int32_t> id) {
  const json* named = find(config, key);
  if (named != nullptr && named->is_object()) named = find(*named, "content");
  if (named != nullptr && named->is_string()) return named->get<std::string>();
  return id ? out.tokens[static_cast<size_t>(*id)].text : std::string();
}

Result<TokenizerDefinition> read_huggingface(const json& root) {
  SHOAL_TRY(only_keys(root, "the top", {"format", "tokenizer", "config", "eos"}));
  const json* tokenizer = find(root, "tokenizer");
  if (tokenizer == nullptr) return bad("tokenizer", "is missing");
  SHOAL_TRY(only_keys(*tokenizer, "tokenizer",
                      {"version", "truncation", "padding", "added_tokens", "normalizer",
                       "pre_tokenizer", "post_processor", "decoder", "model"}));
  const json* model = find(*tokenizer, "model");
  if (model == nullptr) return bad("tokenizer.model", "is missing");

  TokenizerDefinition out;
  Names names;
  SHOAL_TRY(read_bpe(out, names, *model, "tokenizer.model"));
  if (const json* added = find(*tokenizer, "added_tokens")) {
    SHOAL_TRY(read_added_tokens(out, names, *added, "tokenizer.added_tokens"));
  }
  const size_t count = out.tokens.size();
  if (count == 0) return bad("tokenizer.model.vocab", "is empty");

  SHOAL_TRY_ASSIGN(unknown, read_string(*model, "tokenizer.model", "unk_token", ""));
  out.unknown = names.find(unknown);
  if (!unknown.empty() && !out.unknown) {
    return bad("tokenizer.model.unk_token", "names the unknown token " + shown(unknown));
  }
  if (const json* normalizer = find(*tokenizer, "normalizer")) {
    SHOAL_TRY(read_normalizer(out, *normalizer, "tokenizer.normalizer"));
  }
  size_t expansion = 1;
  for (const NormalizeStep& step : out.normalize) {
    if (!step.pattern.empty()) expansion *= (step.content.size() / step.pattern.size()) + 1;
    if (step.composes) expansion *= kComposedExpansion;
    if (expansion > kExpansionMax)
      return unsupported("tokenizer.normalizer", "makes texts too long");
  }
  if (const json* pre_tokenizer = find(*tokenizer, "pre_tokenizer")) {
    SHOAL_TRY(read_pre_tokenizer(out, *pre_tokenizer, "tokenizer.pre_tokenizer"));
  }

  DecoderFacts facts;
  const json* decoder = find(*tokenizer, "decoder");
  if (decoder == nullptr) return unsupported("tokenizer.decoder", "is missing");
  SHOAL_TRY(read_decoder(out, facts, *decoder, "tokenizer.decoder"));
  out.decodes_added = true;
  if (facts.byte_level != out.byte_level) {
    return unsupported("tokenizer.decoder", "and pre_tokenizer do not agree on ByteLevel");
  }
  if (facts.byte_fallback != out.byte_fallback) {
    return unsupported("tokenizer.decoder", "and model do not agree on byte fallback");
  }
  if (out.byte_level && (out.byte_fallback || !out.decode_replace.empty())) {
    return unsupported("tokenizer.decoder", "mixes ByteLevel with other rules");
  }

  std::vector<int32_t> before;
  if (const json* processor = find(*tokenizer, "post_processor")) {
    SHOAL_TRY(read_post_processor(*processor, "tokenizer.post_processor", count, before));
  }
  if (before.size() > 1) {
    return unsupported("tokenizer.post_processor", "puts more than one token before a text");
  }
  const json no_config = json::object();
  const json* config = find(root, "config");
  if (config == nullptr) config = &no_config;
  if (!config->is_object()) return bad("config", "is not an object");
  SHOAL_TRY_ASSIGN(bos, read_named_token(*config, "bos_token", names));
  SHOAL_TRY_ASSIGN(eos, read_named_token(*config, "eos_token", names));
  SHOAL_TRY_ASSIGN(adds_bos, read_bool(*config, "config", "add_bos_token", !before.empty()));
  SHOAL_TRY_ASSIGN(more_eos, read_ids(root, "", "eos", count));
  out.bos = before.empty() ? bos : before.front();
  out.adds_bos = adds_bos && out.bos.has_value();
  out.eos = std::move(more_eos);
  if (eos) out.eos.push_back(*eos);
  if (out.bos) make_special(out.tokens[static_cast<size_t>(*out.bos)]);
  for (const int32_t id : out.eos) make_special(out.tokens[static_cast<size_t>(id)]);
  SHOAL_TRY(read_chat_templates(out, *config, "config"));
  out.bos_text = named_text(out, *config, "bos_token", out.bos);
  out.eos_text = named_text(out, *config, "eos_token",
                            out.eos.empty() ? std::nullopt : std::optional(out.eos.front()));
  find_marks(out);

  const json* merges = find(*model, "merges");
  if (merges == nullptr) return bad("tokenizer.model.merges", "is missing");
  SHOAL_TRY(read_merges(out, names, *merges, "tokenizer.model.merges"));
  finish_ids(out);
  return out;
}

// --- GGUF ---

// What a GGUF's "pre" stands for: expressions that are applied one after the other, and whether a
// word that is a token stays whole.
struct PreRule {
  std::vector<std::string_view> expressions;
  bool ignore_merges = false;
};

std::optional<PreRule> rule_of(std::string_view pre) {
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), pre) != names.end();
  };
  if (is({"gpt-2", "phi-2", "olmo"})) return PreRule{{kGpt2Expression}};
  if (is({"smollm", "starcoder", "refact", "command-r"}))
    return PreRule{{kDigitExpression, kGpt2Expression}};
  if (is({"llama-bpe", "llama3", "llama-v3"})) return PreRule{{kLlama3Expression}, true};
  if (is({"dbrx", "smaug-bpe"})) return PreRule{{kLlama3Expression}};  // OLMo 2, Phi-4; SmolLM 3.
  if (is({"qwen2", "stablelm2", "deepseek-r1-qwen"})) return PreRule{{kQwen2Expression}};
  if (is({"gpt-4o", "llama4"})) return PreRule{{kO200kExpression}};  // Phi-4-mini, gpt-oss.
  if (is({"tekken"})) return PreRule{{kTekkenExpression}, true};     // Mistral Nemo and later.
  return {};
}

Result<void> read_gguf_tokens(TokenizerDefinition& out, Names& names, const json& root,
                              bool scored) {
  const json* tokens = find(root, "tokens");
  const json* types = find(root, "types");
  const json* scores = find(root, "scores");
  if (tokens == nullptr || !tokens->is_array()) return bad("tokens", "is not a list");
  const size_t count = tokens->size();
  if (count == 0 || count > static_cast<size_t>(kTokenizerTokensMax)) {
    return bad("tokens", "has " + std::to_string(count) + " entries");
  }
  if (types != nullptr && (!types->is_array() || types->size() != count)) {
    return bad("types", "is not a list as long as tokens");
  }
  if (scored && (scores == nullptr || !scores->is_array() || scores->size() != count)) {
    return bad("scores", "is not a list as long as tokens");
  }
  out.tokens.resize(count);
  std::vector<bool> bytes(256);
  for (size_t i = 0; i < count; ++i) {
    const std::string place = "[" + std::to_string(i) + "]";
    const json& text = (*tokens)[i];
    if (!text.is_string()) return bad("tokens" + place, "is not a text");
    TokenDefinition& token = out.tokens[i];
    token.text = text.get<std::string>();
    if (token.text.size() > kTokenizerTokenBytesMax) {
      return bad("tokens" + place, "is longer than 1024 bytes");
    }
    if (!names.add(token.text, static_cast<int32_t>(i))) {
      return bad("tokens" + place, "repeats the token " + shown(token.text));
    }
    if (scored) {
      const json& score = (*scores)[i];
      if (!score.is_number()) return bad("scores" + place, "is not a number");
      token.score = score.get<float>();
      if (!std::isfinite(token.score)) return bad("scores" + place, "is not finite");
    }
    int64_t type = 1;
    if (types != nullptr) {
      const json& value = (*types)[i];
      if (!value.is_number_integer()) return bad("types" + place, "is not a number");
      type = value.get<int64_t>();
    }
    switch (type) {
      case 1:
        token.kind = TokenKind::kNormal;
        token.joins = true;
        break;
      case 2:
        make_special(token);
        if (!out.unknown) out.unknown = static_cast<int32_t>(i);
        break;
      case 3: make_special(token); break;
      case 4: token.kind = TokenKind::kAdded; break;
      case 5: token.kind = TokenKind::kUnused; break;
      case 6: {
        const auto byte = byte_token(token.text);
        if (!byte) return bad("tokens" + place, "is no byte token, as types has it");
        if (bytes[*byte]) return bad("tokens" + place, "repeats the token of a byte");
        bytes[*byte] = true;
        token.kind = TokenKind::kByte;
        token.byte = *byte;
        break;
      }
      default: return bad("types" + place, "is not a number from 1 to 6");
    }
    const bool found_in_text = token.kind == TokenKind::kAdded || token.kind == TokenKind::kSpecial;
    if (found_in_text && token.text.empty()) return bad("tokens" + place, "is empty");
  }
  return {};
}

Result<TokenizerDefinition> read_gguf(const json& root) {
  SHOAL_TRY(only_keys(root, "the top",
                      {"format", "model", "pre", "tokens", "scores", "types", "merges", "bos",
                       "eos", "add_bos", "add_space_prefix", "chat_template"}));
  SHOAL_TRY_ASSIGN(model, read_string(root, "the top", "model"));
  const bool llama = model == "llama";
  if (!llama && model != "gpt2") return unsupported("model", shown(model) + " is not supported");

  TokenizerDefinition out;
  Names names;
  SHOAL_TRY(read_gguf_tokens(out, names, root, llama));
  const size_t count = out.tokens.size();
  if (const json* bos = find(root, "bos")) {
    SHOAL_TRY_ASSIGN(id, read_id(*bos, "bos", count));
    out.bos = id;
    make_special(out.tokens[static_cast<size_t>(id)]);
  }
  SHOAL_TRY_ASSIGN(eos, read_ids(root, "", "eos", count));
  out.eos = std::move(eos);
  for (const int32_t id : out.eos) make_special(out.tokens[static_cast<size_t>(id)]);
  SHOAL_TRY(read_chat_templates(out, root, "the top"));
  if (out.bos) out.bos_text = out.tokens[static_cast<size_t>(*out.bos)].text;
  if (!out.eos.empty()) out.eos_text = out.tokens[static_cast<size_t>(out.eos.front())].text;
  find_marks(out);
  SHOAL_TRY_ASSIGN(adds_bos, read_bool(root, "the top", "add_bos", llama));
  out.adds_bos = adds_bos && out.bos.has_value();
  SHOAL_TRY_ASSIGN(space_prefix, read_bool(root, "the top", "add_space_prefix", true));

  if (llama) {
    out.by_score = true;
    out.byte_fallback = true;
    if (space_prefix) {
      out.normalize.push_back({"", "▁"});
      out.decode_strip_spaces = 1;
    }
    out.normalize.push_back({" ", "▁"});
    out.decode_replace.push_back({"▁", " "});
  } else {
    SHOAL_TRY_ASSIGN(pre, read_string(root, "the top", "pre"));
    const std::optional<PreRule> rule = rule_of(pre);
    if (!rule) return unsupported("pre", shown(pre) + " is not supported");
    for (const std::string_view expression : rule->expressions) {
      SHOAL_TRY_ASSIGN(pattern, compile(expression, "pre"));
      out.split.push_back(SplitStep{std::move(pattern)});
    }
    out.split.push_back(ByteLevelStep{});
    out.byte_level = true;
    out.ignore_merges = rule->ignore_merges;
    const json* merges = find(root, "merges");
    if (merges == nullptr) return bad("merges", "is missing");
    SHOAL_TRY(read_merges(out, names, *merges, "merges"));
  }
  finish_ids(out);
  return out;
}

}  // namespace

Result<TokenizerDefinition> read_tokenizer_definition(std::string_view text) {
  if (text.size() > kTokenizerDefinitionBytesMax) return bad("the text", "is longer than 96 MiB");
  Builder builder;
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    return bad("the text", builder.error.empty() ? "is no JSON" : builder.error);
  }
  const json& root = builder.root;
  if (!root.is_object()) return bad("the text", "is not an object");
  SHOAL_TRY_ASSIGN(format, read_string(root, "the top", "format"));
  if (format == "huggingface") return read_huggingface(root);
  if (format == "gguf") return read_gguf(root);
  return unsupported("format", shown(format) + " is not supported");
}

}  // namespace shoal
