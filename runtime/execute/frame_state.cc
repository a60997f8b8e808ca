// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/frame_state.h"

#include <algorithm>

namespace tenon {
namespace {

/// The most bytes of iterations that are over which a state keeps.
constexpr int64_t kMaxSpareBytes = 32 << 20;

int64_t BytesOf(const ExecutionPlan::Frame& layout) {
  return int64_t{sizeof(LoopIteration)} + layout.num_slots * int64_t{sizeof(Value)} +
         layout.num_nodes * int64_t{sizeof(LoopIteration::NodeState)} +
         layout.num_children * int64_t{sizeof(LoopFrame*)};
}

int64_t BytesOfFrame(const ExecutionPlan::Frame& layout) {
  return int64_t{sizeof(LoopFrame)} + layout.num_nodes / 8 +
         layout.info.parallel_iterations * int64_t{sizeof(void*)};
}

/// Holds a Mutex for its scope, unless nobody else can want it.
class ABSL_SCOPED_LOCKABLE MutexLockUnless {
 public:
  MutexLockUnless(bool alone, Mutex& mu)
      ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) ABSL_NO_THREAD_SAFETY_ANALYSIS : mu_(alone ? nullptr : &mu) {
    if (mu_ != nullptr) mu_->Lock();
  }
  ~MutexLockUnless() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (mu_ != nullptr) mu_->Unlock();
  }
  MutexLockUnless(const MutexLockUnless&) = delete;
  MutexLockUnless& operator=(const MutexLockUnless&) = delete;

 private:
  Mutex* const mu_;
};

}  // namespace

LoopIteration::LoopIteration(const ExecutionPlan::Frame& layout)
    : layout(layout),
      slots(layout.num_slots),
      states(layout.num_nodes),
      children(layout.num_children) {
  FillConstants(layout.constants, slots.data());
}

void LoopIteration::Clear() {
  if (waiting != 0) [[unlikely]] {
    EmptyAll(slots.data(), static_cast<int>(slots.size()));
    FillConstants(layout.constants, slots.data());
  }
  std::fill(states.begin(), states.end(), NodeState());
  running = 0;
  waiting = 0;
  child_frames = 0;
}

LoopIteration& IterationRing::Add(std::unique_ptr<LoopIteration> iteration) {
  const auto room = static_cast<int64_t>(places_.size());
  if (size() == room) {
    std::vector<std::unique_ptr<LoopIteration>> more(std::max<int64_t>(2, 2 * room));
    const auto more_mask = static_cast<int64_t>(more.size()) - 1;
    for (int64_t i = oldest_; i < end_; ++i) more[i & more_mask] = std::move(places_[i & mask_]);
    places_.swap(more);
    mask_ = more_mask;
  }
  iteration->index = end_;
  std::unique_ptr<LoopIteration>& place = places_[end_++ & mask_];
  place = std::move(iteration);
  return *place;
}

FrameState::FrameState(const ExecutionPlan& plan) : plan_(plan), spare_(plan.frames().size()) {
  MutexLock lock(mu_);
  NewIteration(root_);
}

void FrameState::TakeRoots(Ready* ready) {
  MutexLock lock(mu_);
  LoopIteration& iteration = root_.iterations.at(0);
  for (const int32_t root : plan_.roots()) {
    ++iteration.running;
    ready->emplace_back(root, false, &iteration);
  }
}

LoopIteration& FrameState::NewIteration(LoopFrame& frame) {
  std::unique_ptr<LoopIteration> iteration;
  auto& spare = spare_[frame.plan_frame].iterations;
  if (spare.empty()) {
    iteration = std::make_unique<LoopIteration>(plan_.frames()[frame.plan_frame]);
  } else {
    iteration = std::move(spare.back());
    spare.pop_back();
    spare_bytes_ -= BytesOf(iteration->layout);
  }
  iteration->frame = &frame;
  return frame.iterations.Add(std::move(iteration));
}

void FrameState::Keep(std::unique_ptr<LoopIteration> iteration, int32_t plan_frame) {
  const int64_t bytes = BytesOf(iteration->layout);
  auto& spare = spare_[plan_frame].iterations;
  if (!spare.empty() && spare_bytes_ + bytes > kMaxSpareBytes) return;
  iteration->Clear();
  spare_bytes_ += bytes;
  spare.push_back(std::move(iteration));
}

