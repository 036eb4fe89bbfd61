#include "compute/run/rival.h"

#include <cstdio>
#include <memory>

#include "compute/models/json_text.h"

namespace shoal::compute {
namespace {

constexpr size_t kOutputBytesMax = size_t{1} << 20;
constexpr double kRateMax = 1e12;

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
  SHOAL_TRY_ASSIGN(prefill, fields.number("prefill_tokens_per_second", 0, kRateMax));
  SHOAL_TRY_ASSIGN(decode, fields.number("decode_tokens_per_second", 0, kRateMax));
  if (prefill <= 0 || decode <= 0) return wrong("printed a rate of 0");
  rates.prefill_tokens_per_second = prefill;
  rates.decode_tokens_per_second = decode;
  return rates;
}

Result<RivalRates> run_rival(const std::string& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return wrong("cannot be started");
  std::string output;
  char buffer[4096];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) {
    if (output.size() < kOutputBytesMax) output.append(buffer, count);
  }
  const int status = ::pclose(pipe);
  if (status != 0) return wrong("failed: " + command);
  if (output.size() >= kOutputBytesMax) return wrong("printed more than a megabyte");
  return read_rival(output);
}

}  // namespace shoal::compute
