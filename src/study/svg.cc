#include "study/svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "study/html.h"

namespace transept {

double text_width(std::string_view text) { return kCharWidth * text_length(text); }

std::string fitted(std::string_view text, double room) {
  if (text_width(text) <= room) return std::string(text);
  const int keep = std::max(1, static_cast<int>(room / kCharWidth) - 1);
  size_t at = 0;
  for (int n = 0; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xc0) != 0x80 && n++ == keep) break;
  }
  return std::string(text.substr(0, at)) + "…";
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view style, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>", x, y, anchor, style,
                     escape_html(text));
}

std::string line_at(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>", x1, y1, x2, y2,
                     style);
}

std::string open_svg(double width, double height, const std::string& id, std::string_view title,
                     std::string_view description, std::string_view attributes) {
  return fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-labelledby=\"{}-t {}-d\"{}><title "
      "id=\"{}-t\">{}</title><desc "
      "id=\"{}-d\">{}</desc>",
      width, height, id, id, attributes, id, escape_html(title), id, escape_html(description));
}

std::string no_data(double top, double width, double height) {
  return fmt::format("<rect x=\"0\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"empty\"/>", top, width,
                     height) +
         text_at(width / 2, top + height / 2 + 4, "middle", "label", "No data");
}

}  // namespace transept
