// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/training/update_rule.h"

// Steps along the gradient, or along averages of it. training.ops says what each computes.

namespace tenon::update_rules {

struct GradientDescentRule : UpdateRule<1> {
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g) {
    v[0] -= s[0] * g;
  }
};

struct MomentumRule : UpdateRule<2> {
  enum { kRate, kMomentum };
  static constexpr const char* kFlag = "use_nesterov";
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g, bool nesterov) {
    v[1] = v[1] * s[kMomentum] + g;
    v[0] -= nesterov ? g * s[kRate] + v[1] * s[kMomentum] * s[kRate] : v[1] * s[kRate];
  }
};

struct KerasMomentumRule : UpdateRule<2> {
  enum { kRate, kMomentum };
  static constexpr const char* kFlag = "use_nesterov";
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g, bool nesterov) {
    v[1] = v[1] * s[kMomentum] - g * s[kRate];
    v[0] += nesterov ? v[1] * s[kMomentum] - g * s[kRate] : v[1];
  }
};

struct AdamRule : UpdateRule<3> {
  enum { kBeta1Power, kBeta2Power, kRate, kBeta1, kBeta2, kEpsilon };
  static constexpr const char* kFlag = "use_nesterov";
  /// Turns the learning rate into the step size corrected for the bias of the moments.
  template <typename C>
  TENON_HD static bool Prepare(C* s, bool nesterov, int64_t) {
    s[kRate] *= Sqrt(C(1) - s[kBeta2Power]) / (C(1) - s[kBeta1Power]);
    return nesterov;
  }
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g, bool nesterov) {
    v[1] += (g - v[1]) * (C(1) - s[kBeta1]);
    v[2] += (g * g - v[2]) * (C(1) - s[kBeta2]);
    const C m = nesterov ? v[1] * s[kBeta1] + (C(1) - s[kBeta1]) * g : v[1];
    v[0] -= m * s[kRate] / (Sqrt(v[2]) + s[kEpsilon]);
  }
};

struct AdamWithAmsgradRule : UpdateRule<4, FloatTypes> {
  using Adam = AdamRule;
  TENON_HD static bool Prepare(auto* s, bool, int64_t) { return Adam::Prepare(s, false, 0); }
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g) {
    v[1] += (g - v[1]) * (C(1) - s[Adam::kBeta1]);
    v[2] += (g * g - v[2]) * (C(1) - s[Adam::kBeta2]);
    v[3] = std::max(v[3], v[2]);
    v[0] -= v[1] * s[Adam::kRate] / (Sqrt(v[3]) + s[Adam::kEpsilon]);
  }
};

struct AdaMaxRule : UpdateRule<3, FloatTypes> {
  enum { kBeta1Power, kRate, kBeta1, kBeta2, kEpsilon };
  template <typename C>
  TENON_HD static bool Prepare(C* s, bool, int64_t) {
    s[kRate] /= C(1) - s[kBeta1Power];
    return false;
  }
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g) {
    v[1] += (g - v[1]) * (C(1) - s[kBeta1]);
    v[2] = std::max(s[kBeta2] * v[2], Abs(g));
    v[0] -= s[kRate] * (v[1] / (v[2] + s[kEpsilon]));
  }
};

/// Moves the average of the gradient; then whether both point the same way: 1, or -1, or 0.
template <typename C>
TENON_HD C Agreement(C& average, C beta, C g) {
  average = average * beta + g * (C(1) - beta);
  return SignOf(g) * SignOf(average);
}

struct AddSignRule : UpdateRule<2, FloatTypes> {
  enum { kRate, kAlpha, kSignDecay, kBeta };
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g) {
    const C agreement = Agreement(v[1], s[kBeta], g);
    v[0] -= s[kRate] * (s[kAlpha] + s[kSignDecay] * agreement) * g;
  }
};

struct PowerSignRule : UpdateRule<2, FloatTypes> {
  enum { kRate, kLogBase, kSignDecay, kBeta, kAgree, kDisagree, kNeither };
  /// The exponential has three values.
  template <typename C>
  TENON_HD static bool Prepare(C* s, bool, int64_t) {
    const C power = s[kLogBase] * s[kSignDecay];
    s[kAgree] = Exp(power);
    s[kDisagree] = Exp(-power);
    s[kNeither] = Exp(power * C(0));
    return false;
  }
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g) {
    const C agreement = Agreement(v[1], s[kBeta], g);
    const C scale = agreement > 0    ? s[kAgree]
                    : agreement < 0  ? s[kDisagree]
                    : agreement == 0 ? s[kNeither]
                                     : agreement;
    v[0] -= s[kRate] * scale * g;
  }
};

}  // namespace tenon::update_rules
