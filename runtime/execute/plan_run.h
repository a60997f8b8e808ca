// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/base/attributes.h>
#include <absl/container/inlined_vector.h>
#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/denormals.h"
#include "core/base/exceptions.h"
#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/device/device_queue.h"
#include "core/memory/memory_account.h"
#include "core/op/kernel.h"
#include "runtime/device/deferral.h"
#include "runtime/device/memory_use.h"
#include "runtime/device/thread_pool.h"
#include "runtime/execute/argument_checks.h"
#include "runtime/execute/plain_state.h"
#include "runtime/execute/plan.h"
#include "runtime/execute/trace.h"

// The loop of the executor: for executor.cc alone.

namespace tenon {

/// Ends the other partitions of a run too: they may wait for what this one will not send.
inline void AbortRun(const ProgramRun& run, const Status& why) {
  if (run.rendezvous != nullptr) run.rendezvous->Abort(why);
  if (run.cancellation != nullptr) run.cancellation->Cancel(why);
}

/// What the runs of one plan share; all outlive them.
template <typename State>
struct PlanParts {
  const ExecutionPlan& plan;
  ThreadPool* pool;  // null: without one
  int max_outputs;   // of a node
  IdleStates<State>& idle;
};

/// What a run of a plan gets and gives, by reference.
struct PlanValues {
  const DeviceRun& run;
  const std::vector<Tensor>& args;
  std::vector<Tensor>* retvals;
};

/// One run of a plan on its way. Deletes itself at the end.
template <typename State>
class PlanRun {
 public:
  PlanRun(const PlanParts<State>& parts, const PlanValues& values, bool measure,
          std::function<void(Status)> done)
      : plan_(parts.plan),
        pool_(parts.pool),
        max_outputs_(parts.max_outputs),
        idle_(parts.idle),
        device_run_(values.run),
        run_(values.run.run),
        args_(values.args),
        retvals_(values.retvals),
        state_(parts.idle.Take(run_.trace != nullptr)),
        measure_(measure),
        done_(std::move(done)) {}

  /// `borrowed`: the calling thread has other work, so that what takes long goes to the pool.
  void Start(bool borrowed) {
    Loop loop(*this, borrowed ? Thread::kBorrowed : Thread::kOwn);
    SwapSpareQueue(loop);
    state_->Start([&](ReadyNode r) { Push(r, loop); });
    Process(loop);
  }

 private:
  /// How long a step may use a thread that it has only borrowed: about 100 µs.
  static constexpr int64_t kBorrowedTicks = 250'000;
  /// How long a step keeps a thread of the pool while others wait for one: about 2 ms.
  static constexpr uint64_t kTurnTicks = 5'000'000;
  /// How long what a thread has put off may wait while kernels run: about 0.5 ms, a few messages'
  /// cost.
  static constexpr int64_t kDeferTicks = 1'500'000;

  /// An asynchronous kernel at work: its inputs, taken out of the step, and where its outputs go.
  struct AsyncCall {
    AsyncCall(PlanRun& run, const ReadyNode& node, const PlanNode& item, Value* from)
        : run(run),
          node(node),
          inputs(TakeInputs(item, from)),
          outputs(
              std::max(item.num_outputs, 1)),  // a place even for none: null stands for dead ones
          context(run.device_run_, *item.output_types, inputs.data(), item.num_inputs,
                  outputs.data()) {}
    PlanRun& run;
    const ReadyNode node;
    std::vector<Value> inputs;
    std::vector<Value> outputs;
    KernelContext context;
    int64_t start_ns = 0;
  };

  /// The kind of thread that works on a run: the one that waits for it, one that has other work, or
  /// one of the pool.
  enum class Thread { kOwn, kBorrowed, kPool };

