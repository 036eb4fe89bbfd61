#include "coordinator/store/store.h"

#include <fstream>
#include <utility>

#include "base/host.h"

namespace shoal {
namespace {

constexpr int kApplicationId = 0x53484f31;  // "SHO1": the file says whose it is.

std::string_view advice(ErrorCode code) {
  switch (code) {
    case ErrorCode::kCorrupt: return "; stop the coordinator and restore a backup";
    case ErrorCode::kNoSpace: return "; free some space and try again";
    case ErrorCode::kDenied:
      return "; the folder must be writable by the user that runs the coordinator";
    default: return "";
  }
}

// One process alone uses the folder; the lock file says which, for the message that the other one
// prints.
Result<FileLock> lock_folder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  Result<FileLock> lock = FileLock::acquire(path);
  if (lock.ok()) {
    std::ofstream(path, std::ios::trunc) << own_pid() << '\n';
    return lock;
  }
  if (lock.error().code != ErrorCode::kUnavailable) return lock;
  std::string pid;
  std::ifstream(path) >> pid;
  return Error{ErrorCode::kUnavailable, folder.string() +
                                            " is in use by another running coordinator" +
                                            (pid.empty() ? "" : " (process " + pid + ")") +
                                            "; stop it first, or use another --data"};
}

}  // namespace

Store::Store(FileLock lock, std::unique_ptr<Database> database)
    : lock_(std::move(lock)), database_(std::move(database)) {}

Result<std::unique_ptr<Store>> Store::open(const std::filesystem::path& folder) {
  return open(folder, Options());
}

Result<std::unique_ptr<Store>> Store::open(const std::filesystem::path& folder, Options options) {
  std::error_code code;
  if (!std::filesystem::is_directory(folder, code)) {
    return Error{ErrorCode::kNotFound, folder.string() +
                                           " holds no coordinator: make one with shoalctl --data " +
                                           folder.string() + " init"};
  }
  SHOAL_TRY_ASSIGN(lock, lock_folder(folder));
  SHOAL_TRY_ASSIGN(database,
                   Database::open(folder / "store.sqlite", {.name = "store",
                                                            .application_id = kApplicationId,
                                                            .migrations = options.migrations,
                                                            .vfs = options.vfs,
                                                            .advice = advice}));
  return std::make_unique<Store>(std::move(lock), std::move(database));
}

}  // namespace shoal
