#include "convert/kv_calibration.h"

#include <Eigen/Dense>
#include <algorithm>

namespace transept {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Whether the part is read by projections to queries, keys or values.
bool read_by_attention(std::string_view part) {
  return part.ends_with("attention_input") || part.ends_with("attention_source");
}

constexpr int64_t kTile = 64;  // columns of a sum that one thread makes

void add_rows(ThreadPool& pool, ConstRows rows, KvCalibration::Moment& to) {
  to.width = rows.width + 1;
  to.sum.resize(static_cast<size_t>(to.width * to.width));
  to.rows += rows.rows;
  RowMajor z(rows.rows, to.width);
  for (int64_t r = 0; r < rows.rows; ++r) {
    for (int64_t c = 0; c < rows.width; ++c) z(r, c) = static_cast<double>(rows.row(r)[c]);
    z(r, rows.width) = 1;
  }
  Eigen::Map<RowMajor> sum(to.sum.data(), to.width, to.width);
  pool.run((to.width + kTile - 1) / kTile, [&](int64_t tile, int) {
    const int64_t first = tile * kTile, columns = std::min(kTile, to.width - first);
    sum.middleCols(first, columns).noalias() += z.transpose() * z.middleCols(first, columns);
  });
}

}  // namespace

void KvCalibration::add(const Model& model, const OpContext& op, ForwardCall call) {
  call.observe = [this, &op](std::string_view part, int64_t layer, ConstRows rows) {
    if (read_by_attention(part)) add_rows(op.pool, rows, moments_[{std::string(part), layer}]);
  };
  model.hidden(op, call);
}

const KvCalibration::Moment* KvCalibration::find(const std::string& part, int64_t layer) const {
  const auto at = moments_.find({part, layer});
  return at == moments_.end() ? nullptr : &at->second;
}

}  // namespace transept