  /// The nodes that one thread runs next. A thread's loops form a stack: a kernel that finishes on
  /// a thread that works on its step already adds to that loop, instead of starting one inside the
  /// other without end (as two partitions that send to each other would).
  struct Loop {
    /// Without a pool nobody can be given what is left: every thread is as one's own.
    Loop(PlanRun& run, Thread whose)
        : run(&run),
          thread(run.pool_ != nullptr ? whose : Thread::kOwn),
          waits(whose == Thread::kOwn),
          turn_began(thread == Thread::kPool ? __rdtsc() : 0) {}
    /// Runs what the thread has put off if it would wait too long for a kernel of so many ticks.
    void RunDeferredBefore(int64_t ticks) {
      if (DeferralScope::Empty()) {
        defer_ticks_left = kDeferTicks;
      } else if ((defer_ticks_left -= ticks) < 0) {
        DeferralScope::RunNow();
      }
    }
    const void* const run;
    const Thread thread;
    const bool waits;                     // for the end of the run, when nothing is left here
    uint64_t turn_began;                  // of a thread of the pool
    int64_t ticks_left = kBorrowedTicks;  // of a borrowed thread
    int64_t waiting_ticks = 0;            // of the expensive nodes in the queue, about
    int64_t defer_ticks_left = kDeferTicks;
    ReadyQueue queue;
    Loop* outer = nullptr;
  };
  static Loop*& InnermostLoop() {
    static thread_local Loop* loop = nullptr;
    return loop;
  }

  ABSL_ATTRIBUTE_NOINLINE void Push(ReadyNode r, Loop& loop) {
    const bool expensive = plan_.expensive(r.node());
    if (loop.thread == Thread::kOwn && !expensive) [[likely]]
      return loop.queue.push(r);
    PushOrSubmit(r, expensive, loop);
  }

  /// The rest of Push, apart: that one needs few registers.
  ABSL_ATTRIBUTE_NOINLINE void PushOrSubmit(ReadyNode r, bool expensive, Loop& loop) {
    if (pool_ != nullptr && (loop.thread == Thread::kBorrowed
                                 ? !plan_.quick(r.node())
                                 : expensive && loop.waiting_ticks > ExecutionPlan::kWakeTicks)) {
      tasks_.fetch_add(1, std::memory_order_relaxed);
      return SubmitLoop([r](Loop& handed) { handed.queue.push(r); });
    }
    if (expensive) loop.waiting_ticks += WaitingTicks(r.node());
    loop.queue.push(r);
  }

  /// What an expensive node adds to its thread's work; enough to need help while nobody knows.
  int64_t WaitingTicks(int32_t node) const {
    const int64_t ticks = plan_.ticks(node);
    return ticks == 0 ? ExecutionPlan::kWakeTicks + 1 : ticks;
  }

  /// Takes the memory of the queue from the run before, or leaves it for the next one.
  void SwapSpareQueue(Loop& loop) {
    if (loop.waits) loop.queue.swap(state_->spare_queue());
  }

  void Process(Loop& loop) {
    loop.outer = std::exchange(InnermostLoop(), &loop);
    const DeferralScope scope;
    const FlushDenormals flush;
    RunNodes(loop);
    InnermostLoop() = loop.outer;
    if (loop.queue.empty()) {
      SwapSpareQueue(loop);
      return TaskDone();
    }
    SubmitLoop([queue = std::move(loop.queue), ticks = loop.waiting_ticks](Loop& handed) mutable {
      handed.queue = std::move(queue);
      handed.waiting_ticks = ticks;
    });
  }

  /// Has the pool process what `fill` puts into a loop.
  template <typename Fill>
  void SubmitLoop(Fill fill) {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    pool_->Submit([this, fill = std::move(fill)]() mutable {
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      Loop handed(*this, Thread::kPool);
      fill(handed);
      Process(handed);
    });
  }

  /// Whether the thread has time for another node. Steps that never end would keep the others from
  /// running, did those that wait for the pool not come first now and then. What kernels usually
  /// take does not count here: their inputs may be others now.
  bool GoesOn(Loop& loop) {
    if (loop.thread == Thread::kOwn) [[likely]]
      return true;
    if (loop.thread == Thread::kBorrowed) return loop.ticks_left > 0;
    return GoesOnInThePool(loop);
  }

