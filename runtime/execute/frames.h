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

}  // namespace tenon
