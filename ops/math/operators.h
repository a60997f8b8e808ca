// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/build/building.h"
#include "core/build/slicing.h"

// Arithmetic and comparison of tensors, element by element, broadcasting. One side is an Output or
// stands for one (Variable), the other may be a literal or a Tensor too: 2 * x - 6.0f. Between two
// Outputs `==` asks whether they are the same tensor; Equal() compares elements.

namespace tenon {

Output operator+(const Input& x, const Input& y);  // AddV2
Output operator-(const Input& x, const Input& y);  // Sub
Output operator*(const Input& x, const Input& y);  // Mul
/// Division as in C++: RealDiv, and TruncateDiv for integers.
Output operator/(const Input& x, const Input& y);
/// The remainder with the sign of y (FloorMod).
Output operator%(const Input& x, const Input& y);
Output operator-(const Input& x);  // Neg
Output operator<(const Input& x, const Input& y);
Output operator<=(const Input& x, const Input& y);
Output operator>(const Input& x, const Input& y);
Output operator>=(const Input& x, const Input& y);

}  // namespace tenon
