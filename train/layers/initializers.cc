// SPDX-License-Identifier: Apache-2.0
#include "train/layers/initializers.h"

#include <algorithm>
#include <cmath>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/linalg/linalg_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/random/random_ops.h"

namespace tenon {
namespace {

using Mode = VarianceScalingOptions::Mode;
using Distribution = VarianceScalingOptions::Distribution;

/// The deviation of the standard normal distribution cut off at two.
constexpr double kTruncatedDeviation = .87962566103423978;

Output DimsOf(const Shape& shape) {
  std::vector<int32_t> dims;
  for (const int64_t size : shape.dims()) dims.push_back(static_cast<int32_t>(size));
  return Const(dims, {.name = "shape"});
}

Output Filled(const Shape& shape, DType dtype, double value) {
  return Fill(DimsOf(shape), Const(value, {.dtype = dtype}));
}

Output Uniform(const Shape& shape, DType dtype, double minval, double maxval, int64_t seed) {
  const NameScope scope("random_uniform");
  return RandomUniform(DimsOf(shape), dtype, {.seed = seed}) * (maxval - minval) + minval;
}

Output Normal(const Shape& shape, DType dtype, double mean, double stddev, int64_t seed) {
  const NameScope scope("random_normal");
  return RandomStandardNormal(DimsOf(shape), dtype, {.seed = seed}) * stddev + mean;
}

Output Truncated(const Shape& shape, DType dtype, double mean, double stddev, int64_t seed) {
  const NameScope scope("truncated_normal");
  return TruncatedNormal(DimsOf(shape), dtype, {.seed = seed}) * stddev + mean;
}

/// How many values a unit of a kernel of that shape is computed from, and computes.
std::pair<double, double> Fans(const Shape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return {1, 1};
  if (rank == 1) return {shape.dim(0), shape.dim(0)};
  double window = 1;
  for (int i = 0; i < rank - 2; ++i) window *= static_cast<double>(shape.dim(i));
  return {static_cast<double>(shape.dim(rank - 2)) * window,
          static_cast<double>(shape.dim(rank - 1)) * window};
}

Output ScaledDraws(const Shape& shape, DType dtype, const Shape& whole,
                   const VarianceScalingOptions& options) {
  const auto [inputs, outputs] = Fans(whole);
  const double fan = options.mode == Mode::kFanIn    ? inputs
                     : options.mode == Mode::kFanOut ? outputs
                                                     : (inputs + outputs) / 2;
  const double variance = options.scale / std::max(1.0, fan);
  switch (options.distribution) {
    case Distribution::kTruncatedNormal:
      return Truncated(shape, dtype, 0, std::sqrt(variance) / kTruncatedDeviation, options.seed);
    case Distribution::kUntruncatedNormal:
      return Normal(shape, dtype, 0, std::sqrt(variance), options.seed);
    case Distribution::kUniform:
      break;
  }
  const double limit = std::sqrt(3 * variance);
  return Uniform(shape, dtype, -limit, limit, options.seed);
}

Output OrthogonalValue(const Shape& shape, DType dtype, const OrthogonalOptions& options) {
  const BuildContext& context = CurrentBuilding();
  if (shape.rank() < 2) {
    context.Fail(InvalidArgument("an orthogonal initial value must have two dimensions or more, "
                                 "found shape ",
                                 shape.ToString()),
                 std::source_location::current());
    return {};
  }
  const int64_t columns = shape.dim(shape.rank() - 1);
  int64_t rows = 1;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape.dim(i);
  const Shape tall({std::max(rows, columns), std::min(rows, columns)});
  const auto factors = Qr(Normal(tall, dtype, 0, 1, options.seed));
  // The factor of which the diagonal of the other is positive is distributed uniformly.
  const Output q = factors.q * Sign(MatrixDiagPart(factors.r));
  return Reshape(rows < columns ? Transpose(q, {1, 0}) : q, DimsOf(shape)) * options.gain;
}

Output IdentityValue(const Shape& shape, DType dtype, double gain) {
  if (shape.rank() != 2) {
    CurrentBuilding().Fail(
        InvalidArgument("an identity's initial value must be a matrix, found shape ",
                        shape.ToString()),
        std::source_location::current());
    return {};
  }
  const int64_t diagonal = std::min(shape.dim(0), shape.dim(1));
  return MatrixSetDiag(Filled(shape, dtype, 0), Filled(Shape({diagonal}), dtype, gain));
}

Output ConstantValue(const Shape& shape, DType dtype, const Input& value) {
  Output constant = Const(value, {.dtype = dtype});
  if (constant.exists() && constant.dtype() != dtype) constant = Cast(constant, dtype);
  if (constant.shape().rank() == 0) return Fill(DimsOf(shape), constant);
  return Reshape(constant, DimsOf(shape));
}

}  // namespace

Initializer ZerosInitializer() {
  return [](const Shape& shape, DType dtype) { return Filled(shape, dtype, 0); };
}
Initializer OnesInitializer() {
  return [](const Shape& shape, DType dtype) { return Filled(shape, dtype, 1); };
}
Initializer ConstantInitializer(const Input& value) {
  return [value](const Shape& shape, DType dtype) { return ConstantValue(shape, dtype, value); };
}

Initializer RandomUniformInitializer(double minval, double maxval,
                                     const RandomInitializerOptions& options) {
  return [=](const Shape& shape, DType dtype) {
    return Uniform(shape, dtype, minval, maxval, options.seed);
  };
}
Initializer RandomNormalInitializer(double mean, double stddev,
                                    const RandomInitializerOptions& options) {
  return [=](const Shape& shape, DType dtype) {
    return Normal(shape, dtype, mean, stddev, options.seed);
  };
}
Initializer TruncatedNormalInitializer(double mean, double stddev,
                                       const RandomInitializerOptions& options) {
  return [=](const Shape& shape, DType dtype) {
    return Truncated(shape, dtype, mean, stddev, options.seed);
  };
}

Initializer VarianceScalingInitializer(const VarianceScalingOptions& options) {
  return [options](const Shape& shape, DType dtype, const Shape& whole) {
    return ScaledDraws(shape, dtype, whole, options);
  };
}
Initializer GlorotUniformInitializer(const RandomInitializerOptions& options) {
  return VarianceScalingInitializer({1, Mode::kFanAvg, Distribution::kUniform, options.seed});
}
Initializer GlorotNormalInitializer(const RandomInitializerOptions& options) {
  return VarianceScalingInitializer(
      {1, Mode::kFanAvg, Distribution::kTruncatedNormal, options.seed});
}
Initializer HeUniformInitializer(const RandomInitializerOptions& options) {
  return VarianceScalingInitializer({2, Mode::kFanIn, Distribution::kUniform, options.seed});
}
Initializer HeNormalInitializer(const RandomInitializerOptions& options) {
  return VarianceScalingInitializer(
      {2, Mode::kFanIn, Distribution::kTruncatedNormal, options.seed});
}
Initializer LecunUniformInitializer(const RandomInitializerOptions& options) {
  return VarianceScalingInitializer({1, Mode::kFanIn, Distribution::kUniform, options.seed});
}
Initializer LecunNormalInitializer(const RandomInitializerOptions& options) {
  return VarianceScalingInitializer(
      {1, Mode::kFanIn, Distribution::kTruncatedNormal, options.seed});
}

Initializer OrthogonalInitializer(const OrthogonalOptions& options) {
  return
      [options](const Shape& shape, DType dtype) { return OrthogonalValue(shape, dtype, options); };
}
Initializer IdentityInitializer(double gain) {
  return [gain](const Shape& shape, DType dtype) { return IdentityValue(shape, dtype, gain); };
}

}  // namespace tenon
