// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <numbers>

#include "core/op/function_kernel.h"
#include "ops/math/gemm.h"
#include "ops/maths.h"

// What TensorFlow's graph optimiser fuses with a matrix product, on every device.

namespace tenon {

enum class FusedActivation {
  kNone,
  kRelu,
  kRelu6,
  kLeakyRelu,
  kElu,
  kSigmoid,
  kTanh,
  kGeluApproximate,
  kGeluExact,
};

TENON_HD inline float Activate(FusedActivation activation, float v, float alpha) {
  switch (activation) {
    case FusedActivation::kNone:
      return v;
    case FusedActivation::kRelu:
      return v < 0 ? 0 : v;
    case FusedActivation::kRelu6:
      return v < 0 ? 0 : (v > 6 ? 6 : v);
    case FusedActivation::kLeakyRelu:
      return v < 0 ? alpha * v : v;
    case FusedActivation::kElu:
      return v < 0 ? std::expm1(v) : v;
    case FusedActivation::kSigmoid:
      return 1 / (1 + std::exp(-v));
    case FusedActivation::kTanh:
      return std::tanh(v);
    case FusedActivation::kGeluApproximate: {
      const float scale = std::sqrt(2.0f * std::numbers::inv_pi_v<float>);
      return 0.5f * v * (1.0f + std::tanh(scale * (v + 0.044715f * v * v * v)));
    }
    case FusedActivation::kGeluExact:
      return 0.5f * v * (1.0f + std::erf(v * (std::numbers::sqrt2_v<float> / 2)));
  }
  return v;
}

/// What a node does with its product: it adds a bias, and perhaps applies an activation. Fails for
/// attributes that say something else.
struct Fusion : KernelState {
  explicit Fusion(KernelConstruction& c);
  const float alpha;  // of kLeakyRelu
  FusedActivation activation = FusedActivation::kNone;
};

/// InvalidArgument unless `bias` has an element for each column of the product.
Status CheckBias(const Tensor& bias, const GemmShape& gemm);

}  // namespace tenon
