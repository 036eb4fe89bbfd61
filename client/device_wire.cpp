#include "client/device_wire.h"

#include <cmath>

#include "base/text.h"
#include "schema/limits.h"

namespace shoal::client {
namespace {

std::string start_of(std::string_view text, size_t bytes_max) {
  return std::string(cut_utf8(text, bytes_max));
}

std::string text_of(capnp::Text::Reader text, size_t bytes_max) {
  return start_of({text.cStr(), text.size()}, bytes_max);
}

double rate_of(double value) { return std::isfinite(value) && value > 0 ? value : 0; }

}  // namespace

void write_facts(const DeviceFacts& facts, rpc::DeviceInfo::Builder to) {
  to.setId(start_of(facts.id, limits::kNameBytesMax));
  to.setSelector(start_of(facts.selector, limits::kNameBytesMax));
  to.setPlane(start_of(facts.plane, limits::kNameBytesMax));
  to.setName(start_of(facts.name, limits::kNameBytesMax));
  to.setDriver(start_of(facts.driver, limits::kNameBytesMax));
  to.setMemoryBytes(static_cast<uint64_t>(facts.memory_bytes));
  to.setSoftware(facts.software);
}

DeviceFacts read_facts(rpc::DeviceInfo::Reader from) {
  return {text_of(from.getId(), limits::kNameBytesMax),
          text_of(from.getSelector(), limits::kNameBytesMax),
          text_of(from.getPlane(), limits::kNameBytesMax),
          text_of(from.getName(), limits::kNameBytesMax),
          text_of(from.getDriver(), limits::kNameBytesMax),
          static_cast<int64_t>(from.getMemoryBytes()),
          from.getSoftware()};
}

void write_self_test(const SelfTestResult& result, rpc::SelfTest::Builder to) {
  to.setExact(result.exact);
  to.setSamples(result.samples);
  to.setFailed(result.failed);
  to.setUnsupported(result.unsupported);
  to.setFirstFailure(start_of(result.first_failure, limits::kReasonBytesMax));
}

SelfTestResult read_self_test(rpc::SelfTest::Reader from) {
  return {from.getExact(), from.getSamples(), from.getFailed(), from.getUnsupported(),
          text_of(from.getFirstFailure(), limits::kReasonBytesMax)};
}

void write_benchmark(const BenchmarkResult& result, rpc::Benchmark::Builder to) {
  to.setDecodeRowsPerSecond(result.decode_rows_per_second);
  to.setPrefillRowsPerSecond(result.prefill_rows_per_second);
  to.setWeightBytesPerSecond(result.weight_bytes_per_second);
  to.setFlopsPerSecond(result.flops_per_second);
  to.setCopyBytesPerSecond(result.copy_bytes_per_second);
  to.setMeasuredAtMs(result.measured_at.count);
}

BenchmarkResult read_benchmark(rpc::Benchmark::Reader from) {
  return {rate_of(from.getDecodeRowsPerSecond()),  rate_of(from.getPrefillRowsPerSecond()),
          rate_of(from.getWeightBytesPerSecond()), rate_of(from.getFlopsPerSecond()),
          rate_of(from.getCopyBytesPerSecond()),   Millis{from.getMeasuredAtMs()}};
}

}  // namespace shoal::client
