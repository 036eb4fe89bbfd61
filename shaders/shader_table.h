#pragma once
// The Vulkan kernels compiled in: SPIR-V by op and variant. The table is made by
// cmake/shoal_shaders.cmake from the files in this folder.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace shoal::compute {

// One factor of the count of a kernel's invocations, or of its groups: a word of the op's parameter block, divided rounding
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
  // Invocations of a group. 64: the grid counts invocations; others: it counts groups.
  uint32_t group = 64;
  // Of the call's first buffers, how many words are a texel of the kernel's; 0: it takes addresses.
  std::array<uint32_t, 2> texel_words{};
};

std::span<const Shader> shader_table();

}  // namespace shoal::compute
