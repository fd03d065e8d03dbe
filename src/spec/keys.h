// Keys of the document that are its structure, not fields of a struct.
#pragma once

#include <array>
#include <string_view>

namespace transept {

struct StructureKey {
  std::string_view key;
  std::string_view help;
};

inline constexpr std::array<StructureKey, 2> kDocumentKeys{{
    {"$schema", "address of the JSON Schema, for editors; not read"},
    {"extends", "preset that this document is laid over, group by group"},
}};
// Of a document with one stack, and of each stack of an encoder-decoder.
inline constexpr std::array<StructureKey, 2> kLayerKeys{{
    {"num_hidden_layers", "number of layers when all are alike; otherwise give layers"},
    {"layers", "groups of equal layers in order, each laid over the stack's own groups"},
}};
inline constexpr std::array<StructureKey, 2> kStackKeys{{
    {"encoder", "encoder_decoder only: the layers that read the source, and groups laid over the document's"},
    {"decoder", "encoder_decoder only: the layers that write the target, and groups laid over the document's"},
}};
inline bool is_stack_key(std::string_view key) { return key == kStackKeys[0].key || key == kStackKeys[1].key; }
inline constexpr StructureKey kPatternKey{"layers", "a pattern of entries that this entry repeats; no other keys then"};
inline constexpr StructureKey kRepeatKey{"repeat", "layers that this entry stands for"};
inline constexpr StructureKey kKindKey{"kind", "which of the kinds; it decides which other keys there are"};

}  // namespace transept
