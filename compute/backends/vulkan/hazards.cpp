#include "compute/backends/vulkan/hazards.h"

#include <algorithm>

namespace shoal::compute {
namespace {

bool touches(std::span<const BufferView> views, const BufferView& view) {
  return std::any_of(views.begin(), views.end(), [&](const BufferView& other) {
    return other.buffer == view.buffer && other.offset < view.offset + view.size &&
           view.offset < other.offset + other.size;
  });
}

}  // namespace

bool Hazards::barrier_before(std::span<const BufferView> buffers) {
  if (buffers.empty()) return false;
  const std::span<const BufferView> inputs = buffers.first(buffers.size() - 1);
  const BufferView& output = buffers.back();
  bool barrier = touches(read_, output) || touches(written_, output);
  for (const BufferView& input : inputs) barrier = barrier || touches(written_, input);
  if (barrier) {
    read_.clear();
    written_.clear();
  }
  read_.insert(read_.end(), inputs.begin(), inputs.end());
  written_.push_back(output);
  return barrier;
}

}  // namespace shoal::compute
