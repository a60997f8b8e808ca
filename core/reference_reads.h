// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph.h"

namespace tenon {

/// Whether a value is a reference, or what was read from one and not copied since, as far as a chain of
/// at most 16 nodes that hand their first input on tells: such a value shows later updates of the
/// variable (Tensor::follows).
bool ReadsReference(Endpoint value);

}  // namespace tenon
