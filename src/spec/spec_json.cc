// Spec documents: reading with every problem reported at once, and writing back.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "spec/arch_spec.h"
#include "spec/extends.h"
#include "spec/group_json.h"
#include "spec/keys.h"
#include "spec/nearest.h"
#include "spec/presets.h"
#include "spec/range.h"
#include "spec/text.h"

namespace transept {
namespace {

constexpr size_t kMaxKeys = 256;  // in one object: lookups in ordered objects are linear
constexpr size_t kMaxText = 256;  // bytes of a key or of a string inside a group; longer ones are certainly wrong

std::string divisors(int64_t n) {
  constexpr int64_t kListed = 4096;  // no list of the divisors of 2^30
  std::string s;
  for (int64_t d = 1; d <= std::min(n, kListed); ++d) {
    if (n % d == 0) s += (s.empty() ? "" : ", ") + std::to_string(d);
  }
  return s;
}

// Derived values of a layer's attention, and the conditions that join several keys. `hidden_size` is 0 when it is not
// known.
struct ResolveAttention {
  const Source& source;
  const std::set<std::string>& bad;
  int64_t hidden_size;
  const RopePosition* rope;  // null: another kind
  Findings& findings;

  bool rotary() const { return rope && rope->partial_rotary_factor == 1; }

  void operator()(GqaSpec& a) const {
    const auto good = [&](const char* key) { return !bad.contains(key); };
    const bool heads_good = good("num_attention_heads");
    bool dim_good = good("head_dim");
    if (heads_good && good("num_key_value_heads")) {
      if (a.num_key_value_heads == 0) a.num_key_value_heads = a.num_attention_heads;
      if (a.num_attention_heads % a.num_key_value_heads != 0) {
        findings.add(source.at("num_key_value_heads"),
                     std::to_string(a.num_key_value_heads) +
                         " does not divide num_attention_heads = " + std::to_string(a.num_attention_heads),
                     "allowed: " + divisors(a.num_attention_heads));
      }
    }
    if (dim_good && a.head_dim == 0) {
      dim_good = heads_good && hidden_size > 0;
      if (dim_good && hidden_size % a.num_attention_heads != 0) {
        findings.add(
            source.at("num_attention_heads"),
            std::to_string(a.num_attention_heads) + " does not divide hidden_size = " + std::to_string(hidden_size),
            "give head_dim, or a divisor of hidden_size");
        dim_good = false;
      }
      if (dim_good) a.head_dim = hidden_size / a.num_attention_heads;
    }
    if (dim_good && rotary() && a.head_dim % 2 != 0) {
      findings.add(source.at("head_dim"), std::to_string(a.head_dim) + " is odd, and rope rotates pairs of elements",
                   "give an even head_dim, or another position kind");
    }
    if (dim_good && heads_good && good("num_key_value_heads") && a.qkv_width() > kMaxInteger) {
      findings.add(source.at("num_attention_heads"),
                   "queries, keys and values are " + std::to_string(a.qkv_width()) + " wide",
                   "allowed: at most " + std::to_string(kMaxInteger) + " together");
    }
  }

  void operator()(MlaSpec& a) const {
    const auto good = [&](const char* key) { return !bad.contains(key); };
    if (rope && !rotary()) {
      findings.add(source.at("kind"),
                   "mla turns the part of its heads that is for it, and partial_rotary_factor is not 1",
                   "set position.partial_rotary_factor to 1, and qk_rope_head_dim to the elements that turn");
    }
    if (rotary() && good("qk_rope_head_dim") && a.qk_rope_head_dim % 2 != 0) {
      findings.add(source.at("qk_rope_head_dim"),
                   std::to_string(a.qk_rope_head_dim) + " is odd, and rope rotates pairs of elements",
                   "give an even qk_rope_head_dim, or another position kind");
    }
    if (!bad.empty()) return;
    const int64_t widest = std::max(a.query_width() + a.expanded_width(), a.absorbed_width());
    if (widest > kMaxInteger) {
      findings.add(source.at("num_attention_heads"), "queries, keys and values are " + std::to_string(widest) + " wide",
                   "allowed: at most " + std::to_string(kMaxInteger) + " together");
    }
  }
};

class SpecReader {
 public:
  explicit SpecReader(const std::string& where) : where_(where), findings_(where) {}