  /// Out of line: most loops are not of the pool, and run nodes of few nanoseconds.
  ABSL_ATTRIBUTE_NOINLINE bool GoesOnInThePool(Loop& loop) {
    const uint64_t now = __rdtsc();
    if (now - loop.turn_began < kTurnTicks) return true;
    // The step's own tasks are no reason: behind these, what is ready here would lose its place.
    const int64_t own = waiting_.load(std::memory_order_relaxed);
    if (pool_->num_waiting() > own && !aborted_.load(std::memory_order_relaxed)) {
      return false;
    }
    loop.turn_began = now;
    return true;
  }

  /// Takes the time of a node that left the queue from what the thread has, and from what waits.
  ABSL_ATTRIBUTE_NOINLINE void CountTaken(int32_t node, Loop& loop) {
    if (loop.thread == Thread::kBorrowed) loop.ticks_left -= plan_.ticks(node);
    if (loop.queue.empty()) {
      loop.waiting_ticks = 0;
    } else if (loop.waiting_ticks != 0 && plan_.expensive(node)) {
      loop.waiting_ticks -= WaitingTicks(node);
    }
  }

  void RunNodes(Loop& loop) {
    const InterruptibleBy interruption(run_.cancellation);
    const ChargedTo account(run_.memory);
    // A place even for none: null stands for dead ones.
    absl::InlinedVector<Value, 4> outputs(std::max(max_outputs_, 1));
    ReadyNode next = kNone;
    while (true) {
      if (next.node() < 0) {
        if (loop.queue.empty() || !GoesOn(loop)) return;
        next = loop.queue.pop();
        if (loop.thread == Thread::kBorrowed || loop.waiting_ticks != 0) [[unlikely]] {
          CountTaken(next.node(), loop);
        }
      }
      const ReadyNode r = std::exchange(next, kNone);
      if (aborted_.load(std::memory_order_relaxed)) continue;
      if (Interrupted()) {
        Fail(run_.cancellation->status());
        continue;
      }
      const Status caught = CatchExceptions([&] {
        next = RunNode(r, outputs.data(), loop);
        return OkStatus();
      });
      if (!caught.ok()) [[unlikely]] {
        std::fill(outputs.begin(), outputs.end(), Value());
        Fail(NodeError(r.node(), caught));
      }
    }
  }

  /// Tells whether the calling thread is the only one at work on the step, and no kernel of it goes
  /// on elsewhere. Only who has a task of the step can add another.
  auto Alone() const {
    return [this] { return tasks_.load(std::memory_order_acquire) == 1; };
  }

  static constexpr ReadyNode kNone{-1, false};

  /// `room` is for outputs, and empty before and after. Gives the node that is to run next, unless
  /// it is in the queue: a chain of small nodes is spared its way through memory.
  ABSL_ATTRIBUTE_NOINLINE ReadyNode RunNode(const ReadyNode r, Value* room, Loop& loop) {
    const PlanNode& item = plan_.node(r.node());
    Value* outputs = nullptr;  // of a dead node
    if (r.dead() && item.flow != FlowKind::kTransfer) [[unlikely]] {
      if (item.role == PlanNode::Role::kRetval) {
        Fail(NoValueOfRetval(item.index, plan_.name(r.node()), /*in_loop=*/false));
        return kNone;
      }
    } else if (item.role == PlanNode::Role::kOrder && run_.trace == nullptr) {
      outputs = room;
    } else {
      outputs = state_->OutputPlace(item, room);
      if (!MakeOutputs(loop, r, item, outputs)) return kNone;
    }
    state_->DropInputs(r, item);
    ReadyNode next = kNone;
    state_->Propagate(r, item, outputs, Alone(), [&](ReadyNode n) {
      if (next.node() < 0 && loop.thread == Thread::kOwn && loop.queue.empty() &&
          !plan_.expensive(n.node())) {
        next = n;
      } else {
        Push(n, loop);
      }
    });
    if (outputs == room) EmptyAll(room, item.num_outputs);
    return next;
  }

