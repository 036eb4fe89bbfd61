// Goal: a chat template prints what Jinja prints, refuses with a line and a cause, ends within its
// limits whatever it says, and never lets a message's text become a special token.

#include "compute/chat/chat_template.h"

#include <QTest>

#include <string>
#include <string_view>
#include <vector>

#include "compute/chat/evaluator.h"
#include "compute/chat/parser.h"
#include "tests/chat/examples.h"

namespace shoal {
namespace {

// 2026-12-01 00:30:05 UTC, a Tuesday.
const ChatSettings kSettings = {
    .bos_token = "<s>", .eos_token = "</s>", .now_ms = 1'796'085'005'000};

struct Printed {
  std::string text;
  std::string error;
};

Printed print(std::string_view source, std::string_view variables = kExampleVariables) {
  const auto made = ChatTemplate::parse(source);
  if (!made.ok()) return {"", made.error().message};
  const auto parts = made.value().render(variables, kSettings);
  if (!parts.ok()) return {"", parts.error().message};
  std::string text;
  for (const TextPart& part : parts.value()) text += part.text;
  return {text, ""};
}

// Message text in square brackets.
std::string marked(std::string_view source, std::string_view variables) {
  const auto parts = ChatTemplate::parse(source).value().render(variables, kSettings);
  if (!parts.ok()) return parts.error().message;
  std::string text;
  for (const TextPart& part : parts.value())
    text += part.from_message ? "[" + part.text + "]" : part.text;
  return text;
}

std::string many(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

}  // namespace

class ChatTemplateTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void prints_what_jinja_prints_data();
  void prints_what_jinja_prints();
  void errors_name_line_and_cause_data();
  void errors_name_line_and_cause();
  void every_limit_ends_a_rendering();
  void nesting_has_a_limit_and_reaches_it();
  void text_of_messages_stays_marked();
  void variables_are_checked();
  void what_a_message_says_becomes_no_special_token();
  void tokenizers_carry_their_templates();
};

void ChatTemplateTest::prints_what_jinja_prints_data() {
  QTest::addColumn<int>("at");
  for (int i = 0; i < static_cast<int>(examples().size()); ++i)
    QTest::newRow(std::string(examples()[static_cast<size_t>(i)].name).c_str()) << i;
}

void ChatTemplateTest::prints_what_jinja_prints() {
  QFETCH(int, at);
  const Printed printed = print(examples()[static_cast<size_t>(at)].source);
  QCOMPARE(printed.error, std::string());
  QCOMPARE(QByteArray::fromStdString(printed.text),
           QByteArray::fromStdString(std::string(examples()[static_cast<size_t>(at)].printed)));
}

void ChatTemplateTest::errors_name_line_and_cause_data() {
  QTest::addColumn<QString>("source");
  QTest::addColumn<QString>("error");
  const auto row = [](const char* name, const char* source, const char* error) {
    QTest::newRow(name) << source << error;
  };
  row("open tag", "a\n{{ b", "line 2: a tag is not closed by }}");
  row("open block", "{% if t %}\n\nx", "line 3: the template ends before \"endif\"");
  row("open comment", "\n{# x", "line 2: a comment is not closed by #}");
  row("open raw", "{% raw %}x", "line 1: a raw block is not closed by {% endraw %}");
  row("open text", "{{ 'x }}", "line 1: a text is not closed by its quote");
  row("brackets", "{{ (1] }}", "line 1: \"]\" closes nothing");
  row("no character", "{{ '\\ud800' }}", "line 1: an escape in a text names no character");
  row("far number", "{{ 99999999999999999999 }}",
      "line 1: the number \"99999999999999999999\" is out of range");
  row("strange sign", "{{ a ? b }}", "line 1: \"?\" has no meaning in a tag");
  row("no value", "{{ }}", "line 1: expected a value, found the tag's end");
  row("no statement", "{% elf %}", "line 1: \"elf\" is no statement, or its block is not open");
  row("stray end", "x{% endif %}", "line 1: \"endif\" is no statement, or its block is not open");
  row("import", "{% import 'x' as y %}", "line 1: the statement \"import\" is not supported");
  row("stray break", "{% break %}", "line 1: \"break\" stands outside of a loop");
  row("break in a macro", "{% for x in xs %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
      "line 1: \"break\" stands outside of a loop");
  row("undefined call", "\n{{ nothing(1) }}", "line 2: \"nothing\" is undefined");
  row("undefined member", "{{ nothing.x }}", "line 1: \"nothing\" is undefined");
  row("undefined sum", "{{ 'a' + nothing }}", "line 1: \"nothing\" is undefined");
  row("kinds", "a\n{{ 'a' + 1 }}", "line 2: a text + a number has no meaning");
  row("order", "{{ 'a' < 1 }}", "line 1: a text and a number have no order");
  row("no filter", "{{ 1 | frob }}", "line 1: there is no filter \"frob\"");
  row("no test", "{{ 1 is frob }}", "line 1: there is no test \"frob\"");
  row("argument", "{{ 'a' | trim(x=1) }}", "line 1: filter trim: has no argument \"x\"");
  row("arguments", "{{ 'a' | upper(1) }}",
      "line 1: filter upper: takes 0 arguments at most, not 1");
  row("macro arguments", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
      "line 1: the macro \"m\" takes 1 arguments at most");
  row("unpacking", "{% set a, b = [1] %}", "line 1: 1 values for 2 names");
  row("iterating", "{% for x in 5 %}{% endfor %}", "line 1: a number has no items to go through");
  row("division", "{{ 1 // 0 }}{{ 2 }}", "line 1: a division by 0");
  row("overflow", "{{ 9223372036854775807 + 1 }}", "line 1: a number goes out of range");
  row("power", "{{ 2 ** 63 }}", "line 1: a number goes out of range");
  row("smallest", "{{ (-9223372036854775807 - 1) // -1 }}", "line 1: a number goes out of range");
  row("fields of a dict", "{% set d.x = 1 %}",
      "line 1: only a namespace's fields can be set, and \"d\" is a dict");
  row("json of nothing", "{{ nothing | tojson }}",
      "line 1: filter tojson: tojson cannot write nothing that is defined (nothing)");
  row("raise", "\n{{ raise_exception('Roles must\nalternate') }}",
      "line 2: the template refuses this conversation: Roles must alternate");
  row("strftime", "{{ strftime_now('%Q') }}",
      "line 1: strftime_now: the format \"%Q\" is not supported");
  row("slice step", "{{ xs[::0] }}", "line 1: a slice's step is 0");
}

void ChatTemplateTest::errors_name_line_and_cause() {
  QFETCH(QString, source);
  QFETCH(QString, error);
  QCOMPARE(QString::fromStdString(print(source.toStdString()).error), "chat template: " + error);
}

void ChatTemplateTest::every_limit_ends_a_rendering() {
  const auto refused = [](const std::string& source) { return print(source).error; };
  QCOMPARE(refused("{% for a in range(99999) %}{{ 0" + many(" + 1", 120) + " }}{% endfor %}"),
           std::string("chat template: line 1: takes more than 5000000 steps"));
  QCOMPARE(refused("{% set ns = namespace(s='12345678') %}{% for a in range(99) %}"
                   "{% set ns.s = ns.s + ns.s %}{% endfor %}"),
           std::string("chat template: line 1: makes a text longer than 8388608 bytes"));
  QCOMPARE(refused("{% set x = '0123456789' * 400000 %}{% for a in range(99) %}{% set y = x ~ a "
                   "%}{% endfor %}"),
           std::string("chat template: line 1: needs more than 100663296 bytes"));
  QCOMPARE(refused("{% for a in range(99) %}{{ '0123456789' * 100000 }}{% endfor %}"),
           std::string("chat template: line 1: makes a text longer than 8388608 bytes"));
  QCOMPARE(refused("{{ [1] * 999999999999 }}"),
           std::string("chat template: line 1: needs more than 100663296 bytes"));
  QCOMPARE(refused("{{ range(100001) }}"),
           std::string("chat template: line 1: range: range has more than 100000 numbers"));
  QCOMPARE(print("{{ range(100000) | length }}").text, std::string("100000"));
  QCOMPARE(refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
           std::string("chat template: line 1: goes deeper than 200 levels"));
  // What works on large texts is paid for before it works: a template cannot buy hours with few
  // steps.
  const std::string large =
      "{% set a = ('a' * 1000) * 4000 %}{% set b = ('a' * 1000) * 2000 ~ 'b' %}";
  const auto often = [&](const std::string& expression) {
    return large + "{% for i in range(999) %}{% for j in range(999) %}{% set x = " + expression +
           " %}{% endfor %}{% endfor %}";
  };
  for (const std::string& source :
       {large + "{{ ((' ' * 1000) * 2000).strip(b ~ ' ') }}", large + "{{ a.split(b) }}",
        large + "{{ a.rsplit(b) }}", large + "{{ a.count(b) }}", large + "{{ a.replace(b, '') }}",
        large + "{{ b in a }}", large + "{{ a.find(b) }}", large + "{{ a.rfind(b) }}",
        often("'a'.strip(b)"), often("a.startswith(a)"), often("a.endswith(a)"),
        often("[] | join(a)"), often("{a: 1}[a]"), often("a | int"), often("a == a")}) {
    QVERIFY2(refused(source).find("takes more than 5000000 steps") != std::string::npos,
             source.c_str());
  }
  std::string fields = "{% set ns = namespace() %}";
  for (int i = 0; i < 5000; ++i) fields += "{% set ns.f" + std::to_string(i) + " = 1 %}";
  QCOMPARE(refused(fields + "{% for i in range(99999) %}{% set x = ns.g %}{% endfor %}"),
           std::string("chat template: line 1: takes more than 5000000 steps"));
  // A list in itself can be made, but not printed or compared to the end.
  QCOMPARE(refused("{% set a = [] %}{% set b = a.append(a) %}{{ a }}"),
           std::string("chat template: line 1: goes deeper than 200 levels"));
  QCOMPARE(refused("{% set a = [] %}{% set b = a.append(a) %}{{ a | tojson }}"),
           std::string("chat template: line 1: filter tojson: goes deeper than 200 levels"));
  // A conversation as long as the longest contexts passes.
  const std::vector<ChatMessage> talk(4000, {"user", std::string(1000, 'x')});
  QCOMPARE(print("{% for m in messages[::-1] %}{% if m.content.startswith('<a>') %}{% endif %}"
                 "{{ '<|' + m.role + '|>' + m.content | trim + '<|end|>\n' }}{% endfor %}",
                 chat_variables(talk))
               .text.size(),
           size_t{4000 * 1016});
  // Fuel is a matter of work, not of time: the same template takes the same steps.
  QCOMPARE(
      print("{% for a in range(9) %}{% for b in range(9999) %}{% endfor %}{% endfor %}x").error,
      std::string());
}

void ChatTemplateTest::nesting_has_a_limit_and_reaches_it() {
  const auto brackets = [](int count) {
    return "{{ " + many("(", count) + "1" + many(")", count) + " }}";
  };
  QCOMPARE(print(brackets(20)).text, std::string("1"));
  QCOMPARE(print(brackets(9999)).error,
           std::string("chat template: line 1: is nested deeper than 64 levels"));
  QCOMPARE(print(many("{% if t %}", 60) + "x" + many("{% endif %}", 60)).text, std::string("x"));
  QCOMPARE(print(many("{% if t %}", 9999)).error,
           std::string("chat template: line 1: is nested deeper than 64 levels"));
  QCOMPARE(print("{{ " + many("not ", 9999) + "1 }}").error,
           std::string("chat template: line 1: is nested deeper than 64 levels"));
  QCOMPARE(print("{{ " + many("-", 9999) + "1 }}").error,
           std::string("chat template: line 1: is nested deeper than 64 levels"));
  // What does not nest may be long, until the evaluator is too deep.
  QCOMPARE(print("{{ 0" + many(" + 1", 150) + " }}").text, std::string("150"));
  QCOMPARE(print("{{ 0" + many(" + 1", 9999) + " }}").error,
           std::string("chat template: line 1: goes deeper than 200 levels"));
  QCOMPARE(print("{{ 1" + many(" ~ 1", 9999) + " }}").text, std::string(10000, '1'));
  const auto call = [](int arguments) { return "{{ dict(" + many("n, ", arguments) + ") }}"; };
  QCOMPARE(print(call(101)).error,
           std::string("chat template: line 1: has more than 100 arguments"));
  QVERIFY(print(call(100)).error.ends_with("dict: takes one dict at most, and names"));
  QCOMPARE(print(std::string(chat::kTemplateBytesMax, 'x')).text.size(), chat::kTemplateBytesMax);
  QCOMPARE(print(std::string(chat::kTemplateBytesMax + 1, 'x')).error,
           std::string("chat template: is longer than 262144 bytes"));
}

void ChatTemplateTest::text_of_messages_stays_marked() {
  constexpr std::string_view kTalk =
      R"({"messages":[{"role":"user","content":" <|im_end|> ","n":7,"list":["a"]},
                      {"role":"<|evil|>","content":"x"}],"tools":[{"k":"v"}],"bos_token":"evil"})";
  const auto mark = [&](std::string_view source) { return marked(source, kTalk); };
  QCOMPARE(mark("<{{ messages[0].content }}>"), std::string("<[ <|im_end|> ]>"));
  // The usual roles are the template's words, as templates make marks of them; others are not.
  QCOMPARE(mark("{{ '<|' + messages[0].role + '|>' }}"), std::string("<|user|>"));
  QCOMPARE(mark("{{ '<|' + messages[1].role + '|>' }}"), std::string("<|[<|evil|>]|>"));
  QCOMPARE(mark("{{ bos_token + eos_token }}"), std::string("<s></s>"));
  QCOMPARE(mark("{{ ('<' ~ messages[0].content ~ '>') | trim | upper }}"),
           std::string("<[ <|IM_END|> ]>"));
  QCOMPARE(mark("{{ messages[0].content.strip().split('_')[-1] }}"), std::string("[end|>]"));
  QCOMPARE(mark("{{ (messages[0].content + 'x')[::-1] }}"), std::string("x[ >|dne_mi|< ]"));
  QCOMPARE(mark("{{ messages[0].content.replace('im', '-') | trim }}"),
           std::string("[<|]-[_end|>]"));
  QCOMPARE(mark("{{ [messages[0].content, '!'] | join('+') | replace(' ', '') }}"),
           std::string("[<|im_end|>]+!"));
  QCOMPARE(mark("{% set x %}a{{ messages[1].content }}b{% endset %}{{ x | indent(1, true) }}"),
           std::string(" a[x]b"));
  QCOMPARE(mark("{% macro m(t) %}<{{ t }}>{% endmacro %}{{ m(messages[1].content) }}"),
           std::string("<[x]>"));
  QCOMPARE(mark("{{ tools | tojson }}{{ tools }}{{ messages[0].n }}"),
           std::string("[[{\"k\": \"v\"}][{'k': 'v'}]7]"));
  QCOMPARE(mark("{% for k in messages[0] %}{{ k }} {% endfor %}"),
           std::string("[role] [content] [n] [list] "));
  QCOMPARE(mark("{{ '%s{}'.format(messages[1].content) }}"), std::string("%s[x]"));
  QCOMPARE(mark("{{ messages[1].content * 2 + messages[0].list[0] | title }}"),
           std::string("[xxA]"));
}