  ArchSpec read(const Json& document) {
    Json whole = bounded(document, "");
    if (whole.contains("extends")) {
      Problems problems;
      const PresetLookup find = [](std::string_view name) -> std::optional<Json> {
        if (!is_preset(name)) return std::nullopt;
        return preset_document(name);
      };
      whole = expand_extends(whole, find, preset_names(), "extends", problems);
      for (Problem& p : problems) findings_.add(p.where, std::move(p.what), std::move(p.mend));
    }
    read_top(whole);
    read_stacks(whole);
    if (findings_.empty()) check_size();
    findings_.throw_if_any();
    return std::move(spec_);
  }

 private:
  // The object at `path`, or an empty one with a problem noted.
  Json bounded(const Json& value, const std::string& path) {
    if (!value.is_object()) {
      findings_.add(path, "got " + describe_json(value), "allowed: an object");
    } else if (value.size() > kMaxKeys) {
      findings_.add(path, "has " + std::to_string(value.size()) + " keys",
                    "allowed: at most " + std::to_string(kMaxKeys));
    } else {
      return value;
    }
    return Json::object();
  }

  // A group's object without anything large: groups are copied for every layer. What is cut is still of the type that
  // it was, so that the reader refuses it in the same words.
  Json bounded_group(const Json& value, const std::string& path) {
    Json group = Json::object();
    const Json whole = bounded(value, path);
    size_t room = 2 * (kMaxListEntries + 1);
    for (const auto& [key, member] : whole.items()) {
      if (key.size() > kMaxText) {
        findings_.add(path + "." + printable(key), "is no known key", "remove it");
      } else if (member.is_string()) {
        group[key] = member.get_ref<const std::string&>().substr(0, kMaxText);
      } else {
        group[key] = member.is_structured() ? bounded_member(member, path + "." + key, room) : member;
      }
    }
    return group;
  }

  // A list or a group inside a group. `room`: numbers that the group may still hold in lists.
  Json bounded_member(const Json& value, const std::string& path, size_t& room) {
    Json bounded_value(value.type());
    if (value.is_array()) {
      // One entry beyond what is allowed stays, so that a long list is refused for its length.
      const size_t kept = std::min({value.size(), kMaxListEntries + 1, room});
      for (size_t i = 0; i < kept; ++i)
        bounded_value.push_back(value[i].is_structured() || value[i].is_string() ? Json(value[i].type()) : value[i]);
      room -= kept;
    } else if (value.size() <= kMaxKeys) {
      for (const auto& [key, member] : value.items()) {
        if (key.size() > kMaxText) {
          findings_.add(path + "." + printable(key), "is no known key", "remove it");
        } else if (member.is_string()) {
          bounded_value[key] = member.get_ref<const std::string&>().substr(0, kMaxText);
        } else if (member.is_array()) {
          bounded_value[key] = bounded_member(member, path + "." + key, room);
        } else {
          bounded_value[key] = member.is_object() ? Json::object() : member;
        }
      }
    } else {
      findings_.add(path, "has " + std::to_string(value.size()) + " keys",
                    "allowed: at most " + std::to_string(kMaxKeys));
    }
    return bounded_value;
  }

