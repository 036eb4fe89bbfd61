#pragma once
// One SQLite database: opens, migrates, runs transactions and prepared statements. Knows no table.
//
// All of it belongs to one thread.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/units.h"

struct sqlite3;
struct sqlite3_stmt;

namespace shoal {

// A numbered step of a schema. Never edited after its release.
struct Migration {
  int version;  // 1, 2, 3, ...: what the database has after it.
  std::string_view name;
  const char* sql;
};

class Database;

// One use of a prepared statement: bind the parameters in order, then read rows or run it. An error
// of any part comes out of row() or run(). Ends, and frees the statement for the next use, with its
// scope.
class Query {
 public:
  Query(Query&& other) noexcept;
  ~Query();

  Query& bind(int64_t value);
  Query& bind(double value);  // A NaN is stored as NULL.
  Query& bind(std::string_view value);
  Query& bind(ByteSpan value);
  Query& bind_null();

  Result<bool> row();  // Whether there is a (next) row; its columns are then readable.
  Result<void> run();  // To the end.

  // REQUIRES: row() was true.
  bool is_null(int column) const;
  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  ByteVector blob(int column) const;

 private:
  friend class Database;
  Query(Database& database, sqlite3_stmt* statement)
      : database_(&database), statement_(statement) {}
  void keep_error(int code);

  Database* database_;
  sqlite3_stmt* statement_;  // Null when it could not be prepared, or moved from.
  std::optional<Error> error_;
  int bound_ = 0;
};

class Database {
 public:
  struct Options {
    std::string_view name;   // Begins every error: "store".
    int application_id = 0;  // Stands in the file and says whose it is.
    std::span<const Migration> migrations;
    Millis busy{2000};             // How long a call waits while another program holds the file.
    const char* vfs = nullptr;     // For tests that make writes fail.
    bool synchronous_full = true;  // Else a power cut may undo the last commits, whole.
    // What a person can do about such an error, put behind its text; may be null.
    std::string_view (*advice)(ErrorCode code) = nullptr;
  };

  // Makes the file when there is none (0600). kCorrupt for a damaged or foreign file, kUnsupported
  // for one written by a newer Shoal, kDenied when not writable, kUnavailable while another program
  // holds it.
  static Result<std::unique_ptr<Database>> open(const std::filesystem::path& path,
                                                const Options& options);
  struct State;
  explicit Database(std::unique_ptr<State> state);  // For open() alone.
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Commits when `body` is ok, else undoes all that it wrote. Inside another transaction it joins
  // that one.
  Result<void> transaction(const std::function<Result<void>()>& body);
  // With synchronous=FULL for this one: when it returns ok, it is on the disk.
  Result<void> durable_transaction(const std::function<Result<void>()>& body);

  // `sql` is a literal: statements are kept by its address.
  Query query(const char* sql);
  int64_t last_id() const;  // Of the row inserted last.
  int64_t changes() const;  // Rows that the last statement changed.

  int version() const;                 // Of the schema.
  Result<std::string> schema() const;  // Its whole text, sorted by name, for tests.
  Result<void> check_integrity();
  // How each statement that was used so far is run, for tests: its text and the plan.
  Result<std::vector<std::pair<std::string, std::string>>> plans() const;

 private:
  friend class Query;
  Result<void> migrate(const Options& options);
  Result<void> execute(const char* sql);
  Error last_error(std::string_view doing) const;

  std::unique_ptr<State> state_;
};

}  // namespace shoal