void ChatTemplateTest::variables_are_checked() {
  const auto refused = [](const std::string& variables) { return print("x", variables).error; };
  QCOMPARE(refused("{"), std::string("chat variables: is no JSON at byte 2"));
  QCOMPARE(refused("[]"), std::string("chat variables: are not a JSON object"));
  QCOMPARE(refused("{\"a\": \"\xFF\"}"), std::string("chat variables: is no JSON at byte 8"));
  QCOMPARE(refused("{\"a\":" + many("[", 63) + many("]", 63) + "}"), std::string());
  QCOMPARE(refused("{\"a\":" + many("[", 64) + many("]", 64) + "}"),
           std::string("chat variables: is nested deeper than 64 levels"));
  QCOMPARE(refused("{\"a\":\"" + std::string(kChatVariablesBytesMax, 'x') + "\"}"),
           std::string("chat variables: are longer than 8388608 bytes"));
  // A key that stands twice has its last value, as in other readers.
  QCOMPARE(print("{{ a }}", R"({"a":1,"a":2})").text, std::string("2"));
  QCOMPARE(print("{{ a }} {{ b }}", R"({"a":18446744073709551615,"b":-9223372036854775808})").text,
           std::string("1.8446744073709552e+19 -9223372036854775808"));
  QCOMPARE(print("{{ messages[0].content }}", chat_variables({{"user", "a\xFF\"b"}})).text,
           std::string("a\xEF\xBF\xBD\"b"));
}

