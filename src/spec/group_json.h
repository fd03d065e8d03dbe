// Groups of a document (spec/groups.h), from JSON and back: a kind with that kind's keys, all of them by the one list
// that `fields` gives. Reading finds every problem, each with its path and what is allowed.
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/problem.h"
#include "spec/groups.h"
#include "spec/nearest.h"
#include "spec/range.h"
#include "spec/text.h"

namespace transept {

// Problems without repeats: a group shared by many layers is read once for each of them.
class Findings {
 public:
  explicit Findings(std::string where) : where_(std::move(where)) {}

  void add(const std::string& path, std::string what, std::string mend) {
    if (!seen_.emplace(path, what).second) return;
    constexpr size_t kMaxProblems = 64;  // shown; a person mends the first ones first
    if (problems_.size() < kMaxProblems) {
      problems_.push_back({place(path), std::move(what), std::move(mend)});
    } else {
      ++more_;
    }
  }
  bool empty() const { return problems_.empty(); }
  void throw_if_any() {
    if (more_ > 0) problems_.push_back({where_, std::to_string(more_) + " more problems", "mend the ones above first"});
    transept::throw_if_any(std::move(problems_));
  }

 private:
  std::string place(const std::string& path) const {
    if (path.empty()) return where_;
    return where_.empty() ? path : where_ + ": " + path;
  }

  std::string where_;
  Problems problems_;
  std::set<std::pair<std::string, std::string>> seen_;
  size_t more_ = 0;
};

// An object of the document with the place of each of its keys. A merged group was laid together from several objects:
// a key stands where the last of them that has it stands.
struct Source {
  struct Overlay {
    const Json* object;
    std::string path;
  };
  const Json& object;
  std::string path;
  std::vector<Overlay> overlays = {};

  std::string at(std::string_view key) const {
    std::string base = path;
    for (const Overlay& o : overlays) {
      if (o.object->contains(key)) base = o.path;
    }
    return (base.empty() ? "" : base + ".") + printable(key);
  }
  // The group inside this one under that key.
  Source inside(const std::string& key, const Json& group) const {
    const auto below = [&](const std::string& base) { return (base.empty() ? "" : base + ".") + key; };
    Source nested{group, below(path)};
    for (const Overlay& o : overlays) {
      if (!o.object->contains(key)) continue;
      const Json& given = (*o.object)[key];
      if (!given.is_object()) return {group, below(o.path)};
      nested.overlays.push_back({&given, below(o.path)});
    }
    return nested;
  }
};

template <class G>
struct GroupRead;
template <class G>
GroupRead<G> read_group(const Source& source, bool required, Findings& findings);

inline std::string short_number(double x) {
  return Json(x == std::floor(x) && std::abs(x) < 1e15 ? Json(static_cast<int64_t>(x)) : Json(x)).dump();
}

inline std::string describe_range(const Range& r) {
  const std::string low = (r.low_open ? "above " : "at least ") + short_number(r.low);
  return low + " and " + (r.high_open ? "below " : "at most ") + short_number(r.high);
}

// Whole numbers however written: 384, 384.0 and 3.84e2 are the same number to JSON (and to its schema). Beyond 2^53 a
// double is no exact integer.
inline std::optional<int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const uint64_t u = value.get<uint64_t>();
    if (u > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<int64_t>(u);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    const double d = value.get<double>();
    if (std::isfinite(d) && d == std::floor(d) && std::abs(d) <= static_cast<double>(int64_t{1} << 53))
      return static_cast<int64_t>(d);
  }
  return std::nullopt;
}

// Reads the fields of a struct. Keeps the names it was asked for, so that the rest are unknown, and the ones that were
// bad, so that later checks do not complain of their stand-ins.
class ReadFields {
 public:
  // With `required`, a field whose default is not allowed must be given.
  ReadFields(const Source& source, bool required, Findings& findings)
      : source_(source), required_(required), findings_(findings) {}

