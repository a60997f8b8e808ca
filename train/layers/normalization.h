// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "train/layers/layer.h"
#include "train/layers/training_flag.h"

namespace tenon {

/// How far the corrections of batch renormalization may go: numbers, or scalars of the graph, such
/// as schedules; by default any distance.
struct RenormClipping {
  Input rmin = {}, rmax = {};  // of r
  Input dmax = {};             // of |d|
};

struct BatchNormalizationOptions {
  /// The dimension of the channels, from the end when negative; 1 for channels_first.
  int axis = -1;
  /// What of the moving averages a training step keeps.
  double momentum = 0.99;
  double epsilon = 1e-3;
  /// Whether there is a beta, and a gamma.
  bool center = true;
  bool scale = true;
  Initializer beta_initializer = ZerosInitializer();
  Initializer gamma_initializer = OnesInitializer();
  Initializer moving_mean_initializer = ZerosInitializer();
  Initializer moving_variance_initializer = OnesInitializer();
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  /// Whether optimizers change beta and gamma.
  bool trainable = true;
  /// The updates of the moving averages run before the result of the layer, in each step that wants
  /// it, instead of in the collection "update_ops" (tf.contrib.layers.batch_norm without
  /// updates_collections). Needed in branches and loops.
  bool updates_in_place = false;
  /// Batch renormalization (Ioffe 2017): in training, too, what is normalised is near what the
  /// averages would make of it.
  bool renorm = false;
  RenormClipping renorm_clipping = {};
  /// What of renorm_mean and renorm_stddev a training step keeps.
  double renorm_momentum = 0.99;
  std::string name = "batch_normalization";
};

/// (x - mean) / sqrt(variance + epsilon) * gamma + beta for each channel
/// (tf.layers.BatchNormalization; Ioffe and Szegedy 2015). In training, mean and variance are those
/// of the batch, and two nodes in the graph's collection "update_ops", which a training step must
/// run, move the averages towards them; otherwise they are the moving averages. Variables:
/// <name>/gamma, beta, moving_mean and moving_variance [channels], of the dtype of the first call's
/// x.
///
///   BatchNormalization norm;
///   Output h = norm(x, training);
///   const ControlDependencies updates(UpdateOps());
///   Node* step = ...
///
/// Halves, whose variance would be poor, are normalised as floats, with weights that are floats.
/// Floats of rank 4 with the channels last or second are computed by FusedBatchNormV3, whose batch
/// variance for the moving average is the unbiased one; all else by its formula, with the biased
/// one, as in TensorFlow.
///
/// With `renorm` what a training step normalises by its batch is then x * r + d, where
/// r = stddev / renorm_stddev and d = (mean - renorm_mean) / renorm_stddev are constants to
/// gradients and clipped. Variables as well: <name>/moving_stddev, renorm_mean and renorm_stddev;
/// five nodes in "update_ops" move them all. It is computed by its formula.
class BatchNormalization {
 public:
  explicit BatchNormalization(const BatchNormalizationOptions& options = {});

  /// x: floating point, its rank and number of channels known. `training`: a bool when the graph
  /// says it, or a bool scalar that the step knows. Gives the shape of x.
  Output operator()(const Input& x, const Input& training = false) const;

  /// Without value before the first call, or when not used.
  const Variable& gamma() const { return state_->gamma; }
  const Variable& beta() const { return state_->beta; }
  const Variable& moving_mean() const { return state_->moving_mean; }
  const Variable& moving_variance() const { return state_->moving_variance; }
  const Variable& moving_stddev() const { return state_->moving_stddev; }
  const Variable& renorm_mean() const { return state_->renorm_mean; }
  const Variable& renorm_stddev() const { return state_->renorm_stddev; }

 private:
  struct State : LayerState {
    using LayerState::LayerState;
    Variable gamma, beta, moving_mean, moving_variance;
    Variable moving_stddev, renorm_mean, renorm_stddev;
  };
  struct Moments;
  /// Scale and offset of what is normalised.
  struct Correction;

  void MakeWeights(const Output& x, int axis) const;
  Moments Fused(const Output& x, int axis, bool training) const;
  Moments ByFormula(const Output& x, int axis, bool training) const;
  Correction Renormalization(const Output& mean, const Output& variance) const;
  Output MoveAverages(const Moments& batch, const TrainingFlag& training) const;

  BatchNormalizationOptions options_;
  std::shared_ptr<State> state_;
};

/// The graph's collection "update_ops": nodes that training steps must run.
std::vector<Output> UpdateOps(const std::source_location& at = std::source_location::current());

struct LayerNormalizationOptions {
  /// Normalised are the dimensions from this one on, from the end when negative.
  int begin_axis = -1;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  Initializer beta_initializer = ZerosInitializer();
  Initializer gamma_initializer = OnesInitializer();
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  bool trainable = true;
  std::string name = "layer_normalization";
};

/// (x - mean) / sqrt(variance + epsilon) * gamma + beta, of each example over its last dimensions
/// (tf.keras.layers.LayerNormalization; Ba et al. 2016). Variables: <name>/gamma and beta, of the
/// normalised shape, which must be known, and the dtype of the first call's x; halves are
/// normalised as floats, with weights that are floats.
///
///   Output h = LayerNormalization()(x);
class LayerNormalization {
 public:
  explicit LayerNormalization(const LayerNormalizationOptions& options = {});

  /// x: floating point; gives its shape.
  Output operator()(const Input& x) const;

  /// Without value before the first call, or when not used.
  const Variable& gamma() const { return state_->gamma; }
  const Variable& beta() const { return state_->beta; }

 private:
  struct State : LayerState {
    using LayerState::LayerState;
    Variable gamma, beta;
  };

  LayerNormalizationOptions options_;
  std::shared_ptr<State> state_;
};

}  // namespace tenon
