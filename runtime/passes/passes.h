// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/status.h"
#include "core/graph/graph.h"

// The passes themselves, which the table in pass.cc has; see the .cc of each.

namespace tenon {

struct PassContext;

StatusOr<bool> FoldConstants(Graph* graph, const PassContext& context);
StatusOr<bool> RemoveNeutralOperands(Graph* graph, const PassContext& context);
StatusOr<bool> MergeCommonSubexpressions(Graph* graph, const PassContext& context);
StatusOr<bool> KeepPlacesOfMaxima(Graph* graph, const PassContext& context);
StatusOr<bool> ComputeReluInPooling(Graph* graph, const PassContext& context);
StatusOr<bool> AddBiasInConvolutions(Graph* graph, const PassContext& context);

}  // namespace tenon
