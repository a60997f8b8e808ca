// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "train/layers/normalization.h"
#include "train/value_as.h"

namespace tenon {
namespace {

/// Below it, cuDNN refuses; TensorFlow raises a smaller epsilon to it.
constexpr double kSmallestFusedEpsilon = 1.001e-5;

Output ChannelConstant(const Output& like, double value) {
  return Fill(ShapeOf(like), Const(value, {.dtype = like.dtype()}));
}

/// The root of what another makes; what it draws, it draws anew.
Initializer RootOf(const Initializer& initializer) {
  return Initializer([initializer](const Shape& shape, DType dtype) {
    return Sqrt(initializer.Or(OnesInitializer())(shape, dtype));
  });
}

}  // namespace

struct BatchNormalization::Correction {
  Output r, d;
};

/// What normalising gives, and the mean and variance that it was done with.
struct BatchNormalization::Moments {
  Output y, mean, variance;
};

BatchNormalization::BatchNormalization(const BatchNormalizationOptions& options)
    : options_(options), state_(std::make_shared<State>(options.name)) {}

Output BatchNormalization::operator()(const Input& input, const Input& training) const {
  const InLayer layer(*state_, input.location());
  const BuildContext& context = CurrentBuilding();
  const Output given = Const(input), x = Widened(given);
  const int rank = x.shape().rank();
  const int axis = options_.axis < 0 ? options_.axis + rank : options_.axis;
  if (axis < 0 || axis >= rank) {
    context.Fail(InvalidArgument("batch normalization along dimension ", options_.axis, " of '",
                                 x.name(), "', which has shape ", x.shape().ToString()),
                 input.location());
  }
  const TrainingFlag flag(training);
  if (context.flow != nullptr && !options_.updates_in_place && flag.known() != false) {
    context.Fail(
        InvalidArgument("a batch normalization in a branch or loop needs updates_in_place: "
                        "no step can run its updates from outside"),
        input.location());
  }
  if (!context.graph->error().ok()) return {};
  if (layer.is_first()) MakeWeights(x, axis);
  if (!context.graph->error().ok()) return {};

  const bool fused =
      !options_.renorm && rank == 4 && x.dtype() == DType::kFloat && (axis == 3 || axis == 1);
  const auto normalised = [&](bool is_training) {
    return [this, &x, &given, axis, fused, is_training] {
      const Moments m = fused ? Fused(x, axis, is_training) : ByFormula(x, axis, is_training);
      return std::vector<Output>{Narrowed(m.y, given.dtype()), m.mean, m.variance};
    };
  };
  const std::vector<Output> chosen = flag.Choose(normalised(true), normalised(false));
  if (!context.graph->error().ok()) return {};
  const Moments batch{chosen[0], chosen[1], chosen[2]};
  if (flag.known() && !*flag.known()) return batch.y;
  return MoveAverages(batch, flag);
}

void BatchNormalization::MakeWeights(const Output& x, int axis) const {
  const std::vector<int64_t> shape{KnownSize(x, axis, "a batch normalization")};
  const auto weight = [&](std::string_view name, const Initializer& initializer,
                          const Regularizer& regularizer, bool trainable) {
    return MakeWeight(name, shape, x.dtype(), {initializer, regularizer, trainable});
  };
  const bool trainable = options_.trainable;
  if (options_.scale) {
    state_->gamma =
        weight("gamma", options_.gamma_initializer, options_.gamma_regularizer, trainable);
  }
  if (options_.center) {
    state_->beta = weight("beta", options_.beta_initializer, options_.beta_regularizer, trainable);
  }
  state_->moving_mean = weight("moving_mean", options_.moving_mean_initializer, {}, false);
  state_->moving_variance =
      weight("moving_variance", options_.moving_variance_initializer, {}, false);
  if (!options_.renorm) return;
  const Initializer stddev = RootOf(options_.moving_variance_initializer);
  state_->moving_stddev = weight("moving_stddev", stddev, {}, false);
  state_->renorm_mean = weight("renorm_mean", options_.moving_mean_initializer, {}, false);
  state_->renorm_stddev = weight("renorm_stddev", stddev, {}, false);
}

BatchNormalization::Moments BatchNormalization::Fused(const Output& x, int axis,
                                                      bool training) const {
  const Output mean = state_->moving_mean, variance = state_->moving_variance;
  const Output scale = options_.scale ? state_->gamma.value() : ChannelConstant(mean, 1);
  const Output offset = options_.center ? state_->beta.value() : ChannelConstant(mean, 0);
  const Output none = Const(Tensor(x.dtype(), Shape({0})));
  const auto outputs = FusedBatchNormV3(
      x, scale, offset, training ? none : mean, training ? none : variance,
      {.epsilon = static_cast<float>(std::max(options_.epsilon, kSmallestFusedEpsilon)),
       .data_format = axis == 3 ? "NHWC" : "NCHW",
       .is_training = training});
  if (!training) return {outputs.y, mean, variance};
  return {outputs.y, outputs.batch_mean, outputs.batch_variance};
}

BatchNormalization::Moments BatchNormalization::ByFormula(const Output& x, int axis,
                                                          bool training) const {
  const int rank = x.shape().rank();
  std::vector<int32_t> others;
  std::vector<int64_t> by_channel(rank, 1);
  by_channel[axis] = -1;
  for (int i = 0; i < rank; ++i) {
    if (i != axis) others.push_back(i);
  }
  const auto broadcast = [&](const Output& v) {
    return axis == rank - 1 ? v : Reshape(v, Const(by_channel));
  };
  Output mean = state_->moving_mean, variance = state_->moving_variance;
  if (training) {
    mean = Mean(x, others);
    variance = Mean(SquaredDifference(x, StopGradient(broadcast(mean))), others);
  }
  Output factor = Rsqrt(variance + options_.epsilon), shift;
  if (training && options_.renorm) {
    const auto [r, d] = Renormalization(mean, variance);
    factor = factor * (options_.scale ? r * state_->gamma : r);
    shift = options_.scale ? d * state_->gamma : d;
  } else if (options_.scale) {
    factor = factor * state_->gamma;
  }
  if (options_.center) shift = shift.exists() ? shift + state_->beta : Output(state_->beta);
  const Output offset = shift.exists() ? shift - mean * factor : -mean * factor;
  return {x * broadcast(factor) + broadcast(offset), mean, variance};
}

BatchNormalization::Correction BatchNormalization::Renormalization(const Output& mean,
                                                                   const Output& variance) const {
  const Output stddev = Sqrt(variance + options_.epsilon);
  const Output usual = Maximum(state_->renorm_stddev, std::sqrt(options_.epsilon));
  Output r = stddev / usual, d = (mean - state_->renorm_mean) / usual;
  const auto limit = [&](const Input& value) { return ValueAs(value, r.dtype()); };
  const RenormClipping& clipping = options_.renorm_clipping;
  if (!clipping.rmin.left_out()) r = Maximum(r, limit(clipping.rmin));
  if (!clipping.rmax.left_out()) r = Minimum(r, limit(clipping.rmax));
  if (!clipping.dmax.left_out()) {
    const Output most = limit(clipping.dmax);
    d = Minimum(Maximum(d, -most), most);
  }
  return {StopGradient(r), StopGradient(d)};
}

Output BatchNormalization::MoveAverages(const Moments& batch, const TrainingFlag& training) const {
  const BuildContext& context = CurrentBuilding();
  std::vector<Output> updates;
  const auto rate_of = [&](double momentum) {
    const Output rate = Const(1 - momentum, {.dtype = batch.mean.dtype()});
    return training.known() ? rate : SelectV2(training.tensor(), rate, ZerosLike(rate));
  };
  const auto move = [&](const Variable& average, const Output& value, const Output& rate) {
    const VariableEntry* const nodes = FindVariable(average);
    if (nodes == nullptr) return;
    const ColocateWith beside(average.ref());
    const Output step = (average - value) * rate;
    updates.emplace_back(ChangeVariable(*nodes, "AssignSub", step, {.name = "AssignMovingAvg"}));
  };
  const Output rate = rate_of(options_.momentum);
  if (!options_.renorm) {
    move(state_->moving_mean, batch.mean, rate);
    move(state_->moving_variance, batch.variance, rate);
  } else {
    // The corrections are made from the averages before they move.
    const ControlDependencies corrected({batch.y});
    const Output stddev = Sqrt(batch.variance + options_.epsilon);
    const Output renorm_rate = rate_of(options_.renorm_momentum);
    move(state_->renorm_mean, batch.mean, renorm_rate);
    move(state_->renorm_stddev, stddev, renorm_rate);
    move(state_->moving_mean, batch.mean, rate);
    move(state_->moving_stddev, stddev, rate);
    const Variable& variance = state_->moving_variance;
    const VariableEntry* const nodes = FindVariable(variance);
    const VariableEntry* const deviation = FindVariable(state_->moving_stddev);
    if (nodes == nullptr || deviation == nullptr) return {};
    const ColocateWith beside(variance.ref());
    const ControlDependencies after(updates);
    const Output moved = ReadVariable(*deviation);
    Output next = Relu(moved * moved - options_.epsilon);
    if (!training.known()) next = SelectV2(training.tensor(), next, variance);
    updates.emplace_back(ChangeVariable(*nodes, "Assign", next, {.name = "AssignNewValue"}));
  }
  if (!context.graph->error().ok()) return {};
  if (options_.updates_in_place) {
    const ControlDependencies first(updates);
    return Identity(batch.y);
  }
  std::vector<Endpoint>& collection = context.graph->Collection("update_ops");
  collection.insert(collection.end(), updates.begin(), updates.end());
  return batch.y;
}

std::vector<Output> UpdateOps(const std::source_location& at) {
  const std::vector<Endpoint>& updates = CurrentBuilding(at).graph->Collection("update_ops");
  return {updates.begin(), updates.end()};
}

}  // namespace tenon
