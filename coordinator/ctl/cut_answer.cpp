#include "coordinator/ctl/cut_answer.h"

#include <algorithm>

#include "base/bytes.h"

namespace shoal::ctl {
namespace {

// In JSON a quote inside a text is escaped: this can only be the list itself.
constexpr std::string_view kKeysMark = "\"keys\":[";

std::span<std::byte> last_line(std::span<std::byte> output) {
  while (!output.empty() && output.back() == std::byte{'\n'})
    output = output.first(output.size() - 1);
  const size_t line = as_text(output).rfind('\n');
  return line == std::string_view::npos ? output : output.subspan(line + 1);
}

// Takes the list's texts out of the line, from its first on.
Result<std::vector<SecretBytes>> take_keys(std::span<std::byte> list) {
  const Error odd{ErrorCode::kCorrupt, "shoal-run cut answered keys that shoalctl cannot read"};
  constexpr size_t kDigits = 2 * kKeyBytes;
  std::vector<SecretBytes> keys;
  if (!list.empty() && list[0] == std::byte{']'}) return keys;
  while (true) {
    // "<64 hex digits>" and what follows it.
    if (list.size() < kDigits + 3 || list[0] != std::byte{'"'} ||
        list[kDigits + 1] != std::byte{'"'}) {
      return odd;
    }
    const std::span<std::byte> digits = list.subspan(1, kDigits);
    Result<ByteVector> key = hex_decode(as_text(digits));
    std::ranges::fill(digits, std::byte{'0'});
    if (!key.ok()) return odd;
    keys.emplace_back(ByteSpan(key.value()));
    wipe(key.value());
    const std::byte after = list[kDigits + 2];
    list = list.subspan(kDigits + 3);
    if (after == std::byte{']'}) return keys;
    if (after != std::byte{','}) return odd;
  }
}

}  // namespace

Result<CutAnswer> read_cut_answer(std::span<std::byte> output) {
  const std::span<std::byte> line = last_line(output);
  CutAnswer answer;
  // Before the parser sees the line: it would leave copies of the keys in freed memory.
  if (const size_t mark = as_text(line).find(kKeysMark); mark != std::string_view::npos) {
    SHOAL_TRY_ASSIGN(keys, take_keys(line.subspan(mark + kKeysMark.size())));
    answer.keys = std::move(keys);
  }
  answer.json = nlohmann::json::parse(as_text(line), nullptr, /*allow_exceptions=*/false);
  if (answer.json.is_discarded()) answer.json = nullptr;
  return answer;
}

}  // namespace shoal::ctl
