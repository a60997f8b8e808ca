// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "proto/step_stats.pb.h"
#include "runtime/execute/trace.h"

namespace tenon {

/// What nodes did, as RunMetadata carries it.
void TraceToStepStats(const std::vector<NodeTrace>& nodes, StepStats* out);

}  // namespace tenon
