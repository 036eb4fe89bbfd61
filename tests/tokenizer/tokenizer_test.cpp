// Goal: text becomes the tokens that the model was trained on, and tokens become the text, for
// every rule that a definition may state; and no definition, however hostile, does harm.

#include "compute/tokenizer/tokenizer.h"

#include <QTest>

#include <nlohmann/json.hpp>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "compute/tokenizer/split.h"
#include "compute/tokenizer/unicode.h"
#include "tests/support/shared_data.h"

namespace shoal {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The metadata of a GGUF file as JSON. For files that we trust: a test's own small reader.
class GgufKeys {
 public:
  explicit GgufKeys(std::string_view file) : reader_(as_bytes(file)) {}

  json read() {
    json keys;
    reader_.skip(8 + 8).ok();  // Magic, version, tensor count.
    const uint64_t count = number<uint64_t>();
    for (uint64_t i = 0; i < count; ++i) {
      const std::string key = text();
      keys[key] = value(number<uint32_t>());
    }
    return keys;
  }

 private:
  template <class T>
  T number() {
    const ByteSpan bytes = reader_.bytes(sizeof(T)).value();
    T number;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }
  std::string text() { return std::string(reader_.text(number<uint64_t>()).value()); }
  json value(uint32_t type) {
    switch (type) {
      case 0: return number<uint8_t>();
      case 1: return number<int8_t>();
      case 2: return number<uint16_t>();
      case 3: return number<int16_t>();
      case 4: return number<uint32_t>();
      case 5: return number<int32_t>();
      case 6: return number<float>();
      case 7: return number<uint8_t>() != 0;
      case 8: return text();
      case 9: {
        json list = json::array();
        const uint32_t element = number<uint32_t>();
        const uint64_t count = number<uint64_t>();
        for (uint64_t i = 0; i < count; ++i) list.push_back(value(element));
        return list;
      }
      case 10: return number<uint64_t>();
      case 11: return number<int64_t>();
      default: return number<double>();
    }
  }

  ByteReader reader_;
};

json gguf_definition(const json& keys) {
  const std::string prefix = "tokenizer.ggml.";
  json definition = {{"format", "gguf"}, {"eos", json::array({keys.at(prefix + "eos_token_id")})}};
  for (const auto& [name, key] :
       std::map<std::string, std::string>{{"model", "model"},
                                          {"pre", "pre"},
                                          {"tokens", "tokens"},
                                          {"scores", "scores"},
                                          {"types", "token_type"},
                                          {"merges", "merges"},
                                          {"bos", "bos_token_id"},
                                          {"add_bos", "add_bos_token"},
                                          {"add_space_prefix", "add_space_prefix"}}) {
    if (keys.contains(prefix + key)) definition[name] = keys.at(prefix + key);
  }
  return definition;
}

Tokenizer open(const json& definition) {
  Result<Tokenizer> tokenizer = Tokenizer::from_definition(definition.dump());
  if (!tokenizer.ok()) qFatal("%s", tokenizer.error().message.c_str());
  return std::move(tokenizer).value();
}

// The error's message when the definition is refused, else nothing.
std::string refusal(const std::string& definition) {
  const Result<Tokenizer> tokenizer = Tokenizer::from_definition(definition);
  return tokenizer.ok() ? std::string() : tokenizer.error().message;
}
std::string refusal(const json& definition) { return refusal(definition.dump()); }

bool names(const std::string& message, std::string_view what) {
  return message.find(what) != std::string::npos;
}

std::string symbol(uint8_t byte) {
  std::string out;
  append_byte_symbol(out, byte);
  return out;
}

std::string spell(std::string_view text) {
  std::string out;
  for (const char c : text) append_byte_symbol(out, static_cast<uint8_t>(c));
  return out;
}

// A byte-level tokenizer.json: ids 0 to 255 are the bytes, then one token for each merge, then the
// added tokens.
struct ByteLevelToy {
  std::vector<std::pair<std::string, std::string>> merges;  // Plain text; spelled here.
  json pre_tokenizer = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  json added = json::array();