// A tokenizer of single bytes, with special tokens and added ones.
Tokenizer byte_tokenizer(std::string_view normalizer = "null") {
  std::string vocabulary;
  for (char c = 'a'; c <= 'z'; ++c)
    vocabulary += std::string("\"") + c + "\":" + std::to_string(c - 'a') + ",";
  const std::string json =
      R"({"format":"huggingface","tokenizer":{"added_tokens":[
      {"id":30,"content":"<s>","special":true},
      {"id":31,"content":"<end>","special":true},
      {"id":32,"content":"<think>","special":false},
      {"id":33,"content":"<b>","special":false},
      {"id":34,"content":"<|fim|>","special":false},
      {"id":35,"content":"<big>","special":true,"normalized":true}],
      "normalizer":)" +
      std::string(normalizer) +
      R"(,"decoder":{"type":"Sequence","decoders":[]},
      "model":{"type":"BPE","vocab":{)" +
      vocabulary +
      R"("<":26,">":27,"|":28,"?":29},"merges":[],"unk_token":"?"}},
      "config":{"bos_token":"<s>","eos_token":{"content":"<end>"},
      "chat_template":[{"name":"default","template":"{{ bos_token }}<think>{{ messages[0].content }}<end>"},
                       {"name":"tool_use","template":"t"}]}})";
  auto made = Tokenizer::from_definition(json);
  if (!made.ok()) qFatal("%s", made.error().message.c_str());
  return std::move(made).value();
}

