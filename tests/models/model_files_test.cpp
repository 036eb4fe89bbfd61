// Goal: whatever bytes a weight file, a config or an index holds, the reader takes what is right
// and refuses what is wrong with a message that names the field; it never reads outside or believes
// a size.

#include <QTest>

#include <algorithm>

#include "base/files.h"
#include "compute/models/family.h"
#include "compute/models/gguf.h"
#include "compute/models/json_text.h"
#include "compute/models/model.h"
#include "compute/models/safetensors.h"
#include "compute/models/tokenizer_definition.h"
#include "tests/models/model_maker.h"
#include "tests/models/refused.h"

using namespace shoal;
using namespace shoal::compute;

namespace {

std::string entry(std::string_view name, std::string_view type, std::string_view shape,
                  std::string_view range) {
  return "\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(type) +
         "\",\"shape\":" + std::string(shape) + ",\"data_offsets\":" + std::string(range) + "}";
}

Result<WeightTable> read_header(const std::string& header, size_t data_bytes) {
  return read_safetensors(safetensors_of_header(header, data_bytes), "f.safetensors");
}

Result<GgufFile> read_gguf(const GgufMaker& maker) {
  // The bytes may go: only whether they were taken is asked.
  const ByteVector bytes = maker.bytes();
  return GgufFile::read(bytes, "f.gguf");
}

TensorToWrite f32_tensor(std::string name, Shape shape) {
  Random random(7);
  return {name, "F32", shape, random_tensor("F32", shape, 1.0f, random)};
}

}  // namespace

class ModelFilesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void json_refuses_depth_and_duplicates() {
    QVERIFY(parse_json("{\"a\":[1,{\"b\":null}],\"c\":\"x\"}", "f").ok());
    QCOMPARE(parse_json("{\"a\":[[1],[2,3]],\"b\":{\"c\":4}}", "f").value().dump(),
             std::string("{\"a\":[[1],[2,3]],\"b\":{\"c\":4}}"));
    QVERIFY(refused(parse_json("{\"a\":1,\"a\":2}", "f"), {"f: ", "\"a\"", "twice"}));
    QVERIFY(refused(parse_json("{\"x\":{\"a\":1,\"b\":{},\"a\":2}}", "f"), {"\"a\"", "twice"}));
    QVERIFY(parse_json(std::string(64, '[') + std::string(64, ']'), "f").ok());
    QVERIFY(refused(parse_json(std::string(65, '['), "f"), {"nested"}));
    QVERIFY(refused(parse_json(std::string(1'000'000, '['), "f"), {"nested"}));
    for (const char* text :
         {"", "{", "{\"a\"}", "[1,]", "nul", "{\"a\":1}x", "\"\xff\"", "1e999", "[1] [2]"}) {
      QVERIFY2(refused(parse_json(text, "f"), {"f: "}, ErrorCode::kCorrupt), text);
    }
  }

  void safetensors_takes_a_good_file() {
    Random random(3);
    const std::vector<TensorToWrite> tensors = {
        {"a", "F32", {3, 5}, random_tensor("F32", {3, 5}, 1.0f, random)},
        {"b", "BF16", {4}, random_tensor("BF16", {4}, 1.0f, random)},
        {"empty", "F16", {0, 4}, {}},
        {"scalar", "U8", {}, ByteVector(1)},
    };
    const ByteVector bytes = safetensors_bytes(tensors, "{\"format\":\"pt\"}");
    auto table = read_safetensors(bytes, "f");
    QVERIFY2(table.ok(), table.ok() ? "" : table.error().message.c_str());
    QCOMPARE(table.value().size(), size_t{4});
    const StoredTensor& a = table.value().at("a");
    QVERIFY(a.dtype == DType::kF32 && a.shape == (Shape{3, 5}));
    QVERIFY(std::ranges::equal(a.bytes, tensors[0].bytes));
    QVERIFY(!table.value().at("scalar").dtype.has_value());
    QVERIFY(read_header("{}", 0).ok());
  }

  void safetensors_refuses_every_cut() {
    Random random(4);
    const ByteVector bytes =
        safetensors_bytes({{"a", "F32", {4, 4}, random_tensor("F32", {4, 4}, 1.0f, random)},
                           {"b", "F16", {2}, random_tensor("F16", {2}, 1.0f, random)}});
    for (size_t length = 0; length < bytes.size(); ++length) {
      // A copy of exactly that length, so that a sanitizer sees a read beyond it.
      const ByteVector cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
      QVERIFY2(refused(read_safetensors(cut, "f"), {"f: "}, ErrorCode::kCorrupt),
               qPrintable(QString::number(length)));
    }
    ByteVector longer = bytes;
    longer.push_back(std::byte{0});
    QVERIFY(refused(read_safetensors(longer, "f"), {"data", "no tensor"}));
  }

  void safetensors_refuses_lies() {
    const auto header = [](uint64_t size) {
      ByteWriter writer;
      writer.u64(size);
      writer.text("{}");
      return writer.take();
    };
    QVERIFY(refused(read_safetensors(header(kSafetensorsHeaderMax + 1), "f"),
                    {"header size", "allowed"}));
    QVERIFY(refused(read_safetensors(header(3), "f"), {"header size", "pass the end"}));
    QVERIFY(refused(read_safetensors(header(UINT64_MAX), "f"), {"header size"}));

    const std::string a = entry("a", "F32", "[2]", "[0,8]");
    QVERIFY(read_header("{" + a + "}", 8).ok());
    struct Case {
      std::string header;
      size_t data;
      std::initializer_list<std::string_view> words;
    };
    const Case cases[] = {
        {"[]", 0, {"header"}},
        {"{\"a\":1}", 0, {"tensor a"}},
        {"{\"a\":{}}", 0, {"tensor a", "dtype"}},
        {"{" + a + "," + a + "}", 8, {"\"a\"", "twice"}},
        {"{" + entry("a", "F33", "[2]", "[0,8]") + "}", 8, {"tensor a", "dtype", "F33"}},
        {"{" + entry("a", "F32", "2", "[0,8]") + "}", 8, {"tensor a", "shape"}},
        {"{" + entry("a", "F32", "[-2]", "[0,8]") + "}", 8, {"tensor a", "shape"}},
        {"{" + entry("a", "F32", "[2.0]", "[0,8]") + "}", 8, {"tensor a", "shape"}},
        {"{" + entry("a", "F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]") + "}", 8, {"tensor a", "shape"}},
        {"{" + entry("a", "F32", "[3]", "[0,8]") + "}", 8, {"tensor a", "data_offsets", "8", "12"}},
        {"{" + entry("a", "F32", "[4294967296,4294967296]", "[0,8]") + "}",
         8,
         {"tensor a", "shape", "overflows"}},
        {"{" + entry("a", "F32", "[4611686018427387904]", "[0,8]") + "}",
         8,
         {"tensor a", "shape", "overflows"}},
        {"{" + entry("a", "F32", "[18446744073709551615]", "[0,8]") + "}",
         8,
         {"tensor a", "shape", "overflows"}},
        {"{" + entry("a", "F32", "[2]", "[8,0]") + "}", 8, {"tensor a", "data_offsets", "before"}},
        {"{" + entry("a", "F32", "[2]", "[0,8,9]") + "}", 8, {"tensor a", "data_offsets"}},
        {"{" + entry("a", "F32", "[2]", "[0,\"8\"]") + "}", 8, {"tensor a", "data_offsets"}},
        {"{" + entry("a", "F32", "[2]", "[8,16]") + "}", 8, {"tensor a", "data_offsets", "16"}},
        {"{" + entry("a", "F32", "[2]", "[8,16]") + "}", 16, {"tensor a", "data_offsets", "gap"}},
        {"{" + a + "," + entry("b", "F32", "[2]", "[4,12]") + "}", 12, {"tensor b", "overlaps"}},
        {"{" + a + "," + entry("b", "F32", "[2]", "[0,8]") + "}", 8, {"overlaps"}},
        {"{" + a + "," + entry("b", "F32", "[2]", "[12,20]") + "}", 20, {"tensor b", "gap"}},
        {"{\"__metadata__\":{\"a\":1}}", 0, {"__metadata__"}},
        {"{\"__metadata__\":7}", 0, {"__metadata__"}},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}",
         8,
         {"tensor a", "\"x\""}},
    };
    for (const Case& c : cases) {
      QVERIFY2(refused(read_header(c.header, c.data), c.words, ErrorCode::kCorrupt),
               c.header.c_str());
    }
  }

  void gguf_takes_a_good_file() {
    GgufMaker maker;
    maker.u32("n", 7);
    maker.f32("x", 0.5f);
    maker.boolean("yes", true);
    maker.text("name", "hello");
    maker.texts("words", {"a", "", "ccc"});
    maker.f32s("scores", {1.5f, -2.0f});
    maker.i32s("types", {1, -3});
    maker.tensor(f32_tensor("t", {3, 5}));
    maker.tensor(f32_tensor("u", {2}));
    const ByteVector bytes = maker.bytes();
    auto file = GgufFile::read(bytes, "f.gguf");
    QVERIFY2(file.ok(), file.ok() ? "" : file.error().message.c_str());
    const GgufFile& f = file.value();
    QCOMPARE(f.integer("n", 0, 10).value(), int64_t{7});
    QCOMPARE(f.number("x", 0, 1).value(), 0.5);
    QVERIFY(f.boolean_or("yes", false).value());
    QVERIFY(f.boolean_or("absent", true).value());
    QCOMPARE(std::string(f.text("name").value()), std::string("hello"));
    QVERIFY(f.texts("words").value() == (std::vector<std::string_view>{"a", "", "ccc"}));
    QVERIFY(f.numbers("scores").value() == (std::vector<double>{1.5, -2.0}));
    QVERIFY(f.integers("types").value() == (std::vector<int64_t>{1, -3}));
    QVERIFY(f.tensors().at("t").shape == (Shape{3, 5}));
    QCOMPARE(f.tensors().at("t").bytes.size(), size_t{60});
    QVERIFY(std::ranges::equal(f.tensors().at("u").bytes, f32_tensor("u", {2}).bytes));

    QVERIFY(refused(f.integer("n", 8, 10), {"f.gguf: n", "7"}));
    QVERIFY(refused(f.integer("x", 0, 1), {"x", "integer"}));
    QVERIFY(refused(f.number("n", 0, 1), {"n", "number"}));
    QVERIFY(refused(f.number("x", 1, 2), {"x", "between"}));
    QVERIFY(refused(f.boolean_or("n", true), {"n", "bool"}));
    QVERIFY(refused(f.text("n"), {"n", "string"}));
    QVERIFY(refused(f.text("absent"), {"absent", "missing"}));
    QVERIFY(refused(f.texts("scores"), {"scores", "strings"}));
    QVERIFY(refused(f.numbers("types"), {"types", "numbers"}));
    QVERIFY(refused(f.integers("words"), {"words", "integers"}));
    QVERIFY(refused(f.integers("scores"), {"scores", "integers"}));
  }

  void gguf_refuses_every_cut() {
    GgufMaker maker;
    maker.u32("n", 7);
    maker.texts("words", {"a", "bb"});
    maker.tensor(f32_tensor("t", {3, 5}));
    maker.tensor(f32_tensor("u", {2}));
    const ByteVector bytes = maker.bytes();
    QVERIFY(GgufFile::read(bytes, "f").ok());
    for (size_t length = 0; length < bytes.size(); ++length) {
      const ByteVector cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
      QVERIFY2(refused(GgufFile::read(cut, "f"), {"f: "}, ErrorCode::kCorrupt),
               qPrintable(QString::number(length)));
    }
  }

  void gguf_refuses_lies() {
    const auto with = [](auto change) {
      GgufMaker maker;
      maker.u32("n", 7);
      maker.tensor(f32_tensor("t", {3, 5}));
      maker.tensor(f32_tensor("u", {2}));
      change(maker);
      return read_gguf(maker);
    };
    const auto raw = [&](uint32_t type, auto write) {
      return with([&](GgufMaker& maker) {
        ByteWriter value;
        write(value);
        maker.raw("bad", type, value.view());
      });
    };
    QVERIFY(with([](GgufMaker&) {}).ok());
    ByteVector wrong_magic(100);
    QVERIFY(refused(GgufFile::read(wrong_magic, "f"), {"magic"}));
    QVERIFY(refused(with([](GgufMaker& m) { m.version = 1; }), {"version", "1"},
                    ErrorCode::kUnsupported));
    QVERIFY(refused(with([](GgufMaker& m) { m.version = 0x03000000; }), {"big-endian"},
                    ErrorCode::kUnsupported));
    for (const uint64_t count : {uint64_t{1} << 20, uint64_t{1} << 40, UINT64_MAX}) {
      QVERIFY(refused(with([&](GgufMaker& m) { m.tensor_count = count; }), {"tensor count"}));
      QVERIFY(refused(with([&](GgufMaker& m) { m.key_count = count; }), {"key count"}));
    }
    QVERIFY(refused(with([](GgufMaker& m) { m.key_count = 2; }), {"f.gguf: "}));
    QVERIFY(refused(with([](GgufMaker& m) { m.u32("n", 8); }), {"f.gguf: n", "twice"}));
    QVERIFY(refused(with([](GgufMaker& m) { m.u32("", 8); }), {"key 1", "empty"}));
    QVERIFY(
        refused(with([](GgufMaker& m) { m.u32(std::string(1025, 'k'), 8); }), {"key 1", "1025"}));
    QVERIFY(
        refused(with([](GgufMaker& m) { m.tensor(f32_tensor("t", {2})); }), {"tensor t", "twice"}));
    QVERIFY(refused(with([](GgufMaker& m) { m.offset_error = 32; }), {"tensor u", "offset"}));
    QVERIFY(
        refused(with([](GgufMaker& m) { m.offset_error = UINT64_MAX; }), {"tensor u", "offset"}));

    QVERIFY(refused(raw(13, [](ByteWriter& w) { w.u32(0); }), {"bad", "type 13"}));
    QVERIFY(refused(raw(7, [](ByteWriter& w) { w.u8(2); }), {"bad", "bool"}));
    QVERIFY(refused(raw(8, [](ByteWriter& w) { w.u64(UINT64_MAX); }), {"bad", "length"}));
    QVERIFY(refused(raw(8, [](ByteWriter& w) { w.u64(1u << 20); }), {"bad"}));
    QVERIFY(refused(raw(9,
                        [](ByteWriter& w) {
                          w.u32(4);
                          w.u64(UINT64_MAX);
                        }),
                    {"bad", "length"}));
    QVERIFY(refused(raw(9,
                        [](ByteWriter& w) {
                          w.u32(8);
                          w.u64(1u << 20);
                        }),
                    {"bad", "length"}));
    QVERIFY(refused(raw(9,
                        [](ByteWriter& w) {
                          w.u32(12);
                          w.u64(uint64_t{1} << 61);
                        }),
                    {"bad", "length"}));
    QVERIFY(refused(raw(9,
                        [](ByteWriter& w) {
                          w.u32(9);
                          w.u64(0);
                        }),
                    {"bad", "array of arrays"}, ErrorCode::kUnsupported));
    QVERIFY(refused(raw(9,
                        [](ByteWriter& w) {
                          w.u32(77);
                          w.u64(0);
                        }),
                    {"bad", "type 77"}));

    const auto alignment = [&](uint32_t value) {
      return with([&](GgufMaker& m) { m.u32("general.alignment", value); });
    };
    QVERIFY(alignment(32).ok());
    QVERIFY(refused(alignment(0), {"general.alignment"}));
    QVERIFY(refused(alignment(24), {"general.alignment"}));
    QVERIFY(refused(alignment(1u << 30), {"general.alignment"}));
    QVERIFY(refused(with([](GgufMaker& m) { m.text("general.alignment", "32"); }),
                    {"general.alignment"}));
  }

  void gguf_refuses_lying_shapes() {
    const auto shaped = [](Shape shape, std::string type = "F32", std::string name = "bad") {
      GgufMaker maker;
      maker.tensor({name, type, shape, ByteVector(64)});
      return read_gguf(maker);
    };
    QVERIFY(shaped({16}).ok());
    QVERIFY(refused(shaped({}), {"tensor bad", "dimensions"}));
    QVERIFY(refused(shaped({1, 1, 1, 1, 16}), {"tensor bad", "dimensions"}));
    QVERIFY(refused(shaped({0, 4}), {"tensor bad", "dimension"}));
    QVERIFY(refused(shaped({-1}), {"tensor bad", "dimension"}));
    QVERIFY(refused(shaped({INT64_MAX}), {"tensor bad", "dimension"}));
    QVERIFY(refused(shaped({int64_t{1} << 40, int64_t{1} << 40}), {"tensor bad", "overflows"}));
    QVERIFY(
        refused(shaped({int64_t{1} << 32, int64_t{1} << 32, 4, 4}), {"tensor bad", "overflows"}));
    QVERIFY(refused(shaped({17}), {"tensor bad", "pass the end"}));
    QVERIFY(refused(shaped({48}, "Q8_0"), {"tensor bad", "32"}));
    QVERIFY(refused(shaped({1}, "F32", ""), {"tensor 0", "name"}));
    QVERIFY(refused(shaped({1}, "F32", std::string(2000, 'x')), {"tensor 0", "name"}));
  }

  void config_is_read_and_refused_by_key() {
    const std::string good =
        "\"hidden_size\":64,\"intermediate_size\":96,\"num_hidden_layers\":2,\"num_attention_"
        "heads\":4,"
        "\"num_key_value_heads\":2,\"vocab_size\":96,\"rms_norm_eps\":1e-5";
    const Family* spec = nullptr;
    const auto read = [&](const std::string& fields) {
      return read_config("{\"architectures\":[\"LlamaForCausalLM\"]," + fields + "}", "config.json",
                         &spec);
    };
    auto config = read(good + ",\"eos_token_id\":[2,3],\"bos_token_id\":1,\"rope_theta\":5e5");
    QVERIFY2(config.ok(), config.ok() ? "" : config.error().message.c_str());
    QVERIFY(spec == &kLlama);
    QCOMPARE(config.value().head_dim, int64_t{16});
    QCOMPARE(config.value().rope.theta, 5e5);
    QVERIFY(config.value().bos == 1 && config.value().eos == (std::vector<int32_t>{2, 3}));
    QVERIFY(!config.value().interleaved && !config.value().tied);

    auto linear = read(good + ",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2.0}");
    QVERIFY(linear.ok() && linear.value().rope.linear_factor == 2.0);
    QVERIFY(read(good + ",\"rope_scaling\":null,\"sliding_window\":null,\"attention_bias\":false")
                .ok());
    QVERIFY(read(good + ",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":7.0}")
                .value()
                .rope.theta == 7.0);

    struct Case {
      std::string fields;
      std::string_view key;
      ErrorCode code;
    };
    constexpr auto kWrong = ErrorCode::kCorrupt, kNo = ErrorCode::kUnsupported;
    const Case cases[] = {
        {"\"vocab_size\":96", "hidden_size", kWrong},
        {good + ",\"head_dim\":0", "head_dim", kWrong},
        {good + ",\"head_dim\":15", "head_dim", kWrong},
        {good + ",\"head_dim\":1e3", "head_dim", kWrong},
        {good + ",\"rope_theta\":\"x\"", "rope_theta", kWrong},
        {good + ",\"rope_theta\":0", "rope_theta", kWrong},
        {good + ",\"tie_word_embeddings\":1", "tie_word_embeddings", kWrong},
        {good + ",\"eos_token_id\":96", "eos_token_id", kWrong},
        {good + ",\"eos_token_id\":[2,-1]", "eos_token_id", kWrong},
        {good + ",\"bos_token_id\":\"1\"", "bos_token_id", kWrong},
        {good + ",\"attention_bias\":true", "attention_bias", kNo},
        {good + ",\"mlp_bias\":true", "mlp_bias", kNo},
        {good + ",\"sliding_window\":4096", "sliding_window", kNo},
        {good + ",\"hidden_act\":\"gelu\"", "hidden_act", kNo},
        {good + ",\"quantization_config\":{}", "quantization_config", kNo},
        {good + ",\"partial_rotary_factor\":0.5", "partial_rotary_factor", kNo},
        {good + ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0}", "low_freq_factor",
         kWrong},
        {good + ",\"rope_scaling\":{\"type\":\"yarn\"}", "factor", kWrong},
        {good + ",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":8.0}", "dynamic", kNo},
        {good + ",\"rope_scaling\":{\"type\":\"linear\"}", "factor", kWrong},
        {good + ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":0}", "factor", kWrong},
        {good + ",\"rope_scaling\":[]", "rope_scaling", kWrong},
        {good + ",\"max_position_embeddings\":99999999999", "max_position_embeddings", kWrong},
    };
    for (const Case& c : cases)
      QVERIFY2(refused(read(c.fields), {"config.json", c.key}, c.code), c.fields.c_str());

    QVERIFY(refused(read_config("{}", "config.json", &spec), {"architectures"}));
    QVERIFY(refused(read_config("{\"architectures\":[\"BloomForCausalLM\"]}", "config.json", &spec),
                    {"architectures", "BloomForCausalLM"}, kNo));
    QVERIFY(refused(read_config("[1]", "config.json", &spec), {"config.json"}));
  }

  void opens_a_folder() {
    TempDir folder;
    for (const char* type : {"F32", "F16", "BF16"}) {
      for (const bool tied : {true, false}) {
        TinyModel tiny{.tied = tied, .type = type};
        write_tiny_folder(folder.path(), tiny);
        auto model = open_model(folder.path());
        QVERIFY2(model.ok(), model.ok() ? "" : model.error().message.c_str());
        QCOMPARE(model.value().fragments.size(), size_t{4});
        QVERIFY(model.value().config.state_dtype ==
                (std::string(type) == "F32" ? DType::kF32 : DType::kF16));
        QCOMPARE(model.value().fragments[1].weights.size(), size_t{9});
        QVERIFY(model.value().tokenizer.empty());
        QVERIFY(!model.value().config.interleaved);
      }
    }
  }

  void a_folder_brings_its_chat_template() {
    TempDir folder;
    write_tiny_folder(folder.path(), {});
    const auto write = [&](const char* name, std::string_view text) {
      QVERIFY(write_file_durably(folder / name, as_bytes(text)).ok());
    };
    const auto chat_template = [&]() -> std::string {
      const auto model = open_model(folder.path());
      if (!model.ok()) return model.error().message;
      const Json config = Json::parse(model.value().tokenizer)["config"];
      return config.contains("chat_template") ? config["chat_template"].get<std::string>() : "none";
    };
    write("tokenizer.json", "{}");
    QCOMPARE(chat_template(), std::string("none"));
    write("tokenizer_config.json", R"({"chat_template":"old"})");
    QCOMPARE(chat_template(), std::string("old"));
    write("chat_template.jinja", "new");
    QCOMPARE(chat_template(), std::string("new"));
    write("chat_template.jinja", "\xFF");
    QVERIFY2(chat_template().ends_with("chat_template.jinja: is no UTF-8"),
             chat_template().c_str());
    write("chat_template.jinja", std::string(size_t{kTemplateFileBytesMax} + 1, 'x'));
    QVERIFY(!open_model(folder.path()).ok());
  }

  void refuses_a_folder_that_disagrees_with_itself() {
    TempDir folder;
    const auto opened = [&](const TinyModel& tiny, const std::string& extra = {}) {
      write_tiny_folder(folder.path(), tiny, extra);
      return open_model(folder.path());
    };
    // The config says one thing, the tensors another.
    TinyModel tiny;
    write_tiny_folder(folder.path(), tiny);
    const auto config_of = [&](const TinyModel& said) {
      TempDir other;
      write_tiny_folder(other.path(), said);
      std::filesystem::copy_file(other / "config.json", folder / "config.json",
                                 std::filesystem::copy_options::overwrite_existing);
      return open_model(folder.path());
    };
    QVERIFY(config_of(tiny).ok());
    QVERIFY(refused(config_of({.width = 32}), {"embed_tokens", "shape"}));
    QVERIFY(refused(config_of({.intermediate = 64}), {"layers.0.mlp.gate_proj", "shape"}));
    QVERIFY(refused(config_of({.blocks = 3}), {"layers.2.", "missing"}));
    QVERIFY(refused(config_of({.blocks = 1}), {"layers.1.", "no such weight"},
                    ErrorCode::kUnsupported));
    QVERIFY(refused(config_of({.kv_heads = 4}), {"k_proj", "shape"}));
    QVERIFY(refused(config_of({.head_dim = 8}), {"q_proj", "shape"}));
    QVERIFY(refused(config_of({.vocabulary = 95}), {"embed_tokens", "shape"}));
    QVERIFY(refused(config_of({.tied = false}), {"lm_head", "missing"}));
    QVERIFY(refused(opened(tiny, "\"mlp_bias\":true"), {"config.json", "mlp_bias"},
                    ErrorCode::kUnsupported));

    std::filesystem::remove(folder / "config.json");
    QVERIFY(refused(open_model(folder.path()), {"config.json"}, ErrorCode::kNotFound));
    write_tiny_folder(folder.path(), tiny);
    std::filesystem::remove(folder / "model.safetensors");
    QVERIFY(refused(open_model(folder.path()), {"model.safetensors"}, ErrorCode::kNotFound));
    QVERIFY(refused(open_model(folder / "nothing"), {"nothing"}, ErrorCode::kNotFound));
  }

  void opens_indexed_files() {
    TempDir folder;
    TinyModel tiny;
    write_tiny_folder(folder.path(), tiny);
    auto whole = read_file(folder / "model.safetensors", Bytes{1 << 30});
    auto table = read_safetensors(whole.value(), "f");
    std::vector<TensorToWrite> parts[2];
    std::string map[2];
    size_t i = 0;
    for (const auto& [name, tensor] : table.value()) {
      parts[i % 2].push_back({name, tensor.type, tensor.shape, to_vector(tensor.bytes)});
      map[i % 2] += "\"" + name + "\":\"part-" + std::to_string(i % 2) + ".safetensors\",";
      ++i;
    }
    const auto write = [&](const std::string& name, ByteSpan bytes) {
      QVERIFY(write_file_durably(folder / name, bytes).ok());
    };
    write("part-0.safetensors", safetensors_bytes(parts[0]));
    write("part-1.safetensors", safetensors_bytes(parts[1]));
    std::filesystem::remove(folder / "model.safetensors");
    const auto index = [&](std::string entries) {
      entries.pop_back();
      write("model.safetensors.index.json",
            as_bytes("{\"metadata\":{},\"weight_map\":{" + entries + "}}"));
      return open_model(folder.path());
    };
    auto model = index(map[0] + map[1]);
    QVERIFY2(model.ok(), model.ok() ? "" : model.error().message.c_str());
    QCOMPARE(model.value().files.size(), size_t{2});

    QVERIFY(refused(index(map[0]), {"missing"}));
    QVERIFY(refused(index(map[0] + map[1] + "\"x\":\"part-1.safetensors\","),
                    {"weight_map", "x", "is not in"}));
    QVERIFY(refused(index(map[0] + map[1] + "\"x\":\"../etc/passwd\","),
                    {"weight_map", "x", "passwd"}));
    QVERIFY(refused(index(map[0] + map[1] + "\"x\":7,"), {"weight_map", "x"}));
    QVERIFY(refused(index(map[0] + map[1] + "\"x\":\"part-2.safetensors\","), {"part-2"}));
    std::string swapped = map[0] + map[1];
    swapped.replace(swapped.find("part-0"), 6, "part-1");
    QVERIFY(refused(index(swapped), {"weight_map", "is not in"}));
  }

  void opens_a_gguf() {
    for (const char* type : {"F32", "F16", "BF16", "Q8_0", "Q4_0"}) {
      for (const bool tied : {true, false}) {
        const ByteVector bytes = tiny_gguf({.vocabulary = 320, .tied = tied, .type = type}).bytes();
        auto model = model_of_gguf(bytes, "tiny.gguf");
        QVERIFY2(model.ok(), model.ok() ? "" : model.error().message.c_str());
        const ModelConfig& config = model.value().config;
        QVERIFY(config.interleaved && config.tied == tied);
        QVERIFY(config.bos == 1 && config.eos == std::vector<int32_t>{2});
        QCOMPARE(model.value().name, std::string("tiny"));
        QVERIFY(model.value().tokenizer.find("\"format\":\"gguf\"") != std::string::npos);
      }
    }
  }

  void quantises_a_value_once_for_all_that_read_it() {
    const auto count = [](const TinyModel& tiny, OpKind kind) {
      const ByteVector bytes = tiny_gguf(tiny).bytes();
      auto model = model_of_gguf(bytes, "tiny.gguf");
      size_t found = 0;
      for (const Op& op : model.value().fragments[1].graph.ops) found += op.kind == kind ? 1 : 0;
      return found;
    };
    QCOMPARE(count({.type = "F32"}, OpKind::kQuantize), size_t{0});
    QCOMPARE(count({.type = "Q8_0"}, OpKind::kQuantize),
             size_t{4});  // For q, k, v; o; gate, up; down.
    // 80 is no multiple of 32: the file keeps "down" as f16, and its input stays f32.
    QCOMPARE(count({.intermediate = 80, .type = "Q8_0", .down_type = "F16"}, OpKind::kQuantize),
             size_t{3});
    QCOMPARE(count({.type = "Q8_0"}, OpKind::kMatmul), size_t{7});
  }

  void refuses_a_gguf_that_it_would_run_wrongly() {
    const auto with = [](auto change, TinyModel tiny = {}) {
      GgufMaker maker = tiny_gguf(tiny);
      change(maker);
      const ByteVector bytes = maker.bytes();
      return model_of_gguf(bytes, "f.gguf");
    };
    constexpr auto kNo = ErrorCode::kUnsupported;
    QVERIFY(with([](GgufMaker&) {}).ok());
    QVERIFY(refused(with([](GgufMaker& m) { m.text("llama.rope.scaling.type", "ntk"); }),
                    {"rope.scaling.type", "ntk"}, kNo));
    QVERIFY(refused(with([](GgufMaker& m) { m.u32("llama.attention.sliding_window", 128); }),
                    {"sliding_window"}, kNo));
    QVERIFY(refused(with([](GgufMaker& m) { m.u32("llama.expert_count", 8); }),
                    {"expert_used_count", "missing"}));
    QVERIFY(refused(with([](GgufMaker& m) { m.u32("llama.expert_count", 1025); }),
                    {"expert_count", "1025"}, kNo));
    QVERIFY(refused(with([](GgufMaker& m) { m.f32("llama.logit_scale", 2.0f); }), {"logit_scale"},
                    kNo));
    QVERIFY(refused(with([](GgufMaker& m) { m.tensor(f32_tensor("rope_freqs.weight", {7})); }),
                    {"rope_freqs.weight", "8 pairs"}));
    QVERIFY(refused(with([](GgufMaker& m) { m.tensor(f32_tensor("blk.0.attn_q.bias", {64})); }),
                    {"blk.0.attn_q.bias"}, kNo));
    QVERIFY(refused(with([](GgufMaker& m) { m.u32("split.count", 2); }), {"split.count"}, kNo));
    QVERIFY(refused(with([](GgufMaker& m) { m.u32("llama.vocab_size", 95); }),
                    {"token_embd", "shape"}));
    QVERIFY(refused(with([](GgufMaker& m) { m.u32("tokenizer.ggml.bos_token_id", 96); }),
                    {"bos_token_id", "96"}));
    QVERIFY(with([](GgufMaker& m) {
              m.text("llama.rope.scaling.type", "linear");
              m.f32("llama.rope.scaling.factor", 4.0f);
            })
                .value()
                .config.rope.linear_factor == 4.0);
    QVERIFY(with([](GgufMaker& m) {
              m.text("llama.rope.scaling.type", "none");
              m.f32("llama.rope.scaling.factor", 4.0f);
            })
                .value()
                .config.rope.linear_factor == 1.0);
    QVERIFY(refused(with([](GgufMaker& m) {
                      m.text("tokenizer.ggml.model", "llama");
                      m.texts("tokenizer.ggml.tokens", {"a"});
                    }),
                    {"tokenizer.ggml.tokens", "1"}));
    QVERIFY(refused(with([](GgufMaker& m) {
                      m.text("tokenizer.ggml.model", "llama");
                      m.texts("tokenizer.ggml.tokens", std::vector<std::string>(96, "\xff"));
                    }),
                    {"tokenizer.ggml.tokens", "UTF-8"}, kNo));

    GgufMaker other;
    other.text("general.architecture", "bloom");
    const ByteVector bytes = other.bytes();
    QVERIFY(refused(model_of_gguf(bytes, "f.gguf"), {"general.architecture", "bloom"}, kNo));
    // Whole models with one lie each.
    QVERIFY(refused(with([](GgufMaker&) {}, {.heads = 3, .kv_heads = 2}), {"head_count_kv"}));
    QVERIFY(refused(with([](GgufMaker&) {}, {.head_dim = 15}), {"rope.dimension_count"}));
  }
};

QTEST_GUILESS_MAIN(ModelFilesTest)
#include "model_files_test.moc"
