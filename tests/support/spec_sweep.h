// Every choice that a spec document offers, found by walking the spec's own lists of kinds and keys, and combinations
// of them at a size that runs in an instant: each value of each key together with each value of each other key (a
// covering array of strength two, built greedily), and all of topology x window x position. What the spec refuses is
// stated once, in `refusals`; the array leaves it out, and a test holds the reader to it.
//
// A layer or a stack that names a kind of attention again gives the plainest numbers of that kind with it, for it has
// no defaults for them.
//
// A kind or a name that joins a list is swept without a line here. A number has no list of its own: a key without a row
// in `number_examples` is in `missing`, which fails the sweep.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/rng.h"
#include "spec/arch_spec.h"
#include "spec/groups.h"

namespace transept {

// One key of the document.
struct SweepAxis {
  std::string path;          // "position.scaling.kind"; "layers[1]." is the second layer, "encoder." that stack
  std::vector<Json> values;  // the plainest first; null: the key is not given
  int parent = -1;           // the axis, and the value of it, that this key belongs to; -1: to every document
  size_t parent_value = 0;
};

// Numbers by "group.kind.key", "group.key" or "key". Small: 24 features, heads of 4 or 6 elements unless head_dim says
// otherwise, sequences of 17 and 33 tokens around the trained lengths of the rules that stretch positions.
inline const std::map<std::string, std::vector<Json>>& number_examples() {
  const Json factors{1, 1.5, 2, 1.25, 3, 1, 1, 2, 1, 1, 4, 1};  // one a pair; cut to as many as there are
  static const std::map<std::string, std::vector<Json>> examples{
      {"vocab_size", {29}},
      {"hidden_size", {24}},
      {"max_position_embeddings", {40}},
      {"type_vocab_size", {0, 3}},
      {"logit_scale", {1, 0.5}},
      {"final_logit_softcap", {0, 3}},
      {"dropout", {0}},  // tests that are about it set it
      {"initializer_range", {0.15}},
      {"norm.layernorm.eps", {1e-5, 1e-2}},
      {"norm.rmsnorm.eps", {1e-5, 1e-2}},
      {"position.learned.offset", {0, 2}},
      {"position.sinusoidal.theta", {10000, 50}},
      {"position.rope.theta", {10000, 50}},
      {"position.rope.partial_rotary_factor", {1, 0.5}},
      {"position.alibi.max_bias", {8, 4}},
      {"position.t5.num_buckets", {8, 2}},
      {"position.t5.max_distance", {16, 5}},
      {"position.scaling.linear.factor", {3}},
      {"position.scaling.ntk.factor", {3}},
      {"position.scaling.dynamic.factor", {3}},
      {"position.scaling.dynamic.original_max_position_embeddings", {0, 9}},
      {"position.scaling.yarn.factor", {4}},
      {"position.scaling.yarn.original_max_position_embeddings", {12}},
      {"position.scaling.yarn.beta_fast", {32, 2}},
      {"position.scaling.yarn.beta_slow", {1}},
      {"position.scaling.yarn.attention_factor", {0, 1.2}},
      {"position.scaling.yarn.mscale", {0, 0.7}},
      {"position.scaling.yarn.mscale_all_dim", {0, 0.4}},
      {"position.scaling.llama3.factor", {8}},
      {"position.scaling.llama3.low_freq_factor", {1}},
      {"position.scaling.llama3.high_freq_factor", {4}},
      {"position.scaling.llama3.original_max_position_embeddings", {16}},
      {"position.scaling.longrope.short_factor", {factors}},
      {"position.scaling.longrope.long_factor", {factors}},
      {"position.scaling.longrope.original_max_position_embeddings", {12}},
      {"position.scaling.longrope.factor", {0, 2}},
      {"position.scaling.longrope.attention_factor", {0, 1.1}},
      {"attention.gqa.num_attention_heads", {6, 4}},
      {"attention.gqa.num_key_value_heads", {0, 1, 2, 3}},
      {"attention.gqa.head_dim", {0, 8, 5}},
      {"attention.gqa.scale", {0, 0.6}},
      {"attention.gqa.sliding_window", {0, 1, 3}},
      {"attention.gqa.clip_qkv", {0, 0.4}},
      {"attention.gqa.logit_softcap", {0, 2}},
      {"attention.mla.num_attention_heads", {6, 4}},
      {"attention.mla.q_lora_rank", {0, 10}},
      {"attention.mla.kv_lora_rank", {12}},
      {"attention.mla.qk_nope_head_dim", {6}},
      {"attention.mla.qk_rope_head_dim", {4, 5}},
      {"attention.mla.v_head_dim", {7}},
      {"attention.mla.scale", {0, 0.6}},
      {"attention.mla.sliding_window", {0, 1, 3}},
      {"ffn.intermediate_size", {20}},
      {"moe.num_experts", {0, 4}},
      {"moe.num_experts_per_tok", {2, 1}},
      {"moe.moe_intermediate_size", {0, 8}},
      {"moe.routed_scaling_factor", {1, 2.5}},
      {"moe.n_group", {1, 2}},
      {"moe.topk_group", {0, 1}},
      {"moe.shared_expert_intermediate_size", {0, 12}},
      {"moe.bias_update_speed", {0.001}},
      {"moe.router_aux_loss_coef", {0, 0.02}},
      {"moe.router_z_loss_coef", {0, 0.01}},
      {"moe.capacity_factor", {0, 1.5}},
      {"moe.router_jitter_noise", {0, 0.1}}};
  return examples;
}

// Collects axes from `fields` lists.
class SweepAxes {
 public:
  std::vector<SweepAxis> axes;
  std::vector<std::string> missing;  // numbers without examples