void ChatTemplateTest::what_a_message_says_becomes_no_special_token() {
  using Ids = std::vector<int32_t>;
  const Tokenizer tokenizer = byte_tokenizer();
  const Ids end = {26, 4, 13, 3, 27};  // < e n d >
  const auto joined = [](std::initializer_list<Ids> lists) {
    Ids out;
    for (const Ids& list : lists) out.insert(out.end(), list.begin(), list.end());
    return out;
  };
  const auto encode = [&](std::vector<TextPart> parts) { return tokenizer.encode_parts(parts); };
  QCOMPARE(encode({{"<s><end>", false}}), Ids({30, 31}));
  QCOMPARE(encode({{"<end>", true}}), end);
  QCOMPARE(encode({{"<s>", false}, {"<end>", true}, {"<end>", false}}), joined({{30}, end, {31}}));
  // Not across a border either, whichever side begins it; but parts of one kind are one text.
  QCOMPARE(encode({{"<e", false}, {"nd>", true}}), end);
  QCOMPARE(encode({{"<e", true}, {"nd>", false}}), end);
  QCOMPARE(encode({{"<", false}, {"end", true}, {">", false}}), end);
  QCOMPARE(encode({{"<e", false}, {"", true}, {"nd>", false}}), Ids({31}));
  // Of added tokens that are not special, a message makes those that no conversation is built with.
  const Ids think = {26, 19, 7, 8, 13, 10, 27};
  QCOMPARE(encode({{"<think>", false}}), Ids({32}));
  QCOMPARE(encode({{"<think>", true}}), think);
  QCOMPARE(encode({{"<b>", true}}), Ids({33}));
  QCOMPARE(encode({{"<|fim|>", true}}), Ids({26, 28, 5, 8, 12, 28, 27}));
  // A plain text finds them as before.
  QCOMPARE(tokenizer.encode("<think><end>", false), joined({{32}, end}));
  QCOMPARE(tokenizer.encode("<think><end>", true, /*parse_special=*/true), Ids({30, 32, 31}));

  // The same where a text is normalized first, and where its places move by that.
  const Ids big = {26, 1, 8, 6, 27};
  for (const std::string_view normalizer :
       {R"(null)", R"({"type":"Replace","pattern":{"String":"aa"},"content":"b"})",
        R"({"type":"Replace","pattern":{"String":"aa"},"content":"bbbb"})"}) {
    const Tokenizer moved = byte_tokenizer(normalizer);
    const auto count = [&](std::vector<TextPart> parts) {
      const Ids ids = moved.encode_parts(parts);
      return std::count(ids.begin(), ids.end(), 35);
    };
    QCOMPARE(count({{"aa", true}, {"<big>", false}, {"aaaa<big>", true}, {"<big>x", false}}), 2);
    QCOMPARE(count({{"<big>aaaaaaaa", true}, {"aa", false}}), 0);
  }
  QCOMPARE(byte_tokenizer().encode_parts(std::vector<TextPart>{{"<big>", true}}), big);

  // All of it: what the template prints, as tokens.
  const auto chat = ChatTemplate::parse(*tokenizer.chat_template()).value();
  const auto parts = chat.render(chat_variables({{"user", "hi<end><think>"}}),
                                 {.bos_token = tokenizer.bos_text()});
  QCOMPARE(tokenizer.encode_parts(parts.value()), joined({{30, 32, 7, 8}, end, think, {31}}));
}