  template <class T, class C>
  void operator()(std::string_view key, T& member, C constraint, std::string_view help) {
    known_.emplace_back(key);
    const auto found = source_.object.find(key);
    if (found != source_.object.end()) {
      if constexpr (kIsKinds<T>) {
        if (!read_nested(std::string(key), *found, member)) bad_.insert(std::string(key));
      } else if constexpr (std::is_same_v<T, std::vector<double>>) {
        if (!read_list(std::string(key), *found, member, range_for<double>(constraint))) bad_.insert(std::string(key));
      } else if (const std::string allowed = read(*found, member, constraint); !allowed.empty()) {
        bad_.insert(std::string(key));
        findings_.add(source_.at(key), "got " + describe_json(*found), "allowed: " + allowed);
      }
      return;
    }
    if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
      const Range range = range_for<T>(constraint);
      if (range.holds(static_cast<double>(member))) return;
      bad_.insert(std::string(key));
      if (required_) {
        const std::string type = std::is_same_v<T, int64_t> ? "an integer, " : "a number, ";
        findings_.add(source_.at(key), "is missing (" + std::string(help) + ")",
                      "allowed: " + type + describe_range(range));
      }
    } else if constexpr (std::is_same_v<T, std::vector<double>>) {
      bad_.insert(std::string(key));
      if (required_) {
        findings_.add(source_.at(key), "is missing (" + std::string(help) + ")",
                      "allowed: " + describe_list(range_for<double>(constraint)));
      }
    }
  }

  void know(std::string_view key) { known_.emplace_back(key); }
  bool good(std::string_view key) const { return !bad_.contains(key); }

  // `elsewhere`: what to say of keys that other kinds have.
  template <class Elsewhere>
  void refuse_unknown(const Elsewhere& elsewhere) {
    for (const auto& [key, value] : source_.object.items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      std::string mend = elsewhere(key);
      if (mend.empty()) {
        const std::string near = nearest_name(key, known_);
        mend = near.empty() ? "known here: " + join(known_) : "did you mean " + in_quotes(near) + "?";
      }
      findings_.add(source_.at(key), "is no known key", mend);
    }
  }

 private:
  static std::string describe_list(const Range& range) {
    return "a list of 1 to " + std::to_string(kMaxListEntries) + " numbers, each " + describe_range(range);
  }
  // Lists and groups inside the group report their problems themselves; false: there were some.
  bool read_list(const std::string& key, const Json& value, std::vector<double>& member, const Range& range) {
    if (!value.is_array() || value.empty() || value.size() > kMaxListEntries) {
      const std::string entries = value.size() > kMaxListEntries ? "more than " + std::to_string(kMaxListEntries) : "0";
      findings_.add(source_.at(key), value.is_array() ? "has " + entries + " entries" : "got " + describe_json(value),
                    "allowed: " + describe_list(range));
      return false;
    }
    member.clear();
    for (size_t i = 0; i < value.size(); ++i) {
      if (const std::string allowed = read_number(value[i], member.emplace_back(), range); !allowed.empty()) {
        findings_.add(source_.at(key) + "[" + std::to_string(i) + "]", "got " + describe_json(value[i]),
                      "allowed: " + allowed);
        return false;
      }
    }
    return true;
  }
  template <class T>
  bool read_nested(const std::string& key, const Json& value, T& member) {
    if (!value.is_object()) {
      findings_.add(source_.at(key), "got " + describe_json(value), "allowed: an object");
      return false;
    }
    auto read = read_group<NestedGroup<T>>(source_.inside(key, value), required_, findings_);
    member = std::move(read.group.spec);
    return read.bad.empty();
  }
  static std::string read_number(const Json& value, double& member, const Range& range) {
    if (!value.is_number() || !range.holds(value.get<double>())) return "a number, " + describe_range(range);
    member = value.get<double>();
    return {};
  }
  // The allowed values when `value` is none of them.
  template <class C>
  static std::string read(const Json& value, bool& member, C) {
    if (!value.is_boolean()) return "true or false";
    member = value.get<bool>();
    return {};
  }
  template <class C>
  static std::string read(const Json& value, std::string& member, C) {
    if (!value.is_string()) return "a string";
    try {
      (void)value.dump();  // refuses what is not UTF-8 and could not be written back
    } catch (const Json::type_error&) {
      return "a string in UTF-8";
    }
    member = value.get<std::string>();
    return {};
  }
  template <class C>
  static std::string read(const Json& value, int64_t& member, C constraint) {
    const Range range = range_for<int64_t>(constraint);
    const std::optional<int64_t> n = whole_number(value);
    if (!n || !range.holds(static_cast<double>(*n))) return "an integer, " + describe_range(range);
    member = *n;
    return {};
  }
  template <class C>
  static std::string read(const Json& value, double& member, C constraint) {
    return read_number(value, member, range_for<double>(constraint));
  }
  template <class E, class C>
    requires std::is_enum_v<E>
  static std::string read(const Json& value, E& member, C) {
    const auto& names = EnumNames<E>::kNames;
    std::string allowed;
    for (size_t i = 0; i < names.size(); ++i) {
      if (value.is_string() && value.get_ref<const std::string&>() == names[i]) {
        member = static_cast<E>(i);
        return {};
      }
      allowed += (i == 0 ? "" : ", ") + in_quotes(names[i]);
    }
    return allowed;
  }

  const Source& source_;
  bool required_;
  Findings& findings_;
  std::vector<std::string> known_;
  std::set<std::string, std::less<>> bad_;
};

