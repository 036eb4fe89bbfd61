#pragma once
// Turns text into a model's tokens and back. Pure text: knows no tensor, no file, no chat template.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compute/tokenizer/bpe.h"

namespace shoal {

// Bounds of a definition. Files of today's largest vocabularies stay under half of each.
inline constexpr size_t kTokenizerDefinitionBytesMax = 96u << 20;
inline constexpr int32_t kTokenizerTokensMax = 1 << 20;
inline constexpr size_t kTokenizerMergesMax = 2u << 20;
inline constexpr size_t kTokenizerTokenBytesMax = 1024;
inline constexpr size_t kTokenizerTemplatesMax = 64;
inline constexpr size_t kTokenizerTemplateBytesMax = 256u << 10;  // Of all of them together.

// A piece of a text that is made of a chat template's own words and of what messages say.
struct TextPart {
  std::string text;
  bool from_message = false;
};

// A value that never changes: cheap to copy, usable by several threads at once.
class Tokenizer {
 public:
  // A definition is one JSON object, read as hostile input:
  //   {"format":"huggingface", "tokenizer":{tokenizer.json}, "config":{tokenizer_config.json},
  //    "eos":[ids]}               "config" and "eos" may be left out; "eos" adds to config's token.
  //   {"format":"gguf", "model":"llama"|"gpt2", "pre":"…", "tokens":[…], "scores":[…], "types":[…],
  //    "merges":["a b"…], "bos":id|null, "eos":[ids], "add_bos":bool, "add_space_prefix":bool,
  //    "chat_template":"…"}       "pre" and "merges" belong to gpt2, "scores" and
  //                               "add_space_prefix" to llama; "types" and "chat_template" may be
  //                               left out. In huggingface, "config" holds the template.
  // kCorrupt or kUnsupported, naming the field: what this tokenizer cannot do is refused, never
  // ignored. Of tokenizer.json, "truncation" and "padding" concern batches for training and have no
  // meaning here; tokens that a post-processor puts after a text are not put after a prompt.
  static Result<Tokenizer> from_definition(std::string_view json);

  // Bytes that are no UTF-8 count as U+FFFD. `add_bos` puts the beginning-of-sequence token first,
  // if there is one. User text never becomes a special token unless `parse_special`; added tokens
  // that are not special are found either way.
  std::vector<int32_t> encode(std::string_view text, bool add_bos, bool parse_special = false,
                              MergeWork* work = nullptr) const;

  // A conversation as a chat template made it. Nothing is put before it, as the template says how a
  // conversation begins. Special tokens, and added ones that conversations are built with (a chat
  // template's own words, or such as begin with "<|"), are found where all of their text is the
  // template's: what a message says never becomes one.
  std::vector<int32_t> encode_parts(std::span<const TextPart> parts) const;

  // The text of whole tokens from its start, valid UTF-8. Special tokens and ids out of range have
  // none.
  std::string decode(std::span<const int32_t> ids) const;

  // Ids are 0 to vocabulary() - 1. A model may have more rows than that, never fewer.
  int32_t vocabulary() const;
  std::optional<int32_t> bos() const;
  bool adds_bos() const;                        // Whether the model expects `bos` before a text.
  const std::vector<int32_t>& eos_ids() const;  // Ascending.
  bool is_eos(int32_t id) const;
  bool is_special(int32_t id) const;

  // The model's own chat template, as Jinja text that nobody has checked; nothing when it has none
  // of this name. And what it is told that the tokens' texts are; empty when there is none.
  std::optional<std::string_view> chat_template(std::string_view name = "default") const;
  std::vector<std::string_view> chat_template_names() const;
  const std::string& bos_text() const;
  const std::string& eos_text() const;

  // The bytes that a token stands for, not always whole characters; a special token's name; nothing
  // for an id out of range.
  std::string_view token_text(int32_t id) const;

 private:
  friend class Detokenizer;
  struct Data;
  explicit Tokenizer(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

// Turns tokens into text as they come. What it has given is valid UTF-8 at any time: bytes of an
// unfinished character wait for the rest of it.
class Detokenizer {
 public:
  enum class Begin {
    kText,          // The tokens begin a text: a leading space that encoding put there comes off.
    kContinuation,  // They go on after a prompt: every space is theirs.
  };

  explicit Detokenizer(Tokenizer tokenizer, Begin begin = Begin::kText, bool show_special = false);

  std::string push(int32_t id);

  // What waited; U+FFFD stands for a character that was never finished. The next token begins anew.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  Begin begin_;
  bool show_special_;
  uint32_t strip_left_;  // Leading spaces that may still come off.
  std::string waiting_;
};

}  // namespace shoal
