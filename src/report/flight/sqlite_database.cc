#include "report/flight/sqlite_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include "base/utf8.h"

namespace postflight {
namespace {

tl::unexpected<Error> broken(sqlite3* database) {
  return fail(ErrorKind::kIo, "cannot write the database: {}",
              sqlite3_errmsg(database));
}

bool fits_in_text(std::string_view text) {
  return text.find('\0') == text.npos && is_utf8(text);
}

std::string escaped_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    const std::string_view bytes = text.substr(0, character.size);
    if (character.kind != Utf8Kind::kCharacter || character.code_point == 0)
      for (const char byte : bytes)
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    else if (bytes == "\\")
      out += "\\\\";
    else
      out += bytes;
    text.remove_prefix(character.size);
  }
  return out;
}

}  // namespace

void SqliteInsert::Finalise::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void SqliteInsert::bind(int column, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), column, value);
}

void SqliteInsert::bind(int column, double value) {
  sqlite3_bind_double(statement_.get(), column, value);
}

void SqliteInsert::bind(int column, SqliteWord word) {
  sqlite3_bind_text64(statement_.get(), column, word.text.data(),
                      word.text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

// A bind can only fail for want of memory; the row then has a NULL that its
// NOT NULL refuses, or the step fails too.
void SqliteInsert::bind(int column, std::string_view text) {
  // An empty text has to point somewhere, else it would be NULL.
  if (text.empty())
    text = std::string_view("");
  if (fits_in_text(text)) {
    bind(column, SqliteWord{text});
    return;
  }
  const std::string safe = escaped_text(text);
  sqlite3_bind_text64(statement_.get(), column, safe.data(), safe.size(),
                      SQLITE_TRANSIENT, SQLITE_UTF8);
}

void SqliteInsert::bind(int column, std::nullopt_t) {
  sqlite3_bind_null(statement_.get(), column);
}

Result<> SqliteInsert::step() {
  sqlite3_stmt* const statement = statement_.get();
  const int code = sqlite3_step(statement);
  sqlite3_reset(statement);
  if (code != SQLITE_DONE)
    return broken(sqlite3_db_handle(statement));
  return {};
}

void SqliteDatabase::Close::operator()(sqlite3* database) const {
  sqlite3_close(database);
}

Result<SqliteDatabase> SqliteDatabase::create(
    const std::filesystem::path& file) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(
      file.c_str(), &handle,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
      "unix-none");
  SqliteDatabase database(handle);
  if (code != SQLITE_OK)
    return broken(handle);
  TRY(
      database.run("PRAGMA page_size = 8192;"
                   "PRAGMA journal_mode = OFF;"
                   "PRAGMA synchronous = OFF;"
                   "PRAGMA locking_mode = EXCLUSIVE;"
                   "PRAGMA cache_size = -32768;"
                   "PRAGMA temp_store = MEMORY;"
                   "BEGIN"));
  return database;
}

Result<> SqliteDatabase::run(const char* statements) {
  if (sqlite3_exec(database_.get(), statements, nullptr, nullptr, nullptr) !=
      SQLITE_OK)
    return broken(database_.get());
  return {};
}

Result<SqliteInsert> SqliteDatabase::insert_into(std::string_view table,
                                                 std::size_t columns) {
  std::string text = fmt::format("INSERT INTO {} VALUES(?", table);
  for (std::size_t i = 1; i < columns; ++i)
    text += ",?";
  text += ")";
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_.get(), text.c_str(), -1, &statement,
                         nullptr) != SQLITE_OK)
    return broken(database_.get());
  return SqliteInsert(statement);
}

Result<> SqliteDatabase::finish() {
  return run("COMMIT");
}

}  // namespace postflight
