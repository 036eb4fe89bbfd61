#include "compute/backends/vulkan/kernel_choice.h"

#include "base/check.h"

namespace shoal::compute {
namespace {

// Views of 2 GiB in texels of 16 bytes: larger than any weight that a driver lets one allocate.
constexpr int64_t kTexelsNeeded = int64_t{1} << 27;

}  // namespace

std::string_view kernel_suffix(Kernels kernels) {
  switch (kernels) {
    case Kernels::kPlain: return "";
    case Kernels::kTexels: return "_texels";
  }
  SHOAL_UNREACHABLE();
}

std::optional<std::string> why_not(const DeviceFacts& facts, Kernels kernels) {
  if (kernels == Kernels::kPlain) return {};
  if (!facts.subgroup_shuffle) return "its invocations cannot read from each other (shuffle)";
  if (facts.texels_max < kTexelsNeeded) {
    return "its views hold " + std::to_string(facts.texels_max) + " texels where " +
           std::to_string(kTexelsNeeded) + " are needed";
  }
  return {};
}

KernelChoice choose_kernels(const DeviceFacts& facts) {
  KernelChoice choice;
  if (facts.software && !why_not(facts, Kernels::kTexels)) choice.matmul = Kernels::kTexels;
  return choice;
}

}  // namespace shoal::compute
