// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace tenon {

struct LoopIteration;

/// A node whose inputs have all come.
struct ReadyNode {
  int32_t node;
  bool dead;                           // on a branch not taken
  LoopIteration* iteration = nullptr;  // null in steps without frames
};

/// The nodes one thread runs next, first in first out.
class ReadyQueue {
 public:
  bool empty() const { return head_ == nodes_.size(); }
  void push(ReadyNode node) { nodes_.push_back(node); }
  ReadyNode pop() {
    const ReadyNode node = nodes_[head_++];
    if (head_ == nodes_.size()) {
      nodes_.clear();
      head_ = 0;
    }
    return node;
  }

 private:
  std::vector<ReadyNode> nodes_;
  size_t head_ = 0;
};

}  // namespace tenon