  // The keys of a struct, under a path ("position." or "").
  template <class T>
  void keys(T holder, const std::string& path, const std::string& name, int parent = -1, size_t parent_value = 0) {
    auto visitor = [&](std::string_view key, auto& member, auto, std::string_view) {
      key_of(member, path + std::string(key), name + std::string(key), parent, parent_value);
    };
    holder.fields(visitor);
  }
  // The kinds of a list and the keys of each. Names of numbers have the kind's name between group and key.
  template <class... K>
  void kinds(Kinds<K...>, const std::string& path, const std::string& name, int parent = -1, size_t parent_value = 0) {
    const int axis = add(path + "kind", {Json(K::kName)...}, parent, parent_value);
    size_t value = 0;
    (keys(K{}, path, name + std::string(K::kName) + ".", axis, value++), ...);
  }
  // A group of the document.
  template <class G>
  void group(G group) {
    const std::string path = std::string(G::kKey) + ".";
    if constexpr (GroupWithKinds<G>) kinds(typename G::KindList{}, path, path);
    keys(Common<G>{group}, path, path);
  }
  // What a layer or a stack of its own may choose again: kinds and names, and not at all (null).
  template <class G>
  void override_group(G group, const std::string& prefix, int parent = -1, size_t parent_value = 0) {
    const std::string path = prefix + std::string(G::kKey) + ".";
    const auto names_again = [&](auto holder) {
      auto visitor = [&](std::string_view key, auto& member, auto, std::string_view) {
        using T = std::remove_cvref_t<decltype(member)>;
        if constexpr (std::is_enum_v<T>) add_again(path + std::string(key), EnumNames<T>::kNames, parent, parent_value);
      };
      holder.fields(visitor);
    };
    if constexpr (GroupWithKinds<G>) {
      constexpr auto& names = G::KindList::kNames;
      if constexpr (names.size() > 1) {
        add_again(path + "kind", names, parent, parent_value);
      } else {
        for_each_kind<G>([&](G only) { std::visit(names_again, only.spec); });
      }
    }
    names_again(Common<G>{group});
  }
  int add(const std::string& path, std::vector<Json> values, int parent = -1, size_t parent_value = 0) {
    axes.push_back({path, std::move(values), parent, parent_value});
    return static_cast<int>(axes.size()) - 1;
  }

