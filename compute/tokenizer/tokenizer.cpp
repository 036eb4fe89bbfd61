#include "compute/tokenizer/tokenizer.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "compute/tokenizer/definition.h"
#include "compute/tokenizer/split.h"
#include "compute/tokenizer/unicode.h"

namespace shoal {
namespace {

constexpr size_t kKnownWordBytesMax = 64;
constexpr size_t kKnownWordsMax = 16384;

std::string replace_all(std::string_view text, const NormalizeStep& step) {
  std::string out;
  size_t at = 0;
  for (size_t found; (found = text.find(step.pattern, at)) != std::string_view::npos;) {
    out.append(text.substr(at, found - at)).append(step.content);
    at = found + step.pattern.size();
  }
  return out.append(text.substr(at));
}

// What is put before a text is not put before its `continuation`.
std::string normalize(std::string text, const std::vector<NormalizeStep>& steps,
                      bool continuation = false) {
  for (const NormalizeStep& step : steps) {
    if (step.composes) {
      text = composed(text);
    } else if (!step.pattern.empty()) {
      text = replace_all(text, step);
    } else if (!text.empty() && !continuation) {
      text.insert(0, step.content);
    }
  }
  return text;
}

// Finds tokens that are taken out of a text before words are made: the leftmost, among those the
// longest. A tree by bytes, so a place in the text costs at most the length of the longest token.
class TokenTree {
 public:
  void add(std::string_view text, int32_t id, bool special, bool mark) {
    uint32_t node = 0;
    for (const char c : text) {
      const auto [edge, fresh] =
          edges_.try_emplace(key(node, c), static_cast<uint32_t>(ends_.size()));
      if (fresh) ends_.push_back({});
      node = edge->second;
    }
    begins_[static_cast<uint8_t>(text.front())] = true;
    ends_[node] = {id, special, mark};
  }

  bool empty() const { return ends_.size() == 1; }

  struct Hit {
    int32_t id = kNoToken;
    size_t size = 0;
  };

  // The longest token at the start of `text`; special tokens and marks only up to such sizes.
  struct SizesMax {
    size_t special = 0;
    size_t mark = std::string_view::npos;
  };
  Hit longest(std::string_view text, const SizesMax& sizes_max) const {
    Hit hit;
    if (!begins_[static_cast<uint8_t>(text.front())]) return hit;
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto edge = edges_.find(key(node, text[i]));
      if (edge == edges_.end()) break;
      node = edge->second;
      const End& end = ends_[node];
      const size_t size_max = end.special ? sizes_max.special
                              : end.mark  ? sizes_max.mark
                                          : std::string_view::npos;
      if (end.id != kNoToken && i < size_max) hit = {end.id, i + 1};
    }
    return hit;
  }

 private:
  static uint64_t key(uint32_t node, char c) {
    return (uint64_t{node} << 8) | static_cast<uint8_t>(c);
  }

  struct End {
    int32_t id = kNoToken;
    bool special = false;
    bool mark = false;
  };
  std::unordered_map<uint64_t, uint32_t> edges_;
  std::vector<End> ends_{End{}};
  std::array<bool, 256> begins_{};
};

// Whether `text` from `begin` to `end` is a word by itself.
bool stands_alone(std::string_view text, size_t begin, size_t end) {
  if (begin > 0) {
    size_t before = begin - 1;
    while (before > 0 && (static_cast<uint8_t>(text[before]) & 0xC0) == 0x80) --before;
    if (is_word_character(next_utf8(text.substr(before)).code_point)) return false;
  }
  return end == text.size() || !is_word_character(next_utf8(text.substr(end)).code_point);
}

size_t white_space_before(std::string_view text, size_t at, size_t from) {
  while (at > from) {
    size_t begin = at - 1;
    while (begin > from && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
    if (!is_white_space(next_utf8(text.substr(begin)).code_point)) break;
    at = begin;
  }
  return at;
}

size_t white_space_after(std::string_view text, size_t at) {
  while (at < text.size()) {
    const Utf8Step step = next_utf8(text.substr(at));
    if (!is_white_space(step.code_point)) break;
    at += step.size;
  }
  return at;
}

}  // namespace

struct Tokenizer::Data {
  TokenizerDefinition definition;
  TextTable texts;                 // Views into the definition's texts.
  std::vector<std::string> bytes;  // What each token stands for.
  std::vector<float> scores;
  std::array<int32_t, 256> byte_ids{};
  TokenTree raw_tokens;         // Found in the text as it comes,
  TokenTree normalized_tokens;  // and in the normalized text.

  explicit Data(TokenizerDefinition from);
  // `texts` points into `definition`.
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;

