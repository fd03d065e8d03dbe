// What a kind declares of its parameters: the one list that planner, initializer, checkpoint, optimizer groups and
// reports read.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace transept {

enum class Init {
  kNormal,          // N(0, initializer_range^2)
  kNormalResidual,  // as above, divided by sqrt(sublayers of its stack): projections that end on the residual stream
                    // (GPT-2, section 2.3)
  kZeros,
  kOnes,
};

// Where a parameter belongs in a count. kPosition: all tables that are added to the token embedding, and tables of
// biases by distance.
enum class Part { kEmbedding, kPosition, kAttention, kCrossAttention, kFfn, kNorm, kPooler, kHead };

// Which features of a matrix tensor parallelism deals out to its ranks (arXiv:1909.08053 section 3). A bias goes with
// its rows.
enum class Shard {
  kNone,     // every rank has all of it
  kRows,     // output features
  kColumns,  // input features: the ranks' results are summed
};

struct ParamUse {
  Shard shard = Shard::kNone;
  bool whole = false;  // ops read it as floats in one block
};

struct ParamDecl {
  std::string name;  // e.g. "layers.3.attention.qkv.weight"; matrices are [out_features, in_features], row-major
  std::vector<int64_t> shape;  // one or two extents, all >= 1
  Init init = Init::kNormal;
  Part part = Part::kAttention;
  int64_t layer = -1;    // -1: outside the layers
  bool encoder = false;  // of an encoder-decoder's encoder
  ParamUse use = {};
  int64_t experts = 1;                              // that share it evenly,
  int64_t active_experts = 1;                       // and those of them that one token passes
  bool decays() const { return shape.size() > 1; }  // weight decay acts on matrices, never on norms and biases
};

class ParamList {
 public:
  void add(std::string name, std::vector<int64_t> shape, Init init, ParamUse use = {}) {
    decls_.push_back(
        {prefix_ + std::move(name), std::move(shape), init, part_, layer_, encoder_, use, experts_, active_experts_});
  }
  // The scope of the declarations that follow.
  void scope(std::string prefix, Part part, int64_t layer = -1) {
    prefix_ = std::move(prefix);
    part_ = part;
    layer_ = layer;
  }
  void set_encoder(bool encoder) { encoder_ = encoder; }  // whose stack the declarations that follow belong to
  // How many experts the declarations that follow belong to.
  void set_experts(int64_t experts, int64_t active) {
    experts_ = experts;
    active_experts_ = active;
  }
  const std::vector<ParamDecl>& decls() const& { return decls_; }
  std::vector<ParamDecl> decls() && {
    return std::move(decls_);
  }  // so that a loop over spec.declare().decls() holds what it walks

 private:
  std::vector<ParamDecl> decls_;
  std::string prefix_;
  Part part_ = Part::kEmbedding;
  int64_t layer_ = -1;
  bool encoder_ = false;
  int64_t experts_ = 1, active_experts_ = 1;
};

}  // namespace transept
