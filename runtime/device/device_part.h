// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device/device.h"
#include "core/graph/graph.h"

namespace tenon {

/// The part of a task's graph that is on one of its devices.
struct DevicePart {
  Graph* graph;
  Device* device;
};

}  // namespace tenon
