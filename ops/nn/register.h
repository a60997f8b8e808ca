// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds to `ops`, where they are declared, what the ops of nn.ops do.
void RegisterNnOps(OpRegistry& ops);

// By file.
void RegisterActivations(OpRegistry& ops);
void RegisterElementwiseGradients(OpRegistry& ops);
void RegisterBiasAdd(OpRegistry& ops);
void RegisterSoftmax(OpRegistry& ops);
void RegisterLosses(OpRegistry& ops);

}  // namespace tenon
