// The vocabulary of `fields(visitor)`. A spec struct lists its JSON keys once:
//     template <class V> void fields(V& v) { v("eps", eps, Above{0.0}, "added to the variance"); }
// and that one list serves reading, writing, validation, the JSON Schema and the documentation. A visitor is called as
//     v(key, member, constraint, help)
// with member a bool, int64_t, double, std::string, an enum that has an EnumNames specialization, a
// std::vector<double> (a list, each of whose entries the constraint holds for), or a std::variant of kinds (a group
// inside the group).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

namespace transept {

struct Any {};  // no constraint beyond the type
struct AtLeast {
  double low;
};  // low <= x
struct Above {
  double low;
};  // low < x
struct AboveUpTo {
  double low, high;
};  // low < x <= high
struct Between {
  double low, high;
};  // low <= x <= high
struct Fraction {};  // 0 <= x < 1

// Specialize for each enum that stands in a spec: `static constexpr std::array<std::string_view, N> kNames`, in the
// enum's order from 0.
template <class E>
struct EnumNames;

template <class T>
inline constexpr bool kIsKinds = false;
template <class... K>
inline constexpr bool kIsKinds<std::variant<K...>> = true;

// Entries of a list at most.
inline constexpr size_t kMaxListEntries = 4096;

}  // namespace transept