  void read_top(const Json& whole) {
    const Source source{whole, ""};
    ReadFields reader(source, true, findings_);
    for (const auto& keys : {std::span<const StructureKey>(kDocumentKeys), std::span<const StructureKey>(kLayerKeys),
                             std::span<const StructureKey>(kStackKeys)}) {
      for (const StructureKey& k : keys) reader.know(k.key);
    }
    for (const GroupRule& rule : group_rules()) reader.know(rule.key);
    spec_.fields(reader);
    reader.refuse_unknown([](std::string_view key) {
      if (key == kRepeatKey.key) return std::string("it belongs into an entry of layers");
      std::string group;
      for_each_group([&]<class G>(G) {
        const auto look = [&](G g) {
          auto find = [&](std::string_view k, auto&, auto, std::string_view) {
            if (k == key && group.empty()) group = G::kKey;
          };
          visit_group(g, find);
        };
        if constexpr (GroupWithKinds<G>) {
          for_each_kind<G>(look);
        } else {
          look(G{});
        }
      });
      return group.empty() ? std::string() : "it belongs into the group " + in_quotes(group);
    });
    if (whole.contains("$schema") && !whole["$schema"].is_string()) {
      findings_.add("$schema", "got " + describe_json(whole["$schema"]), "allowed: a string");
    }
    hidden_size_ = reader.good("hidden_size") ? spec_.hidden_size : 0;
    for (const GroupRule& rule : group_rules()) {
      const std::string key(rule.key);
      Group& group = groups_[key];
      group.path = key;
      group.merged = whole.contains(key) ? bounded_group(whole[key], key) : Json::object();
    }
    // Keys that every layer overrides are never used, and wrong all the same.
    for_each_group([&]<class G>(G) { read_group<G>(groups_[std::string(G::kKey)].source(), false, findings_); });
  }

  void read_stacks(const Json& whole) {
    if (!spec_.encoder_decoder()) {
      for (const StructureKey& k : kStackKeys) {
        if (whole.contains(k.key))
          findings_.add(std::string(k.key), "is given, and the topology has one stack",
                        "set topology to \"encoder_decoder\", or give layers or num_hidden_layers at the top");
      }
      return read_stack(whole, "", spec_.topology == Topology::kDecoder, false, spec_);
    }
    for (const StructureKey& k : kLayerKeys) {
      if (whole.contains(k.key))
        findings_.add(std::string(k.key), "is given, and the topology has two stacks",
                      "give it inside of encoder and decoder");
    }
    for (const StructureKey& k : kStackKeys) {
      const std::string key(k.key);
      if (!whole.contains(key)) {
        findings_.add(key, "is missing (" + std::string(k.help) + ")", "allowed: an object");
        continue;
      }
      const Json stack = bounded(whole[key], key);
      const Source source{stack, key};
      ReadFields reader(source, true, findings_);
      for (const StructureKey& l : kLayerKeys) reader.know(l.key);
      for (const GroupRule& rule : group_rules()) reader.know(rule.key);
      reader.refuse_unknown([](std::string_view) { return std::string(); });
      const bool decoder = &k == &kStackKeys[1];
      const std::map<std::string, Group> document = groups_;
      for (const GroupRule& rule : group_rules()) {
        const std::string group(rule.key);
        if (stack.contains(group))
          groups_[group].lay_over(rule, bounded_group(stack[group], key + "." + group), key + "." + group);
      }
      read_stack(stack, key + ".", decoder, decoder, decoder ? spec_ : spec_.encoder);
      groups_ = document;
    }
  }

  void read_stack(const Json& holder, const std::string& path, bool causal, bool cross, StackSpec& stack) {
    total_layers_ = first_heads_ = 0;
    const auto base = [&]<class G>(G) {
      return read_group<G>(groups_[std::string(G::kKey)].source(), false, findings_);
    };
    stack.final_norm = base(NormGroup{}).group.spec;
    resolve_norm(stack.final_norm, groups_["norm"].source());
    stack.position = base(PositionGroup{}).group.spec;
    const size_t first = stack.layers.size();
    const bool listed = holder.contains("layers"), counted = holder.contains("num_hidden_layers");
    if (listed == counted) {
      findings_.add(path + (listed ? "num_hidden_layers" : "layers"),
                    listed ? "stands beside layers" : "is missing, and so is num_hidden_layers", "give one of the two");
    }
    if (listed) {
      read_list(holder["layers"], path + "layers", stack);
    } else {
      int64_t count = 1;  // one layer is read even when the count is missing, to find what is wrong with its groups
      if (counted) count = read_count(holder["num_hidden_layers"], path + "num_hidden_layers");
      add_layers(Json::object(), path + "layers[0]", count, stack);
    }
    for (size_t i = first; i < stack.layers.size(); ++i) {
      stack.layers[i].causal = causal;
      stack.layers[i].cross_attention = cross;
    }
  }

