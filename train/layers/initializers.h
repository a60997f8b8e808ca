// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <functional>
#include <utility>

#include "core/build/building.h"

// What gives the weights of layers their initial values. The functions below are those of
// TensorFlow 1 of these names (tf.glorot_uniform_initializer, ...): with the same seeds of the
// graph (SetRandomSeed) and of the initializer they draw the same values. An initializer adds its
// nodes to the graph that is being built each time that it is called.
//
//   Dense(10, {.kernel_initializer = HeNormalInitializer({.seed = 3})})

namespace tenon {

/// Makes an initial value of a shape and dtype. A function (shape, dtype) -> Output, or one that is
/// also told the shape of the whole of which the value is a part (see PartitionedVariable).
class Initializer {
 public:
  /// None: what takes one has its default.
  Initializer() = default;
  template <std::invocable<const Shape&, DType> Function>
  Initializer(Function function)  // NOLINT
      : make_([function = std::move(function)](const Shape& shape, DType dtype, const Shape&) {
          return function(shape, dtype);
        }) {}
  template <std::invocable<const Shape&, DType, const Shape&> Function>
  Initializer(Function function) : make_(std::move(function)) {}  // NOLINT

  bool exists() const { return make_ != nullptr; }
  /// The value; of a part of a tensor of shape `whole` in the second form.
  Output operator()(const Shape& shape, DType dtype) const { return make_(shape, dtype, shape); }
  Output operator()(const Shape& shape, DType dtype, const Shape& whole) const {
    return make_(shape, dtype, whole);
  }
  /// Itself, or `other` where there is none.
  Initializer Or(const Initializer& other) const { return exists() ? *this : other; }

 private:
  std::function<Output(const Shape& shape, DType dtype, const Shape& whole)> make_;
};

/// 0 everywhere (tf.zeros_initializer).
Initializer ZerosInitializer();
/// 1 everywhere (tf.ones_initializer).
Initializer OnesInitializer();
/// `value` everywhere where it is a scalar; else its elements in order, as many as the shape has
/// (tf.constant_initializer).
Initializer ConstantInitializer(const Input& value);

/// Options of those that draw.
struct RandomInitializerOptions {
  /// The seed of the op that draws; see SetRandomSeed.
  int64_t seed = 0;
};
/// Uniform in [minval, maxval) (tf.random_uniform_initializer).
Initializer RandomUniformInitializer(double minval = 0, double maxval = 1,
                                     const RandomInitializerOptions& options = {});
/// Normal (tf.random_normal_initializer).
Initializer RandomNormalInitializer(double mean = 0, double stddev = 1,
                                    const RandomInitializerOptions& options = {});
/// Normal, where what is two deviations or more from the mean is drawn again
/// (tf.truncated_normal_initializer).
Initializer TruncatedNormalInitializer(double mean = 0, double stddev = 1,
                                       const RandomInitializerOptions& options = {});

struct VarianceScalingOptions {
  double scale = 1;
  /// By what the scale is divided: the inputs of a unit, its outputs, or their mean.
  enum class Mode { kFanIn, kFanOut, kFanAvg } mode = Mode::kFanIn;
  enum class Distribution {
    kTruncatedNormal,
    kUntruncatedNormal,
    kUniform
  } distribution = Distribution::kTruncatedNormal;
  int64_t seed = 0;
};
/// Draws with variance scale / n, where n is of the kernel [..., inputs, outputs] as `mode` says,
/// its leading dimensions those of a window (tf.variance_scaling_initializer).
Initializer VarianceScalingInitializer(const VarianceScalingOptions& options = {});

/// Variance 2 / (inputs + outputs), what layers have by default, uniform
/// (tf.glorot_uniform_initializer, tf.glorot_normal_initializer; Glorot and Bengio 2010).
Initializer GlorotUniformInitializer(const RandomInitializerOptions& options = {});
Initializer GlorotNormalInitializer(const RandomInitializerOptions& options = {});
/// Variance 2 / inputs, for rectified units (tf.initializers.he_uniform, tf.initializers.he_normal;
/// He et al. 2015).
Initializer HeUniformInitializer(const RandomInitializerOptions& options = {});
Initializer HeNormalInitializer(const RandomInitializerOptions& options = {});
/// Variance 1 / inputs (tf.initializers.lecun_uniform, tf.initializers.lecun_normal; LeCun et al.
/// 1998).
Initializer LecunUniformInitializer(const RandomInitializerOptions& options = {});
Initializer LecunNormalInitializer(const RandomInitializerOptions& options = {});

struct OrthogonalOptions {
  double gain = 1;
  int64_t seed = 0;
};
/// The orthogonal factor of a matrix of normal draws, times `gain`: of [product of the leading
/// dimensions, last dimension], whose rows or columns, whichever are fewer, are orthonormal
/// (tf.orthogonal_initializer; Saxe et al. 2014). A shape of fewer than two dimensions is a
/// mistake.
Initializer OrthogonalInitializer(const OrthogonalOptions& options = {});
/// `gain` on the diagonal of a matrix, zeros beside it; another rank is a mistake
/// (tf.initializers.identity).
Initializer IdentityInitializer(double gain = 1);

}  // namespace tenon
