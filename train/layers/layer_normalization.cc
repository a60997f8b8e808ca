// SPDX-License-Identifier: Apache-2.0
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "train/layers/normalization.h"

namespace tenon {

LayerNormalization::LayerNormalization(const LayerNormalizationOptions& options)
    : options_(options), state_(std::make_shared<State>(options.name)) {}

Output LayerNormalization::operator()(const Input& input) const {
  const InLayer layer(*state_, input.location());
  const BuildContext& context = CurrentBuilding();
  const Output given = Const(input), x = Widened(given);
  const int rank = x.shape().rank();
  const int first = options_.begin_axis < 0 ? options_.begin_axis + rank : options_.begin_axis;
  if (first < 0 || first >= rank) {
    context.Fail(InvalidArgument("layer normalization from dimension ", options_.begin_axis,
                                 " on of '", x.name(), "', which has shape ", x.shape().ToString()),
                 input.location());
    return {};
  }
  std::vector<int32_t> axes;
  std::vector<int64_t> shape;
  for (int i = first; i < rank; ++i) {
    axes.push_back(i);
    shape.push_back(KnownSize(x, i, "a layer normalization"));
  }
  if (layer.is_first()) {
    const auto weight = [&](std::string_view name, const Initializer& initializer,
                            const Regularizer& regularizer) {
      return MakeWeight(name, shape, x.dtype(), {initializer, regularizer, options_.trainable});
    };
    if (options_.scale) {
      state_->gamma = weight("gamma", options_.gamma_initializer, options_.gamma_regularizer);
    }
    if (options_.center) {
      state_->beta = weight("beta", options_.beta_initializer, options_.beta_regularizer);
    }
  }
  if (!context.graph->error().ok()) return {};
  const Output mean = Mean(x, axes, {.keep_dims = true});
  const Output centered = x - mean;
  const Output variance = Mean(Square(centered), axes, {.keep_dims = true});
  Output y = centered * Rsqrt(variance + options_.epsilon);
  if (options_.scale) y = y * state_->gamma;
  if (options_.center) y = y + state_->beta;
  return Narrowed(y, given.dtype());
}

}  // namespace tenon
