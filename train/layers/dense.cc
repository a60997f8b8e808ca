// SPDX-License-Identifier: Apache-2.0
#include "train/layers/dense.h"

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"

namespace tenon {
namespace {

/// x * kernel over the last dimension of x, as one product of matrices.
Output TimesKernel(const Output& x, const Variable& kernel) {
  const PartialShape& shape = x.shape();
  if (shape.rank() == 2) return MatMul(x, kernel);
  const Output rows = Reshape(x, {-1, kernel.value().shape().dim(0)});
  const Output product = MatMul(rows, kernel);
  const int64_t units = kernel.value().shape().dim(1);
  const Output outer = ShapeOf(x)[{{0, -1}}];
  const Output result = Reshape(product, ConcatV2({outer, Const({units})}, 0));
  if (!shape.rank_known()) return result;
  return EnsureShape(result, shape.WithDim(shape.rank() - 1, units));
}

}  // namespace

Dense::Dense(int64_t units, const DenseOptions& options)
    : units_(units), options_(options), state_(std::make_shared<State>(options.name)) {}

Output Dense::operator()(const Input& input) const {
  const InLayer layer(*state_, input.location());
  const Output x = Const(input);
  if (layer.is_first()) {
    const int64_t inputs = KnownSize(x, -1, "a dense layer");
    state_->kernel =
        MakeWeight("kernel", {inputs, units_}, x.dtype(),
                   {options_.kernel_initializer, options_.kernel_regularizer, options_.trainable});
    if (options_.use_bias) {
      state_->bias =
          MakeWeight("bias", {units_}, x.dtype(),
                     {options_.bias_initializer, options_.bias_regularizer, options_.trainable});
    }
  }
  if (!CurrentBuilding().graph->error().ok()) return {};
  Output y = TimesKernel(x, state_->kernel);
  if (options_.use_bias) y = BiasAdd(y, state_->bias);
  return options_.activation(y);
}

Output Flatten(const Input& input, const OpOptions& options) {
  const CalledFrom caller(options.location);
  const NameScope scope(UnusedScope(options.name));
  const Output x = Const(input);
  const PartialShape& shape = x.shape();
  int64_t columns = shape.rank_known() && shape.rank() > 0 ? 1 : -1;
  for (int i = 1; i < shape.rank() && columns >= 0; ++i) {
    columns = shape.dim(i) < 0 ? -1 : columns * shape.dim(i);
  }
  // A reshape can leave at most one of two sizes open.
  if (columns > 0) return Reshape(x, {-1, columns});
  if (shape.dim(0) >= 0) return Reshape(x, {shape.dim(0), -1});
  const Output rows = ShapeOf(x)[{{0, 1}}];
  return Reshape(x, ConcatV2({rows, Const({-1})}, 0));
}

}  // namespace tenon
