#include "train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace transept {
namespace {

constexpr double kRedrawInterval = 0.1;  // ten a second: smooth to the eye, unnoticed by the work
constexpr int kFallbackColumns = 80;
constexpr int kMaxBarColumns = 30;
constexpr int kMinBarColumns = 6;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = environment(name);
    if (!value.empty()) return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

int stderr_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kFallbackColumns;
}

std::string rate_text(double rate) {
  if (rate >= 1e6) return fmt::format("{:.2f}M tok/s", rate / 1e6);
  if (rate >= 1e4) return fmt::format("{:.1f}k tok/s", rate / 1e3);
  return fmt::format("{:.0f} tok/s", rate);
}

std::string repeat(std::string_view piece, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out.append(piece);
  return out;
}

}  // namespace

std::string format_duration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  const int64_t s = std::llround(seconds);
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s % 3600 / 60);
  return fmt::format("{}d{:02}h", s / 86400, s % 86400 / 3600);
}

ProgressOptions ProgressOptions::for_stderr() {
  ProgressOptions options;
  options.terminal = ::isatty(STDERR_FILENO) != 0 && environment("TERM") != "dumb";
  options.color = options.terminal && environment("NO_COLOR").empty();
  options.unicode = locale_is_utf8();
  options.width = stderr_columns;
  options.clock = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  options.write = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); };
  return options;
}

Progress::Progress(int64_t total_steps, int64_t first_step, ProgressOptions options)
    : options_(std::move(options)), total_(total_steps), first_step_(first_step) {
  state_.step = first_step;
  started_ = options_.clock();
  // A terminal shows the first state at once; a log waits for the first interval.
  drawn_at_ = options_.terminal ? started_ - kRedrawInterval : started_;
}

Progress::~Progress() {
  if (on_line_) options_.write("\n");
}

void Progress::update(const ProgressState& state) {
  if (finished_) return;
  const double val_loss =
      std::isnan(state.val_loss) ? state_.val_loss : state.val_loss;  // the last one measured stays in sight
  state_ = state;
  state_.val_loss = val_loss;
  dirty_ = true;
  // A hair of slack: a clock that ticks in tenths must not miss its turn by rounding.
  if (options_.clock() - drawn_at_ >= (options_.terminal ? kRedrawInterval : options_.plain_interval) - 1e-9) draw();
}

void Progress::note(std::string_view line) {
  if (on_line_) options_.write("\r\x1b[K");
  options_.write(std::string(line) + "\n");
  if (std::exchange(on_line_, false)) draw();
}

void Progress::finish() {
  if (finished_) return;
  if (dirty_) draw();
  finished_ = true;
  if (std::exchange(on_line_, false)) options_.write("\n");
}

void Progress::draw() {
  drawn_at_ = options_.clock();
  dirty_ = false;
  if (options_.terminal) {
    // One column stays free: a full line makes some terminals wrap.
    options_.write(fmt::format("\r{}\x1b[K", bar_line(std::max(1, options_.width() - 1))));
    on_line_ = true;
  } else {
    options_.write(plain_line() + "\n");
  }
}

std::string Progress::time_left() const {
  const int64_t done = state_.step - first_step_;
  if (done <= 0 || state_.step >= total_) return {};
  return format_duration((drawn_at_ - started_) / static_cast<double>(done) *
                         static_cast<double>(total_ - state_.step));
}

std::string Progress::place() const {
  if (state_.label.empty()) return fmt::format("{}/{}", state_.step, total_);
  return fmt::format("{} %  {}", total_ > 0 ? 100 * state_.step / total_ : 100, state_.label);
}

std::string Progress::plain_line() const {
  std::string line = (state_.label.empty() ? "step " : "") + place();
  if (!std::isnan(state_.loss)) line += fmt::format("  loss {:.4f}", state_.loss);
  if (!std::isnan(state_.val_loss)) line += fmt::format("  val {:.4f}", state_.val_loss);
  if (!std::isnan(state_.tokens_per_second)) line += "  " + rate_text(state_.tokens_per_second);
  const std::string left = time_left();
  line +=
      left.empty() ? fmt::format("  took {}", format_duration(drawn_at_ - started_)) : fmt::format("  eta {}", left);
  return line;
}

std::string Progress::bar_line(int columns) const {
  // In the order of their worth: on a narrow terminal the last ones go first.
  std::vector<std::string> pieces{place()};
  if (!std::isnan(state_.loss)) pieces.push_back(fmt::format("loss {:.4f}", state_.loss));
  if (const std::string left = time_left(); !left.empty()) pieces.push_back("eta " + left);
  if (!std::isnan(state_.val_loss)) pieces.push_back(fmt::format("val {:.4f}", state_.val_loss));
  if (!std::isnan(state_.tokens_per_second)) pieces.push_back(rate_text(state_.tokens_per_second));

  std::string text;
  for (const std::string& piece : pieces) {
    const size_t with = text.size() + (text.empty() ? 0 : 2) + piece.size();
    if (with > static_cast<size_t>(columns)) break;
    text += (text.empty() ? "" : "  ") + piece;
  }
  const int room = columns - static_cast<int>(text.size()) - 3;  // two brackets and a space, or their like
  if (room < kMinBarColumns) return text;
  const int cells = std::min(room, kMaxBarColumns);
  const double share =
      total_ > 0 ? std::clamp(static_cast<double>(state_.step) / static_cast<double>(total_), 0.0, 1.0) : 1;
  const int full = static_cast<int>(share * cells);
  const std::string_view on = options_.color ? "\x1b[32m" : "", faint = options_.color ? "\x1b[2m" : "",
                         off = options_.color ? "\x1b[0m" : "";
  if (options_.unicode) {
    return fmt::format(" {}{}{}{}{}{}  {}", on, repeat("━", full), off, faint,
                       repeat(options_.color ? "━" : "─", cells - full), off, text);
  }
  return fmt::format("[{}{}{}{}] {}", on, repeat("#", full), off, repeat(".", cells - full), text);
}

}  // namespace transept
