// Reading descriptions of machines, and the two questions that plans ask of them.
#include "plan/machine_type.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/problem.h"
#include "plan/machines_data.h"
#include "spec/nearest.h"
#include "spec/text.h"

namespace transept {
namespace {

constexpr size_t kMaxMachines = 1024;  // of a file
constexpr size_t kMaxName = 64, kMaxText = 400;
constexpr size_t kMaxReadRates = 64;
const std::vector<std::string> kKinds{"gpu", "accelerator", "cpu"};
const std::vector<std::string> kFormats{"f32", "tf32", "bf16", "f16", "f8", "i8"};
constexpr size_t kTrainingFormats = 4;  // the first of them

// A number of a description, and what it may be: far beyond any machine, and far from overflow where figures multiply.
struct Quantity {
  std::string_view key;
  double MachineType::* member;
  double low, high;
  bool required;
};
constexpr std::array<Quantity, 5> kQuantities{{
    {"memory_bytes_per_second", &MachineType::memory_bytes_per_second, 1e6, 1e18, true},
    {"layer_seconds", &MachineType::layer_seconds, 0, 1, false},
    {"interconnect_bytes_per_second", &MachineType::interconnect_bytes_per_second, 0, 1e18, false},
    {"usd_per_hour", &MachineType::usd_per_hour, 0, 1e6, false},
    {"watts", &MachineType::watts, 0, 1e9, false},
}};
constexpr double kLowestFlops = 1e6, kHighestFlops = 1e21;
constexpr double kLowestRate = 1e6, kHighestRate = 1e18;
constexpr int64_t kLeastMemory = int64_t{1} << 20, kMostMemory = int64_t{1} << 50;
constexpr int64_t kLeastWorkingSet = 1024;

std::string range_text(double low, double high) { return "allowed: " + Json(low).dump() + " to " + Json(high).dump(); }

// One object of a document: what it holds, where it stands, and the problems found.
class Reader {
 public:
  Reader(const Json& object, std::string path, Problems& problems)
      : object_(object), path_(std::move(path)), problems_(problems) {}

  std::string at(std::string_view key) const { return path_ + printable(key); }
  void refuse(std::string_view key, std::string what, std::string mend) {
    problems_.push_back({at(key), std::move(what), std::move(mend)});
  }
  const Json* find(std::string_view key, bool required) {
    const auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    if (required) refuse(key, "is missing", "add it");
    return nullptr;
  }
  std::string text(std::string_view key, size_t longest, bool required) {
    const Json* value = find(key, required);
    if (value == nullptr) return {};
    if (!value->is_string() || value->get_ref<const std::string&>().size() > longest) {
      refuse(key, "got " + describe_json(*value), "allowed: a text of at most " + std::to_string(longest) + " bytes");
      return {};
    }
    return value->get<std::string>();
  }
  double number(std::string_view key, double low, double high, bool required) {
    const Json* value = find(key, required);
    if (value == nullptr) return 0;
    if (value->is_number() && value->get<double>() >= low && value->get<double>() <= high) return value->get<double>();
    refuse(key, "got " + describe_json(*value), range_text(low, high));
    return 0;
  }
  int64_t whole(std::string_view key, int64_t low, int64_t high) {
    const double value = number(key, static_cast<double>(low), static_cast<double>(high), true);
    if (value != std::floor(value))
      refuse(key, "got " + describe_json(object_.at(std::string(key))), "allowed: a whole number");
    return static_cast<int64_t>(value);
  }
  void known_keys(const std::vector<std::string>& known) {
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::string near = nearest_name(key, known);
      refuse(key, "is no key of a machine",
             near.empty() ? "allowed: " + join(known) : "did you mean " + in_quotes(near) + "?");
    }
  }

