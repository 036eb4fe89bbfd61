#pragma once
// The coordinator's store: one SQLite database in the data folder, and the lock that keeps a second
// coordinator out. Opens, migrates, runs transactions and prepared statements; knows no table.
//
// All of it belongs to one thread. A commit that returned ok is on the disk (synchronous=FULL).

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/files.h"
#include "base/result.h"
#include "base/units.h"

struct sqlite3;
struct sqlite3_stmt;

namespace shoal {

struct Migration {
  int version;  // 1, 2, 3, ...: what the store has after it.
  std::string_view name;
  const char* sql;
};
// Those compiled in, in order (migrations/*.sql).
std::span<const Migration> migrations();

class Store;

// One use of a prepared statement: bind the parameters in order, then read rows or run it. An error
// of any part comes out of row() or run(). Ends, and frees the statement for the next use, with its
// scope.
class Query {
 public:
  Query(Query&& other) noexcept;
  ~Query();

  Query& bind(int64_t value);
  Query& bind(double value);
  Query& bind(std::string_view value);
  Query& bind(ByteSpan value);

  Result<bool> row();  // Whether there is a (next) row; its columns are then readable.
  Result<void> run();  // To the end.

  // REQUIRES: row() was true.
  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  ByteVector blob(int column) const;

 private:
  friend class Store;
  Query(Store& store, sqlite3_stmt* statement) : store_(&store), statement_(statement) {}
  void keep_error(int code);

  Store* store_;
  sqlite3_stmt* statement_;  // Null when it could not be prepared, or moved from.
  std::optional<Error> error_;
  int bound_ = 0;
};

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
  struct State;
  explicit Store(std::unique_ptr<State> state);  // For open() alone.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Commits when `body` is ok, else undoes all that it wrote. Inside another transaction it joins
  // that one.
  Result<void> transaction(const std::function<Result<void>()>& body);

  // `sql` is a literal: statements are kept by its address.
  Query query(const char* sql);
  int64_t last_id() const;  // Of the row inserted last.
  int64_t changes() const;  // Rows that the last statement changed.

  int version() const;                 // Of the schema.
  Result<std::string> schema() const;  // Its whole text, sorted by name, for tests.
  Result<void> check_integrity();

 private:
  friend class Query;
  Result<void> migrate(std::span<const Migration> steps);
  Result<void> execute(const char* sql);
  Error last_error(std::string_view doing) const;

  std::unique_ptr<State> state_;
};

}  // namespace shoal