  // `nested`: inside of an entry's own list, which holds no further one.
  void read_list(const Json& list, const std::string& where, StackSpec& stack, bool nested = false) {
    if (!list.is_array() || list.empty() || list.size() > static_cast<size_t>(kMaxLayers)) {
      findings_.add(where,
                    list.is_array() ? "has " + std::to_string(list.size()) + " entries" : "got " + describe_json(list),
                    "allowed: a list of 1 to " + std::to_string(kMaxLayers) + " objects");
      return;
    }
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string path = where + "[" + std::to_string(i) + "]";
      const Json entry = bounded(list[i], path);
      const Source source{entry, path};
      ReadFields reader(source, true, findings_);
      reader.know(kRepeatKey.key);
      const int64_t repeat = entry.contains("repeat") ? read_count(entry["repeat"], path + ".repeat") : 1;
      if (entry.contains("layers") && !nested) {
        reader.know("layers");
        reader.refuse_unknown([](std::string_view) { return std::string("give it inside of the entry's layers"); });
        repeat_list(entry["layers"], path + ".layers", repeat, stack);
        continue;
      }
      for (const GroupRule& rule : group_rules()) reader.know(rule.key);
      reader.refuse_unknown([](std::string_view) { return std::string(); });
      add_layers(entry, path, repeat, stack);
    }
  }

  // A pattern of layers, several times over.
  void repeat_list(const Json& list, const std::string& where, int64_t repeat, StackSpec& stack) {
    const size_t first = stack.layers.size();
    read_list(list, where, stack, true);
    const std::vector<LayerSpec> pattern(stack.layers.begin() + static_cast<int64_t>(first), stack.layers.end());
    total_layers_ += static_cast<int64_t>(pattern.size()) * (repeat - 1);
    if (total_layers_ > kMaxLayers) return too_many_layers(where);
    for (int64_t n = 1; n < repeat; ++n) stack.layers.insert(stack.layers.end(), pattern.begin(), pattern.end());
  }

  void too_many_layers(const std::string& where) {
    findings_.add(where.substr(0, where.find("layers") + 6),
                  "more than " + std::to_string(kMaxLayers) + " layers in all",
                  "allowed: at most " + std::to_string(kMaxLayers));
  }

  int64_t read_count(const Json& value, const std::string& path) {
    const std::optional<int64_t> n = whole_number(value);
    if (n && *n >= 1 && *n <= kMaxLayers) return *n;
    findings_.add(path, "got " + describe_json(value),
                  "allowed: an integer, at least 1 and at most " + std::to_string(kMaxLayers));
    return 1;
  }

  static const GroupRule& rule_of_group(std::string_view key) {
    return *std::find_if(group_rules().begin(), group_rules().end(), [&](const GroupRule& r) { return r.key == key; });
  }

  void resolve_norm(NormSpec& norm, const Source& source) {
    auto* layer_norm = std::get_if<LayerNormSpec>(&norm);
    if (!layer_norm || layer_norm->elementwise_affine) return;
    layer_norm->bias = false;
    if (source.object.value("bias", Json(false)) == Json(true))
      findings_.add(source.at("bias"), "true, and elementwise_affine is false", "a norm without weights has no bias");
  }

  // `then` looks at the group and the conditions that join its keys, while their places are known.
  template <class G>
  GroupRead<G> read_layer_group(const Json& entry, const std::string& path, const auto& then) {
    const std::string key(G::kKey);
    Group group = groups_[key];
    if (entry.contains(key)) {
      group.lay_over(rule_of_group(key), bounded_group(entry[key], path + "." + key), path + "." + key);
    }
    const Source source = group.source();
    GroupRead<G> read = read_group<G>(source, true, findings_);
    then(read, source);
    return read;
  }

