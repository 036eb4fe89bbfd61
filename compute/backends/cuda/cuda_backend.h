#pragma once
// The `cuda` plane: NVIDIA cards, by the plug-in libshoal_cuda.so, which is looked for at run time.
// A machine without the plug-in, a driver or a card has no device and says which is missing.

#include <memory>
#include <string>

#include "compute/backends/backend.h"
#include "compute/backends/cuda/door.h"

namespace shoal::compute {

std::unique_ptr<Backend> make_cuda_backend();

// With a door that is there already: the shim's.
std::unique_ptr<Backend> make_cuda_backend(const cuda::Door& door);

namespace cuda {

// The plug-in's door, once it was found beside the programs; else the reason, as a sentence. What
// was loaded stays loaded.
Result<const Door*> load_door();

}  // namespace cuda
}  // namespace shoal::compute
