#include "base/sqlite/database.h"

#include <sqlite3.h>

#include <map>
#include <utility>

namespace shoal {
namespace {

ErrorCode code_of(int sqlite_code) {
  switch (sqlite_code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return ErrorCode::kCorrupt;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG: return ErrorCode::kNoSpace;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH: return ErrorCode::kDenied;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return ErrorCode::kUnavailable;
    case SQLITE_CONSTRAINT: return ErrorCode::kExists;
    default: return ErrorCode::kIo;
  }
}

}  // namespace

struct Database::State {
  std::filesystem::path path;
  std::string name;
  std::string_view (*advice)(ErrorCode code) = nullptr;
  bool synchronous_full = true;
  sqlite3* database = nullptr;
  std::map<const char*, sqlite3_stmt*> statements;
  bool in_transaction = false;

  ~State() {
    for (const auto& [sql, statement] : statements) sqlite3_finalize(statement);
    sqlite3_close(database);
  }
};

Database::Database(std::unique_ptr<State> state) : state_(std::move(state)) {}
Database::~Database() = default;

Error Database::last_error(std::string_view doing) const {
  const int code = sqlite3_extended_errcode(state_->database);
  std::string text = state_->name + " " + state_->path.string() + ": " + std::string(doing) + ": " +
                     sqlite3_errmsg(state_->database);
  const ErrorCode kind = code_of(code);
  if (state_->advice != nullptr) text += state_->advice(kind);
  return {kind, std::move(text)};
}

Result<std::unique_ptr<Database>> Database::open(const std::filesystem::path& path,
                                                 const Options& options) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->name = options.name;
  state->advice = options.advice;
  state->synchronous_full = options.synchronous_full;
  auto opened = std::make_unique<Database>(std::move(state));
  Database& database = *opened;
  if (sqlite3_open_v2(
          path.c_str(), &database.state_->database,
          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
          options.vfs) != SQLITE_OK) {
    return database.last_error("cannot open");
  }
  sqlite3_busy_timeout(database.state_->database, static_cast<int>(options.busy.count));
  // What is inside is the owner's alone.
  std::error_code code;
  std::filesystem::permissions(
      path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, code);
  SHOAL_TRY(database.execute("PRAGMA journal_mode = WAL"));
  SHOAL_TRY(database.execute(options.synchronous_full ? "PRAGMA synchronous = FULL"
                                                      : "PRAGMA synchronous = NORMAL"));
  SHOAL_TRY(database.execute("PRAGMA foreign_keys = ON"));
  SHOAL_TRY(database.execute("PRAGMA trusted_schema = OFF"));
  SHOAL_TRY(database.migrate(options));
  {
    Query check = database.query("PRAGMA quick_check(1)");
    SHOAL_TRY_ASSIGN(some, check.row());
    if (!some || check.text(0) != "ok") {
      std::string text = database.state_->name + " " + path.string() + " is damaged (" +
                         (some ? check.text(0) : "no answer") + ")";
      if (options.advice != nullptr) text += options.advice(ErrorCode::kCorrupt);
      return Error{ErrorCode::kCorrupt, std::move(text)};
    }
  }
  return opened;
}

int Database::version() const {
  int version = 0;
  sqlite3_exec(
      state_->database, "PRAGMA user_version",
      [](void* out, int, char** values, char**) {
        *static_cast<int*>(out) = std::atoi(values[0]);
        return 0;
      },
      &version, nullptr);
  return version;
}

Result<void> Database::migrate(const Options& options) {
  int application = 0;
  {
    Query query = this->query("PRAGMA application_id");
    SHOAL_TRY_ASSIGN(some, query.row());
    if (some) application = static_cast<int>(query.integer(0));
  }
  const int have = version();
  if (application != options.application_id && (application != 0 || have != 0)) {
    return Error{ErrorCode::kCorrupt, state_->path.string() + " is a database of another program"};
  }
  const int newest = options.migrations.empty() ? 0 : options.migrations.back().version;
  if (have > newest) {
    return Error{ErrorCode::kUnsupported,
                 state_->path.string() + " was written by a newer Shoal (its schema is version " +
                     std::to_string(have) + ", this program knows " + std::to_string(newest) +
                     "); install that one, or restore a backup from before"};
  }
  if (have == newest) return {};
  return transaction([&]() -> Result<void> {
    SHOAL_TRY(
        execute(("PRAGMA application_id = " + std::to_string(options.application_id)).c_str()));
    for (const Migration& step : options.migrations) {
      if (step.version <= have) continue;
      if (const Result<void> done = execute(step.sql); !done.ok()) {
        return with_context(done.error(), "migration " + std::string(step.name));
      }
      SHOAL_TRY(execute(("PRAGMA user_version = " + std::to_string(step.version)).c_str()));
    }
    return {};
  });
}

