// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"

namespace tenon {

/// The attributes of LRN. The radius is at most the number of channels.
struct LrnAttrs {
  int64_t radius;
  float bias, alpha, beta;
};

/// InvalidArgument for attributes or an image that cannot be.
StatusOr<LrnAttrs> CheckLrn(const Tensor& x, int64_t radius, float bias, float alpha, float beta);
/// InvalidArgument unless the inputs of LRNGrad fit each other.
Status CheckLrnGrad(const KernelContext& ctx);

}  // namespace tenon
