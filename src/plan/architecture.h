// A model in the words of a table of models: what stands in its columns when models are compared.
#pragma once

#include <cstdint>
#include <string>

#include "spec/arch_spec.h"

namespace transept {

// Numbers are those of the last layer where layers differ: it is early ones that are the exceptions.
struct Architecture {
  std::string topology;
  int64_t layers = 0, encoder_layers = 0;
  int64_t hidden_size = 0;
  std::string attention;  // MHA, GQA, MQA or MLA
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t sliding_window = 0;  // of the layers that have one; 0: none
  int64_t windowed_layers = 0;
  std::string position;  // "rope", "rope, yarn x 40", "alibi", ...
  std::string norm;      // "rmsnorm, pre"
  std::string block;     // "sequential", ...
  std::string ffn;
  int64_t intermediate_size = 0;
  int64_t experts = 0, experts_per_token = 0, shared_expert_size = 0, dense_layers = 0;
  int64_t vocab_size = 0;
  int64_t context = 0;  // max_position_embeddings
  bool tied = false;
};

Architecture describe_architecture(const ArchSpec& spec);

}  // namespace transept
