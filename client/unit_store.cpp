#include "client/unit_store.h"

#include <chrono>
#include <system_error>

#include "base/digest.h"
#include "base/files.h"
#include "base/log.h"

namespace shoal::client {
namespace {

constexpr std::string_view kSuffix = ".unit";
constexpr std::chrono::hours kForgetAfter{14 * 24};

void remove_file(const std::filesystem::path& path) {
  std::error_code code;  // What is not there need not be removed.
  // Its copies too, as base/files.cpp names them: they hold what was drawn.
  for (const char* const copy : {"", ".good", ".good.before"}) {
    std::filesystem::remove(path.string() + copy, code);
  }
}

}  // namespace

std::filesystem::path UnitStore::path(const std::string& pin, uint64_t lease) const {
  return folder_ / (digest_of(as_bytes(pin)).hex().substr(0, 16) + "-" + std::to_string(lease) +
                    std::string(kSuffix));
}

Result<void> UnitStore::save(const UnitCheckpoint& checkpoint) const {
  if (folder_.empty()) return Error{ErrorCode::kIo, "there is no folder for units"};
  SHOAL_TRY(make_folder(folder_));
  return StateFile(path(checkpoint.coordinator, checkpoint.lease))
      .save(checkpoint_bytes(checkpoint));
}

void UnitStore::remove(const std::string& pin, uint64_t lease) const {
  if (!folder_.empty()) remove_file(path(pin, lease));
}

std::vector<UnitCheckpoint> UnitStore::load(const std::string& device) const {
  std::vector<UnitCheckpoint> all;
  std::error_code code;
  const auto now = std::filesystem::file_time_type::clock::now();
  std::vector<std::filesystem::path> paths;
  for (std::filesystem::directory_iterator it(folder_, code), end; !code && it != end;
       it.increment(code)) {
    if (it->path().extension() == kSuffix) paths.push_back(it->path());
  }
  for (const std::filesystem::path& path : paths) {
    const Result<StateFile::Loaded> loaded = StateFile(path).load();
    Result<UnitCheckpoint> checkpoint = loaded.ok() ? read_checkpoint(loaded.value().bytes)
                                                    : Result<UnitCheckpoint>(loaded.error());
    if (!checkpoint.ok()) {
      log_warning("units", "checkpoint_damaged",
                  {{"file", path.string()}, {"cause", checkpoint.error()}});
      remove_file(path);
      continue;
    }
    if (checkpoint.value().device == device) {
      all.push_back(std::move(checkpoint).value());
    } else if (now - std::filesystem::last_write_time(path, code) > kForgetAfter && !code) {
      remove_file(path);  // Its device may never come back.
    }
  }
  return all;
}

}  // namespace shoal::client
