#include "convert/rope_config.h"

namespace transept {
namespace {

constexpr const char* kTrained = "original_max_position_embeddings";

// Reads the fields of a rule from a block and remembers which keys it has.
struct BlockReader {
  ConfigMap& map;
  const std::string& key;
  const Json& block;
  int64_t trained;
  std::set<std::string>& known;

  template <class C>
  void operator()(const char* name, double& value, const C&, const char*) {
    const Json* v = find(name);
    if (!v) return;
    if (!v->is_number()) return wrong(name, *v, "a number");
    value = v->get<double>();
  }
  template <class C>
  void operator()(const char* name, int64_t& value, const C&, const char*) {
    const Json* v = find(name);
    if (!v) {
      if (std::string_view(name) == kTrained) value = trained;
      return;
    }
    if (!v->is_number_integer()) return wrong(name, *v, "a whole number");
    value = v->get<int64_t>();
  }
  template <class C>
  void operator()(const char* name, bool& value, const C&, const char*) {
    const Json* v = find(name);
    if (!v) return;
    if (!v->is_boolean()) return wrong(name, *v, "true or false");
    value = v->get<bool>();
  }
  template <class C>
  void operator()(const char* name, std::vector<double>& value, const C&, const char*) {
    const Json* v = find(name);
    if (!v) return;
    if (!v->is_array() || v->size() > kMaxListEntries ||
        !std::all_of(v->begin(), v->end(), [](const Json& x) { return x.is_number(); }))
      return wrong(name, Json(v->type_name()), "a list of numbers");
    value = v->get<std::vector<double>>();
  }

 private:
  const Json* find(const char* name) {
    known.insert(name);
    const auto at = block.find(name);
    return at == block.end() || at->is_null() ? nullptr : &*at;
  }
  void wrong(const char* name, const Json& value, const char* wanted) {
    map.problem(key + "." + name, "is " + value.dump() + ", not " + wanted);
  }
};

// Fields that have a meaning when they are 0 ("as the rule computes it") are left out then.
struct BlockWriter {
  Json& block;
  template <class T, class C>
  void operator()(const char* name, const T& value, const C&, const char*) {
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, int64_t>) {
      if (value == 0) return;
    }
    block[name] = value;
  }
};

}  // namespace

void read_rope_block(ConfigMap& map, const std::string& key, const Json& block, RopePosition& rope, int64_t trained) {
  if (!block.is_object()) return map.problem(key, "is " + block.dump() + ", not an object");
  std::set<std::string> known{"rope_type", "type", "rope_theta", "partial_rotary_factor", "finetuned"};
  const auto text = [&](const char* name) -> std::string {
    const auto at = block.find(name);
    if (at == block.end() || at->is_null()) return {};
    if (at->is_string()) return at->get<std::string>();
    map.problem(key + "." + name, "is " + at->dump() + ", not a text");
    return {};
  };
  const auto number = [&](const char* name, double& value) {
    const auto at = block.find(name);
    if (at == block.end() || at->is_null()) return;
    if (!at->is_number()) return map.problem(key + "." + name, "is " + at->dump() + ", not a number");
    value = at->get<double>();
  };
  number("rope_theta", rope.theta);
  number("partial_rotary_factor", rope.partial_rotary_factor);
  std::string type = text("rope_type");
  if (type.empty()) type = text("type");
  if (type.empty() || type == "default") type = NoScaling::kName;
  if (type == "su") type = LongRopeScaling::kName;  // its first name, in the first Phi-3 configs
  const std::optional<RopeScaling> rule =
      type == NtkScaling::kName ? std::nullopt : RopeScalingKinds::make(type);  // no published config has "ntk"
  if (!rule)
    return map.problem(key + ".rope_type", "\"" + type + "\" is not supported",
                       "supported are default, linear, dynamic, yarn, llama3 and longrope");
  rope.scaling = *rule;
  std::visit(
      [&]<class K>(K& kind) {
        // Rules that do not ask for the trained length may be told it, and dynamic takes it from the model.
        constexpr bool asks = !std::is_same_v<K, DynamicScaling>;
        BlockReader reader{map, key, block, asks ? trained : 0, known};
        kind.fields(reader);
      },
      rope.scaling);
  known.insert(kTrained);
  for (const auto& [name, value] : block.items()) {
    if (!known.contains(name) && !value.is_null())
      map.problem(key + "." + name, "is not understood and might change the numbers");
  }
}

Json rope_block(const RopePosition& rope) {
  if (std::holds_alternative<NtkScaling>(rope.scaling)) throw Inexpressible{"position.scaling.kind is ntk"};
  const bool plain = std::holds_alternative<NoScaling>(rope.scaling);
  Json block = {{"rope_theta", rope.theta}, {"rope_type", plain ? "default" : kind_name(rope.scaling)}};
  if (rope.partial_rotary_factor != 1) block["partial_rotary_factor"] = rope.partial_rotary_factor;
  RopeScaling scaling = rope.scaling;
  std::visit(
      [&](auto& kind) {
        BlockWriter writer{block};
        kind.fields(writer);
      },
      scaling);
  return block;
}

void map_rope(ConfigMap& map, RopePosition& rope, int64_t trained, const RopeDefaults& defaults) {
  const bool partial = defaults.partial_rotary_factor > 0;
  if (!map.reading()) {
    map.demand(partial || rope.partial_rotary_factor == 1, "only a part of each head turns");
    // Both spellings, so that older readers see a rule as well.
    const Json block = rope_block(rope);
    map.write("rope_theta", rope.theta);
    map.write("rope_parameters", block);
    if (!std::holds_alternative<NoScaling>(rope.scaling)) map.write("rope_scaling", block);
    if (partial) map.write("partial_rotary_factor", rope.partial_rotary_factor);
    return;
  }
  map("rope_theta", rope.theta, defaults.theta);
  map("partial_rotary_factor", rope.partial_rotary_factor, partial ? defaults.partial_rotary_factor : 1);
  const Json &old = map.value("rope_scaling"), &block = map.value("rope_parameters");
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const Json& b = key == std::string_view("rope_scaling") ? old : block;
    // transformers reads "rope_scaling" first.
    if (b.is_null() || (&b == &block && !old.is_null())) continue;
    read_rope_block(map, key, b, rope, trained);
  }
  if (!partial && rope.partial_rotary_factor != 1)
    map.problem("partial_rotary_factor", "is not 1: this family turns whole heads");
}

}  // namespace transept
