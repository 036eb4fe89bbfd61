// Goal: no chat template does harm, whatever its bytes: it ends within its limits, what it prints
// is valid UTF-8 in parts of turns, and a message's text is never taken for the template's. The
// first byte chooses: a template from the bytes, or the words of a message for a good template.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "compute/chat/chat_template.h"
#include "compute/tokenizer/unicode.h"

namespace shoal {
namespace {

constexpr std::string_view kVariables =
    R"({"messages":[{"role":"system","content":"Be kind"},{"role":"user","content":"QQQQ"},
    {"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":{"a":[1,2.5,null]}}}]},
    {"role":"tool","content":"QQQQ é🙂"}],"tools":[{"type":"function","function":{"name":"f"}}],
    "add_generation_prompt":true,"xs":[3,1,2],"n":7})";

// Many constructs in a few lines, on what a message says.
constexpr std::string_view kGood =
    R"({%- macro turn(role, text) -%}<|{{ role }}|>{{ text }}<|end|>{%- endmacro -%}
    {%- set ns = namespace(last='') -%}
    {%- for m in messages[::-1] -%}
      {%- if m.content is string and '</think>' in m.content -%}
        {%- set c = m.content.split('</think>')[-1].lstrip('\n') -%}
      {%- else -%}{%- set c = m.content | default('', true) -%}{%- endif -%}
      {{- turn(m.role, c | trim) }}{{ c[1:-1] ~ c | upper ~ c | replace('a', '<|a|>') }}
      {{- c | tojson }}{{ [c] }}{{ c | indent(2) }}{{ c.title() }}{{ c | length }}
      {%- set ns.last = c -%}
    {%- endfor -%}{{ ns.last.splitlines() | map('capitalize') | join('+') | list | unique | sort | join }})";

void use(const std::vector<TextPart>& parts) {
  bool first = true, last_is_message = false;
  for (const TextPart& part : parts) {
    SHOAL_CHECK(!part.text.empty());
    SHOAL_CHECK(valid_utf8(part.text) == part.text);
    SHOAL_CHECK(first || part.from_message != last_is_message);
    last_is_message = part.from_message;
    first = false;
  }
}

}  // namespace
}  // namespace shoal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shoal;
  static const ChatTemplate good = ChatTemplate::parse(kGood).value();
  const ChatSettings settings = {
      .bos_token = "<s>", .eos_token = "</s>", .now_ms = 1'796'085'005'000};
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 == 3) {
    const auto parts = good.render(chat_variables({{"user", std::string(rest)}}), settings);
    if (!parts.ok()) {
      SHOAL_CHECK(parts.error().code == ErrorCode::kNoSpace);
      return 0;
    }
    use(parts.value());
    return 0;
  }
  if (data[0] % 4 == 2) {
    // Variables of any shape.
    const auto parts = good.render(rest, settings);
    if (parts.ok()) use(parts.value());
    return 0;
  }
  const auto made = ChatTemplate::parse(rest);
  if (!made.ok()) {
    SHOAL_CHECK(made.error().message.starts_with("chat template: "));
    return 0;
  }
  const auto parts = made.value().render(kVariables, settings);
  if (!parts.ok()) {
    SHOAL_CHECK(parts.error().message.starts_with("chat template: line "));
    return 0;
  }
  use(parts.value());
  // Its own bytes hold no QQQQ in most inputs; then all that the output has is a message's.
  if (rest.find("QQQQ") != std::string_view::npos || rest.find('\\') != std::string_view::npos ||
      rest.find('Q') != std::string_view::npos || rest.find('q') != std::string_view::npos)
    return 0;
  for (const TextPart& part : parts.value())
    SHOAL_CHECK(part.from_message || part.text.find("QQQQ") == std::string::npos);
  return 0;
}
