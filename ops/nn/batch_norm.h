// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/op/kernel.h"

// What the kernels of batch normalisation share, on every device.

namespace tenon {

/// An image as [outer, channels, inner].
struct ImageChannels {
  int64_t outer = 1, channels = 0, inner = 1;
  int64_t count() const { return outer * inner; }
};

/// How the image is one that FusedBatchNorm of any version gets. InvalidArgument when it is none,
/// or the other inputs do not fit.
StatusOr<ImageChannels> CheckBatchNorm(const KernelContext& ctx, std::string_view data_format,
                                       bool training, float exponential_avg_factor);
/// The same of its gradient.
StatusOr<ImageChannels> CheckBatchNormGrad(const KernelContext& ctx, std::string_view data_format);

}  // namespace tenon
