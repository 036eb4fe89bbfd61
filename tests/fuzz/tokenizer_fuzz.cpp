// Goal: neither a definition nor a text does harm, whatever its bytes. The first byte chooses: a
// definition from the bytes, or a text for one of the good definitions, as it is and as a
// conversation's message.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "compute/tokenizer/tokenizer.h"
#include "compute/tokenizer/unicode.h"

namespace shoal {
namespace {

constexpr std::string_view kTexts[] = {"Hello  world, it's 2024!\n\n<s> é😀", "<x><x><x>\xF0\x9F",
                                       "aaaaaaaabab"};

// The same by a GGUF file, with the patterns of StarCoder, and without added tokens. Id 0 is no
// special token; `use` expects none.
std::string byte_level_gguf() {
  std::string tokens;
  for (int byte = 0; byte < 256; ++byte) {
    std::string symbol;
    append_byte_symbol(symbol, static_cast<uint8_t>(byte));
    if (symbol == "\"" || symbol == "\\") symbol.insert(0, "\\");
    tokens += "\"" + symbol + "\",";
  }
  return R"({"format":"gguf","model":"gpt2","pre":"starcoder","tokens":[)" + tokens +
         R"("aa","aaaa"],"merges":["a a","aa aa"],"eos":[257]})";
}

// Byte-level, with the pattern of Llama 3, merges, and an added and a special token.
std::string byte_level_definition() {
  std::string vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    std::string symbol;
    append_byte_symbol(symbol, static_cast<uint8_t>(byte));
    if (symbol == "\"" || symbol == "\\") symbol.insert(0, "\\");
    vocabulary += "\"" + symbol + "\":" + std::to_string(byte) + ",";
  }
  return R"({"format":"huggingface","tokenizer":{"added_tokens":[
    {"id":258,"content":"<s>","special":true},{"id":259,"content":"<x>","special":false,"rstrip":true}],
    "pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","behavior":"Isolated","pattern":{"Regex":
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},
    "decoder":{"type":"ByteLevel"},"model":{"vocab":{)" +
         vocabulary + R"("aa":256,"aaaa":257},"merges":["a a","aa aa"]}}})";
}

// By score, with some byte tokens.
constexpr std::string_view kByScore =
    R"({"format":"gguf","model":"llama","tokens":["<unk>","<s>","</s>","<0xC3>","<0xA9>","▁","a","aa","▁a","b"],
    "scores":[0,0,0,0,0,-5,-5,-2,-1,-5],"types":[2,3,3,6,6,1,1,1,1,1],"bos":1,"eos":[2],"add_bos":true})";

// By rank, with normalizers, byte fallback, and added tokens that mind what is around them.
constexpr std::string_view kByRank =
    R"({"format":"huggingface","tokenizer":{"added_tokens":[
    {"id":7,"content":"ba","single_word":true,"normalized":true,"special":false},
    {"id":8,"content":"<m>","special":true,"lstrip":true}],"normalizer":{"type":"Sequence","normalizers":[
    {"type":"NFC"},{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]},
    "decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},
    {"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},
    "model":{"type":"BPE","byte_fallback":true,"unk_token":"?","fuse_unk":true,
    "vocab":{"?":0,"a":1,"b":2,"▁":3,"ab":4,"▁a":5,"<0xC3>":6},"merges":[["a","b"],["▁","a"]]}}})";

void use(const Tokenizer& tokenizer, std::string_view text, bool good) {
  for (const bool parse_special : {false, true}) {
    const std::vector<int32_t> ids = tokenizer.encode(text, true, parse_special);
    for (const int32_t id : ids) SHOAL_CHECK(id >= 0 && id < tokenizer.vocabulary());
    if (good && !parse_special) {
      // Of the special tokens, only the one for unknown text; in all good definitions it is id 0.
      for (size_t i = 1; i < ids.size(); ++i)
        SHOAL_CHECK(!tokenizer.is_special(ids[i]) || ids[i] == 0);
    }
    const std::string decoded = tokenizer.decode(ids);
    SHOAL_CHECK(valid_utf8(decoded) == decoded);
  }
  // Cut in the middle of what may be a token's spelling, a template's word before and behind.
  const std::vector<TextPart> parts = {{"<s>"},
                                       {std::string(text.substr(0, text.size() / 2)), true},
                                       {"<m>"},
                                       {std::string(text.substr(text.size() / 2)), true}};
  size_t marks = 0;
  for (const int32_t id : tokenizer.encode_parts(parts)) {
    SHOAL_CHECK(id >= 0 && id < tokenizer.vocabulary());
    if (id != 0 && tokenizer.is_special(id)) ++marks;
  }
  if (good) SHOAL_CHECK(marks <= 2);  // What a message says never becomes one.
}

}  // namespace
}  // namespace shoal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shoal;
  static const std::string byte_level = byte_level_definition();
  static const std::string gguf = byte_level_gguf();
  static const Tokenizer goods[] = {
      Tokenizer::from_definition(byte_level).value(), Tokenizer::from_definition(kByScore).value(),
      Tokenizer::from_definition(kByRank).value(), Tokenizer::from_definition(gguf).value()};
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  // 3 is a definition, as it was when there were fewer good ones: so the corpus keeps its meaning.
  if (data[0] % 4 != 3) {
    const bool newer = data[0] % 4 == 0 && data[0] >= 128;
    const Tokenizer& tokenizer = goods[newer ? 3 : data[0] % 4];
    use(tokenizer, rest, /*good=*/true);
    // Byte-level text comes back as it was.
    if (data[0] % 4 == 0 && rest.find("<x>") == std::string_view::npos) {
      SHOAL_CHECK(tokenizer.decode(tokenizer.encode(rest, false)) == valid_utf8(rest));
    }
    return 0;
  }
  const Result<Tokenizer> tokenizer = Tokenizer::from_definition(rest);
  if (!tokenizer.ok()) {
    SHOAL_CHECK(tokenizer.error().message.starts_with("tokenizer definition: "));
    return 0;
  }
  for (const std::string_view text : kTexts) use(tokenizer.value(), text, /*good=*/false);
  return 0;
}