 private:
  template <class G>
  struct Common {
    G group;
    template <class V>
    void fields(V& v) {
      group.common(v);
    }
  };
  void add_again(const std::string& path, const auto& names, int parent, size_t parent_value) {
    std::vector<Json> values{Json()};
    values.insert(values.end(), names.begin(), names.end());
    add(path, std::move(values), parent, parent_value);
  }
  template <class T>
  void key_of(T& member, const std::string& path, const std::string& name, int parent, size_t parent_value) {
    if constexpr (std::is_same_v<T, std::string>) {
      return;  // free text
    } else if constexpr (std::is_same_v<T, bool>) {
      add(path, {member, !member}, parent, parent_value);
    } else if constexpr (std::is_enum_v<T>) {
      const auto& names = EnumNames<T>::kNames;
      add(path, {names.begin(), names.end()}, parent, parent_value);
    } else if constexpr (kIsKinds<T>) {
      // Names of a nested group's numbers do not say which kind it stands in.
      const std::string group = name.substr(0, name.find('.') + 1) + name.substr(name.rfind('.') + 1) + ".";
      kinds(typename NestedGroup<T>::KindList{}, path + ".", group, parent, parent_value);
    } else {
      const auto found = examples_.find(name);
      if (found == examples_.end()) {
        missing.push_back(name);
      } else {
        add(path, found->second, parent, parent_value);
      }
    }
  }
  const std::map<std::string, std::vector<Json>>& examples_ = number_examples();
};

// All axes of a document with two layers.
inline SweepAxes spec_axes() {
  SweepAxes a;
  a.keys(ArchSpec{}, "", "");
  for_each_group([&](auto group) { a.group(group); });
  const auto topology =
      std::find_if(a.axes.begin(), a.axes.end(), [](const SweepAxis& x) { return x.path == "topology"; });
  const int of_encoder = static_cast<int>(topology - a.axes.begin());
  const size_t two_stacks = static_cast<size_t>(Topology::kEncoderDecoder);
  // A feed-forward network knows nothing of its neighbours, so two pairs of unequal ones are enough.
  const auto override_groups = [&](const std::string& prefix, int parent, size_t parent_value) {
    for_each_group([&]<class G>(G group) {
      if constexpr (!std::is_same_v<G, FfnGroup>) a.override_group(group, prefix, parent, parent_value);
    });
  };
  override_groups("layers[1].", -1, 0);
  override_groups("encoder.", of_encoder, two_stacks);
  a.add("layers[1].ffn.kind", {Json(), "relu", "geglu"});
  a.add("layers[1].attention.sliding_window", {Json(), 0, 2});
  a.add("layers[1].moe.num_experts", {Json(), 0, 3});
  a.add("layers[1].attention.num_attention_heads", {Json(), 3});
  a.add("encoder.attention.sliding_window", {Json(), 2}, of_encoder, two_stacks);
  return a;
}

class SpecSweep {
 public:
  using Choice = std::vector<int>;  // a value of each axis; -1: the axis belongs to another value of its parent

  SpecSweep() : SpecSweep(spec_axes()) {}
  explicit SpecSweep(SweepAxes walked) : axes_(std::move(walked.axes)), missing_(std::move(walked.missing)) {
    for (size_t i = 0; i < axes_.size(); ++i) {
      by_path_[axes_[i].path].push_back(static_cast<int>(i));
      first_value_.push_back(values_);
      values_ += axes_[i].values.size();
    }
    keys_.topology = axis("topology"), keys_.hidden_size = axis("hidden_size");
    keys_.norm = axis("norm.kind"), keys_.scaling = axis("position.scaling.kind");
    keys_.bias = axis("norm.bias"), keys_.affine = axis("norm.elementwise_affine");
    keys_.partial = axis("position.partial_rotary_factor");
    const std::array<std::string, 3> prefixes{"", "layers[1].", "encoder."};
    for (size_t p = 0; p < prefixes.size(); ++p) {
      keys_.form[p] = axis(prefixes[p] + "block.form"), keys_.placement[p] = axis(prefixes[p] + "norm.placement");
      keys_.position[p] = axis(prefixes[p] + "position.kind"),
      keys_.attention[p] = axis(prefixes[p] + "attention.kind");
      keys_.choice[p] = axis(prefixes[p] + "moe.router_choice"),
      keys_.scoring[p] = axis(prefixes[p] + "moe.scoring_func");
      constrained_.insert({keys_.choice[p], keys_.scoring[p]});
      constrained_.insert({keys_.form[p], keys_.placement[p], keys_.position[p], keys_.attention[p]});
    }
    keys_.experts = {axis("moe.num_experts"), axis("layers[1].moe.num_experts"), -1};
    keys_.shared = axis("moe.shared_expert_intermediate_size"), keys_.shared_gate = axis("moe.shared_expert_gate");
    keys_.norm_topk = axis("moe.norm_topk_prob"), keys_.selection_bias = axis("moe.selection_bias");
    keys_.capacity = axis("moe.capacity_factor");
    constrained_.insert({keys_.norm_topk, keys_.selection_bias, keys_.capacity});
    keys_.groups = axis("moe.n_group");
    constrained_.insert({keys_.experts[0], keys_.experts[1], keys_.shared, keys_.shared_gate, keys_.groups});
    keys_.second_heads = axis("layers[1].attention.num_attention_heads");
    constrained_.insert(
        {keys_.topology, keys_.norm, keys_.bias, keys_.affine, keys_.scaling, keys_.partial, keys_.second_heads});
    for (const char* key : {"num_attention_heads", "num_key_value_heads", "head_dim", "qk_rope_head_dim"}) {
      for (const int i : by_path_["attention." + std::string(key)]) constrained_.insert(i);
    }
    find_pairs();
  }

