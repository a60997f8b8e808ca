// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/inlined_vector.h>

#include <memory>
#include <utility>
#include <vector>

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

  explicit LoopIteration(const ExecutionPlan::Frame& layout);
  /// Makes it as new, for another iteration of the loop.
  void Clear();

  const ExecutionPlan::Frame& layout;
  LoopFrame* frame = nullptr;
  int64_t index = 0;
  int32_t running = 0;       // nodes handed out and not finished
  int32_t waiting = 0;       // nodes to which some of their inputs have come
  int32_t child_frames = 0;  // loops entered from here that go on
  std::vector<Value> slots;  // those of constants are always filled
  std::vector<NodeState> states;
  std::vector<LoopFrame*> children;  // by ExecutionPlan::Frame::place; null: not entered
};

/// The iterations of a loop that have not ended, which follow each other.
class IterationRing {
 public:
  bool empty() const { return oldest_ == end_; }
  int64_t size() const { return end_ - oldest_; }
  int64_t oldest() const { return oldest_; }
  bool contains(int64_t index) const { return oldest_ <= index && index < end_; }
  /// REQUIRES: contains(index).
  LoopIteration& at(int64_t index) const { return *places_[index & mask_]; }
  /// Adds the next one, and numbers it.
  LoopIteration& Add(std::unique_ptr<LoopIteration> iteration);
  /// REQUIRES: not empty().
  std::unique_ptr<LoopIteration> TakeOldest() { return std::move(places_[oldest_++ & mask_]); }
  /// Numbers from 0 again. REQUIRES: empty().
  void Restart() { oldest_ = end_ = 0; }

 private:
  std::vector<std::unique_ptr<LoopIteration>> places_;  // a power of two of them
  int64_t mask_ = -1;
  int64_t oldest_ = 0;
  int64_t end_ = 0;
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
  IterationRing iterations;
  std::vector<Waiting> invariants;  // constant Enters: for each new iteration too
  std::vector<Waiting> next;        // NextIteration values that wait for a free iteration
  std::vector<int32_t> dead_exits;  // Exits that were dead in the youngest iteration
  std::vector<bool> left;           // by PlanNode::state: an Exit that has delivered a value
};

/// The values on their way in one step of a plan with control flow: tagged with frame and
/// iteration, in the manner of TensorFlow's executor. All bookkeeping is under one lock, which a
/// thread that is alone at work on the step does without; kernels run outside it. Used again by
/// later steps of the plan, with the memory of iterations that are over.
///
/// A node runs when all its inputs came, and is dead when one of them is. A Merge runs at its first
/// live input, and is dead when all are. An Exit delivers the first live value that comes to it,
/// and no other: of iterations that run at once it may be a later one's. A dead one is delivered
/// when the loop has ended without a live one.
class FrameState {
 public:
  explicit FrameState(const ExecutionPlan& plan);

  /// Readies the state for the next step.
  void Reset(bool /*traced*/) { root_.iterations.at(0).Clear(); }
  /// Whether the step that has ended left nothing behind: neither values nor loops that go on.
  bool reusable() const { return root_.iterations.at(0).waiting == 0 && running_frames_ == 0; }
  /// The bytes of iterations and loops that are over and kept, about.
  int64_t num_bytes() const { return spare_bytes_ + frames_bytes_; }

  template <typename Push>
  void Start(Push push) {
    Ready ready;
    TakeRoots(&ready);
    for (ReadyNode r : ready) push(r);
  }

  Value* Inputs(ReadyNode r, const PlanNode& item) {
    return r.iteration()->slots.data() + item.first_slot;
  }
  Value* OutputPlace(const PlanNode&, Value* room) { return room; }
  void DropInputs(ReadyNode r, const PlanNode& item) {
    DropInputsOf(item, r.iteration()->layout.constants, r.iteration()->slots.data());
  }
  /// An empty queue, for the thread that waits for the step: its memory is for the next one too.
  ReadyQueue& spare_queue() { return spare_queue_; }

  uint64_t FrameId(ReadyNode r) const { return r.iteration()->frame->id; }
  int64_t IterationIndex(ReadyNode r) const { return r.iteration()->index; }

  /// Does what PlainState::Propagate does.
  template <typename Alone, typename Push>
  void Propagate(ReadyNode r, const PlanNode& item, Value* outputs, Alone alone, const Push& push) {
    Ready ready;
    Finish(r, item, outputs, alone(), &ready);
    for (const ReadyNode& n : ready) push(n);
  }

 private:
  /// Few nodes have many consumers, and the memory of a vector costs as much as a small node.
  using Ready = absl::InlinedVector<ReadyNode, 32>;
  void TakeRoots(Ready* ready);
  void Finish(ReadyNode r, const PlanNode& item, Value* outputs, bool alone, Ready* ready);
  void FinishEnter(ReadyNode r, const PlanNode& item, Value* outputs, Ready* ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  LoopIteration& NewIteration(LoopFrame& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  LoopFrame& EnterFrame(LoopIteration& parent, int32_t plan_frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Whether the last consumer of a value takes it away.
  enum class Way { kMove, kCopy };
  /// Hands the outputs of plan node `node` to its consumers in `target`.
  template <Way kWay = Way::kMove>
  void Deliver(int32_t node, Value* outputs, LoopIteration& target, Ready* ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  template <Way kWay = Way::kMove>
  void DeliverOne(LoopFrame::Waiting& w, LoopIteration& target, Ready* ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  template <Way kWay>
  void Activate(const PlanEdge& edge, Value* value, bool dead, LoopIteration& target, Ready* ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  template <Way kWay>
  void ActivateMerge(const PlanEdge& edge, Value* value, bool dead, LoopIteration& target,
                     Ready* ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  template <Way kWay>
  static void Store(const PlanEdge& edge, Value* value, LoopIteration& target);
  void NextIteration(LoopIteration& from, LoopFrame::Waiting value, Ready* ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartIteration(LoopFrame& frame, Ready* ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Ends the iterations from `index` on that are over, and the frame when it is.
  void Retire(LoopFrame* frame, int64_t index, Ready* ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// False when an iteration from `index` on has not ended yet.
  bool RetireIterations(LoopFrame& frame, int64_t index, Ready* ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Keep(std::unique_ptr<LoopIteration> iteration, int32_t plan_frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ExecutionPlan& plan_;
  Mutex mu_;
  LoopFrame root_;  // between steps nobody else uses it, and what is not guarded by the lock
  /// All executions of loops, those that are over too.
  std::vector<std::unique_ptr<LoopFrame>> frames_ ABSL_GUARDED_BY(mu_);
  int64_t frames_bytes_ = 0;
  int64_t running_frames_ = 0;
  /// Loops and iterations that are over, by the plan's frame, for later ones of it.
  struct Spare {
    std::vector<LoopFrame*> frames;
    std::vector<std::unique_ptr<LoopIteration>> iterations;
  };
  std::vector<Spare> spare_ ABSL_GUARDED_BY(mu_);
  int64_t spare_bytes_ = 0;
  ReadyQueue spare_queue_;
};

}  // namespace tenon
