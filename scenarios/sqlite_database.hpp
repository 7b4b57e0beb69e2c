// The C API of SQLite as objects that close themselves; whatever goes wrong ends the scenario. Open it to change how
// the sqlite scenario talks to its databases.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace scenario {

/// Before anything else of SQLite: no connection is shared, and SQLite counts no bytes, for which each allocation of
/// any thread would take one lock.
inline void set_up_sqlite() {
  if (sqlite3_config(SQLITE_CONFIG_MULTITHREAD) == SQLITE_OK &&
      sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) == SQLITE_OK && sqlite3_initialize() == SQLITE_OK)
    return;
  std::fprintf(stderr, "sqlite: cannot set up this build of SQLite for several threads\n");
  std::_Exit(1);
}

/// A database in memory, of one thread.
class Database {
 public:
  Database() { require(sqlite3_open(":memory:", &connection_)); }
  ~Database() { require(sqlite3_close(connection_)); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const char* sql) { require(sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr)); }

  void require(int result) const {
    if (__builtin_expect(result == SQLITE_OK, 1)) return;
    std::fprintf(stderr, "sqlite: %s\n", connection_ != nullptr ? sqlite3_errmsg(connection_) : "no memory");
    std::_Exit(1);
  }

  sqlite3* connection() const { return connection_; }

 private:
  sqlite3* connection_ = nullptr;
};

/// A statement with values for its parameters, which count from one; the columns of its rows count from zero.
class Statement {
 public:
  Statement(const Database& database, std::string_view sql) : database_(database) {
    database.require(
        sqlite3_prepare_v2(database.connection(), sql.data(), static_cast<int>(sql.size()), &statement_, nullptr));
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int parameter, std::int64_t value) {
    database_.require(sqlite3_bind_int64(statement_, parameter, value));
    return *this;
  }

  /// SQLite makes a copy of the text, as it does for the bindings of most languages.
  Statement& bind(int parameter, std::string_view text) {
    database_.require(
        sqlite3_bind_text(statement_, parameter, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
    return *this;
  }

  /// Goes to the next row. Returns false after the last one; the statement can be run again then.
  bool step() {
    const int result = sqlite3_step(statement_);
    if (result == SQLITE_ROW) return true;
    database_.require(result == SQLITE_DONE ? SQLITE_OK : result);
    database_.require(sqlite3_reset(statement_));
    return false;
  }

  std::int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string_view text(int column) const {
    const auto* const letters = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return {letters, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  const Database& database_;
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace scenario