  const std::vector<SweepAxis>& axes() const { return axes_; }
  const std::vector<std::string>& missing() const { return missing_; }
  const std::vector<Choice>& accepted() const { return accepted_; }
  // Choices that hold a pair of values which nothing beside it makes right.
  const std::vector<Choice>& refused() const { return refused_; }
  // Pairs that some document may have and no accepted choice has.
  std::vector<std::string> uncovered() const {
    std::vector<std::string> names;
    for (size_t a = 0; a < values_; ++a) {
      for (size_t b = a; b < values_; ++b) {
        if (wanted_[a * values_ + b]) names.push_back(value_name(a) + " with " + value_name(b));
      }
    }
    return names;
  }

  // The document of a choice.
  Json document(const Choice& choice) const {
    Json d = Json::object(), second = Json::object(), encoder = {{"num_hidden_layers", 2}};
    for (size_t i = 0; i < axes_.size(); ++i) {
      if (choice[i] < 0) continue;
      const Json& value = axes_[i].values[static_cast<size_t>(choice[i])];
      if (value.is_null()) continue;
      std::string path = axes_[i].path;
      Json* at = &d;
      for (auto& [prefix, holder] : {std::pair<std::string, Json*>{"layers[1].", &second}, {"encoder.", &encoder}}) {
        if (path.starts_with(prefix)) path = path.substr(prefix.size()), at = holder;
      }
      for (size_t dot; (dot = path.find('.')) != std::string::npos; path = path.substr(dot + 1))
        at = &(*at)[path.substr(0, dot)];
      (*at)[path] = value;
      if (value.is_array()) cut((*at)[path], static_cast<size_t>(std::max<int64_t>(1, turning(choice, 0) / 2)));
    }
    for (Json* at : {&second, &encoder}) {
      if (!at->contains("attention") || !(*at)["attention"].contains("kind")) continue;
      Json& attention = (*at)["attention"];
      Json numbers = plain_numbers(attention["kind"].get<std::string>());
      numbers.update(attention);
      attention = numbers;
    }
    const Json layers{{{"repeat", 1}}, second};
    if (is(choice, keys_.topology, "encoder_decoder")) {
      d["encoder"] = encoder;
      d["decoder"] = {{"layers", layers}};
    } else {
      d["layers"] = layers;
    }
    return d;
  }

  // What the spec says of a choice: the beginning of each problem. Empty: the document is a model.
  std::vector<std::string> refusals(const Choice& c) const {
    std::vector<std::string> problems;
    for_each_refusal(c, [&](const auto& text) { problems.push_back(text()); });
    return problems;
  }
  // The first values of all axes, and of those in `fixed` the ones that it has (-1: not fixed). Nothing when two of
  // them belong to different values of the same axis.
  std::optional<Choice> complete(Choice fixed) const {
    for (size_t i = axes_.size(); i-- > 0;) {  // children before their parents
      if (fixed[i] < 0 || axes_[i].parent < 0) continue;
      int& parent = fixed[static_cast<size_t>(axes_[i].parent)];
      if (parent >= 0 && parent != static_cast<int>(axes_[i].parent_value)) return std::nullopt;
      parent = static_cast<int>(axes_[i].parent_value);
    }
    for (size_t i = 0; i < axes_.size(); ++i) {
      if (fixed[i] < 0 && active(fixed, i)) fixed[i] = 0;
    }
    return fixed;
  }
  // Any choice, a pure function of the number; refused ones among them.
  Choice random(uint64_t number) const {
    const CounterRng rng(number, Stream::kTest, 21);
    Choice c(axes_.size(), -1);
    for (size_t i = 0; i < axes_.size(); ++i) {
      // Half of them plain, or nearly everything would be refused.
      const uint64_t pick = rng.below(i, 2 * axes_[i].values.size());
      if (active(c, i)) c[i] = pick < axes_[i].values.size() ? static_cast<int>(pick) : 0;
    }
    return c;
  }

