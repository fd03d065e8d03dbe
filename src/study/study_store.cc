#include "study/study_store.h"

#include <sqlite3.h>

#include <nlohmann/json.hpp>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/problem.h"

namespace transept {
namespace {

// The layout of the tables; a file of another one is refused.
constexpr int kVersion = 1;

constexpr const char* kTables = R"sql(
CREATE TABLE IF NOT EXISTS study (identity TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS models (name TEXT PRIMARY KEY, recipe TEXT NOT NULL, seed INTEGER NOT NULL,
                                   seconds REAL NOT NULL, finished TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP) STRICT;
CREATE TABLE IF NOT EXISTS cells (axes TEXT NOT NULL, recipe TEXT NOT NULL, measures TEXT NOT NULL, seed INTEGER NOT NULL,
                                  result TEXT NOT NULL, seconds REAL NOT NULL,
                                  finished TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
                                  PRIMARY KEY (axes, recipe, measures, seed)) STRICT;
)sql";

using Value = std::variant<int64_t, double, std::string>;

// One prepared statement with its values bound.
class Statement {
 public:
  Statement(sqlite3* database, const std::string& path, const char* sql, const std::vector<Value>& values)
      : database_(database), path_(path) {
    check(sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr));
    for (size_t i = 0; i < values.size(); ++i) {
      const int at = static_cast<int>(i) + 1;
      if (const auto* whole = std::get_if<int64_t>(&values[i])) {
        check(sqlite3_bind_int64(statement_, at, *whole));
      } else if (const auto* number = std::get_if<double>(&values[i])) {
        check(sqlite3_bind_double(statement_, at, *number));
      } else {
        const std::string& text = std::get<std::string>(values[i]);
        check(sqlite3_bind_text64(statement_, at, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
      }
    }
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Whether there is a row.
  bool step() {
    const int code = sqlite3_step(statement_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) check(code);
    return code == SQLITE_ROW;
  }
  std::string text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes ? std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : std::string();
  }
  int64_t whole(int column) const { return sqlite3_column_int64(statement_, column); }

 private:
  void check(int code) const {
    if (code == SQLITE_OK) return;
    const std::string what = sqlite3_errmsg(database_);
    sqlite3_finalize(statement_);
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
      throw InputError(path_, "is no study's database: " + what, "start again with --overwrite");
    throw EnvironmentError(path_, what);
  }

  sqlite3* database_;
  const std::string& path_;
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace

StudyStore::StudyStore(const std::filesystem::path& path, const Json& identity)
    : database_(nullptr, [](sqlite3* d) { sqlite3_close(d); }), path_(path.string()) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open(path_.c_str(), &opened);
  database_.reset(opened);
  if (code != SQLITE_OK) throw EnvironmentError(path_, opened ? sqlite3_errmsg(opened) : "could not be opened");
  const auto run = [&](const char* sql, const std::vector<Value>& values = {}) {
    Statement(opened, path_, sql, values).step();
  };
  run("PRAGMA journal_mode = WAL");
  run("PRAGMA synchronous = FULL");
  Statement version(opened, path_, "PRAGMA user_version", {});
  version.step();
  const bool fresh = version.whole(0) == 0;
  if (!fresh && version.whole(0) != kVersion)
    throw InputError(path_, "was written by another version", "start again with --overwrite");
  if (char* what = nullptr; sqlite3_exec(opened, kTables, nullptr, nullptr, &what) != SQLITE_OK) {
    const std::string text = what ? what : "the tables could not be made";
    sqlite3_free(what);
    throw EnvironmentError(path_, text);
  }
  run("PRAGMA user_version = 1");
  static_assert(kVersion == 1);
  Statement known(opened, path_, "SELECT identity FROM study", {});
  if (!known.step()) {
    run("INSERT INTO study (identity) VALUES (?)", {identity.dump()});
  } else if (known.text(0) != identity.dump()) {
    throw InputError(path_, "holds another study, or the same one of other data",
                     "name another folder, or start again with --overwrite");
  }
}

StudyStore::~StudyStore() = default;

std::optional<Json> StudyStore::cell(const DefinedCell& cell, int64_t seed) const {
  Statement s(database_.get(), path_,
              "SELECT result FROM cells WHERE axes = ? AND recipe = ? AND measures = ? AND seed = ?",
              {cell.axes.dump(), cell.recipe.dump(), cell.measures.dump(), seed});
  if (!s.step()) return std::nullopt;
  return parse_json(s.text(0), path_);
}

void StudyStore::put_cell(const DefinedCell& cell, int64_t seed, const Json& result, double seconds) {
  Statement(database_.get(), path_,
            "INSERT INTO cells (axes, recipe, measures, seed, result, seconds) VALUES (?, ?, ?, ?, ?, ?)",
            {cell.axes.dump(), cell.recipe.dump(), cell.measures.dump(), seed, result.dump(), seconds})
      .step();
}

bool StudyStore::has_model(const std::string& name) const {
  return Statement(database_.get(), path_, "SELECT 1 FROM models WHERE name = ?", {name}).step();
}

void StudyStore::put_model(const std::string& name, const Json& recipe, int64_t seed, double seconds) {
  Statement(database_.get(), path_, "INSERT INTO models (name, recipe, seed, seconds) VALUES (?, ?, ?, ?)",
            {name, recipe.dump(), seed, seconds})
      .step();
}

}  // namespace transept