  json definition() const {
    json vocabulary;
    for (int byte = 0; byte < 256; ++byte) vocabulary[symbol(static_cast<uint8_t>(byte))] = byte;
    json list = json::array();
    int id = 256;
    for (const auto& [left, right] : merges) {
      list.push_back(spell(left) + " " + spell(right));
      vocabulary[spell(left + right)] = id++;
    }
    return {{"format", "huggingface"},
            {"tokenizer",
             {{"version", "1.0"},
              {"added_tokens", added},
              {"normalizer", nullptr},
              {"pre_tokenizer", pre_tokenizer},
              {"decoder", {{"type", "ByteLevel"}}},
              {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", list}}}}}};
  }
};

json added_token(int id, const std::string& content, bool special, bool normalized = false) {
  return {
      {"id", id},        {"content", content}, {"special", special},  {"normalized", normalized},
      {"lstrip", false}, {"rstrip", false},    {"single_word", false}};
}

// A SentencePiece-style GGUF vocabulary: <unk> <s> </s>, 256 byte tokens from id 3, then `pieces`.
json llama_toy(const std::vector<std::pair<std::string, float>>& pieces) {
  json tokens = {"<unk>", "<s>", "</s>"};
  json scores = {0, 0, 0};
  json types = {2, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    tokens.push_back(text);
    scores.push_back(0);
    types.push_back(6);
  }
  for (const auto& [piece, score] : pieces) {
    tokens.push_back(piece);
    scores.push_back(score);
    types.push_back(1);
  }
  return {{"format", "gguf"}, {"model", "llama"}, {"tokens", tokens},
          {"scores", scores}, {"types", types},   {"bos", 1},
          {"eos", {2}},       {"add_bos", true},  {"add_space_prefix", true}};
}

// A tokenizer.json with characters as tokens, for rules that need no more: id = place in `tokens`.
json plain_toy(const std::vector<std::string>& tokens, json merges = json::array()) {
  json vocabulary = json::object();
  for (size_t i = 0; i < tokens.size(); ++i) vocabulary[tokens[i]] = i;
  return {{"format", "huggingface"},
          {"tokenizer",
           {{"decoder", {{"type", "Fuse"}}},
            {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", std::move(merges)}}}}}};
}

std::vector<std::string> words_of(std::string_view text, std::vector<WordStep> steps) {
  std::vector<std::string> words;
  for (Word& word : split_words({std::string(text), true}, steps))
    words.push_back(std::move(word.text));
  return words;
}
std::vector<std::string> words_of(std::string_view text, std::string_view expression,
                                  SplitBehavior behavior = SplitBehavior::kIsolated,
                                  bool invert = false) {
  return words_of(text, {SplitStep{Pattern::compile(expression).value(), behavior, invert}});
}

using Words = std::vector<std::string>;

// Any valid code point; half of them among those that rules treat apart.
std::string random_text(Random& random) {
  static const std::vector<uint32_t> kOdd = {
      ' ',   ' ',  '\n',   '\t',    '\r',   'a',    'b',    's',     't',   '\'',
      '0',   '9',  0xA0,   0x85,    0x180E, 0x200B, 0x2028, 0x3000,  0x300, 0x17F,
      0x661, 0xB2, 0x4E00, 0x1F600, 0xFFFD, 0,      0x7F,   0x10FFFF};
  std::string text;
  for (uint64_t count = random.below(40); count > 0; --count) {
    uint32_t c = kOdd[random.below(kOdd.size())];
    if (random.below(2) == 0) c = static_cast<uint32_t>(random.below(0x110000));
    if (c >= 0xD800 && c <= 0xDFFF) c = 'x';
    append_utf8(text, c);
  }
  return text;
}

}  // namespace

class TokenizerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void stories_cases_from_tokenizer_json();
  void stories_cases_from_gguf();
  void stories_readers_agree_on_random_text();
  void demo_model_reads_its_own_text();

  void words_of_gpt2();
  void words_of_llama3_and_qwen2();
  void white_space_is_unicodes();
  void split_behaviors();
  void metaspace_prepends_as_told();
  void digits_and_punctuation();
  void a_slow_pattern_gives_up();

  void merges_go_by_rank();
  void merges_in_both_spellings();
  void scores_go_first_and_leftmost();
  void bytes_stand_in_for_missing_characters();
  void unknown_characters_fuse_or_vanish();
  void ignore_merges_keeps_whole_words();
  void added_tokens_are_taken_first();
  void added_tokens_strip_white_space();
  void added_tokens_stand_alone();
  void normalized_tokens_match_normalized_text();
  void characters_and_marks_are_composed();
  void added_tokens_are_decoded_as_all_others();
  void marks_are_what_the_templates_hold();
  void user_text_never_becomes_special();
  void bos_and_eos();
  void gguf_pre_names();

  void byte_level_round_trips();
  void invalid_utf8_becomes_the_replacement();
  void streaming_holds_back_unfinished_characters();
  void streaming_minds_the_leading_space();
  void special_tokens_are_shown_when_asked();
  void long_input_costs_n_log_n();

  void refuses_what_is_no_definition();
  void refuses_hostile_huggingface();
  void refuses_unsupported_by_name();
  void refuses_hostile_gguf();
  void refuses_mutations_without_harm();
};

void TokenizerTest::stories_cases_from_tokenizer_json() {
  const auto data = shared_data();
  if (!data) QSKIP("../shared/data is absent");
  const auto folder = *data / "stories260K";
  const Tokenizer tokenizer =
      open({{"format", "huggingface"},
            {"tokenizer", json::parse(file_text(folder / "hf/tokenizer.json"))},
            {"config", json::parse(file_text(folder / "hf/tokenizer_config.json"))}});
  QCOMPARE(tokenizer.vocabulary(), 512);
  QCOMPARE(tokenizer.bos(), std::optional<int32_t>(1));
  QVERIFY(tokenizer.adds_bos());
  QCOMPARE(tokenizer.eos_ids(), Ids({2}));
  const json cases = json::parse(file_text(folder / "tokenizer_cases.json"));
  QVERIFY(cases.size() >= 15);
  for (const json& item : cases) {
    const std::string text = item["text"];
    QVERIFY2(tokenizer.encode(text, true) == item["ids"].get<Ids>(), text.c_str());
    QCOMPARE(tokenizer.decode(item["ids"].get<Ids>()), text);
  }
}

void TokenizerTest::stories_cases_from_gguf() {
  const auto data = shared_data();
  if (!data) QSKIP("../shared/data is absent");
  const auto folder = *data / "stories260K";
  const json cases = json::parse(file_text(folder / "tokenizer_cases.json"));
  for (const char* file :
       {"stories260K-f32.gguf", "stories260K-q8_0.gguf", "stories260K-q4_0.gguf"}) {
    const std::string bytes = file_text(folder / file);
    const Tokenizer tokenizer = open(gguf_definition(GgufKeys(bytes).read()));
    QCOMPARE(tokenizer.vocabulary(), 512);
    for (const json& item : cases) {
      const std::string text = item["text"];
      QVERIFY2(tokenizer.encode(text, true) == item["ids"].get<Ids>(), text.c_str());
      QCOMPARE(tokenizer.decode(item["ids"].get<Ids>()), text);
    }
  }
}

void TokenizerTest::stories_readers_agree_on_random_text() {
  const auto data = shared_data();
  if (!data) QSKIP("../shared/data is absent");
  const auto folder = *data / "stories260K";
  const Tokenizer from_json =
      open({{"format", "huggingface"},
            {"tokenizer", json::parse(file_text(folder / "hf/tokenizer.json"))}});
  const std::string bytes = file_text(folder / "stories260K-f32.gguf");
  const Tokenizer from_gguf = open(gguf_definition(GgufKeys(bytes).read()));
  Random random(11);
  for (int i = 0; i < 500; ++i) {
    const std::string text = random_text(random);
    const Ids ids = from_json.encode(text, true);
    QCOMPARE(from_gguf.encode(text, true), ids);
    QCOMPARE(from_gguf.decode(ids), text);
  }
}

void TokenizerTest::demo_model_reads_its_own_text() {
  // Method: the script that trained the model wrote down what its own tokenizer made of these
  // texts.
  const std::filesystem::path folder = std::string(SHOAL_SOURCE_DIR) + "/models/demo";
  const std::string bytes = file_text(folder / "shoal-demo-q8_0.gguf");
  const Tokenizer tokenizer = open(gguf_definition(GgufKeys(bytes).read()));
  const json reference = json::parse(file_text(folder / "reference.json"));
  QVERIFY(!reference["prompts"].empty());
  for (const json& item : reference["prompts"]) {
    QCOMPARE(tokenizer.encode(item["prompt"].get<std::string>(), true),
             item["prompt_ids"].get<Ids>());
    QCOMPARE(tokenizer.decode(item["greedy_ids"].get<Ids>()),
             item["greedy_text"].get<std::string>());
  }
  const std::string text = file_text(folder / "heldout.txt");
  const Ids ids = tokenizer.encode(text, false);
  QCOMPARE(ids.size(), reference["heldout"]["heldout_tokens"].get<size_t>());
  Ids first = {*tokenizer.bos()};
  first.insert(first.end(), ids.begin(), ids.begin() + 255);
  QCOMPARE(first, reference["heldout"]["first_window_ids"].get<Ids>());
  QCOMPARE(tokenizer.decode(ids), text);
}

void TokenizerTest::words_of_gpt2() {
  QCOMPARE(words_of("Hello world, it's 2024!", kGpt2Expression),
           Words({"Hello", " world", ",", " it", "'s", " 2024", "!"}));
  // Blanks but the last one stay together, the last goes with the word.
  QCOMPARE(words_of("a   b\n\n", kGpt2Expression), Words({"a", "  ", " b", "\n\n"}));
  QCOMPARE(words_of("I'LL we'll", kGpt2Expression), Words({"I", "'", "LL", " we", "'ll"}));
  QCOMPARE(words_of("naïve 日本語", kGpt2Expression), Words({"naïve", " 日本語"}));
}

void TokenizerTest::words_of_llama3_and_qwen2() {
  QCOMPARE(words_of("Hello world, it'S 20245!\n\n x", kLlama3Expression),
           Words({"Hello", " world", ",", " it", "'S", " ", "202", "45", "!\n\n", " x"}));
  QCOMPARE(words_of("a 123", kQwen2Expression), Words({"a", " ", "1", "2", "3"}));
  QCOMPARE(words_of("  \n\n  x", kLlama3Expression), Words({"  \n\n", " ", " x"}));
  QCOMPARE(words_of("$foo (bar)", kLlama3Expression), Words({"$foo", " (", "bar", ")"}));
  // Case folding in Unicode: the long s belongs to 's.
  QCOMPARE(words_of("it'ſ", kLlama3Expression), Words({"it", "'ſ"}));
}

void TokenizerTest::white_space_is_unicodes() {
  for (const uint32_t c : {0x09u, 0x0Bu, 0x20u, 0x85u, 0xA0u, 0x1680u, 0x2003u, 0x2028u, 0x2029u,
                           0x202Fu, 0x205Fu, 0x3000u}) {
    std::string text;
    append_utf8(text, c);
    QVERIFY(is_white_space(c));
    QCOMPARE(words_of("a" + text + "b", R"(\s)", SplitBehavior::kRemoved), Words({"a", "b"}));
    QCOMPARE(words_of("a" + text + "b", R"([\s])", SplitBehavior::kRemoved), Words({"a", "b"}));
    QCOMPARE(words_of("a" + text + "b", R"(\S+)"), Words({"a", text, "b"}));
  }
  for (const uint32_t c : {0x180Eu, 0x200Bu, 0xFEFFu, 0x1Fu}) {
    std::string text;
    append_utf8(text, c);
    QVERIFY(!is_white_space(c));
    QCOMPARE(words_of("a" + text + "b", R"(\s)", SplitBehavior::kRemoved),
             Words({"a" + text + "b"}));
    QCOMPARE(words_of("a" + text + "b", R"([^\s])", SplitBehavior::kContiguous),
             Words({"a" + text + "b"}));
  }
}

void TokenizerTest::split_behaviors() {
  const std::string text = "the-final--countdown";
  QCOMPARE(words_of(text, "-", SplitBehavior::kRemoved), Words({"the", "final", "countdown"}));
  QCOMPARE(words_of(text, "-", SplitBehavior::kIsolated),
           Words({"the", "-", "final", "-", "-", "countdown"}));
  QCOMPARE(words_of(text, "-", SplitBehavior::kMergedWithPrevious),
           Words({"the-", "final-", "-", "countdown"}));
  QCOMPARE(words_of(text, "-", SplitBehavior::kMergedWithNext),
           Words({"the", "-final", "-", "-countdown"}));
  QCOMPARE(words_of(text, "-", SplitBehavior::kContiguous),
           Words({"the", "-", "final", "--", "countdown"}));
  QCOMPARE(words_of("-a-", "-", SplitBehavior::kMergedWithPrevious), Words({"-", "a-"}));
  QCOMPARE(words_of("-a-", "-", SplitBehavior::kMergedWithNext), Words({"-a", "-"}));
  QCOMPARE(words_of("a1b22", R"(\d)", SplitBehavior::kRemoved, /*invert=*/true),
           Words({"1", "2", "2"}));
  QCOMPARE(words_of("abc", "x*"), Words({"abc"}));  // Empty matches are none.
  QCOMPARE(words_of("日本", "本|x*"), Words({"日", "本"}));
  // A text is found as it is, whatever it means to an expression.
  QCOMPARE(words_of("a.b|c", {SplitStep{Pattern::literal(".").value()}}), Words({"a", ".", "b|c"}));
  QCOMPARE(words_of("a€|", {SplitStep{Pattern::literal("€|").value()}}), Words({"a", "€|"}));
}

void TokenizerTest::metaspace_prepends_as_told() {
  using Prepend = MetaspaceStep::Prepend;
  QCOMPARE(words_of("Hey my  friend", {MetaspaceStep{"▁", Prepend::kAlways, true}}),
           Words({"▁Hey", "▁my", "▁", "▁friend"}));
  QCOMPARE(words_of("Hey my", {MetaspaceStep{"▁", Prepend::kAlways, false}}), Words({"▁Hey▁my"}));
  QCOMPARE(words_of(" Hey", {MetaspaceStep{"▁", Prepend::kAlways, false}}), Words({"▁Hey"}));
  QCOMPARE(words_of("Hey", {MetaspaceStep{"▁", Prepend::kNever, false}}), Words({"Hey"}));
  QCOMPARE(words_of("Hey", {MetaspaceStep{"▁", Prepend::kFirst, false}}), Words({"▁Hey"}));
  // Only the first of several words begins the text.
  const SplitStep comma{Pattern::compile(",").value(), SplitBehavior::kRemoved};
  QCOMPARE(words_of("a,b", {comma, MetaspaceStep{"▁", Prepend::kFirst, false}}),
           Words({"▁a", "b"}));
  QCOMPARE(words_of("a,b", {comma, MetaspaceStep{"▁", Prepend::kAlways, false}}),
           Words({"▁a", "▁b"}));
}

void TokenizerTest::digits_and_punctuation() {
  QCOMPARE(words_of("Call 123 ²!", kDigitExpression),
           Words({"Call ", "1", "2", "3", " ", "²", "!"}));
  QCOMPARE(words_of("Call 123", kDigitExpression, SplitBehavior::kContiguous),
           Words({"Call ", "123"}));
  QCOMPARE(words_of("Hey «you»+~", kPunctuationExpression),
           Words({"Hey ", "«", "you", "»", "+", "~"}));
}

void TokenizerTest::a_slow_pattern_gives_up() {
  // Nothing is lost: what the pattern could not finish stays one word.
  const std::string text = std::string(60, 'a') + "!";
  QCOMPARE(words_of(text, "(a+)+$"), Words({text}));
  QCOMPARE(words_of(text, {SplitStep{Pattern::compile("(a+)+$").value()},
                           SplitStep{Pattern::compile("(a|aa)+$").value()}}),
           Words({text}));
}

void TokenizerTest::merges_go_by_rank() {
  const Tokenizer tokenizer =
      open(ByteLevelToy{.merges = {{"b", "c"}, {"a", "b"}, {"bc", "d"}, {"a", "a"}, {"aa", "aa"}}}
               .definition());
  QCOMPARE(tokenizer.encode("abcd", false), Ids({'a', 258}));  // bc before ab.
  QCOMPARE(tokenizer.encode("abd", false), Ids({257, 'd'}));
  QCOMPARE(tokenizer.encode("aaaaa", false), Ids({260, 'a'}));  // Leftmost first.
  QCOMPARE(tokenizer.encode("aab", false), Ids({'a', 257}));
  QCOMPARE(tokenizer.encode("ab ab", false), Ids({257, ' ', 257}));  // Not over words: " ab".
  QCOMPARE(tokenizer.encode("", false), Ids());
}

void TokenizerTest::merges_in_both_spellings() {
  const json merges_as_text = {"a b", "ab c"};
  const json merges_as_pairs = json::parse(R"([["a", "b"], ["ab", "c"]])");
  const std::vector<std::string> tokens = {"a", "b", "c", "ab", "abc", " ", "a b"};
  const json definitions[] = {plain_toy(tokens, merges_as_text),
                              plain_toy(tokens, merges_as_pairs)};
  for (const json& definition : definitions) {
    QCOMPARE(open(definition).encode("abcab", false), Ids({4, 3}));
  }
  // Only pairs can name tokens with spaces.
  QCOMPARE(
      open(plain_toy({"a", "b", " ", "a ", "a b"}, json::parse(R"([["a", " "], ["a ", "b"]])")))
          .encode("a b", false),
      Ids({4}));
  QVERIFY(names(refusal(plain_toy({"a", "b", "ab"}, {"ab"})), "tokenizer.model.merges[0]"));
  QVERIFY(names(refusal(plain_toy({"a", "b", "ab"}, {"a "})), "tokenizer.model.merges[0]"));
  QVERIFY(names(refusal(plain_toy({"a", "b", "ab"}, json::array({json::array({"a"})}))),
                "tokenizer.model.merges[0]"));
}

void TokenizerTest::scores_go_first_and_leftmost() {
  const Tokenizer tokenizer = open(llama_toy({{"▁", -9},
                                              {"a", -9},
                                              {"b", -9},
                                              {"ab", -2},
                                              {"ba", -1},
                                              {"▁ab", -3},
                                              {"aba", -4},
                                              {"éa", -5}}));
  const int32_t first = 259;  // ▁
  // ba has the higher score, then a + ba join to aba.
  QCOMPARE(tokenizer.encode("aba", false), Ids({first, first + 6}));
  QCOMPARE(tokenizer.encode("ab", false), Ids({first + 5}));
  // Leftmost among equals: ab|ab, each by itself.
  QCOMPARE(tokenizer.encode("bb", false), Ids({first, first + 2, first + 2}));
  // A character that is no token may still be part of one.
  QCOMPARE(tokenizer.encode("éa", false), Ids({first, first + 7}));
  QCOMPARE(tokenizer.encode("é", false), Ids({first, 3 + 0xC3, 3 + 0xA9}));
  const Tokenizer equal = open(llama_toy({{"▁", 0}, {"a", 0}, {"aa", -1}}));
  QCOMPARE(equal.encode("aaa", false), Ids({259, 261, 260}));
}

void TokenizerTest::bytes_stand_in_for_missing_characters() {
  const Tokenizer tokenizer = open(llama_toy({{"▁", 0}, {"a", 0}}));
  QCOMPARE(tokenizer.encode("a\n😀", false),
           Ids({259, 260, 3 + 0x0A, 3 + 0xF0, 3 + 0x9F, 3 + 0x98, 3 + 0x80}));
  QCOMPARE(tokenizer.decode(Ids({259, 260, 3 + 0xF0, 3 + 0x9F, 3 + 0x98, 3 + 0x80})),
           std::string("a😀"));
  // The name of a byte token in a text is nothing but its characters.
  for (const int32_t id : tokenizer.encode("<0x41>", false)) QVERIFY(id != 3 + 0x41);

  json partly = plain_toy({"a", "<0xC3>", "?"});
  partly["tokenizer"]["model"]["byte_fallback"] = true;
  partly["tokenizer"]["model"]["unk_token"] = "?";
  partly["tokenizer"]["decoder"] = {{"type", "ByteFallback"}};
  QCOMPARE(open(partly).encode("aé", false), Ids({0, 2}));  // All bytes or none.
}

void TokenizerTest::unknown_characters_fuse_or_vanish() {
  json definition = plain_toy({"a", "?"});
  QCOMPARE(open(definition).encode("axxa", false), Ids({0, 0}));
  definition["tokenizer"]["model"]["unk_token"] = "?";
  QCOMPARE(open(definition).encode("axxa", false), Ids({0, 1, 1, 0}));
  definition["tokenizer"]["model"]["fuse_unk"] = true;
  QCOMPARE(open(definition).encode("axxax", false), Ids({0, 1, 0, 1}));
}

void TokenizerTest::ignore_merges_keeps_whole_words() {
  json definition = ByteLevelToy{.merges = {{"a", "b"}}}.definition();
  definition["tokenizer"]["model"]["vocab"]["abcd"] = 257;  // No merges lead there.
  QCOMPARE(open(definition).encode("abcd", false), Ids({256, 'c', 'd'}));
  definition["tokenizer"]["model"]["ignore_merges"] = true;
  QCOMPARE(open(definition).encode("abcd", false), Ids({257}));
  QCOMPARE(open(definition).encode("abcde", false), Ids({256, 'c', 'd', 'e'}));
}

void TokenizerTest::added_tokens_are_taken_first() {
  ByteLevelToy toy{.merges = {{"a", "b"}}};
  toy.added = {added_token(257, "<x>", false), added_token(258, "<x><y>", false),
               added_token(259, "ab", false)};
  json definition = toy.definition();
  QVERIFY(names(refusal(definition), "tokenizer.added_tokens[2]"));  // "ab" is id 256 already.
  toy.added[2]["id"] = 256;
  const Tokenizer tokenizer = open(toy.definition());
  QCOMPARE(tokenizer.vocabulary(), 259);
  QCOMPARE(tokenizer.encode("a<x>b", false), Ids({'a', 257, 'b'}));
  QCOMPARE(tokenizer.encode("<x><y><x><x", false), Ids({258, 257, '<', 'x'}));  // The longest.
  QCOMPARE(tokenizer.encode("cabc", false), Ids({'c', 256, 'c'}));
  QCOMPARE(tokenizer.decode(Ids({'a', 258, 256})), std::string("a<x><y>ab"));
}

void TokenizerTest::added_tokens_strip_white_space() {
  ByteLevelToy toy;
  toy.added = {added_token(256, "<m>", false), added_token(257, "<n>", false)};
  toy.added[0]["lstrip"] = true;
  toy.added[1]["rstrip"] = true;
  const Tokenizer tokenizer = open(toy.definition());
  QCOMPARE(tokenizer.encode("a \u00a0<m> b", false), Ids({'a', 256, ' ', 'b'}));
  QCOMPARE(tokenizer.encode("a <n>\n\u3000b", false), Ids({'a', ' ', 257, 'b'}));
  QCOMPARE(tokenizer.encode("<n> <m>", false), Ids({257, 256}));
  QCOMPARE(tokenizer.encode(" <m>", false), Ids({256}));
  QCOMPARE(tokenizer.encode("<n> ", false), Ids({257}));
}

// As Hugging Face's library does it, token by token.
void TokenizerTest::added_tokens_stand_alone() {
  ByteLevelToy toy;
  toy.added = {added_token(256, "ab", false), added_token(257, "abcd", false)};
  toy.added[0]["lstrip"] = true;
  toy.added[0]["single_word"] = true;
  toy.added[1]["single_word"] = true;
  const Tokenizer tokenizer = open(toy.definition());
  QCOMPARE(tokenizer.encode("ab", false), Ids({256}));
  QCOMPARE(tokenizer.encode("x ab-ab", false), Ids({'x', 256, '-', 256}));
  QCOMPARE(tokenizer.encode("xab abx ab_", false),
           Ids({'x', 'a', 'b', ' ', 'a', 'b', 'x', ' ', 'a', 'b', '_'}));
  // A token that does not stand alone hides a shorter one.
  QCOMPARE(tokenizer.encode("abcdx", false), Ids({'a', 'b', 'c', 'd', 'x'}));
  // Neighbours outside of ASCII: letters, marks, joiners, circled letters; signs and fractions.
  for (const char* word : {"é", "\u0301", "\u200d", "ⓐ", "Ⅷ", "٣", "‿"}) {
    QVERIFY(tokenizer.encode("ab" + std::string(word), false).front() == 'a');
    QVERIFY(tokenizer.encode(std::string(word) + "ab", false).back() == 'b');
  }
  for (const char* other : {"½", "①", "€", "—", "\u00a0", "🙂"}) {
    QVERIFY(tokenizer.encode("ab" + std::string(other), false).front() == 256);
    QVERIFY(tokenizer.encode(std::string(other) + "ab", false).back() == 256);
  }
}

void TokenizerTest::normalized_tokens_match_normalized_text() {
  json definition = plain_toy({"a", "_", "_b", "<_>"});
  definition["tokenizer"]["normalizer"] = {
      {"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "_"}};
  definition["tokenizer"]["added_tokens"] = {added_token(2, "_b", false, /*normalized=*/true)};
  QCOMPARE(open(definition).encode("a b a", false), Ids({0, 2, 1, 0}));
  definition["tokenizer"]["added_tokens"][0]["normalized"] = false;
  QCOMPARE(open(definition).encode("a_b b", false), Ids({0, 2, 1}));  // "b" alone is no token.
}

void TokenizerTest::characters_and_marks_are_composed() {
  json definition = plain_toy({"e", "\u00e9", "\u0301", "\uac00", "q"});
  QCOMPARE(open(definition).encode("e\u0301", false), Ids({0, 2}));
  definition["tokenizer"]["normalizer"] = {{"type", "NFC"}};
  const Tokenizer tokenizer = open(definition);
  QCOMPARE(tokenizer.encode("e\u0301e", false), Ids({1, 0}));
  QCOMPARE(tokenizer.encode("q\u0301", false), Ids({4, 2}));      // There is no such character.
  QCOMPARE(tokenizer.encode("\u1100\u1161", false), Ids({3}));    // Hangul by its algorithm.
  QCOMPARE(tokenizer.encode("e\u0315\u0301", false).front(), 1);  // Marks by their classes.
  QCOMPARE(tokenizer.encode("e\xff\u0301q", false).back(), 4);
}

// As Hugging Face's library does, whose decoder knows nothing of kinds.
void TokenizerTest::added_tokens_are_decoded_as_all_others() {
  json definition = plain_toy({"a", "_", "__"});
  definition["tokenizer"]["added_tokens"] = {added_token(2, "__", false)};
  definition["tokenizer"]["decoder"] = {
      {"type", "Replace"}, {"pattern", {{"String", "_"}}}, {"content", " "}};
  QCOMPARE(open(definition).decode(Ids({0, 2, 1, 0})), std::string("a   a"));
}

// Added tokens that are not special become marks where the template's words spell them, if any
// template does; and many tokens with long templates are no more work than reading them.
void TokenizerTest::marks_are_what_the_templates_hold() {
  constexpr int kMany = 20'000;
  ByteLevelToy toy;
  const std::vector<std::string> texts = {"[a]", "[b]", "[c]", "xy", "  "};
  for (size_t i = 0; i < texts.size(); ++i)
    toy.added.push_back(added_token(256 + static_cast<int>(i), texts[i], false));
  for (int i = 0; i < kMany; ++i)
    toy.added.push_back(added_token(300 + i, std::string(900, 'a') + std::to_string(i), false));
  json definition = toy.definition();
  const std::string filling(kTokenizerTemplateBytesMax - 20, 'a');
  definition["config"]["chat_template"] = {{{"name", "default"}, {"template", filling + "[a]  x"}},
                                           {{"name", "tool_use"}, {"template", "y [b]"}}};
  const Tokenizer tokenizer = open(definition);
  // As a message says it, a mark is not found; what is no mark is found in any text.
  const auto from_message = [&](std::string text) {
    const std::vector<TextPart> parts = {{std::move(text), /*from_message=*/true}};
    return tokenizer.encode_parts(parts);
  };
  QCOMPARE(from_message("[a]"), Ids({'[', 'a', ']'}));
  QCOMPARE(from_message("[b]"), Ids({'[', 'b', ']'}));
  QCOMPARE(from_message("[c]"), Ids({258}));
  QCOMPARE(from_message("xy"), Ids({259}));  // Not over two templates.
  QCOMPARE(from_message("  "), Ids({260}));  // Space alone is no mark.
  const std::vector<TextPart> own = {{"[a]", /*from_message=*/false}};
  QCOMPARE(tokenizer.encode_parts(own), Ids({256}));
  definition["config"]["chat_template"][1]["template"] = std::string(40, 'b');
  QVERIFY(names(refusal(definition), "config.chat_template is longer than 262144 bytes"));
}

void TokenizerTest::user_text_never_becomes_special() {
  ByteLevelToy toy{.merges = {{"<", "s"}, {"<s", ">"}}};
  toy.added = {added_token(257, "<s>", true), added_token(258, "<|im_start|>", true)};
  json definition = toy.definition();
  definition["config"] = {{"bos_token", "<s>"}, {"eos_token", {{"content", "<|im_start|>"}}}};
  for (const bool ignore_merges : {false, true}) {
    definition["tokenizer"]["model"]["ignore_merges"] = ignore_merges;
    definition["tokenizer"]["pre_tokenizer"]["use_regex"] = false;  // "<s>" is one word.
    const Tokenizer tokenizer = open(definition);
    // Neither by matching, nor by merging, nor as a whole word.
    QCOMPARE(tokenizer.encode("<s>", false), Ids({256, '>'}));
    QCOMPARE(tokenizer.encode("<s>", true), Ids({257, 256, '>'}));
    QCOMPARE(tokenizer.encode("<s>", false, /*parse_special=*/true), Ids({257}));
    QCOMPARE(tokenizer.encode("a<|im_start|>", false, true), Ids({'a', 258}));
    for (const int32_t id : tokenizer.encode("<|im_start|>", false))
      QVERIFY(!tokenizer.is_special(id));
  }

  json gguf = llama_toy({{"▁", 0}, {"<", 0}, {"s", 0}, {">", 0}, {"<s", 0}, {"▁<", -1}});
  gguf["types"][2] = 1;  // A lying type: eos still is special.
  const Tokenizer llama = open(gguf);
  for (const char* text : {"<s>", "</s>", "<unk>"}) {
    for (const int32_t id : llama.encode(text, false)) QVERIFY(!llama.is_special(id));
    QCOMPARE(llama.encode(text, false, true).size(), size_t{1});
  }
  QVERIFY(llama.is_special(2));
}

void TokenizerTest::bos_and_eos() {
  json definition = plain_toy({"a", "<s>", "</s>", "<end>"});
  QCOMPARE(open(definition).bos(), std::optional<int32_t>());
  QCOMPARE(open(definition).encode("a", true), Ids({0}));
  definition["config"] = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  definition["eos"] = {3};
  QVERIFY(!open(definition).adds_bos());
  QCOMPARE(open(definition).eos_ids(), Ids({2, 3}));
  QVERIFY(open(definition).is_eos(3));
  QVERIFY(!open(definition).is_eos(0));
  QVERIFY(!open(definition).is_eos(-1));
  QCOMPARE(open(definition).encode("a", true), Ids({1, 0}));
  definition["tokenizer"]["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}}}}}},
      {"pair", json::array()},
      {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}};
  QVERIFY(open(definition).adds_bos());
  definition["config"]["add_bos_token"] = false;
  QVERIFY(!open(definition).adds_bos());
  definition.erase("config");
  QCOMPARE(open(definition).bos(), std::optional<int32_t>(1));
  definition["tokenizer"]["post_processor"]["special_tokens"]["<s>"]["ids"] = {1, 2};
  QVERIFY(names(refusal(definition), "tokenizer.post_processor"));
  definition["tokenizer"]["post_processor"]["special_tokens"]["<s>"]["ids"] = {4};
  QVERIFY(names(refusal(definition), "token id 4 of 4"));

  json gguf = llama_toy({});
  gguf["bos"] = nullptr;
  QVERIFY(!open(gguf).adds_bos());
  QCOMPARE(open(gguf).encode("", true), Ids());
}

void TokenizerTest::gguf_pre_names() {
  json tokens = json::array();
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(symbol(static_cast<uint8_t>(byte)));
  tokens.push_back("12");
  tokens.push_back("123");
  tokens.push_back(spell(" a"));
  tokens.push_back("<|end|>");
  json types(std::vector<int>(260, 1));
  types[259] = 3;
  json definition = {{"format", "gguf"},
                     {"model", "gpt2"},
                     {"tokens", tokens},
                     {"types", types},
                     {"merges", {"1 2", "12 3", spell(" ") + " a"}},
                     {"bos", nullptr},
                     {"eos", {259}},
                     {"add_bos", false},
                     {"add_space_prefix", false}};
  const std::map<std::string, Ids> expected = {{"gpt-2", {258, 257, '4'}},
                                               {"smollm", {258, '1', '2', '3', '4'}},
                                               {"llama-bpe", {258, 257, '4'}},
                                               {"qwen2", {258, '1', '2', '3', '4'}},
                                               {"dbrx", {258, 257, '4'}},
                                               {"gpt-4o", {258, 257, '4'}},
                                               {"tekken", {258, '1', '2', '3', '4'}}};
  for (const auto& [pre, ids] : expected) {
    definition["pre"] = pre;
    QCOMPARE(open(definition).encode(" a1234", false), ids);
    QCOMPARE(open(definition).decode(ids), std::string(" a1234"));
  }
  definition["pre"] = "falcon-of-2031";
  QVERIFY(names(refusal(definition), "pre \"falcon-of-2031\" is not supported"));
  definition.erase("pre");
  QVERIFY(names(refusal(definition), ".pre"));
}

void TokenizerTest::byte_level_round_trips() {
  // Method: any valid text, through every pre-tokenizer, comes back as it was.
  std::vector<json> pre_tokenizers = {
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}},
      {{"type", "Sequence"},
       {"pretokenizers",
        {{{"type", "Digits"}, {"individual_digits", true}},
         {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}}}}};
  for (const std::string_view expression : {kLlama3Expression, kQwen2Expression}) {
    pre_tokenizers.push_back(
        {{"type", "Sequence"},
         {"pretokenizers",
          {{{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}},
           {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}});
  }
  const std::vector<std::pair<std::string, std::string>> merges = {
      {" ", " "}, {"  ", "  "}, {"a", "b"}, {" ", "a"}, {"'", "s"}, {"\xF0", "\x9F"}, {"\r", "\n"}};
  for (const json& pre_tokenizer : pre_tokenizers) {
    const Tokenizer tokenizer =
        open(ByteLevelToy{.merges = merges, .pre_tokenizer = pre_tokenizer}.definition());
    Random random(5);
    for (int i = 0; i < 1000; ++i) {
      const std::string text = random_text(random);
      QCOMPARE(tokenizer.decode(tokenizer.encode(text, true)), text);
    }
  }
}

void TokenizerTest::invalid_utf8_becomes_the_replacement() {
  const Tokenizer tokenizer = open(ByteLevelToy{}.definition());
  const std::string sign(kReplacementCharacter);
  const std::pair<std::string, std::string> cases[] = {
      {"a\x80z", "a" + sign + "z"},
      {"\xC0\xAF", sign + sign},                        // Overlong.
      {"\xED\xA0\x80", sign + sign + sign},             // A surrogate.
      {"\xF4\x90\x80\x80", sign + sign + sign + sign},  // Beyond U+10FFFF.
      {"\xE2\x82", sign},                               // Cut off at the end,
      {"\xE2\x82z", sign + "z"},                        // and within.
      {"\xF0\x9F\x98\x80", "😀"},
      {std::string("\0", 1), std::string("\0", 1)}};
  for (const auto& [text, expected] : cases) {
    QCOMPARE(valid_utf8(text), expected);
    QCOMPARE(tokenizer.decode(tokenizer.encode(text, false)), expected);
    // The same when the bytes come as tokens.
    Ids ids;
    for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
    QCOMPARE(tokenizer.decode(ids), expected);
  }
}

void TokenizerTest::streaming_holds_back_unfinished_characters() {
  const Tokenizer tokenizer = open(ByteLevelToy{}.definition());
  Detokenizer stream(tokenizer);
  QCOMPARE(stream.push(0xF0), std::string());
  QCOMPARE(stream.push(0x9F), std::string());
  QCOMPARE(stream.push(0x98), std::string());
  QCOMPARE(stream.push(0x80), std::string("😀"));
  QCOMPARE(stream.push(0xE2), std::string());
  QCOMPARE(stream.push('a'), std::string(kReplacementCharacter) + "a");
  QCOMPARE(stream.push(0xE2), std::string());
  QCOMPARE(stream.finish(), std::string(kReplacementCharacter));
  QCOMPARE(stream.finish(), std::string());
  QCOMPARE(stream.push(-1), std::string());
  QCOMPARE(stream.push(256), std::string());
  // Cut anywhere, the pieces add up to the whole.
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    const std::string text = random_text(random);
    std::string pieces;
    for (const int32_t id : tokenizer.encode(text, false)) {
      pieces += stream.push(id);
      QCOMPARE(valid_utf8(pieces), pieces);
    }
    QCOMPARE(pieces + stream.finish(), text);
  }
}

void TokenizerTest::streaming_minds_the_leading_space() {
  const Tokenizer tokenizer = open(llama_toy({{"▁", 0}, {"a", 0}, {"▁a", 1}}));
  Detokenizer text(tokenizer, Detokenizer::Begin::kText);
  QCOMPARE(text.push(1), std::string());
  QCOMPARE(text.push(261), std::string("a"));
  QCOMPARE(text.push(261), std::string(" a"));
  QCOMPARE(text.finish(), std::string());
  QCOMPARE(text.push(261), std::string("a"));
  Detokenizer more(tokenizer, Detokenizer::Begin::kContinuation);
  QCOMPARE(more.push(261), std::string(" a"));
  QCOMPARE(more.finish(), std::string());
  QCOMPARE(more.push(261), std::string(" a"));
  // Only the space that encoding put there comes off.
  QCOMPARE(tokenizer.decode(tokenizer.encode("  a", true)), std::string("  a"));
  json bare = llama_toy({{"▁", 0}, {"a", 0}});
  bare["add_space_prefix"] = false;
  QCOMPARE(open(bare).encode("a a", false), Ids({260, 259, 260}));
  QCOMPARE(open(bare).decode(Ids({259, 260})), std::string(" a"));
}

void TokenizerTest::special_tokens_are_shown_when_asked() {
  const Tokenizer tokenizer = open(llama_toy({{"▁a", 0}}));
  Detokenizer stream(tokenizer, Detokenizer::Begin::kText, /*show_special=*/true);
  QCOMPARE(stream.push(1), std::string("<s>"));
  QCOMPARE(stream.push(259), std::string(" a"));
  QCOMPARE(tokenizer.decode(Ids({1, 259, 2})), std::string("a"));
  QCOMPARE(tokenizer.token_text(2), std::string_view("</s>"));
  QCOMPARE(tokenizer.token_text(3 + 0xFF), std::string_view("\xFF"));
  QCOMPARE(tokenizer.token_text(260), std::string_view());
  QVERIFY(!tokenizer.is_special(260));
}

void TokenizerTest::long_input_costs_n_log_n() {
  // Method: count queue entries. Each symbol boundary is queued once, and each merge adds at most
  // two, so n log n holds when there are at most three for each symbol.
  constexpr size_t kLength = 1'000'000;
  const std::string text(kLength, 'a');
  const Tokenizer by_rank =
      open(ByteLevelToy{.merges = {{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}}}.definition());
  MergeWork work;
  const Ids ids = by_rank.encode(text, false, false, &work);
  QCOMPARE(ids, Ids(kLength / 8, 258));
  QCOMPARE(work.merged, uint64_t{kLength - kLength / 8});
  QVERIFY(work.queued <= 3 * kLength);

  const Tokenizer by_score =
      open(llama_toy({{"▁", 0}, {"a", 0}, {"aa", 3}, {"aaaa", 2}, {"aaaaaaaa", 1}}));
  work = {};
  constexpr size_t kShorter = 200'000;  // Each step is slower here, and the bound is the same.
  const Ids scored = by_score.encode(text.substr(0, kShorter), false, false, &work);
  QCOMPARE(scored.size(), 1 + kShorter / 8);
  QVERIFY(work.queued <= 3 * kShorter);
  // Blanks are the hard case of the patterns, which walk back over them.
  const std::string blanks(kLength, ' ');
  QCOMPARE(by_rank.encode(blanks + "a", false).size(), kLength + 1);
  json llama3 = ByteLevelToy{}.definition();
  llama3["tokenizer"]["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", kLlama3Expression}}}, {"behavior", "Isolated"}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  QCOMPARE(open(llama3).encode(blanks + "a", false).size(), kLength + 1);
}

void TokenizerTest::refuses_what_is_no_definition() {
  QVERIFY(names(refusal(std::string()), "no JSON"));
  QVERIFY(names(refusal(std::string("{\"format\":")), "no JSON"));
  QVERIFY(names(refusal(std::string("[]")), "not an object"));
  QVERIFY(names(refusal(std::string("{}")), "format"));
  QVERIFY(
      names(refusal(std::string("{\"format\":\"sentencepiece\"}")), "format \"sentencepiece\""));
  QVERIFY(
      names(refusal(std::string("{\"format\":\"gguf\",\"format\":\"gguf\"}")), "repeats the key"));
  QVERIFY(names(refusal(std::string("{\"format\":\"\xC0\xAF\"}")), "no JSON"));
  QVERIFY(names(refusal(std::string(100'000, '[')), "too deeply"));
  QVERIFY(names(refusal(std::string("{\"format\":\"gguf\"} x")), "no JSON"));
  QVERIFY(names(refusal(std::string(kTokenizerDefinitionBytesMax + 1, ' ')), "longer than 96 MiB"));
}

void TokenizerTest::refuses_hostile_huggingface() {
  const json good = plain_toy({"a", "b", "ab"}, {"a b"});
  QCOMPARE(refusal(good), std::string());
  const auto broken = [&](const char* pointer, json value) {
    json definition = good;
    definition[json::json_pointer(pointer)] = std::move(value);
    return refusal(definition);
  };
  const std::string vocabulary = "/tokenizer/model/vocab";
  QVERIFY(names(broken("/tokenizer/model/vocab/a", -1),
                "tokenizer.model.vocab[\"a\"] is the token id -1"));
  QVERIFY(
      names(broken("/tokenizer/model/vocab/a", 1 << 20), "vocab[\"a\"] is the token id 1048576"));
  QVERIFY(names(broken("/tokenizer/model/vocab/a", 1e30), "vocab[\"a\"] is not a token id"));
  QVERIFY(names(broken("/tokenizer/model/vocab/a", 18446744073709551615u), "vocab[\"a\"]"));
  QVERIFY(names(broken("/tokenizer/model/vocab/a", 1), "repeats the id 1"));
  QVERIFY(names(broken("/tokenizer/model/vocab", json::object()), "vocab is empty"));
  QVERIFY(names(broken("/tokenizer/model/vocab", 3), "tokenizer.model.vocab is not an object"));
  json long_token = json::object();
  long_token[std::string(1025, 'x')] = 0;
  QVERIFY(names(broken("/tokenizer/model/vocab", long_token), "longer than 1024 bytes"));
  QVERIFY(names(broken("/tokenizer/model/merges", nullptr), "merges is missing"));
  QVERIFY(
      names(broken("/tokenizer/model/merges", {"a x"}), "merges[0] names the unknown token \"x\""));
  QVERIFY(
      names(broken("/tokenizer/model/merges", {"x a"}), "merges[0] names the unknown token \"x\""));
  QVERIFY(names(broken("/tokenizer/model/merges", {"b a"}),
                "merges[0] makes the unknown token \"ba\""));
  QVERIFY(names(broken("/tokenizer/model/merges", {"a b", "a b"}), "merges[1] repeats"));
  QVERIFY(names(broken("/tokenizer/model/merges/0", 7), "merges[0]"));
  QVERIFY(names(broken("/tokenizer/model/unk_token", "?"), "unk_token names the unknown token"));
  QVERIFY(names(broken("/tokenizer/added_tokens", {added_token(0, "b", true)}), "added_tokens[0]"));
  QVERIFY(names(broken("/tokenizer/added_tokens", {added_token(0, "z", true)}), "added_tokens[0]"));
  QVERIFY(names(broken("/tokenizer/added_tokens", {added_token(3, "", true)}), "content is empty"));
  json single_word = added_token(3, "y", false);
  single_word["single_word"] = 1;
  QVERIFY(names(broken("/tokenizer/added_tokens", {single_word}), "single_word"));
  QVERIFY(
      names(broken("/tokenizer/added_tokens", {added_token(-3, "z", true)}), "added_tokens[0].id"));
  QVERIFY(names(
      broken("/tokenizer/added_tokens", {added_token(3, "y", true), added_token(3, "y", true)}),
      "added_tokens[1].id is repeated"));
  QVERIFY(names(broken("/config", {{"bos_token", "?"}}), "config.bos_token"));
  QVERIFY(names(broken("/config", {{"eos_token", 3}}), "config.eos_token"));
  QVERIFY(names(broken("/eos", {3}), "eos[0]"));
  QVERIFY(
      names(broken("/tokenizer/pre_tokenizer",
                   {{"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}}),
            "tokenizer.pre_tokenizer.pattern expression is refused by PCRE2"));
  QVERIFY(
      names(broken("/tokenizer/pre_tokenizer", {{"type", "Split"},
                                                {"behavior", "Isolated"},
                                                {"pattern", {{"Regex", std::string(5000, 'a')}}}}),
            "longer than 4096"));
  QVERIFY(names(broken("/tokenizer/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "ab"}}),
                "replacement is not one character"));
  json steps = json::array();
  for (int i = 0; i < 40; ++i) steps.push_back({{"type", "Digits"}});
  QVERIFY(
      names(broken("/tokenizer/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", steps}}),
            "one step too many"));
}

void TokenizerTest::refuses_unsupported_by_name() {
  const json good = plain_toy({"a", "b", "ab"}, {"a b"});
  const auto broken = [&](const char* pointer, json value) {
    json definition = good;
    definition[json::json_pointer(pointer)] = std::move(value);
    const Result<Tokenizer> tokenizer = Tokenizer::from_definition(definition.dump());
    return !tokenizer.ok() && tokenizer.error().code == ErrorCode::kUnsupported
               ? tokenizer.error().message
               : std::string();
  };
  QVERIFY(names(broken("/surprise", 1), "unknown key \"surprise\""));
  QVERIFY(names(broken("/tokenizer/surprise", 1), "tokenizer has the unknown key"));
  QVERIFY(names(broken("/tokenizer/model/surprise", 1), "tokenizer.model has the unknown key"));
  QVERIFY(names(broken("/tokenizer/model/type", "Unigram"), "tokenizer.model.type \"Unigram\""));
  QVERIFY(names(broken("/tokenizer/model/dropout", 0.1), "dropout"));
  QVERIFY(names(broken("/tokenizer/model/continuing_subword_prefix", "##"),
                "continuing_subword_prefix"));
  QVERIFY(names(broken("/tokenizer/model/end_of_word_suffix", "</w>"), "end_of_word_suffix"));
  QVERIFY(names(broken("/tokenizer/normalizer", {{"type", "NFKC"}}),
                "tokenizer.normalizer.type \"NFKC\""));
  QVERIFY(names(broken("/tokenizer/normalizer",
                       {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}}),
                "normalizers[0].type \"Lowercase\""));
  QVERIFY(names(broken("/tokenizer/normalizer",
                       {{"type", "Replace"}, {"pattern", {{"Regex", "a"}}}, {"content", ""}}),
                "tokenizer.normalizer.pattern is not a String"));
  QVERIFY(names(broken("/tokenizer/normalizer",
                       {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "bbbbb"}}),
                "content is too long"));
  QVERIFY(names(broken("/tokenizer/pre_tokenizer", {{"type", "BertPreTokenizer"}}),
                "BertPreTokenizer"));
  QVERIFY(names(broken("/tokenizer/pre_tokenizer", {{"type", "ByteLevel"}}),
                "do not agree on ByteLevel"));
  QVERIFY(
      names(broken("/tokenizer/decoder", {{"type", "ByteLevel"}}), "do not agree on ByteLevel"));
  QVERIFY(names(broken("/tokenizer/decoder", {{"type", "WordPiece"}}),
                "tokenizer.decoder.type \"WordPiece\""));
  QVERIFY(names(broken("/tokenizer/decoder", nullptr), "tokenizer.decoder is missing"));
  QVERIFY(names(broken("/tokenizer/decoder",
                       {{"type", "Strip"}, {"content", " "}, {"start", 0}, {"stop", 1}}),
                "stop"));
  QVERIFY(
      names(broken("/tokenizer/post_processor", {{"type", "BertProcessing"}}), "BertProcessing"));
  const auto split = [](const char* expression) -> json {
    return {{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", expression}}}};
  };
  for (const char* expression :
       {R"(\h)", R"(\bx)", R"([\S])", R"([a[b]])", R"([a&&b])", R"(\C)", "(*UTF)a"}) {
    QVERIFY2(names(broken("/tokenizer/pre_tokenizer", split(expression)), "not supported"),
             expression);
  }
}

void TokenizerTest::refuses_hostile_gguf() {
  const json good = llama_toy({{"a", 0}});
  QCOMPARE(refusal(good), std::string());
  const auto broken = [&](const char* pointer, json value) {
    json definition = good;
    definition[json::json_pointer(pointer)] = std::move(value);
    return refusal(definition);
  };
  QVERIFY(names(broken("/model", "rwkv"), "model \"rwkv\""));
  QVERIFY(names(broken("/tokens", json::array()), "tokens has 0 entries"));
  QVERIFY(names(broken("/tokens", nullptr), "tokens is not a list"));
  QVERIFY(names(broken("/tokens/259", "<s>"), "tokens[259] repeats the token \"<s>\""));
  QVERIFY(names(broken("/tokens/259", 5), "tokens[259] is not a text"));
  QVERIFY(names(broken("/tokens/259", std::string(1025, 'x')), "tokens[259] is longer"));
  QVERIFY(names(broken("/tokens/3", "<0x0g>"), "tokens[3] is no byte token"));
  QVERIFY(names(broken("/types/259", 6), "tokens[259] is no byte token"));
  QVERIFY(names(broken("/types/259", 7), "types[259]"));
  QVERIFY(names(broken("/types/259", "a"), "types[259]"));
  QVERIFY(names(broken("/types", {1}), "types is not a list as long as tokens"));
  QVERIFY(names(broken("/scores", {1}), "scores is not a list as long as tokens"));
  QVERIFY(names(broken("/scores/3", 1e300), "scores[3] is not finite"));
  QVERIFY(names(broken("/scores/3", "a"), "scores[3] is not a number"));
  QVERIFY(names(broken("/bos", 260), "bos is the token id 260 of 260"));
  QVERIFY(names(broken("/eos", {-1}), "eos[0]"));
  QVERIFY(names(broken("/eos", 2), "eos is not a list"));
  QVERIFY(names(broken("/add_bos", 1), "add_bos"));
  QVERIFY(names(broken("/surprise", 1), "unknown key"));
  json empty_special = good;
  empty_special["tokens"][1] = "";
  QVERIFY(names(refusal(empty_special), "tokens[1] is empty"));
}

void TokenizerTest::refuses_mutations_without_harm() {
  // Method: good definitions with bytes changed, cut or doubled by a seed. Whatever still opens
  // must encode and decode.
  ByteLevelToy toy{.merges = {{"a", "b"}}};
  toy.added = {added_token(257, "<x>", true)};
  const std::string goods[] = {toy.definition().dump(), llama_toy({{"▁a", -1}, {"a", 0}}).dump(),
                               plain_toy({"a", "b", "ab"}, {"a b"}).dump()};
  int opened = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Random random(seed);
    std::string text = goods[seed % 3];
    for (uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
      const size_t at = random.below(text.size());
      switch (random.below(9)) {
        case 0: text[at] = static_cast<char>(32 + random.below(95)); break;
        case 1: text.insert(at, text.substr(at, 1 + random.below(8))); break;
        case 2: text.erase(at, 1 + random.below(4)); break;
        default:  // Where the grammar stays whole more often than not.
          if (std::isalnum(static_cast<unsigned char>(text[at])) != 0) {
            text[at] = "0123456789abcdes"[random.below(std::isdigit(text[at]) != 0 ? 10 : 16)];
          }
          break;
      }
    }
    const Result<Tokenizer> tokenizer = Tokenizer::from_definition(text);
    if (!tokenizer.ok()) {
      QVERIFY2(names(tokenizer.error().message, "tokenizer definition: "),
               qPrintable(QString::number(seed)));
      continue;
    }
    opened += 1;
    for (const int32_t id : tokenizer.value().encode("ab <x> aé\n", true, true)) {
      QVERIFY(id >= 0 && id < tokenizer.value().vocabulary());
    }
  }
  QVERIFY2(opened > 30, qPrintable(QString::number(opened)));
}

}  // namespace shoal

QTEST_GUILESS_MAIN(shoal::TokenizerTest)
#include "tokenizer_test.moc"