  std::string bytes_of(const TokenDefinition& token) const;
  void encode_word(std::string_view word, std::vector<int32_t>& out, MergeWork& work) const;
  // What words of one text became: most of them come again. Bounded, so that no text can fill it.
  struct KnownWords {
    struct Place {
      size_t begin;
      size_t count;
    };
    std::unordered_map<std::string, Place> places;
    std::vector<int32_t> ids;
  };
  void encode_known_word(const std::string& word, std::vector<int32_t>& out, KnownWords& known,
                         MergeWork& work) const;
  // Where a template's own words stand in a text: the ends of runs in turn, the first run a
  // message's. Without any, the text is a plain one.
  using Runs = std::vector<size_t>;
  template <class Text, class Token>
  void take_tokens(std::string_view text, const TokenTree& tree, const Runs* runs,
                   bool with_special, const Text& on_text, const Token& on_token) const;
  // The runs of a piece from `begin` to `end`, once it is normalized. Where the parts of a piece do
  // not normalize one by one as they do together, all of it counts as a message's.
  Runs normalized_runs(std::string_view text, const Runs& runs, size_t begin, size_t end,
                       std::string_view normal) const;
  std::vector<int32_t> encode(const std::string& valid, const Runs* runs, bool with_special,
                              MergeWork& work) const;
};

Tokenizer::Data::Data(TokenizerDefinition from) : definition(std::move(from)) {
  byte_ids.fill(kNoToken);
  const size_t count = definition.tokens.size();
  bytes.reserve(count);
  scores.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const TokenDefinition& token = definition.tokens[i];
    const int32_t id = static_cast<int32_t>(i);
    if (token.joins && !token.text.empty()) texts.emplace(token.text, id);
    if (token.kind == TokenKind::kByte) byte_ids[token.byte] = id;
    if (token.kind == TokenKind::kAdded || token.kind == TokenKind::kSpecial) {
      const std::string text =
          token.normalized ? normalize(token.text, definition.normalize) : token.text;
      if (!text.empty()) {
        (token.normalized ? normalized_tokens : raw_tokens)
            .add(text, id, token.kind == TokenKind::kSpecial, token.mark);
      }
    }
    bytes.push_back(bytes_of(token));
    scores.push_back(token.score);
  }
}

std::string Tokenizer::Data::bytes_of(const TokenDefinition& token) const {
  if (token.kind == TokenKind::kByte) return std::string(1, static_cast<char>(token.byte));
  const bool added = token.kind == TokenKind::kAdded || token.kind == TokenKind::kSpecial;
  if (added && !definition.decodes_added) return token.text;
  if (!definition.byte_level) {
    std::string text = token.text;
    for (const NormalizeStep& step : definition.decode_replace) text = replace_all(text, step);
    return text;
  }
  std::string out;
  for (std::string_view rest = token.text; !rest.empty();) {
    const Utf8Step step = next_utf8(rest);
    const auto byte = byte_of_symbol(step.code_point);
    if (!byte) return token.text;  // Spelled as it is, like an added token.
    out.push_back(static_cast<char>(*byte));
    rest.remove_prefix(step.size);
  }
  return out;
}

void Tokenizer::Data::encode_word(std::string_view word, std::vector<int32_t>& out,
                                  MergeWork& work) const {
  if (definition.ignore_merges) {
    if (const auto whole = texts.find(word); whole != texts.end()) {
      out.push_back(whole->second);
      return;
    }
  }
  // One symbol for each character. By rank, a character that is no token falls to bytes at once; by
  // score, it may still become part of one.
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  const auto fall_back = [&](uint32_t begin, uint32_t size, const auto& push) {
    bool all = definition.byte_fallback;
    for (uint32_t i = 0; i < size && all; ++i) {
      all = byte_ids[static_cast<uint8_t>(word[begin + i])] != kNoToken;
    }
    if (all) {
      for (uint32_t i = 0; i < size; ++i) {
        push(begin + i, 1u, byte_ids[static_cast<uint8_t>(word[begin + i])]);
      }
    } else if (definition.unknown) {
      push(begin, size, *definition.unknown);
    }
    // Without a token for unknown text the character is dropped, as Hugging Face's library does.
  };
  const auto push_symbol = [&](uint32_t begin, uint32_t size, int32_t id) {
    const bool fuses = definition.fuse_unknown && id == definition.unknown && !symbols.empty() &&
                       symbols.back().id == id;
    if (fuses) {
      symbols.back().size += size;
    } else {
      symbols.push_back({begin, size, id});
    }
  };
  for (uint32_t at = 0; at < word.size();) {
    const uint32_t size = next_utf8(word.substr(at)).size;
    const auto token = texts.find(word.substr(at, size));
    if (token != texts.end()) {
      symbols.push_back({at, size, token->second});
    } else if (definition.by_score) {
      symbols.push_back({at, size, kNoToken});
    } else {
      fall_back(at, size, push_symbol);
    }
    at += size;
  }
  if (definition.by_score) {
    merge_by_score(symbols, word, texts, scores, definition.token_bytes_max, work);
  } else {
    merge_by_rank(symbols, definition.merges, work);
  }
  for (const Symbol& symbol : symbols) {
    if (symbol.id != kNoToken) {
      out.push_back(symbol.id);
    } else {
      fall_back(symbol.begin, symbol.size,
                [&](uint32_t, uint32_t, int32_t id) { out.push_back(id); });
    }
  }
}

