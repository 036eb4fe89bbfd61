#pragma once
// The Vulkan kernels compiled in: SPIR-V by op and variant. The table is made by
// cmake/shoal_shaders.cmake from the files in this folder.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace shoal::compute {

// One factor of a kernel's invocation count: a word of the op's parameter block, divided rounding
// up. A divisor of 0 ends the list.
struct GridFactor {
  uint32_t word = 0;
  uint32_t divisor = 0;
};

struct Shader {
  std::string_view op;
  std::string_view variant;  // A type's name; "f32" where there is no choice.
  std::span<const uint32_t> words;
  std::array<GridFactor, 4> grid;
};

std::span<const Shader> shader_table();

}  // namespace shoal::compute
