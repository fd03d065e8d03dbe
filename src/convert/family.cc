#include "convert/family.h"

#include "convert/families/families.h"

namespace transept {

ArchSpec read_family_config(const Family& family, const Json& config, const std::string& where, Problems& problems) {
  ConfigMap map(config, where, problems);
  ArchSpec spec;
  spec.name = family.model_type;
  family.config(map, spec);
  map.finish();
  return spec;
}

std::optional<Json> write_family_config(const Family& family, const ArchSpec& spec, std::string& reason) {
  Json config = {{"model_type", family.model_type}, {"architectures", {family.architecture}}};
  ConfigMap map(config);
  ArchSpec copy = spec;
  try {
    family.config(map, copy);
  } catch (const Inexpressible& no) {
    reason = no.reason;
    return std::nullopt;
  }
  return config;
}

const std::vector<const Family*>& families() {
  static const std::vector<const Family*> all{
      &kLlamaFamily,  &kMistralFamily, &kQwen2Family,      &kQwen3Family,      &kGemmaFamily,      &kGemma2Family,
      &kGemma3Family, &kMixtralFamily, &kQwen3MoeFamily,   &kQwen2MoeFamily,   &kOlmoeFamily,      &kOlmo2Family,
      &kOlmoFamily,   &kCohereFamily,  &kCohere2Family,    &kDeepseekV2Family, &kDeepseekV3Family, &kGlm4MoeFamily,
      &kPhi3Family,   &kPhiFamily,     &kGpt2Family,       &kGptJFamily,       &kGptNeoXFamily,    &kBloomFamily,
      &kMptFamily,    &kFalconFamily,  &kBertFamily,       &kRobertaFamily,    &kT5Family,         &kBartFamily,
      &kMarianFamily, &kOptFamily,     &kStarcoder2Family, &kDeepseekFamily,   &kDbrxFamily,       &kGptOssFamily};
  return all;
}

const Family* find_family(std::string_view model_type) {
  for (const Family* f : families()) {
    if (f->model_type == model_type) return f;
  }
  return nullptr;
}

}  // namespace transept
