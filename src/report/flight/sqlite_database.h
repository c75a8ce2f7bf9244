#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace postflight {

// A text that is known to be plain.
struct SqliteWord {
  std::string_view text;
};

// An INSERT that is run again and again.
class SqliteInsert {
 public:
  // Adds a row: integers, floats, texts, and std::nullopt for NULL. Texts may
  // hold any bytes: what is no UTF-8, or NUL, is written \xNN, and then every
  // backslash in that text is doubled.
  template <class... Values>
  Result<> add(const Values&... values) {
    int column = 0;
    (bind(++column, values), ...);
    return step();
  }

 private:
  friend class SqliteDatabase;
  struct Finalise {
    void operator()(sqlite3_stmt* statement) const;
  };

  explicit SqliteInsert(sqlite3_stmt* statement) : statement_(statement) {}
  void bind(int column, std::int64_t value);
  void bind(int column, std::uint64_t value) {
    bind(column, static_cast<std::int64_t>(value));
  }
  void bind(int column, std::int32_t value) {
    bind(column, std::int64_t{value});
  }
  void bind(int column, std::uint32_t value) {
    bind(column, std::int64_t{value});
  }
  void bind(int column, bool value) {
    bind(column, std::int64_t{value ? 1 : 0});
  }
  void bind(int column, double value);
  void bind(int column, SqliteWord word);
  void bind(int column, std::string_view text);
  void bind(int column, const std::string& text) {
    bind(column, std::string_view(text));
  }
  void bind(int column, const char* text) {
    bind(column, std::string_view(text));
  }
  void bind(int column, std::nullopt_t null);
  template <class T>
  void bind(int column, const std::optional<T>& value) {
    if (value)
      bind(column, *value);
    else
      bind(column, std::nullopt);
  }
  Result<> step();

  std::unique_ptr<sqlite3_stmt, Finalise> statement_;
};

// A database that is being made: one transaction, no journal and no locks, for
// nobody else knows the file yet, and no syncs, which the caller does.
class SqliteDatabase {
 public:
  // `file` is empty or does not exist; the folder does.
  static Result<SqliteDatabase> create(const std::filesystem::path& file);

  Result<> run(const char* statements);
  // "INSERT INTO table VALUES(?, ?, ...)" with that many columns.
  Result<SqliteInsert> insert_into(std::string_view table, std::size_t columns);
  // Ends the transaction; nothing can be added afterwards.
  Result<> finish();

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };

  explicit SqliteDatabase(sqlite3* database) : database_(database) {}

  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace postflight