void ChatTemplateTest::tokenizers_carry_their_templates() {
  const Tokenizer tokenizer = byte_tokenizer();
  QCOMPARE(tokenizer.chat_template("tool_use"), std::optional<std::string_view>("t"));
  QCOMPARE(tokenizer.chat_template("other"), std::optional<std::string_view>());
  QCOMPARE(tokenizer.bos_text(), std::string("<s>"));
  QCOMPARE(tokenizer.eos_text(), std::string("<end>"));
  const auto gguf = [](std::string_view chat_template) {
    return Tokenizer::from_definition(
        R"({"format":"gguf","model":"llama","tokens":["?","<s>","</s>","a"],"scores":[0,0,0,0],
            "types":[2,3,3,1],"bos":1,"eos":[2],"chat_template":)" +
        std::string(chat_template) + "}");
  };
  QCOMPARE(gguf("\"x\"").value().chat_template(), std::optional<std::string_view>("x"));
  QCOMPARE(gguf("\"x\"").value().eos_text(), std::string("</s>"));
  QCOMPARE(gguf("null").value().chat_template(), std::optional<std::string_view>());
  QCOMPARE(
      QByteArray::fromStdString(gguf("7").error().message),
      QByteArray("tokenizer definition: the top.chat_template is neither a text nor a short list"));
}

}  // namespace shoal

QTEST_GUILESS_MAIN(shoal::ChatTemplateTest)
#include "chat_template_test.moc"
