// The part of base/files.h that needs the operating system. See base/host.h for the rest of it.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/files.h"
#include "base/host.h"
#include "base/random.h"

namespace shoal {
namespace {

Error file_error(int code, std::string_view doing, const std::filesystem::path& path) {
  return os_error(code, "cannot " + std::string(doing) + " " + path.string());
}

Result<OwnedFd> open_to_read(const std::filesystem::path& path) {
  // Without O_NONBLOCK, a pipe in a file's place would hold us until somebody writes to it.
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) return file_error(errno, "open", path);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return file_error(errno, "examine", path);
  if (S_ISDIR(status.st_mode)) {
    return Error{ErrorCode::kInvalid, path.string() + " is a folder, not a file"};
  }
  if (S_ISFIFO(status.st_mode)) {
    return Error{ErrorCode::kInvalid, path.string() + " is a pipe, not a file"};
  }
  return fd;
}

// Any error or end of file; retried when a signal came between.
ssize_t read_some(int fd, std::span<std::byte> into) {
  ssize_t count;
  do {
    count = ::read(fd, into.data(), into.size());
  } while (count < 0 && errno == EINTR);
  return count;
}

Result<void> write_all(int fd, ByteSpan bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(errno, "write", path);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Result<void> sync_folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const OwnedFd folder_fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder_fd.get() < 0 || fsync(folder_fd.get()) != 0) return file_error(errno, "sync", folder);
  return {};
}

}  // namespace

Result<ByteVector> read_file(const std::filesystem::path& path, Bytes bytes_max) {
  SHOAL_TRY_ASSIGN(fd, open_to_read(path));
  struct stat status {};
  const bool sized =
      fstat(fd.get(), &status) == 0 && status.st_size > 0 && status.st_size <= bytes_max.count;
  // Read into its place: of a file of secrets there is no second copy. The byte more finds its end.
  ByteVector all(sized ? static_cast<size_t>(status.st_size) + 1 : size_t{64} << 10);
  size_t done = 0;
  while (true) {
    if (done == all.size()) all.resize(2 * all.size());
    const ssize_t count = read_some(fd.get(), std::span(all).subspan(done));
    if (count < 0) return file_error(errno, "read", path);
    if (count == 0) break;
    done += static_cast<size_t>(count);
    if (static_cast<int64_t>(done) > bytes_max.count) {
      return Error{ErrorCode::kNoSpace, path.string() + " is longer than the " +
                                            std::to_string(bytes_max.count) + " bytes allowed"};
    }
  }
  all.resize(done);
  return all;
}

Result<void> read_file_in_pieces(const std::filesystem::path& path,
                                 const std::function<void(ByteSpan piece)>& take) {
  SHOAL_TRY_ASSIGN(fd, open_to_read(path));
  ByteVector buffer(1 << 20);
  while (true) {
    const ssize_t count = read_some(fd.get(), buffer);
    if (count < 0) return file_error(errno, "read", path);
    if (count == 0) return {};
    take(ByteSpan(buffer).first(static_cast<size_t>(count)));
  }
}

Result<void> write_file_durably(const std::filesystem::path& path, ByteSpan bytes, int mode) {
  std::array<std::byte, 6> suffix;
  fill_secret(suffix);
  std::filesystem::path temporary = path;
  temporary += "." + hex_encode(suffix) + ".tmp";

  OwnedFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                    static_cast<mode_t>(mode)));
  if (fd.get() < 0) return file_error(errno, "write", path);
  const auto written = [&]() -> Result<void> {
    if (fchmod(fd.get(), static_cast<mode_t>(mode)) != 0) return file_error(errno, "write", path);
    SHOAL_TRY(write_all(fd.get(), bytes, path));
    if (fsync(fd.get()) != 0) return file_error(errno, "write", path);
    fd.reset();
    if (::rename(temporary.c_str(), path.c_str()) != 0) return file_error(errno, "replace", path);
    return {};
  }();
  if (!written.ok()) {
    ::unlink(temporary.c_str());
    return written;
  }
  return sync_folder_of(path);
}

Result<AppendFile> AppendFile::open(const std::filesystem::path& path, int mode) {
  OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
                    static_cast<mode_t>(mode)));
  if (fd.get() < 0) return file_error(errno, "write", path);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return file_error(errno, "examine", path);
  if (!S_ISREG(status.st_mode))
    return Error{ErrorCode::kInvalid, path.string() + " is no plain file"};
  return AppendFile(std::move(fd), path, static_cast<uint64_t>(status.st_size));
}

Result<void> AppendFile::append(ByteSpan bytes) {
  if (const Result<void> written = write_all(fd_.get(), bytes, path_); !written.ok()) {
    [[maybe_unused]] const int cut = ftruncate(fd_.get(), static_cast<off_t>(size_));
    return written;
  }
  size_ += bytes.size();
  return {};
}

Result<void> AppendFile::sync() {
  if (fdatasync(fd_.get()) != 0) return file_error(errno, "write", path_);
  return {};
}

Result<void> AppendFile::sync_and_rename(const std::filesystem::path& path) {
  SHOAL_TRY(sync());
  if (::rename(path_.c_str(), path.c_str()) != 0) return file_error(errno, "replace", path);
  path_ = path;
  return sync_folder_of(path);
}

Result<InputFile> InputFile::open(const std::filesystem::path& path) {
  SHOAL_TRY_ASSIGN(fd, open_to_read(path));
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return file_error(errno, "examine", path);
  return InputFile(std::move(fd), path, static_cast<uint64_t>(status.st_size));
}

Result<size_t> InputFile::read_at(uint64_t offset, std::span<std::byte> into) const {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t count =
        pread(fd_.get(), into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(errno, "read", path_);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  SHOAL_TRY_ASSIGN(fd, open_to_read(path));
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return file_error(errno, "examine", path);
  MappedFile file;
  if (status.st_size == 0) return file;
  const auto size = static_cast<size_t>(status.st_size);
  void* const data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return file_error(errno, "map", path);
  file.data_ = static_cast<const std::byte*>(data);
  file.size_ = size;
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

Result<FileLock> FileLock::acquire(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return file_error(errno, "lock", path);
  FileLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return file_error(errno, "lock", path);
    return Error{ErrorCode::kUnavailable, path.string() + " is held by another running process"};
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);  // Closing lets the lock go.
}

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "shoal-XXXXXX").string();
  SHOAL_CHECK(mkdtemp(name.data()) != nullptr);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;  // A test may have taken its own permissions away.
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace shoal