LoopFrame& FrameState::EnterFrame(LoopIteration& parent, int32_t plan_frame) {
  const ExecutionPlan::Frame& layout = plan_.frames()[plan_frame];
  LoopFrame*& place = parent.children[layout.place];
  if (place != nullptr) return *place;
  auto& spare = spare_[plan_frame].frames;
  if (spare.empty()) {
    LoopFrame& made = *frames_.emplace_back(std::make_unique<LoopFrame>());
    made.plan_frame = plan_frame;
    frames_bytes_ += BytesOfFrame(layout);
    spare.push_back(&made);
  }
  LoopFrame& frame = *spare.back();
  frame.id = LoopFrameId(parent.frame->id, parent.index, layout.name_hash);
  frame.parent = &parent;
  frame.pending_enters = layout.info.num_enters;
  frame.last_index = 0;
  frame.left.assign(layout.num_nodes, false);
  NewIteration(frame);
  // An allocation above may fail, and other threads must not find half a frame then.
  spare.pop_back();
  place = &frame;
  ++parent.child_frames;
  ++running_frames_;
  return frame;
}

void FrameState::Finish(ReadyNode r, const PlanNode& item, Value* outputs, bool alone,
                        Ready* ready) {
  const MutexLockUnless lock(alone, mu_);
  LoopIteration& here = *r.iteration();
  LoopFrame* frame = here.frame;
  const auto dead = [&] {
    return outputs == nullptr || (item.num_outputs > 0 && !outputs[0].live());
  };
  switch (item.flow) {
    case FlowKind::kEnter:
    case FlowKind::kConstantEnter:
      FinishEnter(r, item, dead() ? nullptr : outputs, ready);
      break;
    case FlowKind::kExit:
      if (!dead()) {
        // The consumers' other inputs are gone when they have run.
        if (!frame->left[item.state]) Deliver(r.node(), outputs, *frame->parent, ready);
        frame->left[item.state] = true;
      } else if (here.index == frame->last_index) {
        frame->dead_exits.push_back(r.node());
      }
      break;
    case FlowKind::kNextIteration:
      if (!dead()) NextIteration(here, {r.node(), std::move(outputs[0]), false}, ready);
      break;
    default:
      Deliver(r.node(), outputs, here, ready);
  }
  if (--here.running == 0) Retire(frame, here.index, ready);
}

void FrameState::FinishEnter(ReadyNode r, const PlanNode& item, Value* outputs, Ready* ready) {
  LoopFrame& child = EnterFrame(*r.iteration(), item.child_frame);
  const bool dead = outputs == nullptr;
  LoopFrame::Waiting value{r.node(), dead ? Value() : std::move(outputs[0]), dead};
  if (item.flow == FlowKind::kConstantEnter) {
    for (int64_t i = child.iterations.oldest(); i <= child.last_index; ++i) {
      DeliverOne<Way::kCopy>(value, child.iterations.at(i), ready);
    }
    child.invariants.push_back(std::move(value));
  } else {
    DeliverOne(value, child.iterations.at(0), ready);
  }
  if (--child.pending_enters == 0) Retire(&child, 0, ready);
}

template <FrameState::Way kWay>
void FrameState::Deliver(int32_t node, Value* outputs, LoopIteration& target, Ready* ready) {
  const PlanNode& item = plan_.node(node);
  const PlanEdge* const edges = plan_.edges();
  for (int32_t i = item.edges_begin; i < item.edges_end; ++i) {
    const PlanEdge& e = edges[i];
    if (e.output == kControlSlot || outputs == nullptr) {
      Activate<kWay>(e, nullptr, outputs == nullptr, target, ready);
    } else {
      Value& value = outputs[e.output];
      Activate<kWay>(e, &value, !value.live(), target, ready);
    }
  }
}

template <FrameState::Way kWay>
void FrameState::DeliverOne(LoopFrame::Waiting& w, LoopIteration& target, Ready* ready) {
  Deliver<kWay>(w.node, w.dead ? nullptr : &w.value, target, ready);
}

template <FrameState::Way kWay>
void FrameState::Store(const PlanEdge& edge, Value* value, LoopIteration& target) {
  Value& slot = target.slots[edge.slot];
  if (kWay == Way::kMove && edge.last) {
    std::destroy_at(&slot);
    std::construct_at(&slot, std::move(*value));
  } else {
    slot = *value;
  }
}

