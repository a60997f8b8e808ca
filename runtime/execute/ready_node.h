// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/base/attributes.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/execute/plan.h"
#include "runtime/execute/trace.h"

// Nodes whose turn it is: the queue of them, and their inputs and outputs.

namespace tenon {

struct LoopIteration;

/// A node whose inputs have all come. Two words, each written and read as one: processors wait for
/// what is read in other pieces than it has just been written in.
class ReadyNode {
 public:
  constexpr ReadyNode() : ReadyNode(-1, false) {}
  /// `dead`: on a branch not taken. `iteration`: null in steps without frames.
  constexpr ReadyNode(int32_t node, bool dead, LoopIteration* iteration = nullptr)
      : node_and_dead_(static_cast<uint32_t>(node) | uint64_t{dead} << 32), iteration_(iteration) {}

  /// A negative number stands for no node.
  int32_t node() const { return static_cast<int32_t>(node_and_dead_); }
  bool dead() const { return node_and_dead_ >> 32 != 0; }
  LoopIteration* iteration() const { return iteration_; }

 private:
  uint64_t node_and_dead_;
  LoopIteration* iteration_;
};

/// The nodes one thread runs next, first in first out.
class ReadyQueue {
 public:
  bool empty() const { return head_ == end_; }
  void swap(ReadyQueue& other) {
    places_.swap(other.places_);
    std::swap(head_, other.head_);
    std::swap(end_, other.end_);
  }
  void push(ReadyNode node) {
    if (end_ == places_.size()) [[unlikely]]
      Grow();
    places_[end_++] = node;
  }
  ReadyNode pop() {
    const ReadyNode node = places_[head_++];
    if (head_ == end_) head_ = end_ = 0;
    return node;
  }

 private:
  /// Out of line: `push` is part of the executor's loop.
  ABSL_ATTRIBUTE_NOINLINE void Grow() { places_.resize(std::max<size_t>(8, 2 * places_.size())); }

  std::vector<ReadyNode> places_;
  size_t head_ = 0;
  size_t end_ = 0;
};

/// Takes a value away. An empty one that is assigned would be made elsewhere first, and be read in
/// other pieces than it has just been written in, for which processors wait.
inline void MakeEmpty(Value& value) {
  std::destroy_at(&value);
  std::construct_at(&value);
}
inline void EmptyAll(Value* values, int count) {
  for (int i = 0; i < count; ++i) MakeEmpty(values[i]);
}

inline void FillConstants(const std::vector<PlanConstant>& constants, Value* slots) {
  for (const PlanConstant& c : constants) slots[c.slot].tensor = *c.value;
}

/// Gives a constant back to its slot, out of which a kernel has taken it. Out of line: few do.
ABSL_ATTRIBUTE_NOINLINE inline void TakeBackConstant(const std::vector<PlanConstant>& constants,
                                                     int32_t slot, Value* slots) {
  const auto before = [](const PlanConstant& c, int32_t s) { return c.slot < s; };
  slots[slot].tensor = *std::lower_bound(constants.begin(), constants.end(), slot, before)->value;
}

/// Takes away the inputs of a node that has run, but for constants.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void DropInputsOf(const PlanNode& item,
                                                      const std::vector<PlanConstant>& constants,
                                                      Value* slots) {
  Value* const inputs = slots + item.first_slot;
  for (int i = 0; i < item.num_inputs; ++i) {
    if (!item.input_is_constant(i)) {
      MakeEmpty(inputs[i]);
    } else if (!inputs[i].tensor.buffer()) {
      TakeBackConstant(constants, item.first_slot + i, slots);
    }
  }
}

/// A node's inputs, for a kernel that outlives its turn. Constants stay where they are, too; other
/// places are empty then.
inline std::vector<Value> TakeInputs(const PlanNode& item, Value* from) {
  std::vector<Value> inputs(item.num_inputs);
  for (int i = 0; i < item.num_inputs; ++i) {
    if (item.input_is_constant(i)) {
      inputs[i] = from[i];
    } else {
      inputs[i] = std::move(from[i]);
      MakeEmpty(from[i]);
    }
  }
  return inputs;
}

/// Reads the references that node `node` takes as values; FailedPrecondition of a variable that has
/// none.
inline Status ReadRefs(const ExecutionPlan& plan, int32_t node, Value* inputs) {
  for (int i = 0; i < plan.node(node).num_inputs; ++i) {
    if (inputs[i].ref == nullptr || plan.input_is_ref_arg(node, i)) continue;
    inputs[i].tensor = inputs[i].ref->Read();
    if (!inputs[i].tensor.valid()) {
      return FailedPrecondition("Attempting to use uninitialized value ", plan.input_name(node, i));
    }
    inputs[i].ref = nullptr;
  }
  return OkStatus();
}

/// The outputs of a node as a trace tells of them.
inline std::vector<NodeTrace::OutputInfo> DescribeOutputs(const PlanNode& item,
                                                          const Value* outputs) {
  std::vector<NodeTrace::OutputInfo> infos;
  for (int i = 0; i < item.num_outputs; ++i) {
    const Tensor& t = outputs[i].tensor;
    if (t.valid()) infos.push_back({t.dtype(), t.shape(), static_cast<int64_t>(t.num_bytes())});
  }
  return infos;
}

/// Internal when a kernel has left an output without a value that it owes one.
inline Status CheckOutputs(const PlanNode& item, const KernelContext& context,
                           const Value* outputs) {
  if (item.flow == FlowKind::kSwitch || context.is_output_dead) return OkStatus();
  for (int i = 0; i < item.num_outputs; ++i) {
    if (!outputs[i].live()) [[unlikely]] {
      return Internal("the kernel left output ", i, " without a value");
    }
  }
  return OkStatus();
}

}  // namespace tenon