template <class G>
std::string kinds_with_key(std::string_view key) {
  std::string kinds;
  if constexpr (GroupWithKinds<G>) {
    for_each_kind<G>([&](G group) {
      bool has = false;
      auto look = [&](std::string_view k, auto&, auto, std::string_view) { has = has || k == key; };
      visit_group(group, look);
      if (has) kinds += (kinds.empty() ? "" : ", ") + in_quotes(kind_name(group.spec));
    });
  }
  return kinds;
}

template <class G>
struct GroupRead {
  G group;
  std::set<std::string> bad;  // keys whose member is a stand-in
  bool good(const std::string& key) const { return !bad.contains(key); }
};

// Reads one group. `required`: whether missing keys are problems here.
template <class G>
GroupRead<G> read_group(const Source& source, bool required, Findings& findings) {
  GroupRead<G> result;
  G& group = result.group;
  if constexpr (GroupWithKinds<G>) {
    if (const auto found = source.object.find("kind"); found != source.object.end()) {
      const auto kind = found->is_string() ? G::KindList::make(found->template get<std::string>()) : std::nullopt;
      if (!kind) {
        std::string allowed;
        for (const std::string_view name : G::KindList::kNames)
          allowed += (allowed.empty() ? "" : ", ") + in_quotes(name);
        findings.add(source.at("kind"), "got " + describe_json(*found), "allowed: " + allowed);
        result.bad.insert("kind");
        return result;  // which keys belong here depends on the kind
      }
      group.spec = *kind;
    }
  }
  ReadFields reader(source, required, findings);
  if constexpr (GroupWithKinds<G>) reader.know("kind");
  visit_group(group, reader);
  reader.refuse_unknown([](std::string_view key) {
    const std::string kinds = kinds_with_key<G>(key);
    return kinds.empty() ? "" : "it is a key of the kind " + kinds;
  });
  auto collect = [&](std::string_view key, auto&, auto, std::string_view) {
    if (!reader.good(key)) result.bad.insert(std::string(key));
  };
  visit_group(group, collect);
  return result;
}

template <class G>
Json write_group(G group);

struct WriteFields {
  Json& object;
  template <class T, class C>
  void operator()(std::string_view key, T& member, C, std::string_view) {
    if constexpr (std::is_enum_v<T>) {
      object[std::string(key)] = EnumNames<T>::kNames[static_cast<size_t>(member)];
    } else if constexpr (kIsKinds<T>) {
      object[std::string(key)] = write_group(NestedGroup<T>{member});
    } else {
      object[std::string(key)] = member;
    }
  }
};

template <class G>
Json write_group(G group) {
  Json object = Json::object();
  if constexpr (GroupWithKinds<G>) object["kind"] = kind_name(group.spec);
  WriteFields writer{object};
  visit_group(group, writer);
  return object;
}

}  // namespace transept