  void cover() {
    // All of topology x window x position and its rules.
    const int window = axis("attention.sliding_window");
    for (size_t t = 0; t < values(keys_.topology); ++t) {
      for (size_t w = 0; w < values(window); ++w) {
        for (size_t p = 0; p < values(keys_.position[0]); ++p) {
          const bool rope = axes_[static_cast<size_t>(keys_.position[0])].values[p] == "rope";
          for (size_t s = 0; s < (rope ? values(keys_.scaling) : 1); ++s) {
            Choice fixed(axes_.size(), -1);
            at(fixed, keys_.topology) = static_cast<int>(t);
            at(fixed, window) = static_cast<int>(w);
            at(fixed, keys_.position[0]) = static_cast<int>(p);
            if (rope) at(fixed, keys_.scaling) = static_cast<int>(s);
            accept(fixed);
          }
        }
      }
    }
    for (size_t a = 0; a < values_; ++a) {
      for (size_t b = a; b < values_; ++b) {
        if (wanted_[a * values_ + b]) accept(*repaired(pair(a, b)));
      }
    }
  }

 private:
  struct Keys {
    int topology, hidden_size, norm, bias, affine, scaling, partial, second_heads;
    int shared, shared_gate, groups, norm_topk, selection_bias, capacity;
    std::array<int, 3> form{}, placement{}, position{}, attention{}, experts{-1, -1, -1};
    std::array<int, 3> choice{}, scoring{};
  };

  // The axis of a path; the first of them where several kinds have a key of the same name.
  int axis(const std::string& path) const {
    const auto found = by_path_.find(path);
    return found == by_path_.end() ? -1 : found->second.front();
  }
  size_t values(int axis) const { return axes_[static_cast<size_t>(axis)].values.size(); }
  static int& at(Choice& c, int axis) { return c[static_cast<size_t>(axis)]; }
  static int at(const Choice& c, int axis) { return c[static_cast<size_t>(axis)]; }
  const Json& value(const Choice& c, int axis) const {
    static const Json none;
    if (axis < 0 || at(c, axis) < 0) return none;
    return axes_[static_cast<size_t>(axis)].values[static_cast<size_t>(at(c, axis))];
  }
  bool is(const Choice& c, int axis, const char* name) const {
    const Json& v = value(c, axis);
    return v.is_string() && v.get_ref<const std::string&>() == name;
  }
  bool given(const Choice& c, int axis) const { return !value(c, axis).is_null(); }
  // Whether the axis is a key of the kinds chosen; parents come before their children.
  bool active(const Choice& c, size_t i) const {
    return axes_[i].parent < 0 || c[static_cast<size_t>(axes_[i].parent)] == static_cast<int>(axes_[i].parent_value);
  }
  std::string value_name(size_t v) const {
    size_t i = axes_.size() - 1;
    while (first_value_[i] > v) --i;
    return axes_[i].path + " = " + axes_[i].values[v - first_value_[i]].dump();
  }

