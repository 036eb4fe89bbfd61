#include "base/files.h"

#include <algorithm>

#include "base/digest.h"
#include "base/log.h"
#include "base/secrets.h"

namespace shoal {
namespace {

constexpr std::string_view kMagic = "shoalst1";
constexpr size_t kHeaderBytes = 8 + 8 + sizeof(Digest::bytes);
constexpr Bytes kStateBytesMax{256 << 20};

std::filesystem::path good_path(const std::filesystem::path& path) {
  std::filesystem::path good = path;
  good += ".good";
  return good;
}

// Some state is secret, and what is not is small: no copy of it stays behind.
class Wiped {
 public:
  explicit Wiped(ByteVector& bytes) : bytes_(bytes) {}
  ~Wiped() { wipe(bytes_); }
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;

 private:
  ByteVector& bytes_;
};

// Another name for a file while it is being replaced, so that putting it back takes no room.
class Kept {
 public:
  explicit Kept(std::filesystem::path path) : path_(std::move(path)), kept_(path_) {
    kept_ += ".before";
    std::error_code code;
    std::filesystem::remove(kept_, code);  // Of a process that was killed meanwhile.
    std::filesystem::create_hard_link(path_, kept_, code);
    if (!code || code == std::errc::no_such_file_or_directory) return;
    // A file system without such links, or no file at all.
    code.clear();
    std::filesystem::copy_file(path_, kept_, code);
    if (code) {
      kept_result_ = Error{ErrorCode::kIo, "cannot keep " + path_.string() + ": " + code.message()};
    }
  }
  ~Kept() {
    std::error_code code;
    std::filesystem::remove(kept_, code);
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

  const Result<void>& kept() const { return kept_result_; }
  void put_back() const {
    std::error_code code;
    if (is_there(kept_)) {
      std::filesystem::rename(kept_, path_, code);
    } else {
      std::filesystem::remove(path_, code);
    }
  }

 private:
  std::filesystem::path path_, kept_;
  Result<void> kept_result_;
};

// The whole file, as StateFile writes it.
ByteVector state_of(ByteSpan content) {
  ByteVector file;
  file.reserve(kHeaderBytes + content.size());
  const auto add = [&file](ByteSpan bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); };
  std::byte size[8];
  store_le<uint64_t>(size, content.size());
  add(as_bytes(kMagic));
  add(size);
  add(digest_of(content).bytes);
  add(content);
  return file;
}

Result<ByteVector> read_state(const std::filesystem::path& path) {
  SHOAL_TRY_ASSIGN(file, read_file(path, kStateBytesMax));
  const auto corrupt = [&path](std::string_view why) {
    return Error{ErrorCode::kCorrupt, path.string() + ": " + std::string(why)};
  };
  if (file.size() < kHeaderBytes) return corrupt("ends inside its header");
  const Wiped wiped(file);
  const ByteSpan all = file;
  if (as_text(all.first(kMagic.size())) != kMagic) return corrupt("is no state file of Shoal");
  const ByteSpan body = all.subspan(kHeaderBytes);
  if (load_le<uint64_t>(all.data() + 8) != body.size()) {
    return corrupt("its length is not what its header says");
  }
  if (digest_of(body) != Digest::from_bytes(all.subspan(16, 32)).value()) {
    return corrupt("its checksum does not match its content");
  }
  return to_vector(body);
}

}  // namespace

bool is_there(const std::filesystem::path& path) {
  std::error_code code;
  return std::filesystem::exists(path, code);
}

Result<void> make_folder(const std::filesystem::path& path) {
  if (path.empty()) return {};
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) return {};
  if (path.has_parent_path() && path.parent_path() != path)
    SHOAL_TRY(make_folder(path.parent_path()));
  code.clear();
  const bool made = std::filesystem::create_directory(path, code);
  if (code) {
    const bool denied =
        code == std::errc::permission_denied || code == std::errc::read_only_file_system;
    return Error{denied ? ErrorCode::kDenied : ErrorCode::kIo,
                 "cannot make folder " + path.string() + ": " + code.message()};
  }
  if (made) std::filesystem::permissions(path, std::filesystem::perms::owner_all, code);
  return {};
}

Result<Bytes> free_space(const std::filesystem::path& path) {
  std::error_code code;
  const std::filesystem::space_info space = std::filesystem::space(path, code);
  if (code) {
    return Error{ErrorCode::kIo,
                 "cannot ask for free space of " + path.string() + ": " + code.message()};
  }
  return Bytes{static_cast<int64_t>(std::min<uint64_t>(space.available, INT64_MAX))};
}

StateFile::StateFile(std::filesystem::path path, int mode) : path_(std::move(path)), mode_(mode) {}

Result<StateFile::Loaded> StateFile::load() const {
  Result<ByteVector> current = read_state(path_);
  if (current.ok()) return Loaded{std::move(current).value(), std::nullopt};
  Result<ByteVector> good = read_state(good_path(path_));
  if (!good.ok()) return current.error();
  log_warning("files", "state_fell_back", {{"path", path_.string()}, {"why", current.error()}});
  return Loaded{std::move(good).value(), current.error()};
}

Result<void> StateFile::save(ByteSpan bytes) const {
  if (bytes.size() > static_cast<size_t>(kStateBytesMax.count) - kHeaderBytes) {
    return Error{ErrorCode::kNoSpace, path_.string() + ": state is too large"};
  }
  ByteVector file = state_of(bytes);
  const Wiped wiped(file);
  const Kept before(good_path(path_));
  SHOAL_TRY(before.kept());
  // The copy first, and it goes back when the file cannot follow: what was not saved must not come
  // true when the file is damaged one day.
  const auto written = [&]() -> Result<void> {
    SHOAL_TRY(write_file_durably(good_path(path_), file, mode_));
    return write_file_durably(path_, file, mode_);
  }();
  if (!written.ok()) before.put_back();
  return written;
}

}  // namespace shoal
