// Names that many families took over from LLaMA's checkpoints.
#pragma once

#include "convert/family.h"

namespace transept {

const NameTable& llama_names();
const NameTable& expert_names();         // with experts as in Qwen's and DeepSeek's checkpoints
const NameTable& shared_expert_names();  // and shared experts, saved as one of their features together

NameTable names_as_llama(const ArchSpec& spec);
bool frequency_table(const ArchSpec& spec, const std::string& name);

}  // namespace transept
