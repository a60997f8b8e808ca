// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <functional>
#include <utility>

#include "core/build/operand.h"

namespace tenon {

/// The function that a layer applies to what it computed: that of an op by its name, whose options
/// are the default ones, or a function of an Output; none leaves it as it is.
///
///   Dense(128, {.activation = Relu})
///   Dense(128, {.activation = [](const Output& x) { return LeakyRelu(x, {.alpha = 0.1f}); }})
class Activation {
 public:
  /// None.
  Activation() = default;
  template <typename Options>
  Activation(Output (*op)(const Input&, const Options&))  // NOLINT: stands for its op
      : apply_([op](const Output& x) { return op(x, {}); }) {}
  template <std::invocable<const Output&> Function>
  Activation(Function function) : apply_(std::move(function)) {}  // NOLINT

  bool exists() const { return apply_ != nullptr; }
  Output operator()(const Output& x) const { return exists() ? apply_(x) : x; }

 private:
  std::function<Output(const Output&)> apply_;
};

}  // namespace tenon
