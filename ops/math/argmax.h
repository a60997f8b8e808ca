// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/status.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// What ArgMax and ArgMin compare.
using ArgBestTypes = decltype(ConcatTypes(RealTypes(), TypeList<bool>()));

/// The axis of an `x` of this shape along which they look; InvalidArgument when it is empty.
StatusOr<int> ReadArgAxis(const Shape& x, const Tensor& dimension);

}  // namespace tenon
