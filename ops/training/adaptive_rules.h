// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/training/update_rule.h"

// Steps whose rate each element has for itself, by the size of its gradients so far. training.ops
// says what each computes.

namespace tenon::update_rules {

struct AdadeltaRule : UpdateRule<3> {
  enum { kRate, kRho, kEpsilon };
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g) {
    v[1] = v[1] * s[kRho] + g * g * (C(1) - s[kRho]);
    const auto update = [&] { return Sqrt(v[2] + s[kEpsilon]) / Sqrt(v[1] + s[kEpsilon]) * g; };
    v[0] -= update() * s[kRate];
    v[2] = v[2] * s[kRho] + update() * update() * (C(1) - s[kRho]);
  }
};

struct AdagradRule : UpdateRule<2> {
  enum { kRate };
  static constexpr const char* kFlag = "update_slots";
  static constexpr bool kNoEmptyRows = true;
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g, bool update_slots) {
    if (update_slots) v[1] += g * g;
    v[0] -= g * s[kRate] / Sqrt(v[1]);
  }
};

struct AdagradV2Rule : UpdateRule<2> {
  enum { kRate, kEpsilon };
  static constexpr const char* kFlag = "update_slots";
  static constexpr bool kNoEmptyRows = true;
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g, bool update_slots) {
    if (update_slots) v[1] += g * g;
    v[0] -= g * s[kRate] / (Sqrt(v[1]) + s[kEpsilon]);
  }
};

/// The average moved towards x at rate 1 - rho. TensorFlow's sparse steps compute it in another
/// way, which keeps an infinite average.
template <bool kSparse, typename C>
TENON_HD C Decayed(C average, C rho, C x) {
  return kSparse ? average * rho + x * (C(1) - rho) : average + (x - average) * (C(1) - rho);
}

template <bool kSparse>
struct RMSPropRule : UpdateRule<3> {
  enum { kRate, kRho, kMomentum, kEpsilon };
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g) {
    v[1] = Decayed<kSparse>(v[1], s[kRho], g * g);
    v[2] = v[2] * s[kMomentum] + g * s[kRate] / Sqrt(v[1] + s[kEpsilon]);
    v[0] -= v[2];
  }
};

template <bool kSparse>
struct CenteredRMSPropRule : UpdateRule<4> {
  enum { kRate, kRho, kMomentum, kEpsilon };
  template <typename C>
  TENON_HD static void Step(auto& v, const C* s, C g) {
    v[2] = Decayed<kSparse>(v[2], s[kRho], g * g);
    v[1] = Decayed<kSparse>(v[1], s[kRho], g);
    v[3] = v[3] * s[kMomentum] + g * s[kRate] / Sqrt(v[2] - v[1] * v[1] + s[kEpsilon]);
    v[0] -= v[3];
  }
};

}  // namespace tenon::update_rules
