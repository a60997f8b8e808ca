// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/base/attributes.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/execute/plan.h"
#include "runtime/execute/ready_node.h"

namespace tenon {

/// The values on their way in one step of a plan without loops and merges: an input slot per edge
/// and a count per node of what it still waits for. Used again by later steps of the plan, for
/// which constants stay in their slots.
class PlainState {
 public:
  explicit PlainState(const ExecutionPlan& plan)
      : plan_(plan),
        constants_(plan.frames()[0].constants),
        slots_(plan.frames()[0].num_slots),
        pending_(plan.nodes().size()),
        dead_(plan.nodes().size()) {
    FillConstants(constants_, slots_.data());
  }

  /// Readies the state for the next step. `traced`: nodes that do nothing are run, too.
  void Reset(bool traced) {
    pass_through_ = !traced;
    std::copy(plan_.pending().begin(), plan_.pending().end(), pending_.begin());
    std::fill(dead_.begin(), dead_.end(), 0);
  }
  /// A step that has ended without an error leaves nothing behind.
  bool reusable() const { return true; }
  int64_t num_bytes() const {
    return static_cast<int64_t>(slots_.size() * sizeof(Value) +
                                pending_.size() * (sizeof(int32_t) + sizeof(uint8_t)));
  }

  template <typename Push>
  void Start(Push push) {
    for (const int32_t root : plan_.roots()) push(ReadyNode{root, false});
  }

  Value* Inputs(ReadyNode, const PlanNode& item) { return slots_.data() + item.first_slot; }
  /// Where a node is to put its outputs: where they are wanted, if that is one place, or `room`.
  Value* OutputPlace(const PlanNode& item, Value* room) {
    return item.output_slot < 0 ? room : &slots_[item.output_slot];
  }
  /// Takes away the inputs of a node that has run.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void DropInputs(ReadyNode, const PlanNode& item) {
    DropInputsOf(item, constants_, slots_.data());
  }

  /// An empty queue, for the thread that waits for the step: its memory is for the next one too.
  ReadyQueue& spare_queue() { return spare_queue_; }

  uint64_t FrameId(ReadyNode) const { return 0; }
  int64_t IterationIndex(ReadyNode) const { return 0; }

  /// Hands the outputs of a node to its consumers. `outputs` is null when the node is dead; an
  /// output without a value is dead by itself. Those in OutputPlace() stay there. `alone` says
  /// whether no other thread propagates meanwhile, and all that others did before is seen.
  template <typename Alone, typename Push>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Propagate(ReadyNode, const PlanNode& item, Value* outputs,
                                              Alone alone, const Push& push) {
    const PlanEdge* const edges = plan_.edges();
    for (int32_t i = item.edges_begin; i < item.edges_end; ++i) {
      const PlanEdge& e = edges[i];
      bool dead = outputs == nullptr;
      if (!dead && e.output != kControlSlot) {
        Value& value = outputs[e.output];
        if (!value.live()) {
          dead = true;
        } else if (item.output_slot >= 0) {
          // The value is where it is wanted.
        } else if (e.last) {
          static_assert(std::is_nothrow_move_constructible_v<Value>);
          std::destroy_at(&slots_[e.slot]);
          std::construct_at(&slots_[e.slot], std::move(value));
        } else {
          slots_[e.slot] = value;
        }
      }
      ReadyNode ready{e.dst, dead};
      if (!e.only || e.to_passage) {
        ready = Arrive(e, dead, alone());
        if (ready.node() < 0) continue;
      }
      push(ready);
    }
  }

 private:
  /// The node that is ready when something has come by `edge`: its consumer, or the next behind
  /// nodes that do nothing, which are not worth their way through a queue. No node when that one
  /// has to wait, or there is none.
  ABSL_ATTRIBUTE_NOINLINE ReadyNode Arrive(const PlanEdge& edge, bool dead, bool alone) {
    constexpr ReadyNode kNone{-1, false};
    // The loop of the executor looks at the clock and at cancellations.
    constexpr int kMostPassages = 100;
    const PlanEdge* e = &edge;
    for (int passages = 0;; ++passages) {
      if (!e->only) {
        const std::atomic_ref any_dead(dead_[e->dst]);
        if (dead) any_dead.store(1, std::memory_order_relaxed);
        if (!CountDown(e->dst, alone)) return kNone;
        dead = any_dead.load(std::memory_order_relaxed) != 0;
      }
      const bool passes = e->to_passage && pass_through_ && passages < kMostPassages;
      if (!passes) return ReadyNode{e->dst, dead};
      const PlanNode& passage = plan_.node(e->dst);
      if (passage.edges_begin == passage.edges_end) return kNone;
      e = &plan_.edges()[passage.edges_begin];
    }
  }

  bool CountDown(int32_t node, bool alone) {
    const std::atomic_ref count(pending_[node]);
    if (!alone) return count.fetch_sub(1, std::memory_order_acq_rel) == 1;
    // A third of the time.
    const int32_t left = count.load(std::memory_order_relaxed) - 1;
    count.store(left, std::memory_order_relaxed);
    return left == 0;
  }

  const ExecutionPlan& plan_;
  const std::vector<PlanConstant>& constants_;
  std::vector<Value> slots_;
  std::vector<int32_t> pending_;
  std::vector<uint8_t> dead_;
  ReadyQueue spare_queue_;
  bool pass_through_ = true;
};

/// The states of runs that have ended, for the next runs of the plan: one, and as many more as a
/// bounded amount of memory holds. Thread-safe.
template <typename State>
class IdleStates {
 public:
  /// `plan` must outlive this.
  explicit IdleStates(const ExecutionPlan& plan) : plan_(plan) {}

  /// A state in which nothing has run, for a step that is `traced` or not.
  std::unique_ptr<State> Take(bool traced) {
    std::unique_ptr<State> state;
    {
      MutexLock lock(mu_);
      if (!states_.empty()) {
        state = std::move(states_.back());
        states_.pop_back();
        num_bytes_ -= state->num_bytes();
      }
      // Runs that end find room, and cannot fail for the want of it.
      ++num_running_;
      if (states_.capacity() < num_running_) states_.reserve(2 * num_running_);
    }
    if (state == nullptr) state = std::make_unique<State>(plan_);
    state->Reset(traced);
    return state;
  }

  /// Keeps the state of a run that has ended with `status`, unless it left something behind.
  void GiveBack(std::unique_ptr<State> state, const Status& status) {
    const bool reusable = status.ok() && state->reusable();
    const int64_t bytes = state->num_bytes();
    MutexLock lock(mu_);
    --num_running_;
    if (!reusable || (!states_.empty() && num_bytes_ + bytes > kMostBytes)) return;
    num_bytes_ += bytes;
    states_.push_back(std::move(state));
  }

 private:
  static constexpr int64_t kMostBytes = 64 << 20;

  const ExecutionPlan& plan_;
  Mutex mu_;
  size_t num_running_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t num_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::unique_ptr<State>> states_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