  void add_layers(const Json& entry, const std::string& path, int64_t count, StackSpec& stack) {
    total_layers_ += count;
    if (total_layers_ > kMaxLayers) return too_many_layers(path);
    const GroupRead<NormGroup> norm = read_layer_group<NormGroup>(
        entry, path, [&](GroupRead<NormGroup>& read, const Source& source) { resolve_norm(read.group.spec, source); });
    const GroupRead<BlockGroup> block =
        read_layer_group<BlockGroup>(entry, path, [&](GroupRead<BlockGroup>& read, const Source& source) {
          if (!read.group.spec.parallel()) return;
          if (norm.group.placement != NormPlacement::kPre)
            findings_.add(source.at("form"), "parallel sublayers with a norm that is not before them",
                          "set norm.placement to \"pre\", or form to \"sequential\"");
          if (spec_.encoder_decoder() && &stack == &spec_)
            findings_.add(source.at("form"), "parallel sublayers in a decoder with cross-attention",
                          "set form to \"sequential\"");
        });
    const GroupRead<PositionGroup> position =
        read_layer_group<PositionGroup>(entry, path, [&](GroupRead<PositionGroup>& read, const Source& source) {
          if (!entry.contains("position")) return;
          const auto of_stack = [](const PositionSpec& any) {
            return std::visit([](const auto& kind) { return kind.kOfStack; }, any);
          };
          if ((of_stack(stack.position) || of_stack(read.group.spec)) && !(read.group.spec == stack.position))
            findings_.add(source.at("kind"),
                          "of " + in_quotes(kind_name(stack.position)) + " and " +
                              in_quotes(kind_name(read.group.spec)) + ", one belongs to the whole stack",
                          "learned, sinusoidal and t5 stand outside of layers, and for all of them");
        });
    const GroupRead<AttentionGroup> attention =
        read_layer_group<AttentionGroup>(entry, path, [&](GroupRead<AttentionGroup>& read, const Source& source) {
          if (!read.good("kind")) return;
          const auto* rope = std::get_if<RopePosition>(&position.group.spec);
          std::visit(ResolveAttention{source, read.bad, hidden_size_, rope, findings_}, read.group.spec);
          if (position.bad.empty()) check_position(entry, path, position.group.spec, read.group.spec);
          const bool crosses = std::visit([]<class K>(const K&) { return K::kCross; }, read.group.spec);
          if (!crosses && spec_.encoder_decoder() && &stack == &spec_)
            findings_.add(source.at("kind"),
                          in_quotes(kind_name(read.group.spec)) + " in a decoder, which attends to its encoder too",
                          "give the decoder \"gqa\", or set topology to \"decoder\"");
        });
    const GroupRead<FfnGroup> ffn =
        read_layer_group<FfnGroup>(entry, path, [&](GroupRead<FfnGroup>& read, const Source& source) {
          if (read.good("kind") && read.good("intermediate_size") && read.group.spec.in_width() > kMaxInteger) {
            findings_.add(source.at("intermediate_size"),
                          "gate and up are " + std::to_string(read.group.spec.in_width()) + " wide",
                          "allowed: at most " + std::to_string(kMaxInteger) + " together");
          }
        });
    const GroupRead<MoeGroup> moe =
        read_layer_group<MoeGroup>(entry, path, [&](GroupRead<MoeGroup>& read, const Source& source) {
          const bool causal = spec_.topology == Topology::kDecoder || (spec_.encoder_decoder() && &stack == &spec_);
          resolve_moe(read.group.spec, read.bad, causal, ffn, source);
        });
    LayerSpec layer;
    layer.norm = norm.group.spec;
    layer.placement = norm.group.placement;
    layer.block = block.group.spec;
    layer.position = position.group.spec;
    layer.attention = attention.group.spec;
    layer.ffn = ffn.group.spec;
    layer.moe = moe.group.spec;
    stack.layers.insert(stack.layers.end(), static_cast<size_t>(count), layer);
  }

