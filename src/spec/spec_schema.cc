// The JSON Schema (draft 2020-12) of a spec document, made from the lists that the reader walks. It accepts all that
// the reader accepts; conditions that join several numbers (divisibility, total size) are the reader's alone.
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "spec/arch_spec.h"
#include "spec/groups.h"
#include "spec/keys.h"
#include "spec/presets.h"
#include "spec/range.h"

namespace transept {
namespace {

template <class G>
Json group_schema(bool override);

// One property for each field; a numeric field whose default is not allowed is required, and so is a list. `override`:
// the fields are laid over others.
struct SchemaFields {
  bool override = false;
  Json properties = Json::object();
  Json required = Json::array();

  template <class T, class C>
  void operator()(std::string_view key, T& member, C constraint, std::string_view help) {
    Json property = Json::object();
    if constexpr (std::is_same_v<T, bool>) {
      property["type"] = "boolean";
    } else if constexpr (std::is_same_v<T, std::string>) {
      property["type"] = "string";
    } else if constexpr (std::is_enum_v<T>) {
      property["enum"] = EnumNames<T>::kNames;
    } else if constexpr (kIsKinds<T>) {
      property = group_schema<NestedGroup<T>>(override);
    } else if constexpr (std::is_same_v<T, std::vector<double>>) {
      const Range range = range_for<double>(constraint);
      property = {
          {"type", "array"}, {"minItems", 1}, {"maxItems", kMaxListEntries}, {"items", numeric("number", range)}};
      required.push_back(key);
    } else {
      const Range range = range_for<T>(constraint);
      property = numeric(std::is_same_v<T, int64_t> ? "integer" : "number", range);
      if (!range.holds(static_cast<double>(member))) required.push_back(key);
    }
    if constexpr (std::is_enum_v<T>) {
      property["default"] = EnumNames<T>::kNames[static_cast<size_t>(member)];
    } else if constexpr (!kIsKinds<T>) {
      if (required.empty() || required.back() != key) property["default"] = member;
    }
    property["description"] = help;
    properties[std::string(key)] = std::move(property);
  }

