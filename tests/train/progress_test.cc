// The progress line with a clock and an output of the test's own.
#include "train/progress.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>

#include <string>

namespace transept {
namespace {

struct Screen {
  double now = 100;
  int columns = 80;
  std::string out;
  int writes = 0;

  ProgressOptions options(bool terminal) {
    ProgressOptions o;
    o.terminal = terminal;
    o.width = [this] { return columns; };
    o.clock = [this] { return now; };
    o.write = [this](std::string_view text) {
      out.append(text);
      ++writes;
    };
    return o;
  }
};

// Columns that the text takes: escape sequences none, every code point one.
int visible_columns(std::string_view text) {
  int columns = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && !((text[i] >= 'A' && text[i] <= 'Z') || (text[i] >= 'a' && text[i] <= 'z'))) ++i;
    } else if (text[i] != '\r' && (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) {
      ++columns;
    }
  }
  return columns;
}

TEST(Progress, TerminalLine) {
  Screen screen;
  Progress progress(100, 0, screen.options(true));
  screen.now += 5;
  progress.update({50, 2.34567, 2.5, 12345});
  EXPECT_EQ(screen.out, "\r[############............] 50/100  loss 2.3457  eta 5s  val 2.5000  12.3k tok/s\x1b[K");
}

TEST(Progress, WideTerminalShowsEverything) {
  Screen screen;
  screen.columns = 120;
  Progress progress(100, 0, screen.options(true));
  screen.now += 5;
  progress.update({50, 2.34567, 2.5, 12345});
  EXPECT_EQ(screen.out,
            "\r[###############...............] 50/100  loss 2.3457  eta 5s  val 2.5000  12.3k tok/s\x1b[K");
}

TEST(Progress, NeverWiderThanTheTerminal) {
  for (const bool unicode : {false, true}) {
    for (const bool color : {false, true}) {
      for (int columns = 1; columns <= 140; ++columns) {
        Screen screen;
        screen.columns = columns;
        ProgressOptions options = screen.options(true);
        options.unicode = unicode;
        options.color = color;
        Progress progress(100000, 0, options);
        screen.now += 1;
        progress.update({77777, 12.3456, 11.1111, 1234567});
        EXPECT_LT(visible_columns(screen.out), std::max(columns, 2)) << screen.out;
        progress.finish();
      }
    }
  }
}

TEST(Progress, AtMostTenRedrawsASecond) {
  Screen screen;
  Progress progress(100000, 0, screen.options(true));
  for (int i = 0; i < 3000; ++i) {
    screen.now += 0.001;
    progress.update({i});
  }
  EXPECT_LE(screen.writes, 31);
  EXPECT_GE(screen.writes, 29);
}

TEST(Progress, PlainLinesEveryInterval) {
  Screen screen;
  Progress progress(60, 0, screen.options(false));
  for (int i = 1; i <= 25; ++i) {
    screen.now += 1;
    progress.update({i, 3.0, i >= 15 ? 3.5 : NAN, 900});
  }
  progress.finish();
  progress.finish();
  EXPECT_EQ(screen.out,
            "step 10/60  loss 3.0000  900 tok/s  eta 50s\n"
            "step 20/60  loss 3.0000  val 3.5000  900 tok/s  eta 40s\n"
            "step 25/60  loss 3.0000  val 3.5000  900 tok/s  eta 35s\n");
}

TEST(Progress, LastPlainLineIsNotRepeatedAndTellsTheTime) {
  Screen screen;
  Progress progress(10, 0, screen.options(false));
  screen.now += 10;
  progress.update({10, 1.0});
  progress.finish();
  EXPECT_EQ(screen.out, "step 10/10  loss 1.0000  took 10s\n");
}

TEST(Progress, ResumedRunJudgesTimeByItsOwnSteps) {
  Screen screen;
  Progress progress(100, 90, screen.options(false));
  screen.now += 20;
  progress.update({95});
  EXPECT_EQ(screen.out, "step 95/100  eta 20s\n");
}

TEST(Progress, LastValidationLossStays) {
  Screen screen;
  Progress progress(100, 0, screen.options(false));
  progress.update({1, 2.0, 1.5});
  screen.now += 10;
  progress.update({2, 2.0});
  EXPECT_NE(screen.out.find("val 1.5000"), std::string::npos);
}

TEST(Progress, NoteStandsOnItsOwnLine) {
  Screen screen;
  screen.columns = 27;
  {
    Progress progress(4, 0, screen.options(true));
    progress.update({1});
    progress.note("saved");
  }
  EXPECT_EQ(screen.out, "\r[###.........] 1/4  eta 0s\x1b[K\r\x1b[Ksaved\n\r[###.........] 1/4  eta 0s\x1b[K\n");
}

TEST(Progress, ColorOnlyWhenAsked) {
  Screen screen;
  ProgressOptions options = screen.options(true);
  options.color = true;
  Progress progress(4, 0, options);
  progress.update({1});
  EXPECT_NE(screen.out.find("\x1b[32m"), std::string::npos);
}

TEST(Progress, NoColorIsRespected) {
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(ProgressOptions::for_stderr().color);
  ::unsetenv("NO_COLOR");
}

TEST(FormatDuration, Units) {
  EXPECT_EQ(format_duration(0.2), "0s");
  EXPECT_EQ(format_duration(59.6), "1m00s");
  EXPECT_EQ(format_duration(192), "3m12s");
  EXPECT_EQ(format_duration(7500), "2h05m");
  EXPECT_EQ(format_duration(97200), "1d03h");
  EXPECT_EQ(format_duration(NAN), "?");
}

}  // namespace
}  // namespace transept