  // Derived values of a layer's experts, and the conditions that join several keys.
  void resolve_moe(MoeSpec& moe, const std::set<std::string>& bad, bool causal, const GroupRead<FfnGroup>& ffn,
                   const Source& source) {
    if (!bad.empty()) return;
    if (!moe) {
      moe = {};  // what the experts would be like is no part of the model
      return;
    }
    if (moe.num_experts_per_tok > moe.num_experts) {
      findings_.add(source.at("num_experts_per_tok"),
                    std::to_string(moe.num_experts_per_tok) + " of num_experts = " + std::to_string(moe.num_experts),
                    "allowed: at most num_experts");
      return;
    }
    if (moe.num_experts % moe.n_group != 0) {
      findings_.add(source.at("n_group"),
                    std::to_string(moe.n_group) + " does not divide num_experts = " + std::to_string(moe.num_experts),
                    "allowed: " + divisors(moe.num_experts));
      return;
    }
    if (moe.topk_group == 0) moe.topk_group = moe.n_group;
    const int64_t reachable = moe.topk_group * (moe.num_experts / moe.n_group);
    if (moe.topk_group > moe.n_group || moe.num_experts_per_tok > reachable) {
      findings_.add(source.at("topk_group"),
                    std::to_string(moe.topk_group) + " of n_group = " + std::to_string(moe.n_group) + " groups, and " +
                        std::to_string(moe.num_experts_per_tok) + " experts a token",
                    "allowed: as many groups as there are at the most, and enough for num_experts_per_tok");
    }
    if (moe.router_choice == RoutedBy::kExperts &&
        (causal || moe.scoring_func != ScoringFunc::kSoftmax || moe.norm_topk_prob || moe.n_group > 1 ||
         moe.selection_bias || moe.capacity_factor > 0)) {
      findings_.add(source.at("router_choice"),
                    causal ? "experts that choose among tokens see later ones, and this stack is causal"
                           : "experts that choose among tokens are even by themselves",
                    causal
                        ? "set it to \"tokens\""
                        : "use scoring_func \"softmax\", without norm_topk_prob, groups, selection_bias and capacity");
    }
    if (moe.shared_expert_gate && !moe.has_shared()) {
      findings_.add(source.at("shared_expert_gate"), "true, and there is no shared expert",
                    "set shared_expert_intermediate_size, or shared_expert_gate to false");
    }
    if (!ffn.good("bias") || !ffn.good("intermediate_size") || !ffn.good("kind")) return;
    if (moe.moe_intermediate_size == 0) moe.moe_intermediate_size = ffn.group.spec.intermediate_size;
    const int64_t rows = moe.num_experts * std::max(moe.expert(ffn.group.spec).in_width(), hidden_size_);
    if (rows > kMaxInteger) {
      findings_.add(source.at("num_experts"), "the experts' matrices have " + std::to_string(rows) + " rows together",
                    "allowed: at most " + std::to_string(kMaxInteger));
    }
  }

  void check_position(const Json& entry, const std::string& path, const PositionSpec& position,
                      const AttentionSpec& attention) {
    PositionUse use{.hidden_size = hidden_size_};
    std::visit([&](const auto& a) { use.num_attention_heads = a.num_attention_heads, use.head_dim = a.rotary_dim(); },
               attention);
    if (first_heads_ == 0) first_heads_ = use.num_attention_heads;
    use.first_heads = first_heads_;
    Problems problems;
    const std::string key(PositionGroup::kKey);
    std::visit([&](const auto& kind) { kind.check(use, key, problems); }, position);
    // The kind calls its group "position"; each of its keys stands where it was given.
    Group group = groups_[key];
    if (entry.contains(key)) group.lay_over(rule_of_group(key), entry[key], path + "." + key);
    const Source source = group.source();
    for (Problem& p : problems) {
      const std::string inside = p.where.substr(key.size() + 1);
      const size_t end = std::min(inside.find('.'), inside.size());
      findings_.add(source.at(inside.substr(0, end)) + inside.substr(end), std::move(p.what), std::move(p.mend));
    }
  }

  // Extents are at most 2^30 here, so that one parameter's elements fit; their sum need not.
  void check_size() {
    int64_t total = 0;
    for (const ParamDecl& p : spec_.declare().decls()) {
      int64_t elements = 1;
      for (const int64_t extent : p.shape) elements *= extent;
      if (__builtin_add_overflow(total, elements, &total) || total > kMaxParameters) {
        findings_.add("", "the model has more than 2^53 parameters", "make it smaller");
        return;
      }
    }
  }