 private:
  const Json& object_;
  std::string path_;
  Problems& problems_;
};

std::map<std::string, double> read_flops(const Json& value, const std::string& path, Problems& problems) {
  std::map<std::string, double> flops;
  if (!value.is_object()) {
    problems.push_back({path, "got " + describe_json(value), "allowed: an object of FLOP/s by number format"});
    return flops;
  }
  Reader r(value, path + ".", problems);
  r.known_keys(kFormats);
  for (const std::string& format : kFormats) {
    if (value.contains(format)) flops[format] = r.number(format, kLowestFlops, kHighestFlops, true);
  }
  return flops;
}

void read_rates(const Json& value, const std::string& path, MachineType& machine, Problems& problems) {
  if (!value.is_array() || value.size() > kMaxReadRates) {
    problems.push_back({path, "got " + describe_json(value),
                        "allowed: a list of at most " + std::to_string(kMaxReadRates) +
                            " objects with working_set_bytes and bytes_per_second"});
    return;
  }
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string place = path + "[" + std::to_string(i) + "]";
    if (!value[i].is_object()) {
      problems.push_back({place, "got " + describe_json(value[i]), "allowed: an object"});
      continue;
    }
    Reader r(value[i], place + ".", problems);
    r.known_keys({"working_set_bytes", "bytes_per_second"});
    const MachineType::ReadRate rate{r.whole("working_set_bytes", kLeastWorkingSet, kMostMemory),
                                     r.number("bytes_per_second", kLowestRate, kHighestRate, true)};
    if (!machine.read_rates.empty() && rate.working_set_bytes <= machine.read_rates.back().working_set_bytes)
      problems.push_back({place + ".working_set_bytes", "is not above the one before", "sort the list by it"});
    machine.read_rates.push_back(rate);
  }
}

MachineType read_machine(const Json& object, const std::string& path, Problems& problems) {
  static const std::vector<std::string> known = [] {
    std::vector<std::string> keys{"name",         "extends",    "description",          "kind", "flops_per_second",
                                  "memory_bytes", "read_rates", "row_flops_per_second", "note"};
    for (const Quantity& q : kQuantities) keys.emplace_back(q.key);
    return keys;
  }();
  Reader r(object, path, problems);
  r.known_keys(known);
  MachineType machine;
  machine.name = r.text("name", kMaxName, true);
  if (object.contains("name") && object["name"].is_string() &&
      (machine.name.empty() || machine.name.find_first_of(":/ \t\n") != std::string::npos))
    r.refuse("name", "got " + in_quotes(machine.name), "allowed: a name without spaces, / and :");
  machine.description = r.text("description", kMaxText, false);
  machine.note = r.text("note", kMaxText, false);
  machine.kind = r.text("kind", kMaxName, true);
  if (!machine.kind.empty() && std::find(kKinds.begin(), kKinds.end(), machine.kind) == kKinds.end())
    r.refuse("kind", "got " + in_quotes(machine.kind), "allowed: " + join(kKinds));
  if (const Json* flops = r.find("flops_per_second", true)) {
    machine.flops_per_second = read_flops(*flops, r.at("flops_per_second"), problems);
    if (flops->is_object() && std::none_of(kFormats.begin(), kFormats.begin() + kTrainingFormats,
                                           [&](const std::string& format) { return flops->contains(format); }))
      r.refuse("flops_per_second", "holds none of f32, tf32, bf16, f16", "add one: models compute in them");
  }
  if (const Json* flops = r.find("row_flops_per_second", false))
    machine.row_flops_per_second = read_flops(*flops, r.at("row_flops_per_second"), problems);
  machine.memory_bytes = r.whole("memory_bytes", kLeastMemory, kMostMemory);
  if (const Json* rates = r.find("read_rates", false)) read_rates(*rates, r.at("read_rates"), machine, problems);
  for (const Quantity& q : kQuantities) machine.*q.member = r.number(q.key, q.low, q.high, q.required);
  return machine;
}

