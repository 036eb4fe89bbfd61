#include "compute/run/rival.h"

#include "base/host.h"
#include "compute/models/json_text.h"

namespace shoal::compute {
namespace {

constexpr Bytes kKeptBytes{1 << 20};  // Its last line is among them.
constexpr Bytes kPrintedBytesMax{1 << 30};
constexpr double kRateMin = 1e-6, kRateMax = 1e12;  // Tokens a second.

Error wrong(const std::string& what) {
  return {ErrorCode::kInvalid, "the rival's command " + what};
}

}  // namespace

Result<RivalRates> read_rival(const std::string& output) {
  const size_t end = output.find_last_not_of(" \r\n\t");
  if (end == std::string::npos) return wrong("printed nothing");
  const size_t newline = output.find_last_of('\n', end);
  const size_t begin = newline == std::string::npos ? 0 : newline + 1;
  SHOAL_TRY_ASSIGN(json,
                   parse_json(output.substr(begin, end + 1 - begin), "the rival's last line"));
  SHOAL_TRY_ASSIGN(top, JsonFields::of(json, "the rival's last line"));
  JsonFields fields = top;
  if (top.has("model")) {
    SHOAL_TRY_ASSIGN(model, top.object("model"));
    fields = model;
  }
  RivalRates rates;
  SHOAL_TRY_ASSIGN(prefill, fields.number("prefill_tokens_per_second", kRateMin, kRateMax));
  SHOAL_TRY_ASSIGN(decode, fields.number("decode_tokens_per_second", kRateMin, kRateMax));
  rates.prefill_tokens_per_second = prefill;
  rates.decode_tokens_per_second = decode;
  return rates;
}

Result<RivalRates> run_rival(const std::string& command) {
  const auto output = shell_output(command, kKeptBytes, kPrintedBytesMax);
  if (!output.ok()) return wrong(output.error().message + ": " + command);
  return read_rival(output.value());
}

}  // namespace shoal::compute
