// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/inlined_vector.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "runtime/execute/plan.h"
#include "runtime/execute/ready_node.h"

namespace tenon {

struct LoopFrame;

/// One iteration of one execution of a loop (or the root): the values in it, and how far each node
/// is.
struct LoopIteration {
  struct NodeState {
    int32_t pending = 0;
    int32_t dead_inputs = 0;  // of a Merge
    bool dead = false;
    bool live = false;     // a Merge got its value
    bool started = false;  // a Merge was handed out
  };
  LoopFrame* frame = nullptr;
  int64_t index = 0;
  int32_t running = 0;       // nodes handed out and not finished
  int32_t child_frames = 0;  // loops entered from here that go on
  std::vector<Value> slots;
  std::vector<NodeState> states;

  /// Empties the iteration, for another one of the same loop.
  void Clear();
};

/// One execution of a while loop.
struct LoopFrame {
  struct Waiting {
    int32_t node;
    Value value;
    bool dead;
  };
  int32_t plan_frame = 0;
  uint64_t id = 0;  // as rendezvous keys name it
  LoopIteration* parent = nullptr;
  int32_t pending_enters = 0;
  int64_t last_index = 0;  // of the youngest iteration
  std::map<int64_t, std::unique_ptr<LoopIteration>> iterations;
  std::vector<Waiting> invariants;  // constant Enters: for each new iteration too
  std::vector<Waiting> next;        // NextIteration values that wait for a free iteration
  std::vector<int32_t> dead_exits;  // Exits that were dead in the youngest iteration
  flat_hash_set<int32_t> left;      // Exits that have delivered a value
};

/// The values on their way in one step of a plan with control flow: tagged with frame and
/// iteration, in the manner of TensorFlow's executor. All bookkeeping is under one lock; kernels
/// run outside it.
///
/// A node runs when all its inputs came, and is dead when one of them is. A Merge runs at its first
/// live input, and is dead when all are. An Exit delivers the first live value that comes to it,
/// and no other: of iterations that run at once it may be a later one's. A dead one is delivered
/// when the loop has ended without a live one.
class FrameState {
 public:
  explicit FrameState(const ExecutionPlan& plan);
  ~FrameState();

  void Reset() {}
  void Clear() {}

  template <typename Push>
  void Start(Push push) {
    Ready ready;
    TakeRoots(&ready);
    for (const ReadyNode& r : ready) push(r);
  }

  Value* Inputs(const ReadyNode& r, const PlanNode& item) {
    return r.iteration->slots.data() + item.first_slot;
  }
  Value* OutputPlace(const PlanNode&, Value* room) { return room; }
  void DropInputs(const ReadyNode& r, const PlanNode& item) {
    EmptyAll(Inputs(r, item), item.num_inputs);
  }
  uint64_t FrameId(const ReadyNode& r) const { return r.iteration->frame->id; }
  int64_t IterationIndex(const ReadyNode& r) const { return r.iteration->index; }

  /// Does what PlainState::Propagate does.
  template <typename Alone, typename Push>
  void Propagate(const ReadyNode& r, const PlanNode& item, Value* outputs, Alone, Push push) {
    Ready ready;
    Finish(r, item, outputs, &ready);
    for (const ReadyNode& n : ready) push(n);
  }

 private:
  /// Few nodes have many consumers, and the memory of a vector costs as much as a small node.
  using Ready = absl::InlinedVector<ReadyNode, 8>;
  void TakeRoots(Ready* ready);
  void Finish(const ReadyNode& r, const PlanNode& item, Value* outputs, Ready* ready);

  LoopIteration* NewIteration(LoopFrame& frame, int64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  LoopFrame& EnterFrame(LoopIteration& parent, int32_t plan_frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Hands the outputs of plan node `node` to its consumers in `target`.
  void Deliver(int32_t node, Value* outputs, LoopIteration& target, Ready* ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DeliverOne(const LoopFrame::Waiting& w, LoopIteration& target, Ready* ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Activate(const PlanEdge& edge, Value* value, bool dead, LoopIteration& target, Ready* ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ActivateMerge(const PlanEdge& edge, Value* value, bool dead, LoopIteration& target,
                     Ready* ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NextIteration(LoopIteration& from, LoopFrame::Waiting value, Ready* ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartIteration(LoopFrame& frame, Ready* ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Ends the iterations from `index` on that are over, and the frame when it is.
  void Retire(LoopFrame* frame, int64_t index, Ready* ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// False when an iteration from `index` on has not ended yet.
  bool RetireIterations(LoopFrame& frame, int64_t index, Ready* ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ExecutionPlan& plan_;
  Mutex mu_;
  LoopFrame root_ ABSL_GUARDED_BY(mu_);
  flat_hash_map<std::pair<LoopIteration*, int32_t>, std::unique_ptr<LoopFrame>> frames_
      ABSL_GUARDED_BY(mu_);
  /// Iterations that are over, by the plan's frame, for later ones of a loop that goes on.
  std::vector<std::vector<std::unique_ptr<LoopIteration>>> spare_ ABSL_GUARDED_BY(mu_);
};

/// The number that stands for a loop in rendezvous keys: of the loop `name` entered in iteration
/// `parent_iteration` of frame `parent_id`. The formula is TensorFlow's, so that loops may span its
/// tasks and ours.
uint64_t LoopFrameId(uint64_t parent_id, int64_t parent_iteration, std::string_view name);

}  // namespace tenon
