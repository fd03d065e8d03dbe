// A closed list of interchangeable kinds. Adding one is writing its struct and one word in its list; std::visit over
// the variant makes a forgotten overload a compile error. Each kind has `kName` and a member template
// `fields(visitor)`.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <variant>

namespace transept {

template <class... K>
struct Kinds {
  using Any = std::variant<K...>;
  static constexpr std::array<std::string_view, sizeof...(K)> kNames{K::kName...};

  // A default-constructed kind of that name; nothing when there is none.
  static std::optional<Any> make(std::string_view name) {
    std::optional<Any> found;
    (void)((name == K::kName && (found = Any(K{}), true)) || ...);
    return found;
  }
};

template <class... K>
std::string_view kind_name(const std::variant<K...>& any) {
  return std::visit([](const auto& kind) { return kind.kName; }, any);
}

}  // namespace transept
