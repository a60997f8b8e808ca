// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"

// What segment ops demand of their inputs, on every device.

namespace tenon {

/// InvalidArgument unless segment_ids are a vector with an element for each row of data.
Status CheckSegmentIds(const Tensor& data, const Tensor& segment_ids);

/// The number of segments that input 2 of an unsorted segment op holds; InvalidArgument when it is
/// negative, or the shapes of data and ids, inputs 0 and 1, do not fit.
StatusOr<int64_t> ReadNumSegments(const KernelContext& ctx);

/// The error of id number `i` of `segment_ids`.
Status SegmentOutOfRange(const Shape& segment_ids, int64_t i, int64_t id, int64_t segments);

}  // namespace tenon
