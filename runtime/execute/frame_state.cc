// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/frame_state.h"

#include <cstring>

namespace tenon {
namespace {

/// The 64-bit hash of frame names (a Murmur2 variant).
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

uint64_t LoopFrameId(uint64_t parent_id, int64_t parent_iteration, std::string_view name) {
  return CombineHashes(parent_id,
                       CombineHashes(static_cast<uint64_t>(parent_iteration), Hash64(name)));
}

void LoopIteration::Clear() {
  for (Value& v : slots) {
    if (v.live()) MakeEmpty(v);
  }
  std::fill(states.begin(), states.end(), NodeState());
  running = 0;
  child_frames = 0;
}

FrameState::FrameState(const ExecutionPlan& plan) : plan_(plan), spare_(plan.frames().size()) {
  MutexLock lock(mu_);
  NewIteration(root_, 0);
}

FrameState::~FrameState() = default;

void FrameState::TakeRoots(Ready* ready) {
  MutexLock lock(mu_);
  LoopIteration* iteration = root_.iterations.at(0).get();
  for (const int32_t root : plan_.roots()) {
    ++iteration->running;
    ready->push_back({root, false, iteration});
  }
}

LoopIteration* FrameState::NewIteration(LoopFrame& frame, int64_t index) {
  std::unique_ptr<LoopIteration> iteration;
  auto& spare = spare_[frame.plan_frame];
  if (spare.empty()) {
    const ExecutionPlan::Frame& layout = plan_.frames()[frame.plan_frame];
    iteration = std::make_unique<LoopIteration>();
    iteration->slots.resize(layout.num_slots);
    iteration->states.resize(layout.num_nodes);
  } else {
    iteration = std::move(spare.back());
    spare.pop_back();
  }
  iteration->frame = &frame;
  iteration->index = index;
  LoopIteration* added = iteration.get();
  frame.iterations.emplace(index, std::move(iteration));
  return added;
}

LoopFrame& FrameState::EnterFrame(LoopIteration& parent, int32_t plan_frame) {
  auto [it, added] = frames_.try_emplace({&parent, plan_frame});
  if (added) {
    it->second = std::make_unique<LoopFrame>();
    LoopFrame& frame = *it->second;
    const FrameInfo::Frame& info = plan_.frames()[plan_frame].info;
    frame.plan_frame = plan_frame;
    frame.id = LoopFrameId(parent.frame->id, parent.index, info.name);
    frame.parent = &parent;
    frame.pending_enters = info.num_enters;
    ++parent.child_frames;
    NewIteration(frame, 0);
  }
  return *it->second;
}

void FrameState::Finish(const ReadyNode& r, const PlanNode& item, Value* outputs, Ready* ready) {
  MutexLock lock(mu_);
  LoopIteration& here = *r.iteration;
  LoopFrame* frame = here.frame;
  const bool dead = outputs == nullptr || (item.num_outputs > 0 && !outputs[0].live());
  switch (item.flow) {
    case FlowKind::kEnter:
    case FlowKind::kConstantEnter: {
      LoopFrame& child = EnterFrame(here, item.child_frame);
      LoopFrame::Waiting value{r.node, dead ? Value() : outputs[0], dead};
      if (item.flow == FlowKind::kConstantEnter) {
        for (auto& [index, iteration] : child.iterations) DeliverOne(value, *iteration, ready);
        child.invariants.push_back(std::move(value));
      } else {
        DeliverOne(value, *child.iterations.at(0), ready);
      }
      --child.pending_enters;
      Retire(&child, 0, ready);
      break;
    }
    case FlowKind::kExit:
      if (!dead) {
        // The consumers' other inputs are gone when they have run.
        if (frame->left.insert(r.node).second) Deliver(r.node, outputs, *frame->parent, ready);
      } else if (here.index == frame->last_index) {
        frame->dead_exits.push_back(r.node);
      }
      break;
    case FlowKind::kNextIteration:
      if (!dead) NextIteration(here, {r.node, std::move(outputs[0]), false}, ready);
      break;
    default:
      Deliver(r.node, outputs, here, ready);
  }
  if (--here.running == 0) Retire(frame, here.index, ready);
}

void FrameState::Deliver(int32_t node, Value* outputs, LoopIteration& target, Ready* ready) {
  const PlanNode& item = plan_.node(node);
  for (int32_t i = item.edges_begin; i < item.edges_end; ++i) {
    const PlanEdge& e = plan_.edges()[i];
    if (e.output == kControlSlot || outputs == nullptr) {
      Activate(e, nullptr, outputs == nullptr, target, ready);
    } else {
      Value& value = outputs[e.output];
      Activate(e, &value, !value.live(), target, ready);
    }
  }
}

void FrameState::DeliverOne(const LoopFrame::Waiting& w, LoopIteration& target, Ready* ready) {
  Value copy = w.value;
  Deliver(w.node, w.dead ? nullptr : &copy, target, ready);
}

void FrameState::Activate(const PlanEdge& edge, Value* value, bool dead, LoopIteration& target,
                          Ready* ready) {
  const PlanNode& dst = plan_.node(edge.dst);
  if (dst.flow == FlowKind::kMerge) return ActivateMerge(edge, value, dead, target, ready);
  LoopIteration::NodeState& state = target.states[dst.state];
  if (dead) {
    state.dead = true;
  } else if (edge.slot != kControlSlot) {
    Value& slot = target.slots[edge.slot];
    if (edge.last) {
      std::destroy_at(&slot);
      std::construct_at(&slot, std::move(*value));
    } else {
      slot = *value;
    }
  }
  // Counting up from zero spares writing every node's count into each new iteration.
  if (++state.pending < dst.pending) return;
  ++target.running;
  const bool runs_dead = state.dead && dst.flow != FlowKind::kControlTrigger;
  ready->push_back({edge.dst, runs_dead, &target});
}

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
    target.slots[edge.slot] = *value;
  }
  const bool all_dead = !state.live && state.dead_inputs == dst.merge_inputs;
  if (state.pending < dst.pending || !(state.live || all_dead)) return;
  state.started = true;
  ++target.running;
  ready->push_back({edge.dst, all_dead, &target});
}