// `over` laid over the machine that it extends: FLOP/s by format, everything else by key. Names, descriptions and notes
// are not inherited.
Json extended(const Json& base, const Json& over) {
  Json merged = base;
  for (const char* own : {"name", "description", "note", "extends"}) merged.erase(own);
  for (const auto& [key, value] : over.items()) {
    if (key == "flops_per_second" && value.is_object() && merged.contains(key)) {
      for (const auto& [format, rate] : value.items()) merged[key][format] = rate;
    } else if (key != "extends") {
      merged[key] = value;
    }
  }
  return merged;
}

std::vector<std::string> names_of(const std::vector<MachineType>& machines) {
  std::vector<std::string> names;
  for (const MachineType& m : machines) names.push_back(m.name);
  return names;
}

const MachineType* named(const std::vector<MachineType>& machines, std::string_view name) {
  const auto found =
      std::find_if(machines.begin(), machines.end(), [&](const MachineType& m) { return m.name == name; });
  return found == machines.end() ? nullptr : &*found;
}

// `base`: those that a description may extend beside the ones before it.
std::vector<MachineType> read_all(const Json& document, const std::string& where,
                                  const std::vector<MachineType>& base) {
  if (!document.is_object() && !document.is_array())
    throw InputError(where, "got " + describe_json(document), "allowed: a machine, or a list of machines");
  if (document.is_array() && (document.empty() || document.size() > kMaxMachines))
    throw InputError(where, std::to_string(document.size()) + " machines",
                     "allowed: 1 to " + std::to_string(kMaxMachines));
  Problems problems;
  std::vector<MachineType> machines;
  const size_t count = document.is_array() ? document.size() : 1;
  for (size_t i = 0; i < count; ++i) {
    const Json& object = document.is_array() ? document[i] : document;
    const std::string place = document.is_array() ? where + ": [" + std::to_string(i) + "]" : where;
    if (!object.is_object()) {
      problems.push_back({place, "got " + describe_json(object), "allowed: an object"});
      continue;
    }
    const std::string path = document.is_array() ? place + "." : where + ": ";
    Json whole = object;
    if (const auto extends = object.find("extends"); extends != object.end()) {
      const std::string name = extends->is_string() ? extends->get<std::string>() : "";
      const MachineType* found = named(machines, name);
      if (found == nullptr) found = named(base, name);
      if (found == nullptr) {
        std::vector<std::string> known = names_of(base);
        for (const MachineType& m : machines) known.push_back(m.name);
        const std::string near = nearest_name(name, known);
        problems.push_back({path + "extends", "got " + describe_json(*extends) + ", which names no machine",
                            near.empty() ? "see `transept machines`" : "did you mean " + in_quotes(near) + "?"});
        continue;
      }
      whole = extended(to_json(*found), object);
    }
    MachineType machine = read_machine(whole, path, problems);
    if (named(machines, machine.name) != nullptr && !machine.name.empty())
      problems.push_back({path + "name", "a second machine is named " + in_quotes(machine.name), "rename one"});
    machines.push_back(std::move(machine));
  }
  throw_if_any(std::move(problems));
  return machines;
}

MachineType::Peak first_of(const MachineType& machine, std::initializer_list<const char*> order) {
  for (const char* format : order) {
    const auto found = machine.flops_per_second.find(format);
    if (found != machine.flops_per_second.end()) return {found->first, found->second};
  }
  return {};
}

}  // namespace

MachineType::Peak MachineType::peak(const std::string& dtype) const {
  if (dtype == "f16") return first_of(*this, {"f16", "bf16", "tf32", "f32"});
  if (dtype == "bf16") return first_of(*this, {"bf16", "tf32", "f32", "f16"});
  if (dtype == "f32") return first_of(*this, {"f32", "tf32", "bf16", "f16"});
  if (dtype == "f8") return first_of(*this, {"f8", "bf16", "f16", "tf32", "f32"});
  return first_of(*this, {"f16", "bf16", "tf32", "f32"});  // quantized weights are multiplied as 16-bit numbers
}

