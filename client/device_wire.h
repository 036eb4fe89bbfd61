#pragma once
// Turns what is known of a device into its wire form and back, within limits.h.

#include "client/device_facts.h"
#include "schema/common.capnp.h"

namespace shoal::client {

void write_facts(const DeviceFacts& facts, rpc::DeviceInfo::Builder to);
void write_self_test(const SelfTestResult& result, rpc::SelfTest::Builder to);
void write_benchmark(const BenchmarkResult& result, rpc::Benchmark::Builder to);

// Texts are cut at their limit: a driver's long name is no reason to refuse its device.
DeviceFacts read_facts(rpc::DeviceInfo::Reader from);
SelfTestResult read_self_test(rpc::SelfTest::Reader from);
BenchmarkResult read_benchmark(rpc::Benchmark::Reader from);

}  // namespace shoal::client
