// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/training/update_rule.h"

// Steps that shrink the variable, some of it to 0. training.ops says what each computes.

namespace tenon::update_rules {

/// x, nearer to 0 by `threshold`, but not beyond it.
template <typename C>
TENON_HD C Shrink(C x, C threshold) {
  return SignOf(x) * std::max(Abs(x) - threshold, C(0));
}

/// An l1 below 0 counts as 0; so does NaN.
template <typename C>
TENON_HD C Positive(C l1) {
  return l1 > 0 ? l1 : C(0);
}

struct ProximalGradientDescentRule : UpdateRule<1, TypeList<float, double>> {
  enum { kRate, kL1, kL2 };
  static constexpr bool kNoEmptyRows = true;
  TENON_HD static bool Prepare(auto* s, bool, int64_t) {
    s[kL1] = Positive(s[kL1]);
    return false;
  }
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g) {
    v[0] = Shrink(v[0] - g * s[kRate], s[kRate] * s[kL1]) / (C(1) + s[kL2] * s[kRate]);
  }
};

struct ProximalAdagradRule : UpdateRule<2, TypeList<float, double>> {
  enum { kRate, kL1, kL2 };
  static constexpr bool kNoEmptyRows = true;
  static std::array<Bound, 3> Bounds(bool) {
    return {Bound::kAbove0, Bound::kAtLeast0, Bound::kAtLeast0};
  }
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g) {
    v[1] += g * g;
    const auto rate = [&] { return s[kRate] / Sqrt(v[1]); };
    v[0] -= g * rate();
    v[0] = Shrink(v[0], rate() * s[kL1]) / (C(1) + s[kL2] * rate());
  }
};

struct AdagradDARule : UpdateRule<3, TypeList<float, double>> {
  enum { kRate, kL1, kL2, kGlobalStep };
  static constexpr bool kNoEmptyRows = true;
  TENON_HD static bool Prepare(auto* s, bool, int64_t width) {
    s[kL1] = Positive(s[kL1]);
    return width > 1;
  }
  /// TensorFlow divides both sides of the fraction by the global step and the rate for rows with
  /// several elements, which makes a difference where the step is not above 0.
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g, bool in_rows) {
    v[1] += g;
    v[2] += g * g;
    const C steps = s[kGlobalStep];
    if (in_rows) {
      const C left = Abs(v[1]) / steps - s[kL1];
      v[0] = -SignOf(v[1]) * (s[kL1] > 0 ? std::max(left, C(0)) : left) /
             (s[kL2] + Sqrt(v[2]) / (steps * s[kRate]));
    } else {
      v[0] = -s[kRate] * Shrink(v[1], steps * s[kL1]) / (s[kL2] * steps * s[kRate] + Sqrt(v[2]));
    }
  }
};

/// With l2_shrinkage it is FtrlV2.
template <bool kSparse, bool kShrinkage>
struct FtrlRule : UpdateRule<3, FloatTypes> {
  enum { kRate, kL1, kL2, kPower = kShrinkage ? 4 : 3, kLinearRate, kShrink };
  static constexpr const char* kFlag = "multiply_linear_by_lr";
  static constexpr bool kNoEmptyRows = true;
  static auto Bounds(bool linear_by_lr) {
    std::array<Bound, kSparse ? kPower + 1 : 0> bounds;
    bounds.fill(Bound::kAtLeast0);
    if constexpr (kSparse) {
      if (!linear_by_lr) bounds[kRate] = Bound::kAbove0;
      bounds[kPower] = Bound::kAtMost0;
    }
    return bounds;
  }
  /// kLinearRate is what linear is multiplied by, and kRate what the powers are then divided by, of
  /// which one is 1. Gives whether the powers are square roots.
  template <typename C>
  TENON_HD static bool Prepare(C* s, bool linear_by_lr, int64_t) {
    s[kShrink] = kShrinkage ? 2 * s[kPower - 1] : C(0);
    s[kLinearRate] = linear_by_lr ? std::exchange(s[kRate], C(1)) : C(1);
    s[kL1] *= s[kLinearRate];
    s[kL2] *= 2 * s[kLinearRate];
    return s[kPower] == C(-0.5);
  }
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g, bool roots) {
    const auto power = [&](C x) { return roots ? Sqrt(x) : std::pow(x, -s[kPower]); };
    const C shrunk = kShrinkage ? g + s[kShrink] * v[0] : g;
    const auto accum = [&] { return v[1] + g * g; };
    v[2] += shrunk * s[kLinearRate] - (power(accum()) - power(v[1])) / s[kRate] * v[0];
    const C divisor = power(accum()) / s[kRate] + s[kL2];
    if (kSparse) {
      v[0] = (std::max(std::min(v[2], s[kL1]), -s[kL1]) - v[2]) / divisor;
    } else {
      v[0] = Abs(v[2]) > s[kL1] ? (s[kL1] * SignOf(v[2]) - v[2]) / divisor : C(0);
    }
    v[1] = accum();
  }
};

}  // namespace tenon::update_rules
