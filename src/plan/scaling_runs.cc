#include "plan/scaling_runs.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "base/problem.h"
#include "base/quantity.h"
#include "plan/scaling_laws.h"

namespace transept {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{16} << 20;
constexpr size_t kMaxProblems = 20;  // more of them help nobody
constexpr double kMaxLoss = 1000;

enum Field : size_t { kParams, kTokens, kFlops, kLoss, kFields };
constexpr std::array<std::string_view, kFields> kNames{"params", "tokens", "flops", "loss"};
constexpr std::string_view kForm = "needed are params, loss, and tokens or flops";

using Values = std::array<std::optional<double>, kFields>;

// Problems up to a bound; the rest is counted.
class Report {
 public:
  void add(std::string where, std::string what, std::string mend = {}) {
    if (problems_.size() < kMaxProblems) {
      problems_.push_back({std::move(where), std::move(what), std::move(mend)});
    } else {
      ++more_;
    }
  }
  void end(const std::string& where) {
    if (more_ > 0) problems_.push_back({where, fmt::format("holds {} more problems of this kind", more_), ""});
    throw_if_any(std::move(problems_));
  }

 private:
  Problems problems_;
  size_t more_ = 0;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// What a message shows of a file's text.
std::string shown(std::string_view text) {
  constexpr size_t kLongest = 40;
  const bool cut = text.size() > kLongest;
  return Json(text.substr(0, kLongest)).dump(-1, ' ', true, Json::error_handler_t::replace) + (cut ? " …" : "");
}

// A run from the values of its row; nothing, and a problem, where they make none.
std::optional<ScalingRun> make_run(const Values& values, const std::string& where, Report& report) {
  bool good = true;
  const auto check = [&](Field field, const QuantityRange& range) {
    if (!values[field] || range.holds(*values[field])) return;
    report.add(where, fmt::format("{} {:g} is out of range", kNames[field], *values[field]),
               fmt::format("allowed are {:g} to {:g}", range.low, range.high));
    good = false;
  };
  check(kParams, kParamsRange);
  check(kTokens, kTokensRange);
  if (!values[kTokens]) check(kFlops, kFlopsRange);
  check(kLoss, {1e-6, kMaxLoss});
  if (!good) return std::nullopt;
  ScalingRun run{*values[kParams], 0, *values[kLoss]};
  run.tokens = values[kTokens] ? *values[kTokens] : *values[kFlops] / (kTrainFlops * run.params);
  if (kTokensRange.holds(run.tokens)) return run;
  report.add(where, fmt::format("flops {:g} make {:g} tokens for {:g} params", *values[kFlops], run.tokens, run.params),
             "flops are 6 * params * tokens");
  return std::nullopt;
}

// The cells of a CSV line; a cell may stand in double quotes.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  size_t start = 0;
  bool quoted = false;
  for (size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') quoted = !quoted;
    if (i < line.size() && (line[i] != ',' || quoted)) continue;
    std::string_view cell = trimmed(line.substr(start, i - start));
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
    cells.push_back(cell);
    start = i + 1;
  }
  return cells;
}

// Calls body(line, number) for every line that is not blank.
template <class Body>
void for_lines(std::string_view text, const Body& body) {
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    if (!line.empty()) body(line, number);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

void check_count(size_t count, const std::string& where) {
  if (count > kMaxRuns)
    throw InputError(where, fmt::format("holds more than {} runs", kMaxRuns), "fit a sample of them");
}

std::vector<ScalingRun> parse_csv(std::string_view text, const std::string& where, Report& report) {
  std::vector<ScalingRun> runs;
  std::array<std::optional<size_t>, kFields> columns;
  size_t width = 0, rows = 0;
  for_lines(text, [&](std::string_view line, size_t number) {
    const std::string at = fmt::format("{}:{}", where, number);
    const std::vector<std::string_view> cells = cells_of(line);
    if (width == 0) {
      width = cells.size();
      for (size_t i = 0; i < width; ++i) {
        for (size_t f = 0; f < kFields; ++f) {
          if (cells[i] != kNames[f]) continue;
          if (columns[f]) throw InputError(at, fmt::format("column {} stands twice", kNames[f]), "remove one of them");
          columns[f] = i;
        }
      }
      if (!columns[kParams] || !columns[kLoss] || (!columns[kTokens] && !columns[kFlops]))
        throw InputError(at, "the header " + shown(line) + " lacks a column", std::string(kForm));
      return;
    }
    check_count(++rows, where);
    if (cells.size() != width) {
      report.add(at, fmt::format("has {} cells, the header has {}", cells.size(), width));
      return;
    }
    Values values;
    bool good = true;
    for (size_t f = 0; f < kFields; ++f) {
      if (!columns[f] || (f == kFlops && columns[kTokens])) continue;
      values[f] = parse_quantity(cells[*columns[f]]);
      if (values[f]) continue;
      report.add(at, fmt::format("{} {} is not a positive number", kNames[f], shown(cells[*columns[f]])));
      good = false;
    }
    if (!good) return;
    if (const auto run = make_run(values, at, report)) runs.push_back(*run);
  });
  return runs;
}

std::optional<ScalingRun> run_of(const Json& object, const std::string& at, Report& report) {
  if (!object.is_object()) {
    report.add(at, "is not an object", std::string(kForm));
    return std::nullopt;
  }
  Values values;
  bool good = true;
  for (size_t f = 0; f < kFields; ++f) {
    const auto found = object.find(kNames[f]);
    if (found == object.end() || (f == kFlops && values[kTokens])) continue;
    if (found->is_number()) values[f] = found->get<double>();
    if (found->is_string()) values[f] = parse_quantity(found->get<std::string>());
    if (values[f] && *values[f] > 0) continue;
    report.add(at, fmt::format("{} is not a positive number", kNames[f]));
    good = false;
  }
  if (!good) return std::nullopt;
  if (!values[kParams] || !values[kLoss] || (!values[kTokens] && !values[kFlops])) {
    report.add(at, "lacks a key", std::string(kForm));
    return std::nullopt;
  }
  return make_run(values, at, report);
}

std::vector<ScalingRun> parse_array(std::string_view text, const std::string& where, Report& report) {
  std::vector<ScalingRun> runs;
  const Json array = parse_json(text, where);
  check_count(array.size(), where);
  for (size_t i = 0; i < array.size(); ++i) {
    if (const auto run = run_of(array[i], fmt::format("{}[{}]", where, i), report)) runs.push_back(*run);
  }
  return runs;
}

std::vector<ScalingRun> parse_lines(std::string_view text, const std::string& where, Report& report) {
  std::vector<ScalingRun> runs;
  size_t rows = 0;
  for_lines(text, [&](std::string_view line, size_t number) {
    check_count(++rows, where);
    const std::string at = fmt::format("{}:{}", where, number);
    try {
      if (const auto run = run_of(parse_json(line, at), at, report)) runs.push_back(*run);
    } catch (const InputError& e) {
      report.add(e.problems()[0].where, e.problems()[0].what, e.problems()[0].mend);
    }
  });
  return runs;
}

}  // namespace

double ScalingRun::flops() const { return kTrainFlops * params * tokens; }

std::vector<ScalingRun> parse_runs(std::string_view text, const std::string& where) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) throw InputError(where, "holds no runs", std::string(kForm));
  Report report;
  const std::vector<ScalingRun> runs = text[first] == '['   ? parse_array(text, where, report)
                                       : text[first] == '{' ? parse_lines(text, where, report)
                                                            : parse_csv(text, where, report);
  report.end(where);
  return runs;
}

std::vector<ScalingRun> read_runs(const std::filesystem::path& path) {
  return parse_runs(read_file(path, kMaxBytes), path.string());
}

}  // namespace transept
