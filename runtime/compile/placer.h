// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/device/device_name.h"
#include "core/graph/graph.h"

namespace tenon {

/// A device that nodes may be placed on, here or on another task.
struct PlacementDevice {
  DeviceName name;
  DeviceKind kind;
};

/// Assigns a device to every node of `graph` that has none yet. Those that have keep theirs, and
/// have their groups where they are.
///
/// Nodes are first grouped: what `_class` "loc:@x" names, and both ends of edges that carry
/// references or resources, which exist in one place only. A group gets the intersection of what
/// its members ask for; of the devices that match and have kernels for every member it takes a GPU
/// before a CPU, the task of `default_device` before others, and the lowest name.
///
/// An op that takes a resource goes where the resource is, even when asked to be elsewhere.
///
/// With `allow_soft_placement` a device type or number that cannot be had is dropped.
/// InvalidArgument otherwise, listing the node, what was asked for, what each member of its group
/// asks for and supports, and the devices there are.
struct PlacementOptions {
  DeviceName default_device = {};  // the task that nodes without a wish go to
  bool allow_soft_placement = false;
  /// Why that task has no GPU, for messages; empty when it has one or nobody knows.
  std::string why_no_gpu = {};
  int first_id = 0;  // all nodes before this have a device
};
Status PlaceNodes(Graph* graph, const std::vector<PlacementDevice>& devices,
                  const PlacementOptions& options);

/// Assigns to each node the device that it asks for: in a part that a master has placed, its own.
void AssignRequestedDevices(Graph* graph);

}  // namespace tenon
