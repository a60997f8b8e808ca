// SPDX-License-Identifier: Apache-2.0
#include "train/sync/sync_replicas.h"

#include "core/base/plural.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/queues/queues_ops.h"
#include "ops/state/state_ops.h"
#include "train/sync/sync_record.h"
#include "train/sync/sync_replicas_hook.h"

namespace tenon {
namespace {

/// What a variable's gradients of one step are added up in.
struct VariableAccumulators {
  VariableEntry variable;
  bool sparse = false;
  std::vector<Output> handles;  // by shard
};

/// Builds the graph of one SyncReplicas.
class SyncGraph {
 public:
  SyncGraph(Optimizer& optimizer, const SyncReplicasOptions& options, const Output& global_step)
      : optimizer_(optimizer),
        options_(options),
        global_step_(global_step),
        deterministic_(options.deterministic_shards > 0),
        shards_(deterministic_ ? options.deterministic_shards : 1) {}

  SyncNodes Build(const std::vector<GradientAndVariable>& gradients) {
    {
      const NameScope scope(options_.name);
      const ColocateWith beside(global_step_);
      MakeFeeds();
      MakeQueues();
      MakeRecord();
    }
    std::vector<GradientAndVariable> means;
    std::vector<Output> pushed, set;
    std::vector<std::vector<Output>> pushes(shards_);
    for (const GradientAndVariable& g : gradients) {
      if (!g.gradient.exists()) continue;
      const AtRoot root;
      const NameScope scope(StrCat(options_.name, "/", g.variable.ref->name()));
      const VariableAccumulators a = Accumulators(g);
      for (int shard = 0; shard < shards_; ++shard) {
        pushes[shard].push_back(Push(a, shard, g.gradient));
      }
      pushed.push_back(g.gradient.values());
      for (const Output& handle : a.handles) SetStep(a, handle, &set);
      means.push_back({Mean(a), g.variable});
    }
    const NameScope scope(options_.name);
    {
      // Where the gradients are made.
      const ControlDependencies after(pushed);
      nodes_.train = NoOp({.name = "train"})->name();
    }
    const ColocateWith beside(global_step_);
    for (const auto& of_shard : pushes) {
      const ControlDependencies after(of_shard);
      nodes_.push.push_back(Say("push"));
    }
    {
      const ControlDependencies after(set);
      nodes_.set_step = NoOp({.name = "set_step"})->name();
    }
    MakeUpdate(means);
    return nodes_;
  }

 private:
  Output Fed(const std::string& name, const PartialShape& shape, std::string* into) const {
    const Output fed = Placeholder(DType::kInt64, shape, {.name = name});
    *into = fed.name();
    return fed;
  }

  void MakeFeeds() {
    local_step_ = Fed("local_step", Shape(), &nodes_.local_step);
    new_step_ = Fed("new_step", Shape(), &nodes_.new_step);
    applied_step_ = Fed("applied_step", Shape(), &nodes_.applied_step);
    message_ = Fed("message", {SyncMessage::kFields}, &nodes_.message);
  }

  void MakeQueues() {
    messages_ = Queue("messages", SyncMessage::kFields);
    nodes_.say = Say("say");
    nodes_.next_message = Next(messages_, &nodes_.messages_left);
    nodes_.messages_waiting = QueueSizeV2(messages_, {.name = "messages_waiting"}).name();
    for (int worker = 0; worker < options_.total_num_replicas; ++worker) {
      turns_.push_back(Queue(StrCat("turns_", worker), SyncTurn::kFields));
      nodes_.turns_for.emplace_back();
      turns_for_.push_back(
          Fed(StrCat("turns_for_", worker), {-1, SyncTurn::kFields}, &nodes_.turns_for.back()));
      nodes_.give.push_back(Give(worker));
    }
    const Output& own = turns_[options_.task];
    nodes_.turn = Next(own, &nodes_.turns_left);
    nodes_.turns_waiting = QueueSizeV2(own, {.name = "turns_waiting"}).name();
  }

  void MakeRecord() {
    const Output record =
        VariableV2({SyncRecord::kFields}, DType::kInt64,
                   {.shared_name = StrCat(options_.name, "/record"), .name = "record"});
    nodes_.record = Identity(record).name();
    nodes_.record_exists = IsVariableInitialized(record).name();
    const Output value = Fed("new_record", {SyncRecord::kFields}, &nodes_.new_record);
    nodes_.set_record = Assign(record, value, {.name = "set_record"}).node->name();
  }

