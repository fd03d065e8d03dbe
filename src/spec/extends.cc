#include "spec/extends.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "spec/groups.h"
#include "spec/keys.h"
#include "spec/nearest.h"
#include "spec/text.h"

namespace transept {
namespace {

template <class G>
GroupRule rule_of(std::string_view group_key) {
  GroupRule rule{.key = group_key, .default_kind = {}, .kept = {}, .nested = {}};
  if constexpr (GroupWithKinds<G>) {
    rule.default_kind = kind_name(G{}.spec);
    for_each_kind<G>([&](G group) {
      auto nest = [&]<class T>(std::string_view inner, T&, auto, std::string_view) {
        if constexpr (kIsKinds<T>) rule.nested.push_back(rule_of<NestedGroup<T>>(inner));
      };
      visit_group(group, nest);
    });
  }
  auto collect = [&](std::string_view key, auto&, auto, std::string_view) { rule.kept.emplace_back(key); };
  G{}.common(collect);
  return rule;
}

}  // namespace

const std::vector<GroupRule>& group_rules() {
  static const std::vector<GroupRule> rules = [] {
    std::vector<GroupRule> all;
    for_each_group([&]<class G>(G) { all.push_back(rule_of<G>(G::kKey)); });
    return all;
  }();
  return rules;
}

Json merge_group(const GroupRule& rule, const Json& base, const Json& over) {
  if (!base.is_object() || !over.is_object()) return over;
  Json merged = base;
  const auto kind = over.find("kind");
  if (!rule.default_kind.empty() && kind != over.end() && *kind != base.value("kind", Json(rule.default_kind))) {
    merged = Json::object();
    for (const std::string& key : rule.kept) {
      if (base.contains(key)) merged[key] = base[key];
    }
  }
  for (const auto& [key, value] : over.items()) {
    const auto inner = std::find_if(rule.nested.begin(), rule.nested.end(),
                                    [&, name = std::string_view(key)](const GroupRule& r) { return r.key == name; });
    const bool both = inner != rule.nested.end() && merged.contains(key);
    merged[key] = both ? merge_group(*inner, merged[key], value) : value;
  }
  return merged;
}

Json merge_documents(Json base, const Json& over) {
  if (!base.is_object() || !over.is_object()) return over;
  base.erase("name");
  base.erase("description");
  if (over.contains("layers") || over.contains("num_hidden_layers")) {
    base.erase("layers");
    base.erase("num_hidden_layers");
  }
  for (const auto& [key, value] : over.items()) {
    const auto rule =
        std::find_if(group_rules().begin(), group_rules().end(), [&](const GroupRule& r) { return r.key == key; });
    if (!base.contains(key)) {
      base[key] = value;
    } else if (rule != group_rules().end()) {
      base[key] = merge_group(*rule, base[key], value);
    } else {
      base[key] = is_stack_key(key) ? merge_documents(base[key], value) : value;
    }
  }
  return base;
}

Json expand_extends(const Json& document, const PresetLookup& find, const std::vector<std::string>& preset_names,
                    const std::string& where, Problems& problems) {
  // Outermost first. The chain is as long as there are presets at most, since none may come twice.
  std::vector<Json> chain{document};
  std::vector<std::string> seen;
  while (chain.back().contains("extends")) {
    const Json name = chain.back()["extends"];
    chain.back().erase("extends");
    if (!name.is_string()) {
      problems.push_back({where, "got " + describe_json(name), "allowed: the name of a preset"});
      break;
    }
    const std::string text = name.get<std::string>();
    if (std::find(seen.begin(), seen.end(), text) != seen.end()) {
      problems.push_back({where, in_quotes(text) + " extends itself", "break the cycle"});
      break;
    }
    const std::optional<Json> base = find(text);
    if (!base || !base->is_object()) {
      const std::string near = nearest_name(text, preset_names);
      problems.push_back({where, "no preset is named " + in_quotes(text),
                          near.empty() ? "presets: " + join(preset_names) : "did you mean " + in_quotes(near) + "?"});
      break;
    }
    seen.push_back(text);
    chain.push_back(*base);
  }
  Json merged = std::move(chain.back());
  for (size_t i = chain.size() - 1; i-- > 0;) merged = merge_documents(std::move(merged), chain[i]);
  return merged;
}

}  // namespace transept