double MachineType::reachable_flops_per_second(const std::string& dtype, double rows) const {
  const double most = peak(dtype).flops_per_second;
  const auto row = row_flops_per_second.find(dtype);
  return row == row_flops_per_second.end() ? most : std::min(most, rows * row->second);
}

MachineType::Peak MachineType::training_peak() const { return first_of(*this, {"bf16", "f16", "tf32", "f32"}); }

double MachineType::read_bytes_per_second(double working_set_bytes) const {
  if (read_rates.empty()) return memory_bytes_per_second;
  const auto above = std::find_if(read_rates.begin(), read_rates.end(), [&](const ReadRate& r) {
    return static_cast<double>(r.working_set_bytes) >= working_set_bytes;
  });
  if (above == read_rates.begin()) return above->bytes_per_second;
  if (above == read_rates.end()) return read_rates.back().bytes_per_second;
  const ReadRate& below = *(above - 1);
  const double low = std::log(static_cast<double>(below.working_set_bytes)),
               high = std::log(static_cast<double>(above->working_set_bytes));
  const double share = (std::log(working_set_bytes) - low) / (high - low);
  return std::exp((1 - share) * std::log(below.bytes_per_second) + share * std::log(above->bytes_per_second));
}

const std::vector<MachineType>& machine_types() {
  static const std::vector<MachineType> table = [] {
    const EmbeddedDocument& document = machines_data().front();
    return read_all(parse_json(document.text, "machines.json"), "machines.json", {});
  }();
  return table;
}

std::vector<MachineType> read_machine_types(const Json& document, const std::string& where) {
  return read_all(document, where, machine_types());
}

MachineType find_machine_type(const std::string& argument) {
  if (const MachineType* found = named(machine_types(), argument)) return *found;
  const size_t suffix = argument.rfind(".json");
  const bool is_file = suffix != std::string::npos && (suffix + 5 == argument.size() || argument[suffix + 5] == ':');
  if (!is_file) {
    const std::vector<std::string> names = names_of(machine_types());
    const std::string near = nearest_name(argument, names);
    throw InputError("--machine", "none is named " + in_quotes(argument),
                     (near.empty() ? "" : "did you mean " + in_quotes(near) + "? ") +
                         "See `transept machines`, or give a FILE.json");
  }
  const std::string path = argument.substr(0, suffix + 5);
  const std::vector<MachineType> machines = read_machine_types(read_json(path), path);
  if (suffix + 5 == argument.size()) {
    if (machines.size() == 1) return machines.front();
    throw InputError("--machine", path + " holds " + std::to_string(machines.size()) + " machines",
                     "say which: " + path + ":" + machines.front().name);
  }
  const std::string name = argument.substr(suffix + 6);
  if (const MachineType* found = named(machines, name)) return *found;
  throw InputError("--machine", path + " holds no " + in_quotes(name), "it holds " + join(names_of(machines)));
}

Json to_json(const MachineType& machine) {
  Json json = {{"name", machine.name}};
  if (!machine.description.empty()) json["description"] = machine.description;
  json["kind"] = machine.kind;
  const auto add_flops = [&](const char* key, const std::map<std::string, double>& flops) {
    for (const std::string& format : kFormats) {
      const auto found = flops.find(format);
      if (found != flops.end()) json[key][format] = found->second;
    }
  };
  add_flops("flops_per_second", machine.flops_per_second);
  json["memory_bytes"] = machine.memory_bytes;
  for (const Quantity& q : kQuantities) {
    if (machine.*q.member > 0) json[q.key] = machine.*q.member;
  }
  if (!machine.read_rates.empty()) {
    json["read_rates"] = Json::array();
    for (const MachineType::ReadRate& r : machine.read_rates)
      json["read_rates"].push_back(
          {{"working_set_bytes", r.working_set_bytes}, {"bytes_per_second", r.bytes_per_second}});
  }
  add_flops("row_flops_per_second", machine.row_flops_per_second);
  if (!machine.note.empty()) json["note"] = machine.note;
  return json;
}

}  // namespace transept
