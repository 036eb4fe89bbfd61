#pragma once
// The coordinator's store: one SQLite database in the data folder, and the lock that keeps a second
// coordinator out. Knows no table.
//
// All of it belongs to one thread. A commit that returned ok is on the disk (synchronous=FULL).

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/sqlite/database.h"

namespace shoal {

// Those compiled in, in order (migrations/*.sql).
std::span<const Migration> migrations();

class Store {
 public:
  struct Options {
    const char* vfs = nullptr;  // For tests that make writes fail.
    std::span<const Migration> migrations = shoal::migrations();
  };

  // kNotFound when the folder is absent, kUnavailable when another process has it (with its pid),
  // kCorrupt for a damaged or foreign file, kUnsupported for one written by a newer Shoal, kDenied
  // when not writable.
  static Result<std::unique_ptr<Store>> open(const std::filesystem::path& folder, Options options);
  static Result<std::unique_ptr<Store>> open(const std::filesystem::path& folder);
  Store(FileLock lock, std::unique_ptr<Database> database);  // For open() alone.

  // Commits when `body` is ok, else undoes all that it wrote. Inside another transaction it joins
  // that one.
  Result<void> transaction(const std::function<Result<void>()>& body) {
    return database_->transaction(body);
  }

  // `sql` is a literal: statements are kept by its address.
  Query query(const char* sql) { return database_->query(sql); }
  int64_t last_id() const { return database_->last_id(); }  // Of the row inserted last.
  int64_t changes() const { return database_->changes(); }  // Rows of the last statement.

  int version() const { return database_->version(); }                // Of the schema.
  Result<std::string> schema() const { return database_->schema(); }  // Its whole text, for tests.
  Result<void> check_integrity() { return database_->check_integrity(); }
  Result<std::vector<std::pair<std::string, std::string>>> plans() const {  // Likewise.
    return database_->plans();
  }

 private:
  FileLock lock_;
  std::unique_ptr<Database> database_;
};

}  // namespace shoal