  // A group as it stands so far, and the objects that it was laid together from.
  struct Group {
    Json merged;
    std::string path;
    std::vector<std::pair<Json, std::string>> over;

    void lay_over(const GroupRule& rule, Json object, std::string at) {
      merged = merge_group(rule, merged, object);
      over.emplace_back(std::move(object), std::move(at));
    }
    Source source() const {
      Source s{merged, path};
      for (const auto& [object, at] : over) s.overlays.push_back({&object, at});
      return s;
    }
  };

  std::string where_;
  Findings findings_;
  ArchSpec spec_;
  std::map<std::string, Group> groups_;
  int64_t hidden_size_ = 0;  // 0: not known
  int64_t first_heads_ = 0;  // of the first layer; 0: not known
  int64_t total_layers_ = 0;
};

// What must stand in an override of `base` so that the merge is `group`; both hold every key of their kind.
Json difference(const Json& base, const Json& group) {
  if (base.contains("kind") && base["kind"] != group["kind"]) return group;
  Json changed = Json::object();
  for (const auto& [key, value] : group.items()) {
    if (!base.contains(key) || base[key] != value) changed[key] = value;
  }
  return changed;
}

}  // namespace

ArchSpec spec_from_json(const Json& document, const std::string& where) { return SpecReader(where).read(document); }

namespace {

// The groups of a stack's first layer, by key; "norm" is that of the final norm. What differs goes into `layers`.
std::map<std::string, Json> layer_groups(const LayerSpec& layer, const NormSpec& norm) {
  return {{"norm", write_group(NormGroup{norm, layer.placement})},
          {"block", write_group(BlockGroup{layer.block})},
          {"position", write_group(PositionGroup{layer.position})},
          {"attention", write_group(AttentionGroup{layer.attention})},
          {"ffn", write_group(FfnGroup{layer.ffn})},
          {"moe", write_group(MoeGroup{layer.moe})}};
}

void write_stack(const StackSpec& stack, Json& document) {
  const LayerSpec first = stack.layers.empty() ? LayerSpec{} : stack.layers.front();
  std::map<std::string, Json> base = layer_groups(first, stack.final_norm);
  base["position"] = write_group(PositionGroup{stack.position});
  const bool dense =
      std::none_of(stack.layers.begin(), stack.layers.end(), [](const LayerSpec& layer) { return bool(layer.moe); });
  for (const GroupRule& rule : group_rules()) {
    if (dense && rule.key == MoeGroup::kKey) continue;
    document[std::string(rule.key)] = base[std::string(rule.key)];
  }

  Json entries = Json::array();
  for (const LayerSpec& layer : stack.layers) {
    const std::map<std::string, Json> groups = layer_groups(layer, layer.norm);
    Json entry = {{"repeat", 1}};
    for (const GroupRule& rule : group_rules()) {
      const std::string key(rule.key);
      const Json changed = difference(base[key], groups.at(key));
      if (!changed.empty()) entry[key] = changed;
    }
    if (!entries.empty()) {
      Json& last = entries.back();
      const int64_t repeat = last["repeat"].get<int64_t>();
      last["repeat"] = 1;
      const bool same = last == entry;
      last["repeat"] = same ? repeat + 1 : repeat;
      if (same) continue;
    }
    entries.push_back(std::move(entry));
  }
  if (entries.size() == 1 && entries.front().size() == 1) {
    document["num_hidden_layers"] = entries.front()["repeat"];
  } else {
    document["layers"] = std::move(entries);
  }
}

}  // namespace

Json spec_to_json(const ArchSpec& spec) {
  Json document = Json::object();
  ArchSpec scalars = spec;
  WriteFields writer{document};
  scalars.fields(writer);
  if (spec.description.empty()) document.erase("description");
  if (spec.encoder_decoder()) {
    document["encoder"] = document["decoder"] = Json::object();
    write_stack(spec.encoder, document["encoder"]);
    write_stack(spec, document["decoder"]);
  } else {
    write_stack(spec, document);
  }
  return document;
}

}  // namespace transept