  // The first example of each number of a kind of attention.
  static const Json& plain_numbers(const std::string& kind) {
    static std::map<std::string, Json> by_kind;
    const auto [at, is_new] = by_kind.try_emplace(kind, Json::object());
    const std::string prefix = "attention." + kind + ".";
    for (const auto& [name, examples] : number_examples()) {
      if (is_new && name.starts_with(prefix)) at->second[name.substr(prefix.size())] = examples.front();
    }
    return at->second;
  }
  bool latent(const Choice& c, size_t layer) const {
    return is(c, given(c, keys_.attention[layer]) ? keys_.attention[layer] : keys_.attention[0], "mla");
  }
  // A number of a layer's attention; the kind that the layer has must have it.
  int64_t number(const Choice& c, size_t layer, const std::string& key) const {
    if (layer == 1 && key == "num_attention_heads" && given(c, keys_.second_heads))
      return value(c, keys_.second_heads).get<int64_t>();
    if (layer > 0 && given(c, keys_.attention[layer])) return plain_numbers(latent(c, layer) ? "mla" : "gqa").at(key);
    for (const int i : by_path_.at("attention." + key)) {
      if (at(c, i) >= 0) return value(c, i).get<int64_t>();
    }
    return 0;
  }
  int64_t heads(const Choice& c, size_t layer) const { return number(c, layer, "num_attention_heads"); }
  // Elements of a head that may turn.
  int64_t rotary_dim(const Choice& c, size_t layer) const {
    if (latent(c, layer)) return number(c, layer, "qk_rope_head_dim");
    const int64_t given_dim = number(c, layer, "head_dim");
    return given_dim > 0 ? given_dim : value(c, keys_.hidden_size).get<int64_t>() / heads(c, layer);
  }
  int64_t turning(const Choice& c, size_t layer) const {
    return static_cast<int64_t>(static_cast<double>(rotary_dim(c, layer)) * value(c, keys_.partial).get<double>());
  }
  static void cut(Json& list, size_t size) {
    if (list.size() > size) list.erase(list.begin() + static_cast<int64_t>(size), list.end());
  }

  // The one statement of what the spec refuses: report(f) with each problem, whose text f() gives.
  template <class Report>
  void for_each_refusal(const Choice& c, const Report& report) const {
    const bool two_stacks = is(c, keys_.topology, "encoder_decoder");
    // A key that two layers of the same stack share stands where the last that gives it does.
    const auto place = [&](const std::array<int, 3>& of, size_t layer, const std::string& path) {
      if (layer == 0 || !given(c, of[layer])) return path;
      return (layer == 1 ? std::string(two_stacks ? "decoder.layers[1]." : "layers[1].") : "encoder.") + path;
    };
    // Layer 0 and 1 of the stack that ends in the head, and the layers of an encoder beside it.
    for (size_t layer = 0; layer < (two_stacks ? 3u : 2u); ++layer) {
      const auto chosen = [&](const std::array<int, 3>& of) { return given(c, of[layer]) ? of[layer] : of[0]; };
      const int position = chosen(keys_.position);
      if (!is(c, chosen(keys_.form), "sequential")) {
        const auto form = [&] { return place(keys_.form, layer, "block.form"); };
        if (!is(c, chosen(keys_.placement), "pre"))
          report([&] { return form() + ": parallel sublayers with a norm that is not before them"; });
        if (two_stacks && layer < 2)
          report([&] { return form() + ": parallel sublayers in a decoder with cross-attention"; });
      }
      const auto of_stack = [&](int axis) {
        return is(c, axis, "learned") || is(c, axis, "sinusoidal") || is(c, axis, "t5");
      };
      if (layer == 1 && given(c, keys_.position[1]) && value(c, position) != value(c, keys_.position[0]) &&
          (of_stack(position) || of_stack(keys_.position[0]))) {
        report([&] { return place(keys_.position, 1, "position.kind") + ": of "; });
      }
      if (is(c, position, "t5") && heads(c, layer) != heads(c, layer == 1 ? 0 : layer))
        report([&] { return place(keys_.position, layer, "position.kind") + ": t5 has one table of biases"; });
      const int64_t experts =
          value(c, given(c, keys_.experts[layer]) ? keys_.experts[layer] : keys_.experts[0]).get<int64_t>();
      if (experts > 0) {
        const bool causal = !is(c, keys_.topology, "encoder") && (!two_stacks || layer < 2);
        const bool plain = is(c, chosen(keys_.scoring), "softmax") && value(c, keys_.norm_topk) == false &&
                           value(c, keys_.groups) == 1 && value(c, keys_.selection_bias) == false &&
                           value(c, keys_.capacity) == 0;
        if (experts % value(c, keys_.groups).get<int64_t>() == 0 && is(c, chosen(keys_.choice), "experts") &&
            (causal || !plain))
          report([&] { return place(keys_.choice, layer, "moe.router_choice") + ": experts that choose among"; });
        if (experts % value(c, keys_.groups).get<int64_t>() != 0)
          report([] { return std::string("moe.n_group: 2 does not divide num_experts = 3"); });
        else if (value(c, keys_.shared_gate) == true && value(c, keys_.shared) == 0)
          report([] { return std::string("moe.shared_expert_gate: true, and there is no shared expert"); });
      }
      const bool is_latent = latent(c, layer);
      if (is_latent && two_stacks && layer < 2)
        report([&] { return place(keys_.attention, layer, "attention.kind") + ": \"mla\" in a decoder"; });
      const int64_t kv_heads = is_latent ? 0 : number(c, layer, "num_key_value_heads");
      if (kv_heads > 0 && heads(c, layer) % kv_heads != 0)
        report([&] { return "attention.num_key_value_heads: " + std::to_string(kv_heads) + " does not divide"; });
      if (is(c, position, "rope")) {
        // The keys of rope are those of the document when the document's kind is rope, and defaults otherwise.
        const bool own = is(c, keys_.position[0], "rope");
        const bool whole = !own || value(c, keys_.partial) == 1;
        const int64_t turns = own ? turning(c, layer) : rotary_dim(c, layer);
        const char* const dim = is_latent ? "attention.qk_rope_head_dim: " : "attention.head_dim: ";
        if (is_latent && !whole)
          report([&] { return place(keys_.attention, layer, "attention.kind") + ": mla turns the part"; });
        if (whole && turns % 2 != 0) {
          report([&] { return dim + std::to_string(turns) + " is odd, and rope rotates pairs"; });
        } else if (turns % 2 != 0 || turns < 2) {
          report([&] { return "position.partial_rotary_factor: " + std::to_string(turns) + " of the "; });
        } else if (own && is(c, keys_.scaling, "longrope") && turns != std::max<int64_t>(2, turning(c, 0) / 2 * 2)) {
          report([] { return std::string("position.scaling.short_factor: has "); });
        }
      }
    }
    if (is(c, keys_.norm, "layernorm") && value(c, keys_.bias) == true && value(c, keys_.affine) == false)
      report([] { return std::string("norm.bias: true, and elementwise_affine is false"); });
  }

