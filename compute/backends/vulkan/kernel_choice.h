#pragma once
// Decides, from what a device says of itself, which of an op's kernels it runs. Pure: asks no
// driver.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::compute {

// What a device says of itself, so far as the choice turns on it.
struct DeviceFacts {
  bool software = false;  // Computes on the CPU.
  uint32_t subgroup_size = 1;
  bool subgroup_shuffle = false;  // In compute kernels.
  int64_t texels_max = 0;         // Of one view of a buffer.
};

enum class Kernels : uint8_t {
  kPlain,   // OP.comp: an invocation for each result. Asks nothing of a device.
  kTexels,  // OP_texels.comp: reads its factors as texels, which software drivers load quickest.
};

struct KernelChoice {
  Kernels matmul = Kernels::kPlain;
};

// What the name of such a kernel's file adds to that of its op: "", "_texels".
std::string_view kernel_suffix(Kernels kernels);

// Why the device cannot run such kernels, in words; none where it can.
std::optional<std::string> why_not(const DeviceFacts& facts, Kernels kernels);

KernelChoice choose_kernels(const DeviceFacts& facts);

}  // namespace shoal::compute
