// Progress on stderr. On a terminal one line is redrawn in place, at most ten times a second and never wider than the
// terminal; elsewhere (a file, a pipe, CI) a plain line comes every ten seconds, and one at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace transept {

struct ProgressState {
  int64_t step = 0;  // steps done
  double loss = std::numeric_limits<double>::quiet_NaN();
  double val_loss = std::numeric_limits<double>::quiet_NaN();
  double tokens_per_second = std::numeric_limits<double>::quiet_NaN();
  // What the work is at, where steps are shares of a whole: it stands in place of their count.
  std::string label = {};
};

struct ProgressOptions {
  bool terminal = false;  // redraw in place
  bool color = false;
  bool unicode = false;
  double plain_interval = 10;     // seconds between lines where there is no terminal
  std::function<int()> width;     // columns of the terminal, asked at each redraw
  std::function<double()> clock;  // seconds, monotonic
  std::function<void(std::string_view)> write;

  // What suits this process's stderr: isatty, TERM, NO_COLOR (no-color.org: set and not empty), the locale's character
  // set.
  static ProgressOptions for_stderr();
};

class Progress {
 public:
  // A resumed run starts at `first_step`, so that the time left is judged by the steps done here.
  Progress(int64_t total_steps, int64_t first_step = 0, ProgressOptions options = ProgressOptions::for_stderr());
  ~Progress();  // leaves the cursor on a fresh line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(const ProgressState& state);  // cheap when nothing is due
  void note(std::string_view line);         // a line of its own; the bar moves below it
  void finish();                            // draws the last state whatever the time; further calls do nothing

 private:
  void draw();
  std::string bar_line(int columns) const;
  std::string plain_line() const;
  std::string place() const;
  std::string time_left() const;

  ProgressOptions options_;
  int64_t total_;
  int64_t first_step_;
  ProgressState state_;
  double started_;
  double drawn_at_;
  bool dirty_ = false;    // state_ is newer than what stands on the screen
  bool on_line_ = false;  // the cursor stands at the end of a bar
  bool finished_ = false;
};

// "47s", "3m12s", "2h05m", "1d03h".
std::string format_duration(double seconds);

}  // namespace transept
