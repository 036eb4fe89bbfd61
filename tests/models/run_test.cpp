// Goal: shoal-run answers scripts with one JSON object, prints what `shoalctl model publish` needs,
// and says in one line what it cannot do.

#include <QProcess>
#include <QTest>

#include <algorithm>

#include "base/files.h"
#include "compute/models/json_text.h"
#include "compute/run/rival.h"
#include "compute/shards/cut.h"
#include "compute/shards/shard.h"
#include "compute/tokenizer/tokenizer.h"
#include "tests/models/model_maker.h"

using namespace shoal;
using namespace shoal::compute;

namespace {

struct Ran {
  int status = -1;
  std::string out, error;

  Json last_line() const {
    std::string_view text = out;
    while (text.ends_with('\n')) text.remove_suffix(1);
    const size_t at = text.rfind('\n');
    return Json::parse(at == std::string_view::npos ? text : text.substr(at + 1), nullptr, false);
  }
};

Ran run(const std::vector<std::string>& arguments) {
  QProcess process;
  QStringList list;
  for (const std::string& argument : arguments) list << QString::fromStdString(argument);
  process.start(SHOAL_BIN_DIR "/shoal-run", list);
  if (!process.waitForFinished(60'000)) qFatal("shoal-run does not end");
  return {process.exitCode(), process.readAllStandardOutput().toStdString(),
          process.readAllStandardError().toStdString()};
}

const std::string kDemo = SHOAL_SOURCE_DIR "/models/demo/shoal-demo-q8_0.gguf";

}  // namespace

class RunTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void generate_answers_with_one_object() {
    const Ran json = run({"generate", "--model", kDemo, "--prompt", "And the", "--max-tokens", "8",
                          "--temperature", "0", "--device", "cpu", "--threads", "1", "--chunk", "2",
                          "--cut", "2,5", "--logits", "--json"});
    QCOMPARE(json.status, 0);
    const Json object = json.last_line();
    QCOMPARE(object["ids"].size(), size_t{8});
    QCOMPARE(object["last_logits"].size(), size_t{2048});
    QCOMPARE(object["digest"].get<std::string>().size(), size_t{64});
    QVERIFY(object["prefill_tokens_per_second"].get<double>() > 0);
    QVERIFY(object["decode_tokens_per_second"].get<double>() > 0);
    QCOMPARE(object["prompt_ids"][0].get<int>(), 0);

    const Ran text = run({"generate", "--model", kDemo, "--prompt", "And the", "--max-tokens", "8",
                          "--temperature", "0"});
    QCOMPARE(text.status, 0);
    QCOMPARE(text.out, object["text"].get<std::string>() + "\n");
    // The same seed draws the same text, another one another.
    const auto seeded = [](const char* seed) {
      return run({"generate", "--model", kDemo, "--prompt", "And", "--max-tokens", "24", "--seed",
                  seed})
          .out;
    };
    QVERIFY(seeded("5") == seeded("5") && seeded("5") != seeded("6"));
  }

  // What the user says stays text, and what the template says becomes marks; from both kinds of
  // file, and through the manifest that hosts and coordinators are given.
  void chat_puts_what_a_user_says_into_the_models_template() {
    TempDir folder;
    GgufMaker maker = tiny_gguf({.vocabulary = 320});
    maker.text("tokenizer.chat_template",
               "{{ bos_token }}{% for m in messages %}{{ m.role[0] }}{{ m.content }}{{ eos_token }}"
               "{% endfor %}");
    const std::string file = (folder / "chat.gguf").string();
    QVERIFY(write_file_durably(file, maker.bytes()).ok());
    const std::vector<std::string> generate = {
        "generate", "--model", file, "--max-tokens", "1", "--json", "--temperature", "0"};
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), generate.begin(), generate.end());
      return run(more);
    };
    const Ran ran = with({"--chat", "<s>", "--system", "!"});
    QVERIFY2(ran.status == 0, ran.error.c_str());
    // Bytes are their value and 3; the space in front is the tokenizer's own.
    const auto byte = [](int c) { return c + 3; };
    const Json ids = ran.last_line()["prompt_ids"];
    QCOMPARE(ids.front().get<int>(), 1);
    QCOMPARE(ids.back().get<int>(), 2);
    QCOMPARE(std::count(ids.begin(), ids.end(), 1), 1);
    QCOMPARE(std::count(ids.begin(), ids.end(), 2), 2);
    for (const char c : std::string("s!u<>"))
      QVERIFY2(std::count(ids.begin(), ids.end(), byte(c)) > 0, ids.dump().c_str());

    QVERIFY(with({"--chat", "x", "--prompt", "y"}).status != 0);
    QVERIFY(with({"--system", "x", "--prompt", "y"}).status != 0);
    const Ran none = run({"generate", "--model", kDemo, "--chat", "x"});
    QVERIFY(none.status != 0);
    QVERIFY2(none.error.find("the model has no chat template") != std::string::npos,
             none.error.c_str());

    const Ran cut = run({"cut", "--model", file, "--out", (folder / "shards").string()});
    QVERIFY2(cut.status == 0, cut.error.c_str());
    const auto manifest = read_manifest(cut.last_line()["manifest"].dump());
    QVERIFY2(manifest.ok(), manifest.ok() ? "" : manifest.error().message.c_str());
    const auto tokenizer = Tokenizer::from_definition(manifest.value().tokenizer);
    QVERIFY(tokenizer.ok() && tokenizer.value().chat_template().has_value());
  }

  void cut_prints_manifest_and_keys_and_writes_no_key() {
    TempDir folder;
    const Ran cut =
        run({"cut", "--model", kDemo, "--out", (folder / "shards").string(), "--name", "demo"});
    QVERIFY2(cut.status == 0, cut.error.c_str());
    const Json object = cut.last_line();
    auto manifest = read_manifest(object["manifest"].dump());
    QVERIFY2(manifest.ok(), manifest.ok() ? "" : manifest.error().message.c_str());
    QCOMPARE(manifest.value().name, std::string("demo"));
    QCOMPARE(object["keys"].size(), manifest.value().shards.size());
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "shards")) {
      ++files;
      auto bytes = read_file(entry.path(), Bytes{1 << 26});
      for (const Json& key : object["keys"]) {
        const auto plain = hex_decode(key.get<std::string>()).value();
        QVERIFY(std::ranges::search(bytes.value(), plain).empty());
        QVERIFY(std::ranges::search(bytes.value(), as_bytes(key.get<std::string>())).empty());
      }
    }
    QCOMPARE(files, manifest.value().shards.size());
    for (size_t i = 0; i < files; ++i) {
      const ShardInfo& info = manifest.value().shards[i];
      auto sealed =
          read_file(folder / "shards" / shard_file_name(info.digest), Bytes{info.sealed_bytes});
      const auto key = hex_decode(object["keys"][i].get<std::string>()).value();
      ShardOpener opener(SecretBytes(key), info.digest, static_cast<uint64_t>(info.sealed_bytes));
      QVERIFY(opener.feed(sealed.value()).ok() && opener.finish().ok());
    }
  }

  void devices_and_selftest_name_the_cpu() {
    const Json devices = run({"devices", "--json"}).last_line()["devices"];
    QVERIFY(!devices.empty() && devices[0]["selector"] == "cpu");
    const Ran test = run({"selftest", "--device", "cpu", "--json"});
    QCOMPARE(test.status, 0);
    QVERIFY(test.last_line()["exact"].get<bool>() && test.last_line()["samples"].get<int>() > 10);
  }

  void perplexity_scores_a_file() {
    const Json object =
        run({"perplexity", "--model", kDemo, "--file", SHOAL_SOURCE_DIR "/models/demo/heldout.txt",
             "--windows", "2", "--json"})
            .last_line();
    QCOMPARE(object["scored_tokens"].get<int>(), 510);
    QCOMPARE(object["window_nll"].size(), size_t{2});
    QVERIFY(object["perplexity"].get<double>() > 5 && object["perplexity"].get<double>() < 60);
  }

  void bench_measures_every_length_and_batch_beside_a_rival() {
    const std::string rival =
        R"(seq 300000; echo noise; echo '{"prefill_tokens_per_second": 0.5, "decode_tokens_per_second": 0.25}')";
    const Json object =
        run({"bench", "--model", kDemo, "--tokens", "8,24", "--batch", "1,3", "--decode", "4",
             "--chunk", "16", "--rounds", "2", "--threads", "1", "--vs", rival, "--json"})
            .last_line();
    QVERIFY(object["ceilings"]["read_bytes_per_second"].get<double>() > 0);
    QVERIFY(object["step_overhead_seconds"].get<double>() > 0);
    const Json& model = object["model"];
    QCOMPARE(model["runs"].size(), size_t{4});
    QCOMPARE(model["runs"][3]["prompt_tokens"].get<int>(), 24);
    QCOMPARE(model["runs"][3]["batch"].get<int>(), 3);
    for (const Json& rates : model["runs"]) {
      for (const auto& [name, value] : rates.items())
        QVERIFY2(value.get<double>() > 0, name.c_str());
    }
    QCOMPARE(object["vs"]["prefill_ratio"].get<double>(),
             model["prefill_tokens_per_second"].get<double>() / 0.5);
    QCOMPARE(object["vs"]["decode_ratio"].get<double>(),
             model["decode_tokens_per_second"].get<double>() / 0.25);
  }

  void rivals_are_read_from_their_last_line() {
    const auto flat = read_rival(
        "loading\n{\"prefill_tokens_per_second\":3,\"decode_tokens_per_second\":2}\n \n");
    QVERIFY(flat.ok() && flat.value().prefill_tokens_per_second == 3);
    const auto ours =
        read_rival(R"({"model":{"prefill_tokens_per_second":7,"decode_tokens_per_second":5}})");
    QVERIFY(ours.ok() && ours.value().decode_tokens_per_second == 5);
    for (const char* wrong :
         {"", "\n", "no json", "[1]", "{}", R"({"prefill_tokens_per_second":1})",
          R"({"prefill_tokens_per_second":0,"decode_tokens_per_second":1})",
          R"({"prefill_tokens_per_second":1,"decode_tokens_per_second":1e-320})",
          R"({"prefill_tokens_per_second":"9","decode_tokens_per_second":1})", R"({"model":3})"}) {
      QVERIFY2(!read_rival(wrong).ok(), wrong);
    }
  }

  void errors_are_one_line_and_a_status() {
    TempDir folder;
    const std::string broken = (folder / "broken.gguf").string();
    QVERIFY(write_file_durably(broken, as_bytes("GGUF of a kind")).ok());
    struct Case {
      std::vector<std::string> arguments;
      int status;
      std::string_view words;
    };
    const Case cases[] = {
        {{"generate", "--model", (folder / "none").string(), "--prompt", "x"}, 3, "none"},
        {{"generate", "--model", broken, "--prompt", "x"}, 1, "broken.gguf: version"},
        {{"generate", "--model", kDemo, "--prompt", "x", "--device", "tpu"}, 3, "tpu"},
        {{"generate", "--model", kDemo, "--prompt", "x", "--cut", "99"}, 2, "cut 99"},
        {{"generate", "--model", kDemo, "--prompt", "x", "--temperature", "-1"}, 2, "temperature"},
        {{"generate", "--prompt", "x"}, 2, "--model"},
        {{"generate", "--model", kDemo, "--quantize", "q3_k"}, 2, "q3_k"},
        {{"generate", "--model", kDemo, "--quantize", "q4_0"}, 2, "whole blocks"},
        {{"cut", "--model", kDemo, "--out", "/proc/nowhere"}, 1, "/proc/nowhere"},
        {{"perplexity", "--model", kDemo, "--file", (folder / "none").string()}, 3, "none"},
        {{"bench", "--vs", "true"}, 2, "--model"},
        {{"bench", "--quantize", "q8_0"}, 2, "--model"},
        {{"bench", "--model", kDemo, "--vs", "false", "--tokens", "8"}, 2, "exit code 1: false"},
        {{"bench", "--model", kDemo, "--vs", "kill -9 $$", "--tokens", "8"}, 2, "signal 9"},
        {{"bench", "--model", kDemo, "--tokens", "100000"}, 2, "context"},
        {{"fly"}, 2, ""},
    };
    for (Case c : cases) {
      const Ran plain = run(c.arguments);
      QVERIFY2(plain.status != 0, c.words.data());
      QVERIFY2(plain.error.find(c.words) != std::string::npos, plain.error.c_str());
      c.arguments.push_back("--json");
      const Ran json = run(c.arguments);
      QCOMPARE(json.status, plain.status);
      const Json error = json.last_line()["error"];
      QVERIFY2(error["message"].get<std::string>().find(c.words) != std::string::npos,
               json.out.c_str());
      QVERIFY2(plain.status == c.status, (plain.error + std::to_string(plain.status)).c_str());
    }
  }
};

QTEST_GUILESS_MAIN(RunTest)
#include "run_test.moc"
