#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/host.h"
#include "compute/backends/cuda/cuda_backend.h"

namespace shoal::compute::cuda {
namespace {

constexpr char kPlugin[] = "libshoal_cuda.so";

// Where builds and packages put it, or beside the program.
std::vector<std::filesystem::path> places() {
  // For developers; whoever sets a process's environment can load code into it anyway.
  if (const char* named = std::getenv("SHOAL_CUDA_PLUGIN")) return {named};
  const auto program = own_program();
  if (!program.ok()) return {};
  const std::filesystem::path folder = program.value().parent_path();
  return {folder.parent_path() / "lib" / "shoal" / kPlugin, folder / kPlugin};
}

Error unavailable(std::string why) { return Error{ErrorCode::kUnavailable, std::move(why)}; }

}  // namespace

Result<const Door*> load_door() {
  // The driver first: a computer without one need not load megabytes of kernels to learn that.
  if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) == nullptr) {
    return unavailable("no NVIDIA driver is installed (libcuda.so.1)");
  }
  for (const std::filesystem::path& path : places()) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    void* plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
      const char* why = dlerror();
      return unavailable("the CUDA part cannot be loaded: " + std::string(why ? why : ""));
    }
    const auto entry = reinterpret_cast<const Door* (*)()>(dlsym(plugin, kDoorSymbol));
    if (entry == nullptr || entry()->version != kDoorVersion) {
      return unavailable("the CUDA part is of another version of Shoal: " + path.string());
    }
    return entry();
  }
  return unavailable("this installation has no CUDA part (" + std::string(kPlugin) + ")");
}

}  // namespace shoal::compute::cuda
