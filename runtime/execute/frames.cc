// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/frames.h"

#include <algorithm>
#include <cstring>

#include "core/base/hash_map.h"
#include "core/graph/graph.h"

namespace tenon {
namespace {

/// A Murmur2 variant of 64 bits.
uint64_t Hash64(std::string_view text) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995, kSeed = 0xDECAFCAFFE;
  uint64_t h = kSeed ^ (text.size() * kMultiplier);
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t k;
    std::memcpy(&k, text.data() + i, 8);
    k *= kMultiplier;
    k ^= k >> 47;
    k *= kMultiplier;
    h = (h ^ k) * kMultiplier;
  }
  if (i < text.size()) {
    uint64_t tail = 0;
    std::memcpy(&tail, text.data() + i, text.size() - i);
    h = (h ^ tail) * kMultiplier;
  }
  h ^= h >> 47;
  h *= kMultiplier;
  return h ^ (h >> 47);
}

uint64_t CombineHashes(uint64_t a, uint64_t b) {
  return a ^ (b + 0x9e3779b97f4a7800 + (a << 10) + (a >> 4));
}

}  // namespace

uint64_t LoopNameHash(std::string_view name) { return Hash64(name); }

uint64_t LoopFrameId(uint64_t parent_id, int64_t parent_iteration, uint64_t name_hash) {
  return CombineHashes(parent_id,
                       CombineHashes(static_cast<uint64_t>(parent_iteration), name_hash));
}

StatusOr<FrameInfo> FindFrames(const Graph& graph) {
  FrameInfo info;
  info.frames.push_back({});
  info.frame_of_node.assign(graph.num_ids(), -1);
  StringMap<int> by_name;
  std::vector<Node*> stack;

  const auto visit = [&](Node* node, int frame) -> Status {
    int& known = info.frame_of_node[node->id()];
    if (known == -1) {
      known = frame;
      stack.push_back(node);
    } else if (known != frame) {
      return InvalidArgument("node '", node->name(), "' (", node->op(),
                             ") has inputs from different frames, those of the while loops '",
                             info.frames[known].name, "' and '", info.frames[frame].name, "'");
    }
    return OkStatus();
  };
  for (Node* node : graph.nodes()) {
    if (node->num_inputs() == 0 && node->control_inputs().empty()) {
      TENON_RETURN_IF_ERROR(visit(node, 0));
    }
  }
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    const int own = info.frame_of_node[node->id()];
    int next = own;
    const FlowKind kind = node->flow();
    if (kind == FlowKind::kEnter || kind == FlowKind::kConstantEnter) {
      TENON_ASSIGN_OR_RETURN(const auto name, node->attrs().Get<std::string>("frame_name"));
      const auto [it, added] = by_name.try_emplace(name, static_cast<int>(info.frames.size()));
      next = it->second;
      if (added) {
        const auto parallel = node->attrs().GetOr<int64_t>("parallel_iterations", 10);
        info.frames.push_back(
            {name, own, 0, static_cast<int>(std::clamp<int64_t>(parallel, 1, 1024))});
      }
      if (info.frames[next].parent != own) {
        return InvalidArgument("while loop '", name, "' is entered from two frames; node '",
                               node->name(), "' is the second");
      }
      ++info.frames[next].num_enters;
    } else if (kind == FlowKind::kExit) {
      if (own == 0) {
        return InvalidArgument("node '", node->name(), "' (Exit) is not in a while loop");
      }
      next = info.frames[own].parent;
    }
    for (const OutEdge& e : node->out_edges()) TENON_RETURN_IF_ERROR(visit(e.dst, next));
  }
  for (Node* node : graph.nodes()) {
    if (info.frame_of_node[node->id()] == -1) {
      return InvalidArgument("node '", node->name(), "' (", node->op(),
                             ") can never run: nothing outside its cycle feeds it");
    }
  }
  return info;
}

}  // namespace tenon
