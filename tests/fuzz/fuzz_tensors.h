// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"
#include "tests/fuzz/fuzz_bytes.h"

// Tensors and numbers at the ends of their ranges.

namespace tenon::testing {

/// 0, 1, -1, powers of two and their neighbours, the lowest and the highest.
int64_t OddInteger(FuzzBytes& bytes);
/// A valid shape: small, or without elements beside dimensions of any size.
Shape OddShape(FuzzBytes& bytes);
/// A shape as OddShape makes it, with unknown dimensions or rank; perhaps one that cannot be.
PartialShape OddPartialShape(FuzzBytes& bytes);
/// One of the dtypes that C++ code can hold.
DType AnyDType(FuzzBytes& bytes);
/// Fills with one number, 0 1 2 ..., small numbers, or corner values.
Tensor OddTensor(FuzzBytes& bytes, DType dtype, const Shape& shape);
/// Sets an element or a few to corner values.
void Spoil(FuzzBytes& bytes, Tensor* t);

}  // namespace tenon::testing