  Output Queue(const std::string& name, int fields) const {
    return FIFOQueueV2(
        {DType::kInt64},
        {.shapes = {{fields}}, .shared_name = StrCat(options_.name, "/", name), .name = name});
  }
  /// Waits for an element of the queue; then how many more there are.
  static std::string Next(const Output& queue, std::string* left) {
    const Output element = QueueDequeueV2(queue, {DType::kInt64}, {.name = "next"})[0];
    const ControlDependencies after({element});
    *left = QueueSizeV2(queue, {.name = "left"}).name();
    return element.name();
  }
  std::string Say(const std::string& name) const {
    return QueueEnqueueV2(messages_, {message_}, {.name = name})->name();
  }
  std::string Give(int worker) const {
    return QueueEnqueueManyV2(turns_[worker], {turns_for_[worker]},
                              {.name = StrCat("give_", worker)})
        ->name();
  }

  VariableAccumulators Accumulators(const GradientAndVariable& g) {
    VariableAccumulators a{g.variable, g.gradient.is_sparse(), {}};
    const ColocateWith beside(g.variable.ref);
    const DType dtype = g.gradient.dtype();
    const PartialShape shape = Output(g.variable.value).shape();
    for (int shard = 0; shard < shards_; ++shard) {
      const std::string shared =
          StrCat(options_.name, "/", g.variable.ref->name(), "/accumulator_", shard);
      const Output handle =
          a.sparse ? SparseConditionalAccumulator(
                         dtype, shape,
                         {.shared_name = shared,
                          // The mean of a shard that two have computed is what one has.
                          .reduction_type = deterministic_ ? "MEAN" : "SUM",
                          .name = "accumulator"})
                   : ConditionalAccumulator(dtype, shape,
                                            {.shared_name = shared, .name = "accumulator"});
      a.handles.push_back(handle);
      nodes_.accumulated.push_back(AccumulatorNumAccumulated(handle).name());
    }
    return a;
  }

  Output Push(const VariableAccumulators& a, int shard, const Gradient& gradient) const {
    const ColocateWith beside(a.variable.ref);
    const Output& handle = a.handles[shard];
    Node* pushed = nullptr;
    if (a.sparse) {
      const Gradient rows = WithoutRepeatedRows(gradient);
      const auto as_int64 = [](const Output& x) {
        return x.dtype() == DType::kInt64 ? x : Cast(x, DType::kInt64);
      };
      pushed = SparseAccumulatorApplyGradient(handle, StepOf(a, local_step_),
                                              as_int64(rows.slices.indices), rows.slices.values,
                                              as_int64(rows.slices.dense_shape), false);
    } else {
      pushed = AccumulatorApplyGradient(handle, local_step_, gradient.dense);
    }
    return Output(pushed);
  }

  void SetStep(const VariableAccumulators& a, const Output& handle, std::vector<Output>* set) {
    const ColocateWith beside(a.variable.ref);
    set->emplace_back(AccumulatorSetGlobalStep(handle, StepOf(a, new_step_)));
  }

  /// Whether the mean is made of a sum and its count, which are two reads of the accumulator.
  bool Counts(const VariableAccumulators& a) const { return a.sparse && !deterministic_; }

  /// A step as the accumulators have it. Those that are counted have two numbers for each: while
  /// their sum is taken they are at the odd one, and drop what comes late.
  Output StepOf(const VariableAccumulators& a, const Output& step) const {
    return Counts(a) ? step * 2 : step;
  }

  /// The mean over the gradients that are in the accumulator, of all rows.
  Gradient CountedMean(const VariableAccumulators& a) {
    const Output& handle = a.handles[0];
    const DType dtype = Output(a.variable.value).dtype();
    const ControlDependencies closed(
        {Output(AccumulatorSetGlobalStep(handle, StepOf(a, applied_step_) + 1))});
    const Output count = AccumulatorNumAccumulated(handle);
    const ControlDependencies counted({count});
    // Leaves it at the even number of the next step.
    const auto rows = SparseAccumulatorTakeGradient(handle, 1, dtype);
    nodes_.taken.push_back(rows.values.name());
    const Output shape = ShapeOf(a.variable.value, {.out_type = DType::kInt64});
    return IndexedSlices{rows.values / Cast(count, dtype), rows.indices, shape};
  }