  /// False when the outputs are not there yet, or the step has failed.
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool MakeOutputs(Loop& loop, ReadyNode r, const PlanNode& item,
                                                Value* outputs) {
    Value* const inputs = state_->Inputs(r, item);
    if (item.reads_refs) {
      if (Status s = ReadRefs(plan_, r.node(), inputs); !s.ok()) {
        Fail(NodeError(r.node(), s));
        return false;
      }
    }
    switch (item.role) {
      case PlanNode::Role::kConstant:
        outputs[0].tensor = *item.kernel->constant();
        return true;
      case PlanNode::Role::kArg:
        outputs[0].tensor = args_[item.index];
        return true;
      case PlanNode::Role::kRetval:
        (*retvals_)[item.index] = std::move(inputs[0].tensor);
        return true;
      case PlanNode::Role::kKernel:
      case PlanNode::Role::kOrder:
        break;
    }
    if (item.renews) {
      for (int i = 0; i < item.num_inputs; ++i) inputs[i].tensor.Renew();
    }
    if (item.async) {
      StartAsync(loop, r, item, inputs);
      return false;
    }
    loop.RunDeferredBefore(plan_.ticks(r.node()));
    return Compute(loop, r, item, inputs, outputs);
  }

  /// False when the step has failed.
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool Compute(const Loop& loop, ReadyNode r, const PlanNode& item,
                                            Value* inputs, Value* outputs) {
    std::optional<BusyThread> busy;  // a pool counts its own threads
    if (loop.thread == Thread::kOwn && plan_.expensive(r.node())) busy.emplace();
    KernelContext context(device_run_, *item.output_types, inputs, item.num_inputs, outputs);
    Prepare(r, context);
    const int64_t start_ns = run_.trace != nullptr ? NowNanos() : 0;
    const uint64_t start = measure_ ? __rdtsc() : 0;
    Status status = item.kernel->Compute(context);
    if (measure_) plan_.RecordCost(r.node(), __rdtsc() - start);
    if (status.ok()) status = CheckOutputs(item, context, outputs);
    // What a kernel gives that was interrupted says nothing, be it an error.
    if (!status.ok() || Interrupted()) [[unlikely]] {
      EmptyAll(outputs, item.num_outputs);
      Fail(Interrupted() ? run_.cancellation->status()
                         : NodeError(r.node(), WithMemoryUse(status, plan_.device())));
      return false;
    }
    if (run_.trace != nullptr) Record(r, item, outputs, start_ns);
    return true;
  }

  /// Whether the thread would only wait for the next node to come to its end, as the rest of the
  /// step does.
  bool IsIdleBut(const Loop& loop) const {
    return loop.waits && loop.outer == nullptr && loop.queue.empty() && DeferralScope::Empty() &&
           tasks_.load(std::memory_order_relaxed) == 1;
  }

  void StartAsync(const Loop& loop, ReadyNode r, const PlanNode& item, Value* inputs) {
    auto* call = new AsyncCall(*this, r, item, inputs);
    Prepare(r, call->context);
    call->context.may_block = IsIdleBut(loop);
    call->start_ns = run_.trace != nullptr ? NowNanos() : 0;
    tasks_.fetch_add(1, std::memory_order_relaxed);
    const Status caught = CatchExceptions([&] {
      item.kernel->ComputeAsync(call->context, [call](Status status) {
        PlanRun& run = call->run;
        run.FinishAsync(std::unique_ptr<AsyncCall>(call), std::move(status));
      });
      return OkStatus();
    });
    if (!caught.ok()) [[unlikely]]
      FinishAsync(std::unique_ptr<AsyncCall>(call), caught);
  }

