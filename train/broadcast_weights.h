// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/build/building.h"

namespace tenon {

/// The weights of `values`, which losses and metrics multiply them by: a scalar, or of their rank
/// with dimensions that are 1 or as large as theirs, else the mistake is InvalidArgument
/// (tf.compat.v1's broadcast_weights). They keep their shape where that is known to fit; else they
/// get that of the values, and those that do not fit fail the step.
Output BroadcastWeights(const Output& weights, const Output& values,
                        const std::source_location& at);

}  // namespace tenon
