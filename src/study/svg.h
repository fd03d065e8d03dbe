// The pieces that every inline picture is made of, and the room that text takes in one.
#pragma once

#include <string>
#include <string_view>

namespace transept {

// Of the average glyph of a system sans at the style sheet's 12 px. Labels are placed by this estimate.
inline constexpr double kCharWidth = 6.7;

double text_width(std::string_view text);

// The text cut to the room, with an ellipsis.
std::string fitted(std::string_view text, double room);

std::string text_at(double x, double y, std::string_view anchor, std::string_view style, std::string_view text);
std::string line_at(double x1, double y1, double x2, double y2, std::string_view style);

// The start tag of an image whose title and description, named after `id`, a screen reader tells; `attributes` are
// markup.
std::string open_svg(double width, double height, const std::string& id, std::string_view title,
                     std::string_view description, std::string_view attributes);

// The frame that stands where there is nothing to draw.
std::string no_data(double top, double width, double height);

}  // namespace transept
