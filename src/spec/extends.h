// "extends" and layer overrides: how one document is laid over another. Pure work on documents; values are checked by
// the reader.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/problem.h"

namespace transept {

// What merging must know of a group: the kind that stands when none is named (empty: the group has no kinds with keys
// of their own), and the keys that stay when the kind changes.
struct GroupRule {
  std::string_view key;
  std::string default_kind;
  std::vector<std::string> kept;
  std::vector<GroupRule> nested;  // groups inside it, of any of its kinds
};
const std::vector<GroupRule>& group_rules();

// `over` laid over `base`, key by key and likewise inside nested groups. When `over` names another kind, the base's
// keys do not apply, save the kept ones. What is no object is left for the reader to refuse.
Json merge_group(const GroupRule& rule, const Json& base, const Json& over);

// A spec document laid over another, group by group; the base's name and description are not inherited, and its layers
// are not where `over` has its own.
Json merge_documents(Json base, const Json& over);

using PresetLookup = std::function<std::optional<Json>(std::string_view name)>;

// The document with its chain of "extends" resolved, group by group; the extended document's name and description are
// not inherited. Appends to problems when a name is no preset or the chain comes back on itself, and leaves that link
// out.
Json expand_extends(const Json& document, const PresetLookup& find, const std::vector<std::string>& preset_names,
                    const std::string& where, Problems& problems);

}  // namespace transept
