#pragma once
// Files that survive a crash: read whole, replaced whole, kept with a checksum and a last good
// copy. Every error names the path and the cause.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/host.h"
#include "base/result.h"
#include "base/units.h"

namespace shoal {

bool is_there(const std::filesystem::path& path);  // A file, a folder or anything else.

// Fails with kNoSpace when the file is longer than `bytes_max`, and with kNotFound when it is
// absent.
Result<ByteVector> read_file(const std::filesystem::path& path, Bytes bytes_max);
Result<void> read_file_in_pieces(const std::filesystem::path& path,
                                 const std::function<void(ByteSpan piece)>& take);

// Replaces the file so that after a crash it holds either the old bytes or the new ones, whole: a
// temporary file beside it, fsync, rename, fsync of the folder. `mode` as in chmod.
Result<void> write_file_durably(const std::filesystem::path& path, ByteSpan bytes, int mode = 0644);

// The folder and its parents. Those made here are the owner's alone (0700).
Result<void> make_folder(const std::filesystem::path& path);
Result<Bytes> free_space(const std::filesystem::path& path);

// A small state file: a checksum over its content, and beside it ("<path>.good") a copy, so that a
// damaged file costs nothing that was ever saved. One thread, one process: hold a FileLock on the
// folder.
class StateFile {
 public:
  struct Loaded {
    ByteVector bytes;
    // Why the file itself could not be used; then `bytes` are the copy's.
    std::optional<Error> fell_back_because;
  };

  explicit StateFile(std::filesystem::path path, int mode = 0600);

  Result<Loaded> load() const;              // kNotFound when it was never saved.
  Result<void> save(ByteSpan bytes) const;  // Done whole, or as if it had not been tried.

 private:
  std::filesystem::path path_;
  int mode_;
};

// A file that grows at its end, such as a download that goes on after a restart. A write that fails
// leaves the file as long as it was. One thread.
class AppendFile {
 public:
  // Makes the file when there is none; a symbolic link in its place is refused.
  static Result<AppendFile> open(const std::filesystem::path& path, int mode = 0600);
  AppendFile(AppendFile&&) noexcept = default;
  AppendFile& operator=(AppendFile&&) noexcept = default;

  uint64_t size() const { return size_; }
  Result<void> append(ByteSpan bytes);
  Result<void> sync();
  // Moves it over `path` durably. REQUIRES: `path` is in the same folder.
  Result<void> sync_and_rename(const std::filesystem::path& path);

 private:
  AppendFile(OwnedFd fd, std::filesystem::path path, uint64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}

  OwnedFd fd_;
  std::filesystem::path path_;
  uint64_t size_;
};

// A file read in pieces by position. Unlike MappedFile it survives whatever others do to the file.
class InputFile {
 public:
  static Result<InputFile> open(const std::filesystem::path& path);
  InputFile(InputFile&&) noexcept = default;
  InputFile& operator=(InputFile&&) noexcept = default;

  uint64_t size() const { return size_; }  // When it was opened.
  // As many bytes as there are; fewer only at the end.
  Result<size_t> read_at(uint64_t offset, std::span<std::byte> into) const;

 private:
  InputFile(OwnedFd fd, std::filesystem::path path, uint64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}

  OwnedFd fd_;
  std::filesystem::path path_;
  uint64_t size_;
};

// A whole file as read-only memory. When another process cuts the file short, a later touch of the
// lost pages kills this one (SIGBUS): map only files in folders that are ours, which are replaced
// and never cut. Any thread may read.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  ByteSpan bytes() const { return {data_, size_}; }
  size_t size() const { return size_; }

 private:
  const std::byte* data_ = nullptr;  // Null when nothing is mapped.
  size_t size_ = 0;
};

// Says that one process alone uses a folder. Ends with the object, and with the process however it
// ends.
class FileLock {
 public:
  static Result<FileLock> acquire(const std::filesystem::path& path);  // kUnavailable when taken.
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}

  int fd_ = -1;  // -1 when moved from.
};

// For tests: a new folder, removed with everything in it at the end.
class TempDir {
 public:
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace shoal
