// SPDX-License-Identifier: Apache-2.0
#include "core/loop_frame.h"

#include <algorithm>

namespace tenon {
namespace {

/// An input of `node` that does not come from an earlier iteration, or null.
const Node* AnyInput(const Node& node) {
  for (const Endpoint& in : node.inputs()) {
    if (in.node != nullptr && !in.node->registration().is_loop_back) return in.node;
  }
  const auto& controls = node.control_inputs();
  return controls.empty() ? nullptr : controls.front();
}

}  // namespace

std::string LoopFrameOf(const Node& node) {
  constexpr int kMaxSteps =
      1 << 20;   // a cycle without NextIteration has no end; Validate refuses it
  int left = 0;  // loops that were passed on the way back
  const Node* at = &node;
  for (int step = 0; at != nullptr && step < kMaxSteps; ++step, at = AnyInput(*at)) {
    const bool enters = at->op() == "Enter" || at->op() == "RefEnter";
    if (enters && left == 0) return at->attrs().GetOr<std::string>("frame_name", "");
    if (enters) --left;
    if (at->op() == "Exit" || at->op() == "RefExit") ++left;
  }
  return "";
}

}  // namespace tenon
