// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distributed/protocol/cluster_spec.h"
#include "proto/cluster.pb.h"

// ClusterSpecs as messages carry them.

namespace tenon {

/// InvalidArgument as ClusterSpec::AddTask.
StatusOr<ClusterSpec> ClusterFromProto(const ClusterDef& proto);
ClusterDef ClusterToProto(const ClusterSpec& cluster);

}  // namespace tenon
