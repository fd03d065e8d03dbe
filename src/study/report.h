// A report page: one HTML file that needs nothing but itself, readable without script, at 360 to 1600 pixels, light,
// dark and on paper. Every text handed in is escaped; nothing in a ReportPage is markup.
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "study/chart.h"
#include "study/heat_map.h"
#include "study/machine.h"

namespace transept {

// A card at the top of the page: "Validation loss", "1.482", "nats a token, after 2,000 steps".
struct KeyFigure {
  std::string label, value, note = {};
};

struct Paragraph {
  std::string text;
};

// `number` is what a numeric column sorts by and what the CSV holds; NaN sorts last.
struct Cell {
  Cell(std::string t) : text(std::move(t)) {}
  Cell(const char* t) : text(t) {}
  Cell(double n);  // shown by format_number
  Cell(std::string t, double n) : text(std::move(t)), number(n) {}
  std::string text;
  double number = std::numeric_limits<double>::quiet_NaN();
};

struct Column {
  std::string name;
  bool numeric = false;
};

struct Table {
  std::string title;  // may be empty
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // each as long as columns; the first cell heads its row
  std::string caption = {};
};

struct Sample {
  std::string title;
  std::string prompt;  // shown before the text, set apart
  std::string text;
};

struct Samples {
  std::vector<Sample> items;
};

struct Code {
  std::string title;
  std::string text;
  bool folded = false;
};

using ReportBlock = std::variant<Paragraph, LineChart, PointChart, BarChart, HeatMaps, Table, Samples, Code>;

struct Section {
  std::string title;
  std::vector<ReportBlock> blocks;  // neighbouring charts that are not wide stand side by side where there is room
};

struct ReportPage {
  std::string title;
  std::string subtitle = {};
  std::vector<KeyFigure> figures = {};
  std::vector<Section> sections = {};
  std::string command = {};  // that repeats it; the last section shows it with the machine
  Machine machine = {};
};

std::string render_report(const ReportPage& page);
void write_report(const std::filesystem::path& path, const ReportPage& page);

}  // namespace transept
