// Writes the flight database of the job in a folder, alternating with the same
// rows in a bare bind-and-step loop; prints a line of a table.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <sqlite3.h>

#include "base/temporary_folder.h"
#include "flight/model/job_loader.h"
#include "report/flight/schema.h"
#include "report/flight/sqlite.h"

namespace postflight {
namespace {

// Small, so that reading it costs the loop little.
struct Value {
  int type = SQLITE_NULL;
  int size = 0;  // of a text
  union {
    std::int64_t integer = 0;
    double real;
    const char* text;
  };
};

struct Table {
  std::string name;
  int columns = 0;
  std::vector<Value> values;  // row by row
};

void check(bool well, const char* what) {
  if (well)
    return;
  fmt::print(stderr, "{} failed\n", what);
  std::exit(2);
}

double seconds(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// Keeps its texts in `texts`.
Table read_table(sqlite3* database, const std::string& name,
                 std::set<std::string>& texts) {
  Table table{name, 0, {}};
  sqlite3_stmt* rows = nullptr;
  const std::string query = "SELECT * FROM " + name;
  sqlite3_prepare_v2(database, query.c_str(), -1, &rows, nullptr);
  table.columns = sqlite3_column_count(rows);
  while (sqlite3_step(rows) == SQLITE_ROW)
    for (int i = 0; i < table.columns; ++i) {
      Value value;
      value.type = sqlite3_column_type(rows, i);
      if (value.type == SQLITE_INTEGER) {
        value.integer = sqlite3_column_int64(rows, i);
      } else if (value.type == SQLITE_FLOAT) {
        value.real = sqlite3_column_double(rows, i);
      } else if (value.type == SQLITE_TEXT) {
        const auto [text, is_new] = texts.emplace(
            reinterpret_cast<const char*>(sqlite3_column_text(rows, i)));
        value.text = text->data();
        value.size = static_cast<int>(text->size());
      }
      table.values.push_back(value);
    }
  sqlite3_finalize(rows);
  return table;
}

std::vector<Table> read_tables(const std::string& file,
                               std::set<std::string>& texts) {
  sqlite3* database = nullptr;
  sqlite3_open(file.c_str(), &database);
  std::vector<std::string> names;
  sqlite3_exec(
      database, "SELECT name FROM sqlite_schema WHERE type = 'table'",
      [](void* list, int, char** values, char**) {
        static_cast<std::vector<std::string>*>(list)->push_back(values[0]);
        return 0;
      },
      &names, nullptr);
  std::vector<Table> tables;
  for (const std::string& name : names)
    tables.push_back(read_table(database, name, texts));
  sqlite3_close(database);
  return tables;
}

void insert_rows(sqlite3* database, const Table& table) {
  std::string text = "INSERT INTO " + table.name + " VALUES(?";
  for (int i = 1; i < table.columns; ++i)
    text += ",?";
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(database, (text + ")").c_str(), -1, &insert, nullptr);
  int column = 0;
  for (const Value& value : table.values) {
    ++column;
    if (value.type == SQLITE_INTEGER)
      sqlite3_bind_int64(insert, column, value.integer);
    else if (value.type == SQLITE_FLOAT)
      sqlite3_bind_double(insert, column, value.real);
    else if (value.type == SQLITE_TEXT)
      sqlite3_bind_text(insert, column, value.text, value.size, SQLITE_STATIC);
    else
      sqlite3_bind_null(insert, column);
    if (column < table.columns)
      continue;
    check(sqlite3_step(insert) == SQLITE_DONE, "a row");
    sqlite3_reset(insert);
    column = 0;
  }
  sqlite3_finalize(insert);
}

void write_bare(const std::vector<Table>& tables, const std::string& file,
                bool indexes) {
  sqlite3* database = nullptr;
  sqlite3_open_v2(
      file.c_str(), &database,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
      "unix-none");
  const auto run = [&](const char* text) {
    check(sqlite3_exec(database, text, nullptr, nullptr, nullptr) == SQLITE_OK,
          text);
  };
  run("PRAGMA page_size = 8192; PRAGMA journal_mode = OFF;"
      "PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
      "PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY; BEGIN");
  run(kFlightTables);
  for (const Table& table : tables)
    insert_rows(database, table);
  if (indexes)
    run(kFlightIndexes);
  run("COMMIT");
  sqlite3_close(database);
  const int descriptor = ::open(file.c_str(), O_RDONLY);
  ::fsync(descriptor);
  ::close(descriptor);
}

void bench(const std::string& dumps, int rounds) {
  Result<TemporaryFolder> folder = TemporaryFolder::create();
  check(folder.has_value(), "a temporary folder");
  const std::vector<std::string> paths = {dumps};
  const Result<Job> job = load_job(paths, {}, {});
  check(job.has_value(), "loading the job");

  const std::string ours = folder->path() / "ours.db";
  const std::string bare = folder->path() / "bare.db";
  const auto write = [&] {
    const Matching matching(*job);
    check(write_flight_sqlite(matching, tabulate(matching), ours,
                              Existing::kReplace)
              .has_value(),
          "writing");
  };
  write();
  std::set<std::string> texts;
  const std::vector<Table> tables = read_tables(ours, texts);
  std::uint64_t rows = 0;
  for (const Table& table : tables)
    rows += table.values.size() / static_cast<std::size_t>(table.columns);

  double best_ours = std::numeric_limits<double>::max();
  double best_bare = best_ours;
  double best_indexed = best_ours;
  double best_matching = best_ours;
  const auto bare_time = [&](bool indexes) {
    std::filesystem::remove(bare);
    return seconds([&] { write_bare(tables, bare, indexes); });
  };
  for (int i = 0; i < rounds; ++i) {
    best_ours = std::min(best_ours, seconds(write));
    best_indexed = std::min(best_indexed, bare_time(true));
    best_bare = std::min(best_bare, bare_time(false));
    best_matching =
        std::min(best_matching, seconds([&] { tabulate(Matching(*job)); }));
  }
  const double indexing = best_indexed - best_bare;
  fmt::print(
      "| {} ranks, {} entries | {} | {:.0f} MB | {:.2f} s | {:.2f} s | {:.2f} "
      "s | {:.2f} s | **{:.2f}** | {:.2f} |\n",
      job->ranks.size(), job->entry_count(), rows,
      static_cast<double>(std::filesystem::file_size(ours)) / 1e6,
      best_matching, best_ours, best_bare, best_indexed,
      best_bare / (best_ours - indexing), best_indexed / best_ours);
}

}  // namespace
}  // namespace postflight

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: flight_sqlite_bench FOLDER ROUNDS\n");
    return 2;
  }
  postflight::bench(argv[1], std::atoi(argv[2]));
  return 0;
}
