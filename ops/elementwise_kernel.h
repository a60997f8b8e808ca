// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "core/op/kernel.h"

namespace tenon {

/// The CPU kernel of an elementwise op, which others may run piece by piece: the results are those
/// of Compute, wherever its elements are cut.
class PiecewiseKernel : public Kernel {
 public:
  using Kernel::Kernel;

  struct Pieces {
    // The loops of elementwise.h, one of which is null.
    void (*unary)(const void* x, void* y, int64_t n) = nullptr;
    bool (*binary)(const void* x, int64_t x_step, const void* y, int64_t y_step, void* z,
                   int64_t n) = nullptr;
    double cost_ns = 0;           // an element
    std::string_view error = {};  // what is wrong where `binary` returns false
    bool same_shape = false;      // of the two operands, which are not broadcast
  };
  virtual Pieces pieces() const = 0;
};

}  // namespace tenon
