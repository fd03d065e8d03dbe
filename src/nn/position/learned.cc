// Learned absolute positions: a table added to the token embeddings. There is no row beyond the table's end.
#include "nn/position/position.h"

namespace transept {
namespace {

class Learned final : public Position {
 public:
  explicit Learned(Param table) : table_(table) {}
  Param embedding(int64_t) const override { return table_; }
  int64_t end() const override { return table_.out; }

 private:
  Param table_;
};

}  // namespace

std::unique_ptr<Position> build(const LearnedPosition&, const ArchSpec&, const Parameters& parameters,
                                const std::string& prefix) {
  return std::make_unique<Learned>(parameters.param(prefix + "weight"));
}

}  // namespace transept
