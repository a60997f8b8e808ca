// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace tenon {

/// The while loops of a graph. A frame is what Enter nodes with one frame_name lead into; frame 0
/// is the graph outside all loops.
struct FrameInfo {
  struct Frame {
    std::string name;  // "" for frame 0
    int parent = -1;
    int num_enters = 0;  // Enter nodes that lead into it
    int parallel_iterations = 1;
  };
  std::vector<Frame> frames;
  /// By node id: the frame in which the node runs. An Enter belongs to the frame it leaves, an Exit
  /// to the one it leaves too.
  std::vector<int> frame_of_node;
};

/// InvalidArgument when the inputs of a node come from different frames, or one frame name is
/// entered from two places.
StatusOr<FrameInfo> FindFrames(const Graph& graph);

/// The hash of a loop's name, for LoopFrameId: TensorFlow's, so that loops may span its tasks and
/// ours.
uint64_t LoopNameHash(std::string_view name);

/// The number that stands for a loop in rendezvous keys: of the loop whose name has the hash
/// `name_hash`, entered in iteration `parent_iteration` of frame `parent_id`.
uint64_t LoopFrameId(uint64_t parent_id, int64_t parent_iteration, uint64_t name_hash);

}  // namespace tenon
