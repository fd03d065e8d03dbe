// What every report page carries inside itself: its colours, its style sheet and its script.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace transept {

// A colour in the light and in the dark scheme, 0xRRGGBB. Print uses the light one.
struct PageColor {
  std::string_view name;  // of the CSS variable
  uint32_t light, dark;
};

// Text colours reach 4.5:1 against `paper` and `surface`, in both schemes (WCAG 2.2, 1.4.3);
// tests/study/page_assets_test.cc computes it.
inline constexpr std::array<PageColor, 8> kPageColors{{
    {"paper", 0xffffff, 0x15171a},
    {"surface", 0xf6f7f7, 0x1d2024},
    {"text", 0x1d2024, 0xe6e8ea},
    {"muted", 0x5a6069, 0xa2a9b3},
    {"accent", 0x1a56a8, 0x86b6f2},
    {"rule", 0xdadddf, 0x363b42},
    {"grid", 0xe9ebec, 0x2a2e33},
    {"edge", 0x878d95, 0x737a84},  // borders of controls and axes: 3:1 (1.4.11)
}};

// Lines and bars: 3:1 against both backgrounds at least (1.4.11), and dark beside light neighbours so that grey prints
// keep them apart.
inline constexpr std::array<PageColor, 8> kSeriesColors{{
    {"series0", 0x1f5fb8, 0x7ab0f5},
    {"series1", 0xc2560c, 0xf2a65e},
    {"series2", 0x1c7a4b, 0x6bcb97},
    {"series3", 0x7b3fb5, 0xc49cf2},
    {"series4", 0xb4245c, 0xf08cb2},
    {"series5", 0x0e7482, 0x58c5d3},
    {"series6", 0x7c6500, 0xd6bd4a},
    {"series7", 0x5a6069, 0xb0b6be},
}};

// WCAG 2.2 contrast ratio of two colours, 1 to 21.
double contrast_ratio(uint32_t a, uint32_t b);

std::string page_style();
std::string_view page_script();

}  // namespace transept