void Tokenizer::Data::encode_known_word(const std::string& word, std::vector<int32_t>& out,
                                        KnownWords& known, MergeWork& work) const {
  if (word.size() > kKnownWordBytesMax) return encode_word(word, out, work);
  const auto place = known.places.find(word);
  if (place != known.places.end()) {
    const auto from = known.ids.begin() + static_cast<ptrdiff_t>(place->second.begin);
    out.insert(out.end(), from, from + static_cast<ptrdiff_t>(place->second.count));
    return;
  }
  const size_t before = out.size();
  encode_word(word, out, work);
  if (known.places.size() == kKnownWordsMax) return;
  known.places.emplace(word, KnownWords::Place{known.ids.size(), out.size() - before});
  known.ids.insert(known.ids.end(), out.begin() + static_cast<ptrdiff_t>(before), out.end());
}

// Hands on the tokens of `tree` in `text` and the text between them.
template <class Text, class Token>
void Tokenizer::Data::take_tokens(std::string_view text, const TokenTree& tree, const Runs* runs,
                                  bool with_special, const Text& on_text,
                                  const Token& on_token) const {
  size_t done = 0;
  size_t run = 0;
  TokenTree::SizesMax sizes_max;
  if (with_special) sizes_max.special = std::string_view::npos;
  for (size_t at = 0; at < text.size();) {
    if (runs != nullptr) {
      while (run < runs->size() && (*runs)[run] <= at) ++run;
      const bool in_template = run < runs->size() && run % 2 == 1;
      const size_t left = in_template ? (*runs)[run] - at : 0;
      sizes_max = {.special = left, .mark = left};
    }
    const TokenTree::Hit hit = tree.longest(text.substr(at), sizes_max);
    if (hit.id == kNoToken) {
      at += 1;
      continue;
    }
    const TokenDefinition& token = definition.tokens[static_cast<size_t>(hit.id)];
    if (token.single_word && !stands_alone(text, at, at + hit.size)) {
      at += hit.size;  // No shorter token is looked for within, as Hugging Face's library has it.
      continue;
    }
    const size_t begin = token.strip_left ? white_space_before(text, at, done) : at;
    const size_t end = token.strip_right ? white_space_after(text, at + hit.size) : at + hit.size;
    if (begin > done) on_text(text.substr(done, begin - done), done == 0);
    on_token(hit.id);
    at = done = end;
  }
  if (done < text.size()) on_text(text.substr(done), done == 0);
}

Result<Tokenizer> Tokenizer::from_definition(std::string_view json) {
  SHOAL_TRY_ASSIGN(definition, read_tokenizer_definition(json));
  return Tokenizer(std::make_shared<const Data>(std::move(definition)));
}

Tokenizer::Data::Runs Tokenizer::Data::normalized_runs(std::string_view text, const Runs& runs,
                                                       size_t begin, size_t end,
                                                       std::string_view normal) const {
  // Only the runs that the piece touches, as there may be many pieces and many runs.
  auto run = std::upper_bound(runs.begin(), runs.end(), begin);
  Runs out;
  if ((run - runs.begin()) % 2 == 1) out.push_back(0);
  std::string joined;
  for (size_t at = begin; run != runs.end() && at < end; ++run) {
    const size_t to = std::min(*run, end);
    joined += normalize(std::string(text.substr(at, to - at)), definition.normalize,
                        /*continuation=*/at > begin);
    out.push_back(joined.size());
    at = to;
  }
  if (joined != normal) out.assign(1, normal.size());
  return out;
}

