#include <unistd.h>

#include "base/host_access.h"

namespace shoal {

bool may_run(const std::filesystem::path& program) { return access(program.c_str(), X_OK) == 0; }
bool may_write_in(const std::filesystem::path& folder) {
  return access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace shoal
