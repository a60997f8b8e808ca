// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/build/building.h"

namespace tenon {

/// Options of Const, by name.
struct ConstOptions {
  /// The dtype of a literal; by default what the literal itself is (see Literal).
  DType dtype = DType::kInvalid;
  std::string name = {};
  std::source_location location = std::source_location::current();
};
/// A constant: a literal, braces of literals, a vector or a Tensor (the op Const). An Output stays
/// what it is.
Output Const(const Input& value, const ConstOptions& options = {});

/// A constant of zeros, and of ones, of a numeric dtype, by default float.
Output Zeros(const Shape& shape, const ConstOptions& options = {});
Output Ones(const Shape& shape, const ConstOptions& options = {});

}  // namespace tenon
