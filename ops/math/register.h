// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds to `ops`, where they are declared, what the ops of math.ops do.
void RegisterMathOps(OpRegistry& ops);

// By file.
void RegisterCumsum(OpRegistry& ops);
void RegisterUnaryArithmetic(OpRegistry& ops);
void RegisterTranscendental(OpRegistry& ops);
void RegisterBinaryArithmetic(OpRegistry& ops);
void RegisterDivision(OpRegistry& ops);
void RegisterComparison(OpRegistry& ops);
void RegisterReductions(OpRegistry& ops);
void RegisterCast(OpRegistry& ops);
void RegisterSelect(OpRegistry& ops);
void RegisterAccumulate(OpRegistry& ops);
void RegisterCheckNumerics(OpRegistry& ops);
void RegisterMatMul(OpRegistry& ops);
void RegisterBatchMatMul(OpRegistry& ops);
void RegisterArgMax(OpRegistry& ops);
void RegisterSegmentOps(OpRegistry& ops);
void RegisterFusedOps(OpRegistry& ops);

}  // namespace tenon
