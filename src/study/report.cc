#include "study/report.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "base/file.h"
#include "base/format_number.h"
#include "base/json.h"
#include "study/html.h"
#include "study/page_assets.h"

namespace transept {
namespace {

// A table of more columns cannot be read on paper: there each of its rows becomes a card, every cell with its column's
// name.
constexpr size_t kPaperColumns = 8;

bool is_chart(const ReportBlock& block) {
  return std::holds_alternative<LineChart>(block) || std::holds_alternative<PointChart>(block) ||
         std::holds_alternative<BarChart>(block);
}

std::string number_attribute(double value) {
  return std::isfinite(value) ? fmt::format(" data-v=\"{}\"", exact_number(value)) : std::string();
}

// The data behind a chart, as a table.
struct DataTable {
  struct Head {
    std::string name;
    bool numeric = true;
    bool series = false;  // the values of a line, in the order of the lines
  };
  std::vector<Head> heads;
  std::vector<std::vector<Cell>> rows;
};

// Coordinates need more digits than measurements: steps and token counts are shown whole.
Cell coordinate(double x) {
  const bool whole = x == std::floor(x) && std::abs(x) < 1e15;
  return {whole ? format_count(x) : format_number(x), x};
}

DataTable data_of(const LineChart& chart) {
  DataTable table;
  table.heads.push_back({chart.x.label.empty() ? "x" : chart.x.label});
  std::map<double, std::vector<double>> rows;
  size_t columns = 0;
  for (const Series& s : chart.series) {
    const size_t own = s.lower.empty() ? 1 : 3;
    table.heads.push_back({s.name, true, true});
    if (own == 3) {
      table.heads.push_back({s.name + ", lower"});
      table.heads.push_back({s.name + ", upper"});
    }
    columns += own;
  }
  size_t column = 0;
  for (const Series& s : chart.series) {
    for (size_t i = 0; i < s.x.size(); ++i) {
      if (!std::isfinite(s.x[i])) continue;
      auto& row = rows.try_emplace(s.x[i], columns, NAN).first->second;
      row[column] = s.y[i];
      if (s.lower.empty()) continue;
      row[column + 1] = s.lower[i];
      row[column + 2] = s.upper[i];
    }
    column += s.lower.empty() ? 1 : 3;
  }
  for (const auto& [x, values] : rows) {
    std::vector<Cell> row{coordinate(x)};
    for (const double v : values) row.push_back(std::isnan(v) ? Cell("") : Cell(v));
    table.rows.push_back(std::move(row));
  }
  return table;
}

DataTable data_of(const PointChart& chart) {
  DataTable table{{{"Name", false}, {"Series", false}, {chart.x.label}, {chart.y.label}}, {}};
  for (const PointSeries& s : chart.series) {
    for (size_t i = 0; i < s.x.size(); ++i)
      table.rows.push_back({Cell(s.names[i]), Cell(s.name), coordinate(s.x[i]), coordinate(s.y[i])});
  }
  return table;
}

DataTable data_of(const BarChart& chart) {
  DataTable table;
  table.heads.push_back({chart.value_label.empty() ? "Category" : chart.value_label, false});
  for (const BarSeries& s : chart.series) {
    table.heads.push_back({s.name});
    if (!s.errors.empty()) table.heads.push_back({s.name + ", ±"});
  }
  for (size_t c = 0; c < chart.categories.size(); ++c) {
    std::vector<Cell> row{chart.categories[c]};
    for (const BarSeries& s : chart.series) {
      row.emplace_back(s.values[c]);
      if (!s.errors.empty()) row.emplace_back(s.errors[c]);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

class Renderer {
 public:
  std::string render(const ReportPage& page) {
    out_ += "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
    // The page may load nothing; even a mistake in escaping could not reach the network.
    out_ +=
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src "
        "'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n";
    out_ += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    out_ +=
        fmt::format("<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n", escape_html(page.title), page_style());
    header(page);
    out_ += "<main>\n";
    for (const Section& s : page.sections) section(s);
    origin(page);
    out_ += "</main>\n<footer><p>Made by Transept. This page is one file and loads nothing.</p></footer>\n";
    out_ += fmt::format("<script>{}</script>\n</body>\n</html>\n", page_script());
    return std::move(out_);
  }

 private:
  std::string next_id() { return fmt::format("p{}", ++ids_); }

  // The start of a box that scrolls: a region with a name that no other has (WCAG 2.2, 2.4.1).
  std::string scroll_box(const std::string& name) {
    const int n = ++regions_[name];
    return fmt::format("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}{}\">", escape_html(name),
                       n == 1 ? "" : fmt::format(", {}", n));
  }

  void header(const ReportPage& page) {
    out_ += fmt::format("<header>\n<h1>{}</h1>\n", escape_html(page.title));
    if (!page.subtitle.empty()) out_ += fmt::format("<p class=\"subtitle\">{}</p>\n", escape_html(page.subtitle));
    if (!page.figures.empty()) {
      out_ += "<dl class=\"figures\">\n";
      for (const KeyFigure& f : page.figures) {
        out_ += fmt::format("<div><dt>{}</dt><dd><div class=\"value\">{}</div>", escape_html(f.label),
                            escape_html(f.value));
        if (!f.note.empty()) out_ += fmt::format("<div class=\"note\">{}</div>", escape_html(f.note));
        out_ += "</dd></div>\n";
      }
      out_ += "</dl>\n";
    }
    out_ += "</header>\n";
  }

  void open_section(const std::string& title) {
    const std::string id = next_id();
    out_ += fmt::format("<section aria-labelledby=\"{}\">\n<h2 id=\"{}\">{}</h2>\n", id, id, escape_html(title));
  }

  void section(const Section& s) {
    open_section(s.title);
    section_ = s.title;
    bool in_charts = false;
    for (const ReportBlock& b : s.blocks) {
      if (is_chart(b) != in_charts) out_ += in_charts ? "</div>\n" : "<div class=\"charts\">\n";
      in_charts = is_chart(b);
      std::visit([this](const auto& x) { block(x); }, b);
    }
    if (in_charts) out_ += "</div>\n";
    out_ += "</section>\n";
  }

  void origin(const ReportPage& page) {
    const Machine& m = page.machine;
    if (page.command.empty() && m.cpu.empty()) return;
    open_section("How to repeat it");
    if (!page.command.empty()) out_ += fmt::format("<pre><code>{}</code></pre>\n", escape_html(page.command));
    if (!m.cpu.empty()) {
      out_ += "<dl class=\"facts\">\n";
      const auto fact = [this](std::string_view name, const std::string& text) {
        if (!text.empty()) out_ += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, escape_html(text));
      };
      fact("Processor", m.cpu);
      fact("Processors used", m.processors > 0 ? std::to_string(m.processors) : "");
      fact("Instruction set", m.instruction_set);
      fact("Memory", m.memory_bytes > 0 ? format_bytes(static_cast<double>(m.memory_bytes)) : "");
      fact("System", m.system);
      fact("Commit", m.commit);
      out_ += "</dl>\n";
    }
    out_ += "</section>\n";
  }

  void block(const Paragraph& p) { out_ += fmt::format("<p>{}</p>\n", escape_html(p.text)); }

  void tools(const std::string& title) {
    const std::string name = escape_html(title);
    out_ += fmt::format(
        "<div class=\"tools\" hidden><button type=\"button\" class=\"csv\" aria-label=\"CSV: save the data of "
        "{}\">CSV</button><button type=\"button\" class=\"svg\" aria-label=\"SVG: save the picture of "
        "{}\">SVG</button></div>",
        name, name);
  }

  // A picture in the size that a style rule chooses by.
  void picture(std::string svg, std::string_view size) {
    svg.insert(4, fmt::format(" class=\"{}\"", size));  // after "<svg"
    out_ += svg + "\n";
  }

  template <class Chart, class Svg>
  void chart(const Chart& c, std::string_view kind, const Svg& svg) {
    out_ += fmt::format("<figure class=\"chart {}{}\">\n<div class=\"bar\"><h3>{}</h3>", kind, c.wide ? " wide" : "",
                        escape_html(c.title));
    const DataTable data = data_of(c);
    if (!data.rows.empty()) tools(c.title);
    out_ += fmt::format("</div>\n<div class=\"plot{}\">", c.wide ? " all-sizes" : "");
    struct Size {
      std::string_view name;
      double width;
    };
    static constexpr std::array<Size, 4> kSizes{
        {{"small", kSmallChart}, {"medium", kMediumChart}, {"broad", kBroadChart}, {"large", kLargeChart}}};
    for (const auto& [size, width] : kSizes) {
      if (width > kMediumChart && !c.wide) continue;
      picture(svg(c, width, next_id()), size);
    }
    out_ += "</div>\n";
    if (!c.caption.empty()) out_ += fmt::format("<p class=\"caption\">{}</p>\n", escape_html(c.caption));
    if (!data.rows.empty()) {
      out_ += "<details><summary>Data</summary>\n";
      out_ += scroll_box("Data of " + c.title) + "<table><thead><tr>";
      int series = 0;
      for (const auto& head : data.heads) {
        out_ += fmt::format("<th scope=\"col\"{}{}>{}</th>", head.numeric ? " class=\"n\"" : "",
                            head.series ? fmt::format(" data-series=\"{}\"", series++) : "", escape_html(head.name));
      }
      out_ += "</tr></thead><tbody>\n";
      for (const auto& row : data.rows) {
        out_ += "<tr>";
        for (size_t i = 0; i < row.size(); ++i) {
          out_ += data.heads[i].numeric ? fmt::format("<td class=\"n\"{}>{}</td>", number_attribute(row[i].number),
                                                      escape_html(row[i].text))
                                        : fmt::format("<td>{}</td>", escape_html(row[i].text));
        }
        out_ += "</tr>\n";
      }
      out_ += "</tbody></table></div></details>\n";
    }
    out_ += "</figure>\n";
  }
  void block(const LineChart& c) { chart(c, "lines", line_svg); }
  void block(const PointChart& c) { chart(c, "points", point_svg); }
  void block(const BarChart& c) { chart(c, "bars", bar_svg); }

  static std::string labels(std::vector<std::string> names) {
    return escape_html(Json(std::move(names)).dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  // The first map large, all of them small; the script makes the small ones buttons that change the large one.
  void block(const HeatMaps& m) {
    if (m.maps.empty()) return;
    out_ += fmt::format(
        "<figure class=\"maps\" data-rows=\"{}\" data-columns=\"{}\" data-words=\"{}\">\n<div "
        "class=\"bar\"><h3>{}</h3>",
        labels(m.rows), labels(m.columns), labels({m.row_label, m.column_label, m.weight_label}), escape_html(m.title));
    tools(m.title);
    out_ += fmt::format(
        "</div>\n<div class=\"stage\"><div><p class=\"chosen\" aria-live=\"polite\">{}</p><div class=\"plot\">",
        escape_html(m.maps.front().name));
    picture(heat_map_svg(m, 0, kSmallChart, next_id()), "small");
    picture(heat_map_svg(m, 0, kMediumChart, next_id()), "medium");
    const bool aligned = m.per_row > 0 && m.per_row <= kMaxMapsPerRow;
    out_ += fmt::format("</div></div>\n<div class=\"thumbnails{}\"{}>", aligned ? fmt::format(" per{}", m.per_row) : "",
                        m.maps.size() == 1 ? " hidden" : "");
    for (size_t i = 0; i < m.maps.size(); ++i) {
      out_ += fmt::format("<div class=\"map\" data-weights=\"{}\">{}<span class=\"name\">{}</span></div>\n",
                          heat_data(m.maps[i]), thumbnail_svg(m, i, next_id()), escape_html(m.maps[i].name));
    }
    out_ += "</div></div>\n";
    if (!m.caption.empty()) out_ += fmt::format("<p class=\"caption\">{}</p>\n", escape_html(m.caption));
    out_ += "<details hidden><summary>Data of the large map</summary>" + scroll_box("Data of " + m.title) +
            "</div></details>\n</figure>\n";
  }

  void block(const Table& t) {
    const bool cards = t.columns.size() > kPaperColumns;
    out_ += fmt::format("<div class=\"table{}\">\n", cards ? " cards" : "");
    if (!t.title.empty()) out_ += fmt::format("<h3>{}</h3>\n", escape_html(t.title));
    out_ += scroll_box("Table: " + (t.title.empty() ? section_ : t.title)) + "<table><thead><tr>";
    for (const Column& c : t.columns) {
      out_ += fmt::format("<th scope=\"col\"{}>{}</th>", c.numeric ? " class=\"n\"" : "", escape_html(c.name));
    }
    out_ += "</tr></thead><tbody>\n";
    for (const auto& row : t.rows) {
      TRANSEPT_CHECK(row.size() == t.columns.size());
      out_ += "<tr>";
      for (size_t i = 0; i < row.size(); ++i) {
        const std::string_view tag = i == 0 ? "th" : "td";
        out_ += fmt::format("<{}{}{}{}{}>{}</{}>", tag, i == 0 ? " scope=\"row\"" : "",
                            t.columns[i].numeric ? " class=\"n\"" : "", number_attribute(row[i].number),
                            cards ? fmt::format(" data-name=\"{}\"", escape_html(t.columns[i].name)) : "",
                            escape_html(row[i].text), tag);
      }
      out_ += "</tr>\n";
    }
    out_ += "</tbody></table></div>\n";
    if (!t.caption.empty()) out_ += fmt::format("<p class=\"caption\">{}</p>\n", escape_html(t.caption));
    out_ += "</div>\n";
  }

  void block(const Samples& s) {
    out_ += "<div class=\"samples\">\n";
    for (const Sample& sample : s.items) {
      out_ += "<figure>";
      if (!sample.title.empty()) out_ += fmt::format("<figcaption>{}</figcaption>", escape_html(sample.title));
      out_ += "<pre>";
      if (!sample.prompt.empty()) out_ += fmt::format("<span class=\"prompt\">{}</span>", escape_html(sample.prompt));
      out_ += escape_html(sample.text) + "</pre></figure>\n";
    }
    out_ += "</div>\n";
  }

  void block(const Code& c) {
    const std::string text = fmt::format("<pre><code>{}</code></pre>", escape_html(c.text));
    if (c.folded) {
      out_ += fmt::format("<details class=\"code\"><summary>{}</summary>{}</details>\n", escape_html(c.title), text);
    } else {
      if (!c.title.empty()) out_ += fmt::format("<h3>{}</h3>\n", escape_html(c.title));
      out_ += text + "\n";
    }
  }

  std::string out_;
  int ids_ = 0;
  std::string section_;                 // its title: what an untitled table is called
  std::map<std::string, int> regions_;  // how many have the name
};

}  // namespace

Cell::Cell(double n) : text(format_number(n)), number(n) {}

std::string render_report(const ReportPage& page) { return Renderer().render(page); }

void write_report(const std::filesystem::path& path, const ReportPage& page) {
  write_file_atomic(path, render_report(page));
}

}  // namespace transept
