// Keys of the document that are its structure, not fields of a struct.
#pragma once

#include <array>
#include <string_view>

namespace transept {

struct StructureKey {
  std::string_view key;
  std::string_view help;
};

inline constexpr std::array<StructureKey, 4> kDocumentKeys{{
    {"$schema", "address of the JSON Schema, for editors; not read"},
    {"extends", "preset that this document is laid over, group by group"},
    {"num_hidden_layers", "number of layers when all are alike; otherwise give layers"},
    {"layers", "groups of equal layers in order, each laid over the document's own groups"},
}};
inline constexpr StructureKey kRepeatKey{"repeat", "layers that this entry stands for"};
inline constexpr StructureKey kKindKey{"kind", "which of the kinds; it decides which other keys there are"};

}  // namespace transept
