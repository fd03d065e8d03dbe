// Learned absolute positions: a table added to the token embeddings, from the row `offset` on. There is no row beyond
// the table's end.
#include "nn/position/position.h"

namespace transept {
namespace {

class Learned final : public Position {
 public:
  Learned(Param table, int64_t offset) : table_(table) {
    table_.value += offset * table_.in;
    if (table_.gradient) table_.gradient += offset * table_.in;
    table_.out -= offset;
  }
  Param embedding(int64_t) const override { return table_; }
  int64_t end() const override { return table_.out; }

 private:
  Param table_;
};

}  // namespace

std::unique_ptr<Position> build(const LearnedPosition& kind, const ArchSpec&, const Parameters& parameters,
                                const std::string& prefix) {
  return std::make_unique<Learned>(parameters.param(prefix + "weight"), kind.offset);
}

}  // namespace transept
