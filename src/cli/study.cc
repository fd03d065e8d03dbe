// transept study: an experiment that changes one thing and keeps all else equal, with its page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/format_number.h"
#include "base/problem.h"
#include "base/stop_request.h"
#include "cli/build_info.h"
#include "cli/command.h"
#include "data/synthetic.h"
#include "data/tokenizer_choice.h"
#include "kernels/isa.h"
#include "study/studies.h"
#include "study/study_document.h"
#include "study/study_report.h"
#include "study/study_run.h"
#include "train/progress.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

// Where tools/fetch_plays.py puts the plays, from the root of the source tree.
constexpr const char* kPlays = ".cache/plays";
constexpr uint64_t kSyntheticBytes = 5'000'000;  // about as much as the plays have

struct Options {
  std::string name, out;
  std::vector<std::string> data;
  bool quick = false, full = false, list = false, overwrite = false;
};

int list(const Globals& globals) {
  const std::vector<StudyListing> studies = list_studies();
  if (globals.json) {
    Json out = Json::array();
    for (const StudyListing& s : studies)
      out.push_back({{"name", s.name}, {"title", s.title}, {"question", s.question}});
    print_json(out);
    return 0;
  }
  for (const StudyListing& s : studies) fmt::print("{:<12} {}\n", s.name, s.title);
  return 0;
}

struct StudyText {
  TextFiles files;
  std::string description;
};

StudyText text_of(const Options& o) {
  std::error_code code;
  std::vector<fs::path> paths(o.data.begin(), o.data.end());
  if (paths.empty() && fs::is_directory(kPlays, code)) paths = {kPlays};
  if (paths.empty()) {
    fmt::print(stderr, "no --data, and no plays in {}: on synthetic text\n", kPlays);
    return {{{{"synthetic", synthetic_text(kSyntheticBytes, 0)}}, {}},
            fmt::format("{} bytes of synthetic text", format_count(kSyntheticBytes))};
  }
  StudyText text{read_texts(paths), {}};
  for (const fs::path& p : text.files.skipped)
    fmt::print(stderr, "{}: left out, it is empty or not text\n", p.string());
  std::vector<std::string> names;
  for (const fs::path& p : paths) names.push_back(p.string());
  text.description =
      fmt::format("{} ({} bytes)", fmt::join(names, ", "), format_count(static_cast<double>(text.files.bytes())));
  return text;
}

// What an earlier run left, of this study or another.
void clear(const fs::path& out) {
  for (const char* name :
       {"study.sqlite", "study.sqlite-wal", "study.sqlite-shm", "results.json", "report.html", "models"})
    fs::remove_all(out / name);
}

// Every mean, its axes before it.
void print_summary(const Json& results) {
  for (const Json& row : results.at("summary")) {
    fmt::print("{}: {} {}{}\n", axes_text(row.at("axes")), row.at("metric").get<std::string>(),
               format_spread(row.at("mean").get<double>(), row.at("sd").is_null() ? NAN : row.at("sd").get<double>()),
               row.at("n") == 1 ? "" : fmt::format(" (n = {})", row.at("n").dump()));
  }
  for (const Json& cell : results.at("cells")) {
    if (cell.contains("refused") && cell.at("seed") == 0)
      fmt::print("{}: refused: {}\n", axes_text(cell.at("axes")), cell.at("refused").get<std::string>());
  }
}

int run(const Options& o, const Globals& globals) {
  if (o.list) return list(globals);
  Problems problems;
  if (o.name.empty()) problems.push_back({"NAME", "is missing", "see `transept study --list`"});
  if (o.out.empty()) problems.push_back({"--out", "is missing", "name a folder for the results"});
  if (o.quick && o.full) problems.push_back({"--quick", "and --full cannot both be given", ""});
  throw_if_any(std::move(problems));

  const StudyDefinition definition = find_study(o.name, o.quick ? StudySize::kQuick : StudySize::kFull);
  const StudyText text = text_of(o);
  const TrainConfig& training = definition.training;
  const int64_t vocab_size = definition.vocab_size();
  const auto tokenizer =
      choose_tokenizer(definition.tokenizer, vocab_size, text.files, training.examples.objective, training.context);
  const Vocabulary vocabulary = vocabulary_of(*tokenizer);
  check_examples(training.examples, vocabulary, training.context);
  const Corpus corpus(text.files, nullptr, *tokenizer,
                      {.unit = unit_of(training.examples, false),
                       .context = training.context,
                       .val_fraction = definition.val_fraction,
                       .window = window_tokens(training.examples.objective, training.context, vocabulary)});
  if (o.overwrite) clear(o.out);
  make_writable_folder(o.out);
  ThreadPool pool = globals.pool();
  catch_stop_signals();
  std::optional<Progress> progress;
  StudyRun study{.out = o.out,
                 .data = text.description,
                 .command = globals.command_line,
                 .machine = this_machine(instruction_set_name(), build_commit()),
                 .progress =
                     [&](const ProgressState& state) {
                       if (!progress) progress.emplace(kStudyProgress, state.step);
                       progress->update(state);
                     },
                 .note =
                     [&](const std::string& line) {
                       if (progress) {
                         progress->note(line);
                       } else {
                         fmt::print(stderr, "{}\n", line);
                       }
                     },
                 .stop = &stop_requested()};
  const Json results = run_study(definition, pool, corpus, *tokenizer, study);
  if (progress) progress->finish();
  if (results.is_null()) {
    fmt::print(stderr, "stopped; the same command goes on where it was\n");
    return 130;
  }
  const fs::path path = fs::path(o.out) / "report.html";
  const ReportPage page = study_report_page(results);
  write_report(path, page);
  if (globals.json) {
    print_json(results);
  } else {
    print_summary(results);
    for (const KeyFigure& figure : page.figures) fmt::print("{}: {} {}\n", figure.label, figure.value, figure.note);
    fmt::print("results: {}\npage: {}\n", (fs::path(o.out) / "results.json").string(), path.string());
  }
  return 0;
}

}  // namespace

void register_study(Registry& registry) {
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add(
      "study",
      "an experiment: one thing changed, all else equal, several seeds, one page; stops cleanly on Ctrl-C (exit code "
      "130), and the same command goes on",
      [o, &globals] { return run(*o, globals); });
  sub->add_option("NAME", o->name, "a study of the program (--list), or a file that defines one");
  sub->add_option("--out", o->out, "folder: report.html, results.json, study.sqlite, models/");
  sub->add_option("--data", o->data,
                  "text files and folders (default: the plays in .cache/plays, else synthetic text)");
  sub->add_flag("--quick", o->quick, "smaller models and fewer cells: minutes");
  sub->add_flag("--full", o->full, "the whole study (default)");
  sub->add_flag("--list", o->list, "the studies of the program");
  sub->add_flag("--overwrite", o->overwrite, "start again in a folder that holds a study");
}

}  // namespace transept