void FrameState::NextIteration(LoopIteration& from, LoopFrame::Waiting value, Ready* ready) {
  LoopFrame& frame = *from.frame;
  if (from.index < frame.last_index) {
    DeliverOne(value, *frame.iterations.at(from.index + 1), ready);
    return;
  }
  frame.next.push_back(std::move(value));
  const int limit = plan_.frames()[frame.plan_frame].info.parallel_iterations;
  if (static_cast<int>(frame.iterations.size()) < limit) StartIteration(frame, ready);
}

void FrameState::StartIteration(LoopFrame& frame, Ready* ready) {
  LoopIteration* next = NewIteration(frame, ++frame.last_index);
  frame.dead_exits.clear();
  for (const LoopFrame::Waiting& w : frame.invariants) DeliverOne(w, *next, ready);
  std::vector<LoopFrame::Waiting> values;
  values.swap(frame.next);
  for (const LoopFrame::Waiting& w : values) DeliverOne(w, *next, ready);
}

void FrameState::Retire(LoopFrame* frame, int64_t index, Ready* ready) {
  // Not by recursion: what ends the innermost loop may end any number of those around it.
  while (frame->parent != nullptr) {  // the root ends with the step
    if (!RetireIterations(*frame, index, ready)) return;
    if (!frame->iterations.empty() || frame->pending_enters > 0) return;
    LoopIteration& parent = *frame->parent;
    const int32_t plan_frame = frame->plan_frame;
    for (const int32_t exit : frame->dead_exits) {
      if (!frame->left.contains(exit)) Deliver(exit, nullptr, parent, ready);
    }
    frames_.erase({&parent, plan_frame});
    if (parent.frame == &root_) spare_[plan_frame].clear();
    --parent.child_frames;
    if (parent.running != 0) return;
    frame = parent.frame;
    index = parent.index;
  }
}

bool FrameState::RetireIterations(LoopFrame& frame, int64_t index, Ready* ready) {
  for (auto it = frame.iterations.find(index); it != frame.iterations.end();
       it = frame.iterations.find(++index)) {
    const LoopIteration& iteration = *it->second;
    const bool earlier = it != frame.iterations.begin();
    if (iteration.running > 0 || iteration.child_frames > 0 || earlier ||
        (index == 0 && frame.pending_enters > 0)) {
      return false;
    }
    it->second->Clear();
    spare_[frame.plan_frame].push_back(std::move(it->second));
    frame.iterations.erase(it);
    const int limit = plan_.frames()[frame.plan_frame].info.parallel_iterations;
    if (!frame.next.empty() && static_cast<int>(frame.iterations.size()) < limit) {
      StartIteration(frame, ready);
    }
  }
  return true;
}

}  // namespace tenon
