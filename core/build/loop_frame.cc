// SPDX-License-Identifier: Apache-2.0
#include "core/build/loop_frame.h"

#include "core/base/hash_map.h"
#include "core/graph/graph.h"

namespace tenon {
namespace {

/// An input of `node` that does not come from an earlier iteration, or null.
const Node* AnyInput(const Node& node) {
  for (const Endpoint& in : node.inputs()) {
    if (in.node != nullptr && !in.node->is_next_iteration()) return in.node;
  }
  const auto& controls = node.control_inputs();
  return controls.empty() ? nullptr : controls.front();
}

}  // namespace

const std::string& LoopFrameOf(Graph& graph, const Node& node) {
  static const std::string* const outside = new std::string;
  if (!graph.has_loops()) return *outside;
  flat_hash_map<int, std::string>& known = graph.loop_frames();
  if (const auto found = known.find(node.id()); found != known.end()) return found->second;
  std::string frame;
  int left = 0;  // loops that were passed on the way back
  const Node* at = &node;
  // A cycle without NextIteration has no end; Validate refuses it.
  for (int step = 0; at != nullptr && step < graph.num_ids(); ++step, at = AnyInput(*at)) {
    const auto found = known.find(at->id());
    if (left == 0 && found != known.end()) {
      frame = found->second;
      break;
    }
    const bool enters = at->is_enter();
    if (enters && left == 0) {
      frame = at->attrs().GetOr<std::string>("frame_name", "");
      break;
    }
    if (enters) --left;
    if (at->is_exit()) ++left;
  }
  return known.insert_or_assign(node.id(), std::move(frame)).first->second;
}

}  // namespace tenon