template <FrameState::Way kWay>
void FrameState::Activate(const PlanEdge& edge, Value* value, bool dead, LoopIteration& target,
                          Ready* ready) {
  const PlanNode& dst = plan_.node(edge.dst);
  if (dst.flow == FlowKind::kMerge) return ActivateMerge<kWay>(edge, value, dead, target, ready);
  if (!dead && edge.slot != kControlSlot) Store<kWay>(edge, value, target);
  bool runs_dead = dead;
  if (!edge.only) {
    LoopIteration::NodeState& state = target.states[dst.state];
    state.dead |= dead;
    runs_dead = state.dead;
    // Counting up from zero spares writing every node's count into each new iteration.
    const bool first = state.pending == 0;
    target.waiting += first;
    if (++state.pending < dst.pending) return;
    --target.waiting;
  }
  ++target.running;
  ready->emplace_back(edge.dst, runs_dead && dst.flow != FlowKind::kControlTrigger, &target);
}

template <FrameState::Way kWay>
void FrameState::ActivateMerge(const PlanEdge& edge, Value* value, bool dead, LoopIteration& target,
                               Ready* ready) {
  const PlanNode& dst = plan_.node(edge.dst);
  LoopIteration::NodeState& state = target.states[dst.state];
  if (state.started) return;
  if (edge.slot == kControlSlot) {
    ++state.pending;
  } else if (dead) {
    ++state.dead_inputs;
  } else if (!state.live) {
    state.live = true;
    ++target.waiting;
    Store<kWay>(edge, value, target);
  }
  const bool all_dead = !state.live && state.dead_inputs == dst.merge_inputs;
  if (state.pending < dst.pending || !(state.live || all_dead)) return;
  state.started = true;
  target.waiting -= state.live;
  ++target.running;
  ready->emplace_back(edge.dst, all_dead, &target);
}

void FrameState::NextIteration(LoopIteration& from, LoopFrame::Waiting value, Ready* ready) {
  LoopFrame& frame = *from.frame;
  if (from.index < frame.last_index) {
    return DeliverOne(value, frame.iterations.at(from.index + 1), ready);
  }
  frame.next.push_back(std::move(value));
  const int limit = plan_.frames()[frame.plan_frame].info.parallel_iterations;
  if (frame.iterations.size() < limit) StartIteration(frame, ready);
}

void FrameState::StartIteration(LoopFrame& frame, Ready* ready) {
  LoopIteration& next = NewIteration(frame);
  frame.last_index = next.index;
  frame.dead_exits.clear();
  for (LoopFrame::Waiting& w : frame.invariants) DeliverOne<Way::kCopy>(w, next, ready);
  for (LoopFrame::Waiting& w : frame.next) DeliverOne(w, next, ready);
  frame.next.clear();
}

void FrameState::Retire(LoopFrame* frame, int64_t index, Ready* ready) {
  // Not by recursion: what ends the innermost loop may end any number of those around it.
  while (frame->parent != nullptr) {  // the root ends with the step
    if (!RetireIterations(*frame, index, ready)) return;
    if (!frame->iterations.empty() || frame->pending_enters > 0) return;
    LoopIteration& parent = *frame->parent;
    for (const int32_t exit : frame->dead_exits) {
      if (!frame->left[plan_.node(exit).state]) Deliver(exit, nullptr, parent, ready);
    }
    frame->iterations.Restart();
    frame->invariants.clear();
    frame->dead_exits.clear();
    parent.children[plan_.frames()[frame->plan_frame].place] = nullptr;
    spare_[frame->plan_frame].frames.push_back(frame);
    --running_frames_;
    --parent.child_frames;
    if (parent.running != 0) return;
    frame = parent.frame;
    index = parent.index;
  }
}

bool FrameState::RetireIterations(LoopFrame& frame, int64_t index, Ready* ready) {
  for (; frame.iterations.contains(index); ++index) {
    const LoopIteration& iteration = frame.iterations.at(index);
    const bool earlier = index != frame.iterations.oldest();
    if (iteration.running > 0 || iteration.child_frames > 0 || earlier ||
        (index == 0 && frame.pending_enters > 0)) {
      return false;
    }
    Keep(frame.iterations.TakeOldest(), frame.plan_frame);
    const int limit = plan_.frames()[frame.plan_frame].info.parallel_iterations;
    if (!frame.next.empty() && frame.iterations.size() < limit) StartIteration(frame, ready);
  }
  return true;
}

}  // namespace tenon
