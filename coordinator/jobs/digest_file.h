#pragma once
// A file of a job that is written once and named by the digest of its content. Dropped before it
// has its name, it leaves nothing.

#include <filesystem>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/files.h"

namespace shoal {

class DigestFile {
 public:
  static Result<DigestFile> begin(const std::filesystem::path& path);
  DigestFile(DigestFile&& other) noexcept;
  ~DigestFile();

  Result<void> add(ByteSpan bytes);
  uint64_t size() const { return size_; }  // Of all that was added.
  // Names the file DIGEST.`extension` in its folder, durably.
  Result<Digest> finish(const char* extension);
  // Leaves the file where it is, and to the caller.
  Result<void> leave();

 private:
  DigestFile(std::filesystem::path path, AppendFile file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Result<void> flush();

  std::filesystem::path path_;  // Empty when moved from or named.
  AppendFile file_;
  DigestBuilder digest_;
  ByteVector waiting_;
  uint64_t size_ = 0;
};

}  // namespace shoal