  Choice pair(size_t a, size_t b) const {
    Choice fixed(axes_.size(), -1);
    for (const size_t v : {a, b}) {
      size_t i = axes_.size() - 1;
      while (first_value_[i] > v) --i;
      fixed[i] = static_cast<int>(v - first_value_[i]);
    }
    return fixed;
  }
  bool accepts(const Choice& fixed) const { return faults(fixed) == 0; }
  // How many refusals the plain completion meets; more than there are when it cannot be completed.
  int faults(const Choice& fixed) const {
    const auto whole = complete(fixed);
    if (!whole) return std::numeric_limits<int>::max();
    int n = 0;
    for_each_refusal(*whole, [&](const auto&) { ++n; });
    return n;
  }
  // With up to two more values fixed, the first of which mends something, such that the plain completion is a model.
  std::optional<Choice> repaired(const Choice& fixed) const {
    const int before = faults(fixed);
    if (before == 0) return fixed;
    std::vector<Choice> better;
    for (const int i : constrained_) {
      for (size_t v = 0; at(fixed, i) < 0 && v < values(i); ++v) {
        Choice more = fixed;
        at(more, i) = static_cast<int>(v);
        const int after = faults(more);
        if (after == 0) return more;
        if (after < before) better.push_back(std::move(more));
      }
    }
    for (const Choice& one : better) {
      for (const int j : constrained_) {
        for (size_t w = 0; at(one, j) < 0 && w < values(j); ++w) {
          Choice both = one;
          at(both, j) = static_cast<int>(w);
          if (accepts(both)) return both;
        }
      }
    }
    return std::nullopt;
  }
  void find_pairs() {
    wanted_.assign(values_ * values_, false);
    std::vector<std::pair<size_t, size_t>> doubtful;
    for (size_t i = 0; i < axes_.size(); ++i) {
      for (size_t j = i; j < axes_.size(); ++j) {
        for (size_t a = first_value_[i]; a < first_value_[i] + axes_[i].values.size(); ++a) {
          for (size_t b = first_value_[j]; b < first_value_[j] + axes_[j].values.size(); ++b) {
            if (i == j && a != b) continue;
            if (!complete(pair(a, b))) continue;
            wanted_[a * values_ + b] = accepts(pair(a, b));
            if (!wanted_[a * values_ + b]) doubtful.emplace_back(a, b);
          }
        }
      }
    }
    for (const auto& [a, b] : doubtful) {
      wanted_[a * values_ + b] = repaired(pair(a, b)).has_value();
      if (!wanted_[a * values_ + b]) refused_.push_back(*complete(pair(a, b)));
    }
  }
  // How many wanted pairs the value makes with those that are fixed.
  int64_t gain(const Choice& fixed, size_t i, size_t v) const {
    int64_t n = 0;
    const size_t a = first_value_[i] + v;
    for (size_t j = 0; j < axes_.size(); ++j) {
      if (fixed[j] < 0) continue;
      const size_t b = first_value_[j] + static_cast<size_t>(fixed[j]);
      n += wanted_[std::min(a, b) * values_ + std::max(a, b)];
    }
    return n;
  }
  // Fixes the rest, axis by axis, each at the value that covers most, and takes the result.
  void accept(Choice fixed) {
    const CounterRng rng(accepted_.size(), Stream::kTest, 20);
    std::vector<std::pair<uint64_t, size_t>> order;
    for (size_t i = 0; i < axes_.size(); ++i) order.emplace_back(rng.below(i, uint64_t{1} << 32), i);
    std::sort(order.begin(), order.end());
    for (size_t i = axes_.size(); i-- > 0;) {
      if (fixed[i] >= 0 && axes_[i].parent >= 0)
        fixed[static_cast<size_t>(axes_[i].parent)] = static_cast<int>(axes_[i].parent_value);
    }
    for (bool more = true; more;) {  // a pass for each depth of kinds inside kinds
      more = false;
      for (const auto& [key, i] : order) {
        if (fixed[i] >= 0 || !active(fixed, i)) continue;
        std::vector<std::pair<int64_t, int>> best;
        for (size_t v = 0; v < axes_[i].values.size(); ++v)
          best.emplace_back(-2 * gain(fixed, i, v) - (v == key % axes_[i].values.size()), static_cast<int>(v));
        std::sort(best.begin(), best.end());
        for (const auto& [negative, v] : best) {
          fixed[i] = v;
          if (accepts(fixed)) break;
          fixed[i] = -1;
        }
        more = true;
        if (fixed[i] < 0) return;  // never: the plain value was accepted a step before
      }
    }
    for (size_t i = 0; i < axes_.size(); ++i) {
      for (size_t j = i; j < axes_.size(); ++j) {
        if (fixed[i] < 0 || fixed[j] < 0) continue;
        wanted_[(first_value_[i] + static_cast<size_t>(fixed[i])) * values_ + first_value_[j] +
                static_cast<size_t>(fixed[j])] = false;
      }
    }
    accepted_.push_back(std::move(fixed));
  }

  std::vector<SweepAxis> axes_;
  std::vector<std::string> missing_;
  std::map<std::string, std::vector<int>> by_path_;
  std::vector<size_t> first_value_;
  std::set<int> constrained_;  // axes that for_each_refusal looks at
  size_t values_ = 0;
  Keys keys_{};
  std::vector<char> wanted_;
  std::vector<Choice> accepted_, refused_;
};

// The covering array, built once a program.
inline const SpecSweep& covering_sweep() {
  static const SpecSweep sweep = [] {
    SpecSweep s;
    s.cover();
    return s;
  }();
  return sweep;
}

struct SpecCase {
  std::string name;  // the document
  ArchSpec spec;
};
inline const std::vector<SpecCase>& spec_cases() {
  static const std::vector<SpecCase> cases = [] {
    std::vector<SpecCase> made;
    for (const auto& choice : covering_sweep().accepted()) {
      const Json document = covering_sweep().document(choice);
      made.push_back({document.dump(), spec_from_json(document, "case")});
    }
    return made;
  }();
  return cases;
}

}  // namespace transept
