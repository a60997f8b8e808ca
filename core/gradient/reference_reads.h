// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

namespace tenon {

/// The node whose reference `value` is, or was read from without a copy since, as far as a chain of
/// at most 16 nodes that hand their first input on tells; null when there is none. Within one
/// memory such a value shows later updates of the variable (Tensor::follows).
const Node* ReferenceRead(Endpoint value);

}  // namespace tenon
