#include "compute/sample_check.h"

#include <cstdio>
#include <memory>

namespace shoal::compute {
namespace {

std::string hex(uint32_t word) {
  char text[11];
  std::snprintf(text, sizeof text, "0x%08x", word);
  return text;
}

// The first element of 4 bytes (or 2, at an odd end) that differs.
std::string first_difference(ByteSpan got, ByteSpan wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (got[i] == wanted[i]) continue;
    const size_t word = i / 4 * 4;
    uint32_t a = 0, b = 0;
    std::memcpy(&a, got.data() + word, std::min<size_t>(4, got.size() - word));
    std::memcpy(&b, wanted.data() + word, std::min<size_t>(4, wanted.size() - word));
    return "word " + std::to_string(word / 4) + " is " + hex(a) + ", reference " + hex(b);
  }
  return "";
}

Result<std::unique_ptr<Buffer>> make_buffer(Device& device, const SampleBuffer& data) {
  if (data.weight) return device.upload_weight(data.dtype, data.rows, data.columns, data.bytes);
  SHOAL_TRY_ASSIGN(buffer, device.allocate(static_cast<int64_t>(data.bytes.size())));
  SHOAL_TRY(device.upload(*buffer, 0, data.bytes));
  return buffer;
}

}  // namespace

Result<std::string> compare_sample(Device& device, const OpSpec& spec, const OpSample& sample) {
  std::vector<ByteSpan> inputs;
  for (const SampleBuffer& input : sample.inputs) inputs.push_back(input.bytes);
  ByteVector wanted = sample.output.bytes;
  const Result<void> reference = spec.reference(sample.variant, sample.params, inputs, wanted);
  if (reference.ok() == sample.non_finite)
    return std::string("the reference and the sample disagree");

  std::vector<std::unique_ptr<Buffer>> buffers;
  OpCall call{.kind = spec.kind, .variant = sample.variant};
  call.params = sample.params.bytes;
  call.params_size = sample.params.size;
  for (const SampleBuffer& input : sample.inputs) {
    SHOAL_TRY_ASSIGN(buffer, make_buffer(device, input));
    buffers.push_back(std::move(buffer));
  }
  SHOAL_TRY_ASSIGN(output, make_buffer(device, sample.output));
  buffers.push_back(std::move(output));
  for (const auto& buffer : buffers) call.buffers.push_back({buffer.get(), 0, buffer->size()});

  const Result<void> ran = device.run(std::span(&call, 1));
  if (!ran.ok() && ran.error().code != ErrorCode::kNonFinite) return ran.error();
  if (sample.non_finite) {
    if (ran.ok()) return std::string("a result that is not finite passed");
    if (ran.error().message.find(op_name(spec.kind)) == std::string::npos) {
      return std::string("the error does not name the op: ") + ran.error().message;
    }
    return std::string();
  }
  if (!ran.ok()) return std::string("it reports ") + ran.error().message;
  ByteVector got(wanted.size());
  SHOAL_TRY(device.download(*buffers.back(), 0, got));
  return first_difference(got, wanted);
}

}  // namespace shoal::compute
