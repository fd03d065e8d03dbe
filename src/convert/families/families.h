// The list of families. Each is defined in a file of this folder, with the keys and defaults that its configuration
// class has in Hugging Face transformers.
#pragma once

#include "convert/family.h"

namespace transept {

extern const Family kLlamaFamily, kMistralFamily, kQwen2Family, kQwen3Family, kGemmaFamily, kGemma2Family,
    kGemma3Family, kMixtralFamily, kQwen3MoeFamily, kQwen2MoeFamily, kOlmoeFamily, kOlmo2Family, kOlmoFamily,
    kCohereFamily, kCohere2Family, kDeepseekV2Family, kDeepseekV3Family, kGlm4MoeFamily, kPhi3Family, kPhiFamily,
    kGpt2Family, kGptJFamily, kGptNeoXFamily, kBloomFamily, kMptFamily, kFalconFamily, kBertFamily, kRobertaFamily,
    kT5Family, kBartFamily, kMarianFamily, kOptFamily, kStarcoder2Family, kDeepseekFamily, kDbrxFamily, kGptOssFamily;

}  // namespace transept