  /// Over the workers, or the shards in their order.
  Gradient Mean(const VariableAccumulators& a) {
    const ColocateWith beside(a.variable.ref);
    if (Counts(a)) return CountedMean(a);
    const DType dtype = Output(a.variable.value).dtype();
    std::vector<Gradient> parts;
    for (const Output& handle : a.handles) {
      // All are there when it is run.
      if (a.sparse) {
        const auto rows = SparseAccumulatorTakeGradient(handle, 1, dtype);
        nodes_.taken.push_back(rows.values.name());
        parts.emplace_back(IndexedSlices{rows.values, rows.indices, rows.shape});
      } else {
        parts.emplace_back(AccumulatorTakeGradient(handle, 1, dtype));
        nodes_.taken.push_back(parts.back().dense.name());
      }
    }
    if (!a.sparse && !deterministic_) return parts[0];
    const Output count = Const(shards_, {.dtype = dtype});
    if (!a.sparse) {
      Output sum = parts[0].dense;
      for (int shard = 1; shard < shards_; ++shard) sum = sum + parts[shard].dense;
      return sum / count;
    }
    std::vector<Output> values, indices;
    for (const Gradient& part : parts) {
      values.push_back(part.slices.values);
      indices.push_back(part.slices.indices);
    }
    const bool one = shards_ == 1;
    const Output all = one ? values[0] : ConcatV2(values, 0);
    const Output rows = one ? indices[0] : ConcatV2(indices, 0);
    const Output shape = ShapeOf(a.variable.value, {.out_type = DType::kInt64});
    // Rows of several shards are added up before they are divided, as a dense sum is.
    const Gradient sum = WithoutRepeatedRows(IndexedSlices{all, rows, shape});
    return sum.WithValues(sum.values() / count);
  }

  void MakeUpdate(const std::vector<GradientAndVariable>& means) {
    Node* update = nullptr;
    {
      const AtRoot root;
      update = optimizer_.ApplyGradients(means, {.global_step = global_step_});
    }
    if (update == FailedNode()) return;
    nodes_.apply = update->name();
    const ControlDependencies after({Output(update)});
    for (int worker = 0; worker < options_.total_num_replicas; ++worker) {
      nodes_.give_after_apply.push_back(Give(worker));
    }
  }

  Optimizer& optimizer_;
  const SyncReplicasOptions& options_;
  const Output global_step_;
  const bool deterministic_;
  const int shards_;
  SyncNodes nodes_;
  Output local_step_, new_step_, applied_step_, message_, messages_;
  std::vector<Output> turns_, turns_for_;
};

Status CheckOptions(const SyncReplicasOptions& o) {
  if (o.total_num_replicas < 1) {
    return InvalidArgument("synchronous training needs a worker, found total_num_replicas = ",
                           o.total_num_replicas);
  }
  if (o.task < 0 || o.task >= o.total_num_replicas) {
    return InvalidArgument("there is no worker ", o.task, " of ", o.total_num_replicas);
  }
  if (o.replicas_to_aggregate < 0 || o.replicas_to_aggregate > o.total_num_replicas) {
    return InvalidArgument("replicas_to_aggregate = ", o.replicas_to_aggregate,
                           " must be at most the ", Plural(o.total_num_replicas, "worker"));
  }
  if (o.deterministic_shards < 0) {
    return InvalidArgument("deterministic_shards = ", o.deterministic_shards, " is negative");
  }
  if (o.deterministic_shards > 0 && o.deterministic_shards % o.total_num_replicas != 0) {
    return InvalidArgument("deterministic_shards = ", o.deterministic_shards,
                           " must be a multiple of the ", Plural(o.total_num_replicas, "worker"));
  }
  return OkStatus();
}

}  // namespace

SyncReplicas::SyncReplicas(Optimizer& optimizer, const SyncReplicasOptions& options)
    : Optimizer(StrCat("Sync", optimizer.name())), optimizer_(optimizer), options_(options) {}

Node* SyncReplicas::ApplyGradients(const std::vector<GradientAndVariable>& gradients,
                                   const ApplyGradientsOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  Status s = CheckOptions(options_);
  if (s.ok()) s = context.CheckValue(options.global_step, "the global step of SyncReplicas");
  if (!nodes_.train.empty()) {
    s.Update(InvalidArgument("one SyncReplicas serves one training step, and has one already"));
  }
  if (!s.ok()) {
    context.Fail(s, options.location);
    return FailedNode();
  }
  const VariableEntry* const step = FindVariable(options.global_step);
  if (step == nullptr) {
    context.Fail(InvalidArgument("the global step '", options.global_step.name(),
                                 "' is of no Variable of the graph"),
                 options.location);
    return FailedNode();
  }
  nodes_ = SyncGraph(optimizer_, options_, step->ref).Build(gradients);
  return context.graph->error().ok() ? context.graph->Find(nodes_.train) : FailedNode();
}

Node* SyncReplicas::Apply(const Gradient&, const VariableEntry&) { return FailedNode(); }

std::shared_ptr<SyncReplicasHook> SyncReplicas::MakeHook() const {
  return std::make_shared<SyncReplicasHook>(options_, nodes_);
}

}  // namespace tenon
