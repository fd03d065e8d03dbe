// The groups of a spec document: "norm", "block", "position", "attention", "ffn", "moe". A group is a kind with that
// kind's keys, and keys that belong to the group whatever its kind. `visit_group` walks all keys but "kind", which each
// reader, writer or schema treats by itself.
#pragma once

#include <concepts>
#include <string_view>
#include <utility>
#include <variant>

#include "spec/attention.h"
#include "spec/block.h"
#include "spec/ffn.h"
#include "spec/moe.h"
#include "spec/norm.h"
#include "spec/position.h"

namespace transept {

struct NormGroup {
  static constexpr std::string_view kKey = "norm";
  using KindList = NormKinds;
  NormSpec spec = RmsNormSpec{};
  NormPlacement placement = NormPlacement::kPre;
  template <class V>
  void common(V& v) {
    v("placement", placement, Any{},
      "pre: x + f(norm(x)); post: norm(x + f(x)); post_sublayer: x + norm(f(x)); sandwich: x + norm(f(norm(x)))");
  }
};

struct BlockGroup {
  static constexpr std::string_view kKey = "block";
  BlockSpec spec;
  template <class V>
  void common(V& v) {
    spec.fields(v);
  }
};

struct PositionGroup {
  static constexpr std::string_view kKey = "position";
  using KindList = PositionKinds;
  PositionSpec spec = RopePosition{};
  template <class V>
  void common(V&) {}
};

struct AttentionGroup {
  static constexpr std::string_view kKey = "attention";
  using KindList = AttentionKinds;
  AttentionSpec spec = GqaSpec{};
  template <class V>
  void common(V&) {}
};

// The feed-forward kinds share one struct, in which the kind is a key like any other.
struct FfnGroup {
  static constexpr std::string_view kKey = "ffn";
  FfnSpec spec;
  template <class V>
  void common(V& v) {
    spec.fields(v);
  }
};

struct MoeGroup {
  static constexpr std::string_view kKey = "moe";
  MoeSpec spec;
  template <class V>
  void common(V& v) {
    spec.fields(v);
  }
};

// A variant of kinds inside a group ("scaling" of rope), as a group of its own.
template <class Any>
struct NestedGroup;
template <class... K>
struct NestedGroup<std::variant<K...>> {
  using KindList = Kinds<K...>;
  std::variant<K...> spec;
  template <class V>
  void common(V&) {}
};

template <class G>
concept GroupWithKinds = requires { typename G::KindList; };

template <class G, class V>
void visit_group(G& group, V& v) {
  if constexpr (GroupWithKinds<G>) std::visit([&](auto& kind) { kind.fields(v); }, group.spec);
  group.common(v);
}

// All groups, in the order of a written document: f(group) with each, default-constructed.
template <class F>
void for_each_group(F&& f) {
  f(NormGroup{});
  f(BlockGroup{});
  f(PositionGroup{});
  f(AttentionGroup{});
  f(FfnGroup{});
  f(MoeGroup{});
}

// f(group) with each kind in turn, default-constructed.
template <class G, class F>
void for_each_kind(F&& f) {
  [&]<class... K>(Kinds<K...>) { (f(G{.spec = K{}}), ...); }(typename G::KindList{});
}

}  // namespace transept