  static Json numeric(const char* type, const Range& range) {
    return {{"type", type},
            {range.low_open ? "exclusiveMinimum" : "minimum", number(range.low)},
            {range.high_open ? "exclusiveMaximum" : "maximum", number(range.high)}};
  }
  // Whole numbers without a decimal point.
  static Json number(double x) {
    return std::abs(x) < 1e15 && x == std::floor(x) ? Json(static_cast<int64_t>(x)) : Json(x);
  }
};

Json object_of(Json properties) {
  return {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

Json without_defaults(Json properties) {
  for (auto& property : properties) property.erase("default");
  return properties;
}

// A group standing alone ("full") or laid over another ("override"), where an absent kind is the other's and nothing
// has a default.
template <class G>
Json group_schema(bool override) {
  if constexpr (GroupWithKinds<G>) {
    Json forms = Json::array();
    Json any_kind = Json::object();  // keys of every kind, for an override that names none
    for_each_kind<G>([&](G group) {
      SchemaFields fields{.override = override};
      visit_group(group, fields);
      const std::string_view name = kind_name(group.spec);
      Json properties = {{"kind", {{"const", name}, {"description", kKindKey.help}}}};
      properties.update(override ? without_defaults(fields.properties) : fields.properties);
      Json form = object_of(std::move(properties));
      if (override || name != kind_name(G{}.spec)) form["required"] = Json::array({"kind"});
      forms.push_back(std::move(form));
      const Json bare = without_defaults(fields.properties);
      for (const auto& [key, property] : bare.items()) {
        Json& known = any_kind[key];
        if (known.is_null()) {
          known = {{"anyOf", Json::array({property})}};
        } else {
          known["anyOf"].push_back(property);
        }
      }
    });
    if (override) forms.push_back(object_of(std::move(any_kind)));
    return {{"oneOf", std::move(forms)}};
  } else {
    SchemaFields fields;
    G group;
    visit_group(group, fields);
    return object_of(override ? without_defaults(fields.properties) : fields.properties);
  }
}

// Of a nested group that no layer completes: each kind has the keys that it requires.
template <class G>
Json complete_form() {
  Json forms = Json::array();
  for_each_kind<G>([&](G group) {
    SchemaFields fields;
    visit_group(group, fields);
    const std::string_view name = kind_name(group.spec);
    if (name != kind_name(G{}.spec)) fields.required.push_back("kind");
    forms.push_back({{"properties", {{"kind", {{"const", name}}}}}, {"required", fields.required}});
  });
  return {{"anyOf", std::move(forms)}};
}

// Keys that a full group must have: those required by its default-constructed form.
template <class G>
Json required_of() {
  SchemaFields fields;
  G group;
  visit_group(group, fields);
  return fields.required;
}

}  // namespace

Json spec_schema() {
  SchemaFields scalars;
  ArchSpec spec;
  spec.fields(scalars);
  const Json count = {{"type", "integer"}, {"minimum", 1}, {"maximum", kMaxLayers}};

  Json definitions = Json::object(), properties = scalars.properties, full = Json::object(), over = Json::object();
  Json layer = {{"repeat", count}}, complete = Json::object(), complete_keys = Json::array();
  layer["repeat"]["default"] = 1;
  layer["repeat"]["description"] = kRepeatKey.help;
  for_each_group([&]<class G>(G) {
    const std::string key(G::kKey);
    definitions[key] = group_schema<G>(false);
    definitions[key + "_override"] = group_schema<G>(true);
    properties[key] = true;
    full[key] = {{"$ref", "#/$defs/" + key}};
    over[key] = layer[key] = {{"$ref", "#/$defs/" + key + "_override"}};
    if (const Json keys = required_of<G>(); !keys.empty()) {
      complete[key] = {{"required", keys}};
      complete_keys.push_back(key);
    }
    if constexpr (GroupWithKinds<G>) {
      for_each_kind<G>([&](G group) {
        auto nest = [&]<class T>(std::string_view inner, T&, auto, std::string_view) {
          if constexpr (kIsKinds<T>) complete[key]["properties"][std::string(inner)] = complete_form<NestedGroup<T>>();
        };
        visit_group(group, nest);
      });
    }
  });
  const Json one = object_of(std::move(layer));
  Json pattern = object_of({{"repeat", one["properties"]["repeat"]},
                            {"layers",
                             {{"description", kPatternKey.help},
                              {"type", "array"},
                              {"minItems", 1},
                              {"maxItems", kMaxLayers},
                              {"items", {{"$ref", "#/$defs/layer"}}}}}});
  definitions["layer"] = one;
  pattern["required"] = Json::array({"layers"});
  definitions["pattern"] = std::move(pattern);

  Json layer_keys = Json::object();
  for (const StructureKey& k : kLayerKeys) layer_keys[std::string(k.key)] = {{"description", k.help}};
  layer_keys["num_hidden_layers"].update(count);
  layer_keys["layers"].update(
      Json{{"type", "array"},
           {"minItems", 1},
           {"maxItems", kMaxLayers},
           {"items", {{"oneOf", {{{"$ref", "#/$defs/layer"}}, {{"$ref", "#/$defs/pattern"}}}}}}});
  Json stack = layer_keys;
  stack.update(over);
  definitions["stack"] = object_of(std::move(stack));

  for (const StructureKey& k : kDocumentKeys) properties[std::string(k.key)] = {{"description", k.help}};
  properties["$schema"]["type"] = "string";
  properties["extends"]["enum"] = preset_names();
  properties.update(layer_keys);
  for (const StructureKey& k : kStackKeys)
    properties[std::string(k.key)] = {{"$ref", "#/$defs/stack"}, {"description", k.help}};

  const auto has = [](const char* key) { return Json{{"required", Json::array({key})}}; };
  const Json layered = {{"oneOf", Json::array({has("layers"), has("num_hidden_layers")})}};
  Json schema = object_of(std::move(properties));
  Json head = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "Transept model spec"}};
  head.update(schema);
  Json two_stacks = {{"required", Json::array()}, {"properties", Json::object()}};
  Json no_stack = Json::array();
  for (const StructureKey& k : kStackKeys) {
    two_stacks["required"].push_back(k.key);
    two_stacks["properties"][std::string(k.key)] = layered;
    no_stack.push_back(has(k.key.data()));
  }
  two_stacks["not"] = {{"anyOf", Json::array({has("layers"), has("num_hidden_layers")})}};
  Json one_stack = layered;
  one_stack["not"] = {{"anyOf", no_stack}};
  // With a list of layers, its entries may give what the groups leave out.
  one_stack["if"] = has("num_hidden_layers");
  one_stack["then"] = {{"required", complete_keys}, {"properties", complete}};
  // Alone, a document says everything; over a preset, only what differs.
  head["if"] = has("extends");
  head["then"] = {{"properties", over}, {"not", {{"required", Json::array({"layers", "num_hidden_layers"})}}}};
  head["else"] = {
      {"required", scalars.required},
      {"properties", full},
      {"if", {{"required", Json::array({"topology"})}, {"properties", {{"topology", {{"const", "encoder_decoder"}}}}}}},
      {"then", std::move(two_stacks)},
      {"else", std::move(one_stack)}};
  head["$defs"] = std::move(definitions);
  return head;
}

}  // namespace transept