Result<void> Database::execute(const char* sql) {
  if (sqlite3_exec(state_->database, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return last_error("cannot write");
  }
  return {};
}

Result<void> Database::transaction(const std::function<Result<void>()>& body) {
  if (state_->in_transaction) return body();
  SHOAL_TRY(execute("BEGIN IMMEDIATE"));
  state_->in_transaction = true;
  Result<void> done = body();
  if (done.ok()) done = execute("COMMIT");
  state_->in_transaction = false;
  // Some failures have undone everything already; then there is nothing left to roll back.
  if (!done.ok() && sqlite3_get_autocommit(state_->database) == 0) {
    sqlite3_exec(state_->database, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  return done;
}

Result<void> Database::durable_transaction(const std::function<Result<void>()>& body) {
  if (state_->synchronous_full) return transaction(body);
  SHOAL_CHECK(!state_->in_transaction);  // The one around it would not be durable.
  SHOAL_TRY(execute("PRAGMA synchronous = FULL"));
  Result<void> done = transaction(body);
  const Result<void> back = execute("PRAGMA synchronous = NORMAL");
  if (done.ok() && !back.ok()) return back;
  return done;
}

Query Database::query(const char* sql) {
  sqlite3_stmt*& statement = state_->statements[sql];
  if (statement == nullptr) {
    const int code = sqlite3_prepare_v3(state_->database, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
    if (code != SQLITE_OK) {
      Query query(*this, nullptr);
      query.error_ = last_error("cannot prepare");
      return query;
    }
  }
  SHOAL_CHECK(sqlite3_stmt_busy(statement) == 0);  // A query inside its own rows.
  return Query(*this, statement);
}

int64_t Database::last_id() const { return sqlite3_last_insert_rowid(state_->database); }
int64_t Database::changes() const { return sqlite3_changes(state_->database); }

Result<std::string> Database::schema() const {
  std::string text;
  const int code = sqlite3_exec(
      state_->database,
      "SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_schema "
      "WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name",
      [](void* out, int, char** values, char**) {
        static_cast<std::string*>(out)->append(values[0]).append("\n");
        return 0;
      },
      &text, nullptr);
  if (code != SQLITE_OK) return last_error("cannot read the schema");
  return text;
}

Result<std::vector<std::pair<std::string, std::string>>> Database::plans() const {
  std::vector<std::pair<std::string, std::string>> plans;
  for (const auto& [sql, statement] : state_->statements) {
    const std::string explained = "EXPLAIN QUERY PLAN " + std::string(sql);
    sqlite3_stmt* plan = nullptr;
    if (sqlite3_prepare_v2(state_->database, explained.c_str(), -1, &plan, nullptr) != SQLITE_OK)
      return last_error("cannot explain");
    std::string text;
    while (sqlite3_step(plan) == SQLITE_ROW) {
      text += reinterpret_cast<const char*>(sqlite3_column_text(plan, 3));
      text += '\n';
    }
    sqlite3_finalize(plan);
    plans.emplace_back(sql, std::move(text));
  }
  return plans;
}

Result<void> Database::check_integrity() {
  for (const char* pragma : {"PRAGMA integrity_check(3)", "PRAGMA foreign_key_check"}) {
    Query query = this->query(pragma);
    SHOAL_TRY_ASSIGN(some, query.row());
    if (some && query.text(0) != "ok") {
      return Error{ErrorCode::kCorrupt,
                   state_->name + " " + state_->path.string() + ": " + query.text(0)};
    }
  }
  return {};
}

Query::Query(Query&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      error_(std::move(other.error_)),
      bound_(other.bound_) {}

Query::~Query() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void Query::keep_error(int code) {
  if (code != SQLITE_OK && !error_) error_ = database_->last_error("cannot bind");
}

Query& Query::bind(int64_t value) {
  if (statement_ != nullptr) keep_error(sqlite3_bind_int64(statement_, ++bound_, value));
  return *this;
}
Query& Query::bind(double value) {
  if (statement_ != nullptr) keep_error(sqlite3_bind_double(statement_, ++bound_, value));
  return *this;
}
Query& Query::bind(std::string_view value) {
  if (statement_ != nullptr) {
    keep_error(sqlite3_bind_text64(statement_, ++bound_,
                                   value.data() == nullptr ? "" : value.data(), value.size(),
                                   SQLITE_TRANSIENT, SQLITE_UTF8));
  }
  return *this;
}
Query& Query::bind(ByteSpan value) {
  if (statement_ != nullptr) {
    static constexpr std::byte kNothing{};
    keep_error(sqlite3_bind_blob64(statement_, ++bound_,
                                   value.data() == nullptr ? &kNothing : value.data(), value.size(),
                                   SQLITE_TRANSIENT));
  }
  return *this;
}

Query& Query::bind_null() {
  if (statement_ != nullptr) keep_error(sqlite3_bind_null(statement_, ++bound_));
  return *this;
}

Result<bool> Query::row() {
  if (error_) return *error_;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  error_ = database_->last_error(sqlite3_stmt_readonly(statement_) != 0 ? "cannot read"
                                                                        : "cannot write");
  return *error_;
}

Result<void> Query::run() {
  while (true) {
    SHOAL_TRY_ASSIGN(more, row());
    if (!more) return {};
  }
}

bool Query::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
int64_t Query::integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Query::real(int column) const { return sqlite3_column_double(statement_, column); }
std::string Query::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return data == nullptr
             ? ""
             : std::string(data, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}
ByteVector Query::blob(int column) const {
  const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
  return data == nullptr ? ByteVector()
                         : ByteVector(data, data + sqlite3_column_bytes(statement_, column));
}

}  // namespace shoal