  void FinishAsync(std::unique_ptr<AsyncCall> call, Status status) {
    const ReadyNode r = call->node;
    const PlanNode& item = plan_.node(r.node());
    if (status.ok()) status = CheckOutputs(item, call->context, call->outputs.data());
    const Cancellation* const cancellation = run_.cancellation;
    const bool cancelled = cancellation != nullptr && cancellation->cancelled();
    if (!status.ok() || cancelled) {
      Fail(status.ok() ? cancellation->status() : NodeError(r.node(), status));
      call.reset();  // the last TaskDone ends the step
      TaskDone();
      return;
    }
    if (run_.trace != nullptr) Record(r, item, call->outputs.data(), call->start_ns);
    call->inputs.clear();
    const bool dead = call->context.is_output_dead;
    Value* const outputs = dead ? nullptr : call->outputs.data();
    Loop* active = InnermostLoop();
    while (active != nullptr && active->run != this) active = active->outer;
    if (active != nullptr) {
      state_->Propagate(r, item, outputs, Alone(), [&](ReadyNode n) { Push(n, *active); });
      return TaskDone();
    }
    // The thread belongs to whoever finished the kernel, perhaps a network poller.
    Loop loop(*this, Thread::kBorrowed);
    state_->Propagate(r, item, outputs, Alone(), [&](ReadyNode n) { Push(n, loop); });
    call.reset();
    Process(loop);
  }

  void Prepare(ReadyNode r, KernelContext& context) {
    context.frame = state_->FrameId(r);
    context.iteration = state_->IterationIndex(r);
    context.is_input_dead = r.dead();
  }

  Status NodeError(int32_t node, const Status& status) const {
    return AnnotateWithNode(status, plan_.name(node), plan_.op(node), plan_.device().name());
  }

  void Record(ReadyNode r, const PlanNode& item, const Value* outputs, int64_t start_ns) {
    run_.trace->Add({plan_.name(r.node()), plan_.op(r.node()), plan_.device().name(), start_ns,
                     NowNanos(), TraceThreadId(), DescribeOutputs(item, outputs)});
  }

  void Fail(const Status& status) {
    {
      MutexLock lock(mu_);
      if (!status_.ok()) return;
      status_ = status;
    }
    aborted_.store(true);
    AbortRun(run_, status);
  }

  void TaskDone() {
    if (tasks_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (DeviceQueue* queue = plan_.device().queue(); queue != nullptr && !queue_ended_) {
      queue_ended_ = true;
      tasks_.store(1, std::memory_order_relaxed);
      return queue->EndStep(device_run_.id, [this](const Status& s) {
        // A kernel that was interrupted on the device has left nothing that may be used.
        const Cancellation* const cancellation = run_.cancellation;
        const bool cancelled = cancellation != nullptr && cancellation->cancelled();
        if (!s.ok() || cancelled) Fail(s.ok() ? cancellation->status() : s);
        TaskDone();
      });
    }
    Status status;
    {
      MutexLock lock(mu_);
      status = std::move(status_);
    }
    if (status.ok() && plan_.has_control_flow() && retvals_ != nullptr) {
      status = CheckRetvals(*retvals_, plan_.retval_types());
    }
    idle_.GiveBack(std::move(state_), status);
    const auto done = std::move(done_);
    delete this;
    // What follows is not this thread's step, if it works on another one.
    const InterruptibleBy nothing(nullptr);
    const ChargedTo nobody(nullptr);
    done(std::move(status));
  }

  const ExecutionPlan& plan_;
  ThreadPool* const pool_;
  const int max_outputs_;
  IdleStates<State>& idle_;
  const DeviceRun& device_run_;
  const ProgramRun& run_;
  const std::vector<Tensor>& args_;
  std::vector<Tensor>* const retvals_;
  std::unique_ptr<State> state_;
  const bool measure_;
  std::function<void(Status)> done_;
  /// Threads that process nodes of the step, plus asynchronous kernels at work.
  std::atomic<int32_t> tasks_{1};
  /// The tasks among them that wait for a thread of the pool.
  std::atomic<int32_t> waiting_{0};
  std::atomic<bool> aborted_{false};
  bool queue_ended_ = false;  // on a device with a queue: all that its kernels queued is done
  Mutex mu_;
  Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