std::vector<int32_t> Tokenizer::Data::encode(const std::string& valid, const Runs* runs,
                                             bool with_special, MergeWork& work) const {
  SHOAL_CHECK(valid.size() < (size_t{1} << 24));  // Callers bound a prompt far below this.
  std::vector<int32_t> ids;
  KnownWords known;
  const auto on_token = [&](int32_t id) { ids.push_back(id); };
  const auto on_raw = [&](std::string_view raw, bool raw_at_start) {
    const std::string normal = normalize(std::string(raw), definition.normalize);
    Runs normal_runs;
    if (runs != nullptr && !normalized_tokens.empty()) {
      const auto begin = static_cast<size_t>(raw.data() - valid.data());
      normal_runs = normalized_runs(valid, *runs, begin, begin + raw.size(), normal);
    }
    take_tokens(
        normal, normalized_tokens, runs == nullptr ? nullptr : &normal_runs, with_special,
        [&](std::string_view piece, bool at_start) {
          Word whole{std::string(piece), raw_at_start && at_start};
          for (const Word& word : split_words(std::move(whole), definition.split)) {
            encode_known_word(word.text, ids, known, work);
          }
        },
        on_token);
  };
  take_tokens(valid, raw_tokens, runs, with_special, on_raw, on_token);
  return ids;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_bos, bool parse_special,
                                       MergeWork* work) const {
  MergeWork unasked;
  std::vector<int32_t> ids =
      data_->encode(valid_utf8(text), nullptr, parse_special, work != nullptr ? *work : unasked);
  if (add_bos && data_->definition.bos) ids.insert(ids.begin(), *data_->definition.bos);
  return ids;
}

std::vector<int32_t> Tokenizer::encode_parts(std::span<const TextPart> parts) const {
  std::string valid;
  Data::Runs runs = {0};
  for (const TextPart& part : parts) {
    if (part.text.empty()) continue;
    valid += valid_utf8(part.text);
    const bool last_is_message = runs.size() % 2 == 1;
    if (part.from_message == last_is_message) {
      runs.back() = valid.size();
    } else {
      runs.push_back(valid.size());
    }
  }
  MergeWork unasked;
  return data_->encode(valid, &runs, /*with_special=*/false, unasked);
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  Detokenizer detokenizer(*this);
  std::string text;
  for (const int32_t id : ids) text += detokenizer.push(id);
  return text += detokenizer.finish();
}

int32_t Tokenizer::vocabulary() const { return static_cast<int32_t>(data_->bytes.size()); }
std::optional<int32_t> Tokenizer::bos() const { return data_->definition.bos; }
bool Tokenizer::adds_bos() const { return data_->definition.adds_bos; }
const std::vector<int32_t>& Tokenizer::eos_ids() const { return data_->definition.eos; }

bool Tokenizer::is_eos(int32_t id) const {
  return std::binary_search(eos_ids().begin(), eos_ids().end(), id);
}

bool Tokenizer::is_special(int32_t id) const {
  return id >= 0 && id < vocabulary() &&
         data_->definition.tokens[static_cast<size_t>(id)].kind == TokenKind::kSpecial;
}

std::optional<std::string_view> Tokenizer::chat_template(std::string_view name) const {
  for (const NamedTemplate& one : data_->definition.chat_templates) {
    if (one.name == name) return one.source;
  }
  return std::nullopt;
}

std::vector<std::string_view> Tokenizer::chat_template_names() const {
  std::vector<std::string_view> names;
  for (const NamedTemplate& one : data_->definition.chat_templates) names.push_back(one.name);
  return names;
}

const std::string& Tokenizer::bos_text() const { return data_->definition.bos_text; }
const std::string& Tokenizer::eos_text() const { return data_->definition.eos_text; }

std::string_view Tokenizer::token_text(int32_t id) const {
  if (id < 0 || id >= vocabulary()) return {};
  return data_->bytes[static_cast<size_t>(id)];
}

Detokenizer::Detokenizer(Tokenizer tokenizer, Begin begin, bool show_special)
    : tokenizer_(std::move(tokenizer)), begin_(begin), show_special_(show_special) {
  strip_left_ = begin == Begin::kText ? tokenizer_.data_->definition.decode_strip_spaces : 0;
}

std::string Detokenizer::push(int32_t id) {
  if (!show_special_ && tokenizer_.is_special(id)) return {};
  std::string_view bytes = tokenizer_.token_text(id);
  while (strip_left_ > 0 && !bytes.empty()) {
    if (bytes.front() != ' ') {
      strip_left_ = 0;
      break;
    }
    bytes.remove_prefix(1);
    strip_left_ -= 1;
  }
  waiting_ += bytes;

  std::string out;
  std::string_view rest = waiting_;
  while (!rest.empty()) {
    const Utf8Step step = next_utf8(rest);
    if (step.kind == Utf8Kind::kUnfinished) break;
    out.append(step.kind == Utf8Kind::kValid ? rest.substr(0, step.size) : kReplacementCharacter);
    rest.remove_prefix(step.size);
  }
  waiting_ = std::string(rest);
  return out;
}

std::string Detokenizer::finish() {
  // At most one character is unfinished.
  std::string out = waiting_.empty() ? std::string() : std::string(kReplacementCharacter);
  waiting_.clear();
  if (begin_ == Begin::kText) strip_left_ = tokenizer_.data_->definition.decode_strip_spaces;
  return out;
}

}  // namespace shoal
