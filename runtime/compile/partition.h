// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/graph/graph.h"

namespace tenon {

struct PartitionOptions {
  /// The partition a node belongs to: its device, or its task; a part of assigned_device().
  std::string_view (*location)(const Node&) = nullptr;
  /// The incarnation of the device of that name, for rendezvous keys.
  std::function<uint64_t(const std::string& device)> incarnation;
  /// Distinguishes this graph's tensors from those of other graphs of the same step.
  std::string tensor_prefix;
};

/// Cuts a placed graph into one graph per location. A tensor that crosses becomes a _Send and a
/// _Recv, one pair per tensor and receiving device; a control edge an empty tensor. An edge that
/// leaves a reference has a pair of its own, whose _Recv waits for all else that its consumer waits
/// for: the value is that of the variable then, as in TensorFlow. In while loops
/// that span locations a small control loop at each location runs its receives once an iteration.
/// Consumes `graph`, which is itself the result where all nodes are at one location: its ids may
/// have gaps.
StatusOr<std::map<std::string, Graph>> PartitionGraph(Graph graph, const PartitionOptions& options);

}  // namespace tenon
