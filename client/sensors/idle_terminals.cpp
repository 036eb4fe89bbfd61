// Idle time of terminals, near and far: the kernel notes when one was last read from, which is when
// somebody typed.

#include <sys/stat.h>

#include "client/sensors/idle_backend.h"
#include "client/sensors/system_files.h"

namespace shoal::client {
namespace {

constexpr size_t kTerminalsMax = 4'096;

class TerminalsIdle final : public IdleBackend {
 public:
  explicit TerminalsIdle(std::filesystem::path dev) : dev_(std::move(dev)) {}

  std::string_view name() const override { return "terminals"; }

  Result<Millis> read(const SensorRequest& request) override {
    const Millis now = request.clock.now_wall();
    std::optional<Millis> least;
    const auto look = [&](const OwnedFd& folder, const std::string& name, bool any_owner) {
      struct stat status = {};
      if (fstatat(folder.get(), name.c_str(), &status, 0) != 0) return;
      // A console that nobody has logged in to belongs to root, and is no sign of anybody.
      if (!any_owner && status.st_uid == 0) return;
      const Millis read_at{int64_t{status.st_atim.tv_sec} * 1'000 +
                           status.st_atim.tv_nsec / 1'000'000};
      const Millis idle{std::max<int64_t>(0, (now - read_at).count)};
      if (!least || idle < *least) least = idle;
    };
    const OwnedFd near = open_folder(dev_);
    const OwnedFd far = open_folder(dev_ / "pts");
    for (const std::string& name : names_in(dev_ / "pts", kTerminalsMax)) {
      if (parse_number(name)) look(far, name, true);
    }
    for (int i = 1; i <= 63; ++i) look(near, "tty" + std::to_string(i), false);
    if (!least) return Error{ErrorCode::kNotFound, "nobody is logged in to a terminal"};
    return *least;
  }

 private:
  std::filesystem::path dev_;
};

}  // namespace

std::unique_ptr<IdleBackend> make_terminals_idle(const SystemRoots& roots) {
  return std::make_unique<TerminalsIdle>(roots.dev);
}

}  // namespace shoal::client
