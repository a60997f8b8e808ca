// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph.h"

namespace tenon {

/// What a node means to the flow of control; the ops for references (RefSwitch, …) mean the same.
enum class FlowKind : uint8_t {
  kPlain,
  kSwitch,
  kMerge,
  kEnter,
  kConstantEnter,  // an Enter whose value every iteration sees
  kExit,
  kNextIteration,
  kControlTrigger,
  kTransfer,  // Send and Recv: run on dead inputs too
};
FlowKind FlowKindOf(const Node& node);

inline bool IsEnter(const Node& node) {
  const FlowKind kind = FlowKindOf(node);
  return kind == FlowKind::kEnter || kind == FlowKind::kConstantEnter;
}
inline bool IsExit(const Node& node) { return FlowKindOf(node) == FlowKind::kExit; }

}  // namespace tenon
