#include "tests/coordinator/faulty_vfs.h"

#include <sqlite3.h>

#include <csignal>
#include <cstring>

namespace shoal::test {
namespace {

int writes = 0;
int allowed = -1;
int left_to_live = -1;
sqlite3_vfs* real = nullptr;
sqlite3_vfs layer;
sqlite3_io_methods methods;

// The system's file lies behind ours in the same memory.
struct File {
  sqlite3_file base;
  sqlite3_file* inner() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};
sqlite3_file* inner(sqlite3_file* file) { return reinterpret_cast<File*>(file)->inner(); }

bool fails() {
  ++writes;
  if (left_to_live >= 0 && left_to_live-- == 0) std::raise(SIGKILL);
  return allowed >= 0 && allowed-- <= 0 && (allowed = 0, true);
}

int write_file(sqlite3_file* file, const void* data, int count, sqlite3_int64 offset) {
  if (fails()) return SQLITE_FULL;
  return inner(file)->pMethods->xWrite(inner(file), data, count, offset);
}
int sync_file(sqlite3_file* file, int flags) {
  if (fails()) return SQLITE_IOERR_FSYNC;
  return inner(file)->pMethods->xSync(inner(file), flags);
}

int open_file(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  const int code = real->xOpen(real, name, inner(file), flags, out_flags);
  if (code == SQLITE_OK) file->pMethods = &methods;
  return code;
}

}  // namespace

const char* faulty_vfs() {
  if (real != nullptr) return layer.zName;
  real = sqlite3_vfs_find(nullptr);
  layer = *real;
  layer.zName = "faulty";
  layer.szOsFile = static_cast<int>(sizeof(File)) + real->szOsFile;
  layer.pNext = nullptr;
  layer.xOpen = open_file;

  methods = {};
  methods.iVersion = 2;
  methods.xClose = [](sqlite3_file* f) { return inner(f)->pMethods->xClose(inner(f)); };
  methods.xRead = [](sqlite3_file* f, void* data, int count, sqlite3_int64 offset) {
    return inner(f)->pMethods->xRead(inner(f), data, count, offset);
  };
  methods.xWrite = write_file;
  methods.xTruncate = [](sqlite3_file* f, sqlite3_int64 size) {
    return inner(f)->pMethods->xTruncate(inner(f), size);
  };
  methods.xSync = sync_file;
  methods.xFileSize = [](sqlite3_file* f, sqlite3_int64* size) {
    return inner(f)->pMethods->xFileSize(inner(f), size);
  };
  methods.xLock = [](sqlite3_file* f, int level) {
    return inner(f)->pMethods->xLock(inner(f), level);
  };
  methods.xUnlock = [](sqlite3_file* f, int level) {
    return inner(f)->pMethods->xUnlock(inner(f), level);
  };
  methods.xCheckReservedLock = [](sqlite3_file* f, int* out) {
    return inner(f)->pMethods->xCheckReservedLock(inner(f), out);
  };
  methods.xFileControl = [](sqlite3_file* f, int op, void* argument) {
    return inner(f)->pMethods->xFileControl(inner(f), op, argument);
  };
  methods.xSectorSize = [](sqlite3_file* f) { return inner(f)->pMethods->xSectorSize(inner(f)); };
  methods.xDeviceCharacteristics = [](sqlite3_file* f) {
    return inner(f)->pMethods->xDeviceCharacteristics(inner(f));
  };
  methods.xShmMap = [](sqlite3_file* f, int page, int size, int extend, void volatile** out) {
    return inner(f)->pMethods->xShmMap(inner(f), page, size, extend, out);
  };
  methods.xShmLock = [](sqlite3_file* f, int offset, int count, int flags) {
    return inner(f)->pMethods->xShmLock(inner(f), offset, count, flags);
  };
  methods.xShmBarrier = [](sqlite3_file* f) { inner(f)->pMethods->xShmBarrier(inner(f)); };
  methods.xShmUnmap = [](sqlite3_file* f, int remove) {
    return inner(f)->pMethods->xShmUnmap(inner(f), remove);
  };
  sqlite3_vfs_register(&layer, /*makeDflt=*/0);
  return layer.zName;
}

void fail_writes_after(int count) {
  allowed = count;
  writes = 0;
}
int writes_so_far() { return writes; }

void die_at_write(int count) { left_to_live = count; }

}  // namespace shoal::test
