#include "convert/kv_calibration.h"

#include <Eigen/Dense>

namespace transept {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Whether the part is read by projections to queries, keys or values.
bool read_by_attention(std::string_view part) {
  return part.ends_with("attention_input") || part.ends_with("attention_source");
}

void add_rows(ConstRows rows, KvCalibration::Moment& to) {
  to.width = rows.width + 1;
  to.sum.resize(static_cast<size_t>(to.width * to.width));
  to.rows += rows.rows;
  RowMajor z(rows.rows, to.width);
  for (int64_t r = 0; r < rows.rows; ++r) {
    for (int64_t c = 0; c < rows.width; ++c) z(r, c) = static_cast<double>(rows.row(r)[c]);
    z(r, rows.width) = 1;
  }
  Eigen::Map<RowMajor>(to.sum.data(), to.width, to.width).noalias() += z.transpose() * z;
}

}  // namespace

void KvCalibration::add(const Model& model, const OpContext& op, ForwardCall call) {
  call.observe = [this](std::string_view part, int64_t layer, ConstRows rows) {
    if (read_by_attention(part)) add_rows(rows, moments_[{std::string(part), layer}]);
  };
  model.hidden(op, call);
}

const KvCalibration::Moment* KvCalibration::find(const std::string& part, int64_t layer) const {
  const auto at = moments_.find({part, layer});
  return at == moments_.end() ? nullptr : &at->second;
}

}  // namespace transept
