// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "train/layers/activation.h"
#include "train/layers/layer.h"

namespace tenon {

struct DenseOptions {
  Activation activation = {};
  bool use_bias = true;
  /// Glorot's uniform one by default.
  Initializer kernel_initializer = {};
  Initializer bias_initializer = ZerosInitializer();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  bool trainable = true;
  std::string name = "dense";
};

/// activation(x * kernel + bias), over the last dimension of x (tf.layers.Dense). The first call
/// makes <name>/kernel [inputs, units] and <name>/bias [units], of the dtype of its x, and every
/// call of the layer and of its copies uses them.
///
///   Output h = Dense(128, {.activation = Relu})(x);
///   Dense shared(10, {.name = "out"});
///   Output a = shared(x), b = shared(y);
class Dense {
 public:
  explicit Dense(int64_t units, const DenseOptions& options = {});

  /// x: [..., inputs], floating point, `inputs` known; gives [..., units].
  Output operator()(const Input& x) const;

  /// Without value before the first call, and a bias that is not used.
  const Variable& kernel() const { return state_->kernel; }
  const Variable& bias() const { return state_->bias; }

 private:
  struct State : LayerState {
    using LayerState::LayerState;
    Variable kernel, bias;
  };

  int64_t units_;
  DenseOptions options_;
  std::shared_ptr<State> state_;
};

/// [batch, ...] as [batch, product of the rest] (tf.layers.Flatten); of a vector a column. All
/// sizes but the first must be known for that of the result to be.
Output Flatten(const Input& x, const OpOptions& options = {.name = "flatten"});

}  // namespace tenon
