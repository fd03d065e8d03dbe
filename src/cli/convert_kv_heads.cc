#include "cli/convert_kv_heads.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "convert/kv_heads.h"
#include "train/batch_call.h"

namespace transept {
namespace {

constexpr auto& kMethods = EnumNames<KvMerge>::kNames;

KvMerge parse_method(const std::string& name, bool has_text) {
  if (name.empty()) return has_text ? KvMerge::kAligned : KvMerge::kMean;
  const auto at = std::find(kMethods.begin(), kMethods.end(), name);
  if (at == kMethods.end())
    throw InputError("--kv-method", "\"" + name + "\" is unknown", "known are mean, first and aligned");
  return static_cast<KvMerge>(at - kMethods.begin());
}

std::vector<LayerPlace> changed_layers(const ArchSpec& before, int64_t heads) {
  std::vector<LayerPlace> places;
  const auto add = [&](const StackSpec& stack, bool encoder) {
    for (size_t i = 0; i < stack.layers.size(); ++i) {
      if (std::get<GqaSpec>(stack.layers[i].attention).num_key_value_heads != heads)
        places.push_back({encoder, static_cast<int64_t>(i)});
    }
  };
  add(before.encoder, true);
  add(before, false);
  return places;
}

}  // namespace

CLI::Option* add_kv_heads_options(CLI::App* sub, KvHeadsOptions& options) {
  CLI::Option* const heads =
      sub->add_option("--kv-heads", options.heads,
                      "key and value heads of every layer afterwards: a divisor of those that it has (1: multi-query)");
  sub->add_option("--kv-method", options.method,
                  "how neighbouring heads become one: mean; first; or aligned, by least squares (default: aligned with "
                  "--data, else mean)");
  return heads;
}

Conversion kv_heads_conversion(const KvHeadsOptions& options, const ArchSpec& before, bool has_text) {
  const KvMerge merge = parse_method(options.method, has_text);
  Conversion conversion;
  conversion.spec = with_kv_heads(before, options.heads);
  conversion.description = {
      {"kind", "kv_heads"}, {"num_key_value_heads", options.heads}, {"method", kMethods[static_cast<size_t>(merge)]}};
  conversion.layers = changed_layers(before, options.heads);
  std::shared_ptr<KvCalibration> calibration;
  if (merge == KvMerge::kAligned && has_text) {
    calibration = std::make_shared<KvCalibration>();
    conversion.calibrate = [calibration](const Model& source, const OpContext& op, const Batch& batch) {
      calibration->add(source, op, call_of(batch));
    };
  }
  const KvConversion all{.heads = options.heads, .merge = merge, .calibration = calibration.get()};
  conversion.convert = [all, calibration](const Model& source, bool trainable) {
    return convert_kv_heads(source, all, trainable);
  };
  conversion.convert_layer = [all, calibration](const Model& source, const LayerPlace& place) {
    KvConversion one = all;
    one.only = place;
    return convert_kv_heads(source, one);
  };
  return conversion;
}

}  // namespace transept
