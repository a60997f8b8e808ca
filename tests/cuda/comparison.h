// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/op/op_registry.h"
#include "core/tensor/tensor.h"

// How near to the CPU's the values of a GPU must be.

namespace tenon::testing {

/// What a kernel computes: by this its floats are compared. All else is equal bit for bit.
enum class Closeness {
  kSame,    ///< Moves and draws: the same bits.
  kPlaces,  ///< An expression an element: a few units in the last place.
  kSums,    ///< Many terms, in an order of the device's own: relative to the largest value.
};

/// The closeness of an op's device kernel, by the table in comparison.cc.
Closeness ClosenessOf(std::string_view op, DType dtype);

/// The reason for which an op may give another result each time, in the last places; "" for all the
/// others, which give the same bits.
std::string_view WhyNotRepeatable(std::string_view op);

struct Comparison {
  /// The largest difference relative to the largest finite value of its tensor.
  double error = 0;
  /// What is too far away, or not the same; "" when nothing is.
  std::string difference;
};

/// NaNs are equal, and must be in the same places, as infinities must. Resources and variants are
/// not looked into.
Comparison Compare(const std::vector<Tensor>& found, const std::vector<Tensor>& wanted,
                   Closeness closeness);

}  // namespace tenon::testing
