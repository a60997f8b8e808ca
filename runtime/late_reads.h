// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph.h"

namespace tenon {

/// Gives each op that runs after an update of a reference variable, as the edges of the graph say,
/// a read of its own of that variable, after the update. In TensorFlow the read (the Identity that
/// programs call "<variable>/read") shows every later assignment, since it shares the variable's
/// memory; programs rely on that where they say in which order things happen, as
/// SyncReplicasOptimizer does when it hands out the step that it has just counted. Other reads stay
/// what they are: the value at one moment, whatever is assigned later in the step.
///
/// For placed step graphs.
Status ReadAfterUpdates(Graph* graph);

}  // namespace tenon
