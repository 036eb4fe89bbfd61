#include "coordinator/jobs/digest_file.h"

namespace shoal {
namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;

}  // namespace

Result<DigestFile> DigestFile::begin(const std::filesystem::path& path) {
  std::error_code ignored;  // A stray one of a former run.
  std::filesystem::remove(path, ignored);
  SHOAL_TRY_ASSIGN(file, AppendFile::open(path));
  return DigestFile(path, std::move(file));
}

DigestFile::DigestFile(DigestFile&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      file_(std::move(other.file_)),
      digest_(other.digest_),
      waiting_(std::move(other.waiting_)),
      size_(other.size_) {}

DigestFile::~DigestFile() {
  std::error_code ignored;  // The next start removes it.
  if (!path_.empty()) std::filesystem::remove(path_, ignored);
}

Result<void> DigestFile::flush() {
  SHOAL_TRY(file_.append(waiting_));
  digest_.update(waiting_);
  waiting_.clear();
  return {};
}

Result<void> DigestFile::add(ByteSpan bytes) {
  waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
  size_ += bytes.size();
  return waiting_.size() >= kWriteBytes ? flush() : Result<void>();
}

Result<Digest> DigestFile::finish(const char* extension) {
  SHOAL_TRY(flush());
  const Digest digest = digest_.finish();
  SHOAL_TRY(file_.sync_and_rename(path_.parent_path() / (digest.hex() + "." + extension)));
  path_.clear();
  return digest;
}

Result<void> DigestFile::leave() {
  SHOAL_TRY(flush());
  path_.clear();
  return {};
}

}  // namespace shoal
