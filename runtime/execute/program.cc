// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/program.h"

#include <algorithm>
#include <atomic>

#include "runtime/captures/capture_kernels.h"
#include "runtime/compile/memory_copies.h"
#include "runtime/functions/function_runtime.h"

namespace tenon {
namespace {

/// The partitions of a step on their way: the first error, and who is still running.
struct PartitionRuns {
  explicit PartitionRuns(size_t count) : steps(count), retvals(count), running(count) {}

  void Done(const Status& s) {
    {
      MutexLock lock(mu);
      status.Update(s);
    }
    if (running.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    Status result;
    {
      MutexLock lock(mu);
      result = status;
    }
    if (result.ok()) CollectRetvals();
    const auto callback = std::move(done);
    delete this;
    callback(std::move(result));
  }

  void CollectRetvals() {
    for (std::vector<Tensor>& part : retvals) {
      for (size_t i = 0; i < part.size(); ++i) {
        if (part[i].valid()) (*all_retvals)[i] = std::move(part[i]);
      }
    }
  }

  std::vector<StepArguments> steps;
  std::vector<std::vector<Tensor>> retvals;
  std::vector<Tensor>* all_retvals = nullptr;
  std::atomic<int> running;
  std::function<void(Status)> done;
  Mutex mu;
  Status status ABSL_GUARDED_BY(mu);
};

/// The number by which a device's queue knows the run of one partition. No other run in the process
/// has it: what the queue keeps of a run goes when that ends, and functions called in a step, other
/// sessions and other tasks in the process may be using the same GPU meanwhile.
int64_t NextRun() {
  static std::atomic<int64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

FeedSpec::FeedSpec(const Graph& graph, const Signature& signature) {
  for (const std::string& text : signature.feeds) {
    const auto name = ParseTensorName(text);
    const Node* node = graph.Find(name->node);
    Feed feed{text, BaseType(node->output_type(name->index)), PartialShape()};
    // Only a placeholder's shape is a promise; other tensors may be fed any.
    if (node->is_placeholder()) {
      feed.shape = node->attrs().GetOr("shape", PartialShape());
      // Old graphs write a scalar for "anything".
      if (feed.shape.rank() == 0) feed.shape = PartialShape();
    }
    feeds_.push_back(std::move(feed));
  }
}

Status FeedSpec::Check(const std::vector<Tensor>& feeds) const {
  if (feeds.size() != feeds_.size()) {
    return InvalidArgument("found ", feeds.size(), " feeds, wanted ", feeds_.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) TENON_RETURN_IF_ERROR(CheckOne(i, feeds[i]));
  return OkStatus();
}

Status FeedSpec::CheckOne(size_t i, const Tensor& feed) const {
  const Feed& f = feeds_[i];
  if (feed.dtype() != f.dtype) {
    if (!feed.valid()) return Annotate(feed.mistake(), StrCat("feed '", f.name, "'"));
    return InvalidArgument("feed '", f.name, "' is ", ToString(feed.dtype()), ", wanted ",
                           ToString(f.dtype));
  }
  if (!f.shape.IsCompatibleWith(feed.shape())) {
    return InvalidArgument("feed '", f.name, "' has shape ", feed.shape().ToString(), ", wanted ",
                           f.shape.ToString());
  }
  return OkStatus();
}

Device* LocalRuntime::Find(const std::string& name) const {
  for (Device* d : devices) {
    if (d->name() == name) return d;
  }
  return nullptr;
}

StatusOr<std::unique_ptr<Program>> Program::Create(Graph graph, const LocalRuntime& runtime,
                                                   const PassOptions& passes,
                                                   KernelCache& kernels) {
  for (const Node* n : graph.nodes()) {
    if (n->assigned_device().empty()) {
      return InvalidArgument("Node '", n->name(), "' is missing a device specification");
    }
    if (runtime.Find(n->assigned_device()) == nullptr) {
      return InvalidArgument("node '", n->name(), "': ", n->assigned_device(), " unknown device.");
    }
  }
  PartitionOptions options;
  options.location = [](const Node& n) { return n.assigned_device(); };
  options.incarnation = [&](const std::string& d) { return runtime.Find(d)->incarnation(); };
  options.tensor_prefix = "local_";
  std::shared_ptr<FunctionRuntime> functions;
  if (!graph.functions().empty()) {
    functions = MakeFunctionRuntime(graph.shared_functions(), graph.registry(), runtime, passes);
  }
  TENON_ASSIGN_OR_RETURN(auto parts, PartitionGraph(std::move(graph), options));
  std::unique_ptr<Program> step(new Program);
  step->owner_ = runtime.owner;
  std::vector<DevicePart> device_parts;
  for (auto& [name, part] : parts) {
    Device* const device = runtime.Find(name);
    TENON_RETURN_IF_ERROR(RunPasses(PassStage::kDevice, &part, {device}, passes));
    device_parts.push_back({&part, device});
  }
  TENON_RETURN_IF_ERROR(AddMemoryCopies(device_parts));
  for (size_t i = 0; i < device_parts.size(); ++i) {
    const auto [part, device] = device_parts[i];
    TENON_ASSIGN_OR_RETURN(
        const KernelOf kernel_of,
        CaptureKernels(device_parts, i, kernels.On(*device, functions, runtime.devices)));
    TENON_ASSIGN_OR_RETURN(std::unique_ptr<ExecutionPlan> plan,
                           ExecutionPlan::Create(*part, *device, kernel_of));
    step->num_args_ = std::max<int>(step->num_args_, plan->arg_types().size());
    step->num_retvals_ = std::max<int>(step->num_retvals_, plan->retval_types().size());
    for (const PlanNode& n : plan->nodes()) {
      step->has_transfers_ |= n.flow == FlowKind::kTransfer;
    }
    step->executors_.push_back(std::make_unique<Executor>(std::move(plan), runtime.pool));
  }
  return step;
}

Status Program::Run(Call& call) {
  if (executors_.size() == 1) {
    StepArguments step;
    step.context = {NextRun(), &executors_[0]->plan().device(), call.rendezvous, call.cancellation,
                    call.step_resources};
    step.args = call.args;
    step.args.resize(executors_[0]->plan().arg_types().size());
    step.retvals = &call.retvals;
    step.memory = call.memory;
    step.trace = call.trace;
    return executors_[0]->Run(step);
  }
  Mutex mu;
  CondVar cv;
  bool over = false;
  Status status;
  Start(call, false, [&](Status s) {
    MutexLock lock(mu);
    status = std::move(s);
    over = true;
    cv.NotifyOne();
  });
  MutexLock lock(mu);
  while (!over) cv.Wait(mu);
  return status;
}

void Program::RunAsync(Call& call, std::function<void(Status)> done) {
  Start(call, true, std::move(done));
}

void Program::Start(Call& call, bool borrowed, std::function<void(Status)> done) {
  call.retvals.assign(num_retvals_, Tensor());
  if (executors_.empty()) return done(OkStatus());
  auto* runs = new PartitionRuns(executors_.size());
  runs->all_retvals = &call.retvals;
  runs->done = std::move(done);
  for (size_t i = 0; i < executors_.size(); ++i) {
    StepArguments& step = runs->steps[i];
    step.context = {NextRun(), &executors_[i]->plan().device(), call.rendezvous, call.cancellation,
                    call.step_resources};
    step.args = call.args;
    step.args.resize(executors_[i]->plan().arg_types().size());
    step.retvals = &runs->retvals[i];
    step.memory = call.memory;
    step.trace = call.trace;
  }
  // The step may be gone when its last partition has been started.
  const size_t last = executors_.size() - 1;
  for (size_t i = 0; i <= last; ++i) {
    executors_[i]->RunAsync(runs->steps[i], borrowed || i < last,
                            [runs](Status s) { runs->Done(s); });
  }
}

}  // namespace tenon
