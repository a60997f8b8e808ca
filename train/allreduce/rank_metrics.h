// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/build/building.h"

namespace tenon {

/// Makes the metrics of all ranks one (metrics.h): each rank has counted its own part of an
/// evaluation, and after a run of this node `value` is the metric of all parts together, exactly,
/// also where it is no mean, as an area under a curve. Once for each evaluation, after its last
/// update: a second run would add up the sums. Where there is one rank nothing changes.
///
///   const Metric auc = metrics::Auc(labels, predictions);
///   Node* const together = SumMetricsOverRanks();
///   ... a run of auc.update for each of its own batches ...
///   TENON_RETURN_IF_ERROR(session->RunWithoutHooks({}, {}, {together}).status());
///   TENON_ASSIGN_OR_RETURN(float value, session->RunWithoutHooks<float>({}, auc.value));
///
/// For all metrics that the graph has when this is called.
Node* SumMetricsOverRanks();

}  // namespace tenon
