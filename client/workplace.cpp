#include "client/workplace.h"

#include "client/settings.h"

namespace shoal::client {

std::filesystem::path Workplace::cache() const {
  const std::string& chosen = settings.text("cache.folder");
  return chosen.empty() ? folders.cache / "shards" : std::filesystem::path(chosen);
}

std::vector<std::string> Workplace::device_words(const CommandOptions& options) const {
  return options.devices.empty() ? settings.list("compute.devices") : options.devices;
}

int Workplace::threads(const CommandOptions& options) const {
  return options.threads.value_or(static_cast<int>(settings.integer("compute.threads")));
}

Result<std::string> Workplace::worker_program() const {
  return program("worker.program", "shoal-worker");
}

Result<std::string> Workplace::sensors_program() const {
  return program("sensors.program", "shoal-sensors");
}

// As the setting says, or the one beside this program.
Result<std::string> Workplace::program(const char* key, const char* name) const {
  if (!settings.text(key).empty()) return settings.text(key);
  SHOAL_TRY_ASSIGN(own, own_program());
  return (own.parent_path() / name).string();
}

Result<Workplace> open_workplace(const CommandOptions& options) {
  SHOAL_TRY_ASSIGN(folders, user_folders(options.data));
  SHOAL_TRY(make_folder(folders.state));
  SHOAL_TRY_ASSIGN(settings, load_settings(folders));
  return Workplace{std::move(folders), std::move(settings)};
}

std::string running_pid(const Workplace& place) {
  const Result<ByteVector> text = read_file(place.pid_file(), Bytes{32});
  return text.ok() ? std::string(as_text(text.value())) : "";
}

}  // namespace shoal::client
