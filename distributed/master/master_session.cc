// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/master_session.h"

#include <algorithm>

#include "core/base/exceptions.h"
#include "core/proto/proto_io_graph.h"
#include "distributed/protocol/device_options.h"
#include "distributed/protocol/pass_options.h"
#include "runtime/compile/placer.h"
#include "runtime/functions/expansion.h"

namespace tenon {
namespace {

/// A year: longer limits would overflow a clock.
constexpr int64_t kLongestTimeoutMs = int64_t{365} * 24 * 3600 * 1000;

/// A client that forgets to release its callables is not to fill the memory.
constexpr size_t kMaxCallables = 1 << 14;

/// Each holds what its step has computed so far.
constexpr size_t kMaxPartialRuns = 1 << 10;

Status TookLonger(Clock::Duration limit) {
  return DeadlineExceeded("Timed out waiting for notification: the step took longer than ",
                          std::chrono::duration_cast<std::chrono::milliseconds>(limit).count(),
                          " ms");
}

/// Cancelled when the session closes or the caller gives up.
class EitherEnd {
 public:
  EitherEnd(Cancellation& closing, Cancellation* caller)
      : closing_(&closing, either_), caller_(caller, either_) {}
  Cancellation* get() { return &either_; }

 private:
  Cancellation either_;
  const CancellationLink closing_;
  const CancellationLink caller_;
};

}  // namespace

/// A call that blocks, while it lives: the session is not idle.
class MasterSession::Use {
 public:
  explicit Use(MasterSession& session) : session_(session) {
    MutexLock lock(session_.mu_);
    if (session_.uses_++ == 0) session_.uses_begin_ = session_.environment_.clock->Now();
  }
  ~Use() {
    MutexLock lock(session_.mu_);
    --session_.uses_;
    session_.last_use_ = session_.environment_.clock->Now();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  MasterSession& session_;
};

struct MasterSession::RunningCall {
  std::shared_ptr<MasterSession> session;
  std::shared_ptr<ClusterProgram> step;
  std::shared_ptr<PartialRun> partial;  // null for a whole step
  Cancellation own;
  Cancellation& cancellation() { return partial != nullptr ? partial->cancellation() : own; }
  Cancellation* outer = nullptr;
  Cancellation::Token token = Cancellation::kAlreadyCancelled;
  Clock::Timer timer = 0;
  Clock::Time begin;
  std::optional<Clock::Duration> limit;  // of its time
  std::function<void(Status)> done;
};

MasterSession::MasterSession(std::shared_ptr<const MasterEnvironment> environment,
                             std::string handle, ConfigProto config)
    : shared_environment_(std::move(environment)),
      handle_(std::move(handle)),
      config_(std::move(config)),
      tasks_(environment_, handle_, config_),
      silent_tasks_(shared_environment_),
      last_use_(environment_.clock->Now()) {}

MasterSession::~MasterSession() = default;

Status MasterSession::CheckSize(int64_t nodes) const {
  if (nodes <= environment_.limits.graph_nodes) return OkStatus();
  return ResourceExhausted("the graph would have ", nodes, " nodes; a session may have ",
                           environment_.limits.graph_nodes);
}

Status MasterSession::Start(const GraphDef& proto, Cancellation* cancellation) {
  const Use use(*this);
  EitherEnd end(closing_, cancellation);
  if (!graph_mu_.LockUnless(*end.get())) return end.get()->status();
  const HeldLock lock(graph_mu_);
  TENON_RETURN_IF_ERROR(CheckSize(proto.node_size()));
  TENON_ASSIGN_OR_RETURN(Graph graph, GraphFromProto(proto, *environment_.registry));
  TENON_RETURN_IF_ERROR(ExpandFunctions(&graph, environment_.limits.graph_nodes));
  TENON_ASSIGN_OR_RETURN(const std::set<std::string> tasks, tasks_.Wanted(graph));
  TENON_RETURN_IF_ERROR(tasks_.Reach(tasks, end.get()));
  RememberTasks();
  TENON_RETURN_IF_ERROR(Place(&graph));
  graph_ = std::make_unique<Graph>(std::move(graph));
  num_nodes_ = graph_->num_nodes();
  return OkStatus();
}

Status MasterSession::Extend(const GraphDef& proto, int64_t current_version, int64_t* new_version,
                             Cancellation* cancellation) {
  const Use use(*this);
  EitherEnd end(closing_, cancellation);
  if (!graph_mu_.LockUnless(*end.get())) return end.get()->status();
  const HeldLock lock(graph_mu_);
  TENON_RETURN_IF_ERROR(CheckSize(num_nodes_ + proto.node_size()));
  if (current_version != version_) {
    return Aborted("Current version is ", version_, " but caller expected ", current_version, ".");
  }
  Graph extended = graph_->Clone();
  TENON_RETURN_IF_ERROR(ExtendGraphFromProto(proto, &extended));
  TENON_RETURN_IF_ERROR(ExpandFunctions(&extended, environment_.limits.graph_nodes));
  TENON_ASSIGN_OR_RETURN(const std::set<std::string> tasks, tasks_.Wanted(extended));
  TENON_RETURN_IF_ERROR(tasks_.Reach(tasks, end.get()));
  RememberTasks();
  TENON_RETURN_IF_ERROR(Place(&extended));
  *graph_ = std::move(extended);
  num_nodes_ = graph_->num_nodes();
  *new_version = ++version_;
  return OkStatus();
}

Status MasterSession::Place(Graph* graph) {
  std::vector<PlacementDevice> devices;
  for (const auto& [task, attributes] : tasks_.reached()) {
    for (const DeviceAttributes& d : attributes) {
      TENON_ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(d.name()));
      if (!MayUse(name, config_)) continue;
      devices.push_back({std::move(name), d.device_type() == "GPU" ? kCuda : kCpu});
    }
  }
  PlacementOptions options;
  TENON_ASSIGN_OR_RETURN(options.default_device, DeviceName::Parse(environment_.task));
  options.allow_soft_placement = config_.allow_soft_placement();
  options.why_no_gpu = environment_.why_no_gpu;
  return PlaceNodes(graph, devices, options);
}

StatusOr<std::shared_ptr<ClusterProgram>> MasterSession::Compile(
    const Signature& signature, Cancellation* cancellation,
    std::shared_ptr<const FeedDependencies>* dependencies) {
  const Use use(*this);
  const std::string key = signature.Key();
  EitherEnd end(closing_, cancellation);
  if (!graph_mu_.LockUnless(*end.get())) return end.get()->status();
  const HeldLock lock(graph_mu_);
  std::shared_ptr<ClusterProgram> known;
  {
    MutexLock state_lock(mu_);
    const auto found = steps_.find(key);
    if (found != steps_.end()) known = found->second;
    if (dependencies != nullptr) *dependencies = dependencies_[key].lock();
  }
  if (known != nullptr && (dependencies == nullptr || *dependencies != nullptr)) return known;
  TENON_ASSIGN_OR_RETURN(Graph graph, MakeStepGraph(*graph_, signature));
  if (dependencies != nullptr) {
    *dependencies = std::make_shared<const FeedDependencies>(graph, signature.fetches.size());
    MutexLock state_lock(mu_);
    dependencies_[key] = *dependencies;
  }
  if (known != nullptr) return known;
  TENON_RETURN_IF_ERROR(RunPasses(PassStage::kStep, &graph, {environment_.devices[0]},
                                  PassesOf(config_.graph_options())));
  ClusterProgram::Environment environment;
  environment.session_handle = handle_;
  environment.task = environment_.task;
  environment.workers = environment_.workers;
  environment.config = config_;
  flat_hash_map<std::string, uint64_t> incarnations;
  for (const auto& [task, devices] : tasks_.reached()) {
    for (const DeviceAttributes& d : devices) incarnations[d.name()] = d.incarnation();
  }
  environment.incarnation = [&](const std::string& d) { return incarnations[d]; };
  TENON_ASSIGN_OR_RETURN(
      std::shared_ptr<ClusterProgram> step,
      ClusterProgram::Register(std::move(graph), signature, FeedSpec(*graph_, signature),
                               environment, end.get()));
  MutexLock state_lock(mu_);
  steps_.emplace(key, step);
  return step;
}

bool MasterSession::IsCompiled(const ClientCall& call) {
  if (!call.partial_run_handle.empty()) return true;
  MutexLock lock(mu_);
  return steps_.contains(call.signature().Key());
}

StatusOr<int64_t> MasterSession::MakeCallable(const CallableOptions& options,
                                              Cancellation* cancellation) {
  Signature signature{{options.feed().begin(), options.feed().end()},
                      {options.fetch().begin(), options.fetch().end()},
                      {options.target().begin(), options.target().end()}};
  for (const TensorConnection& c : options.tensor_connection()) {
    signature.connections.emplace_back(c.from_tensor(), c.to_tensor());
  }
  TENON_RETURN_IF_ERROR(Compile(signature, cancellation).status());
  MutexLock lock(mu_);
  if (callables_.size() >= kMaxCallables) {
    return ResourceExhausted("the session has ", kMaxCallables,
                             " callables, as many as it may have");
  }
  callables_.emplace(next_callable_,
                     std::make_shared<Callable>(Callable{signature, options.run_options()}));
  return next_callable_++;
}

void MasterSession::ReleaseCallable(int64_t handle) {
  MutexLock lock(mu_);
  callables_.erase(handle);
}

StatusOr<std::string> MasterSession::SetUpPartialRun(const Signature& signature,
                                                     Cancellation* cancellation) {
  std::shared_ptr<const FeedDependencies> dependencies;
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<ClusterProgram> step,
                         Compile(signature, cancellation, &dependencies));
  auto run = std::make_shared<PartialRun>(std::move(step), signature, std::move(dependencies));
  MutexLock lock(mu_);
  if (closing_.cancelled()) return closing_.status();
  if (partial_runs_.size() >= kMaxPartialRuns) {
    return ResourceExhausted("the session has ", kMaxPartialRuns,
                             " partial runs, as many as it may have");
  }
  const std::string handle = StrCat(next_partial_run_++);
  partial_runs_.emplace(handle, std::move(run));
  return handle;
}

Status MasterSession::FindStep(const ClientCall& call, Cancellation* cancellation,
                               RunningCall* running, CallShare* part) {
  const std::string& handle = call.partial_run_handle;
  if (!handle.empty()) {
    if (!call.targets.empty()) {
      return InvalidArgument("a call of a partial run has targets; they belong to its set-up");
    }
    {
      MutexLock lock(mu_);
      const auto found = partial_runs_.find(handle);
      if (found != partial_runs_.end()) running->partial = found->second;
    }
    if (running->partial != nullptr) return running->partial->BeginCall(call, part);
    return InvalidArgument("Must run PartialRunSetup before performing partial runs; there is no '",
                           handle, "'");
  }
  const Signature signature = call.signature();
  {
    MutexLock lock(mu_);
    const auto found = steps_.find(signature.Key());
    if (found != steps_.end()) running->step = found->second;
  }
  if (running->step != nullptr) return OkStatus();
  return CatchExceptions([&] {
    TENON_ASSIGN_OR_RETURN(running->step, Compile(signature, cancellation));
    return OkStatus();
  });
}

Status MasterSession::CheckCallable(int64_t handle) const {
  if (handle >= 0 && handle < next_callable_) return OkStatus();
  return InvalidArgument("No such callable handle: ", handle);
}

bool MasterSession::WantsCosts(ClusterProgram& step) const {
  const GraphOptions& options = config_.graph_options();
  if (options.build_cost_model() <= 0) return false;
  const int64_t after = std::clamp<int64_t>(options.build_cost_model_after(), 0, int64_t{1} << 62);
  return (step.CountRun() + 1 - after) % options.build_cost_model() == 0;
}

StatusOr<std::shared_ptr<const MasterSession::Callable>> MasterSession::FindCallable(
    int64_t handle) {
  MutexLock lock(mu_);
  TENON_RETURN_IF_ERROR(CheckCallable(handle));
  const auto found = callables_.find(handle);
  if (found != callables_.end()) return found->second;
  return InvalidArgument("Attempted to run callable after handle was released: ", handle);
}

void MasterSession::RunStepAsync(ClientCall* call, Cancellation* cancellation,
                                 std::function<void(Status)> done) {
  if (call->output_partition_graphs && config_.experimental().disable_output_partition_graphs()) {
    return done(
        InvalidArgument("RunOptions.output_partition_graphs() is not supported when "
                        "disable_output_partition_graphs is true."));
  }
  // Not make_shared: a timer's weak_ptr would keep the whole step until it fires.
  std::shared_ptr<RunningCall> running(new RunningCall);
  CallShare part;
  if (Status status = FindStep(*call, cancellation, running.get(), &part); !status.ok()) {
    // What the workers say of a session that is being closed is not the cause.
    return done(closing_.cancelled() ? closing_.status() : status);
  }
  running->session = shared_from_this();
  running->outer = cancellation;
  running->begin = environment_.clock->Now();
  running->done = std::move(done);
  bool closed = false;
  {
    MutexLock lock(mu_);
    closed = closing_.cancelled();
    running_.emplace(running.get(), running);
  }
  if (closed) return EndStep(running.get(), closing_.status());
  Cancellation& end = running->cancellation();
  if (cancellation != nullptr) {
    running->token = cancellation->Register(
        [running](const Status& why) { running->cancellation().Cancel(why); });
    if (running->token == Cancellation::kAlreadyCancelled) {
      return EndStep(running.get(), cancellation->status());
    }
  }
  if (call->timeout_ms > 0) {
    running->limit = std::chrono::milliseconds(std::min(call->timeout_ms, kLongestTimeoutMs));
    running->timer = environment_.clock->CallAfter(
        *running->limit, [weak = std::weak_ptr<RunningCall>(running), limit = *running->limit] {
          if (const auto late = weak.lock()) late->cancellation().Cancel(TookLonger(limit));
        });
  }
  const auto ended = [running](Status status) {
    running->session->EndStep(running.get(), std::move(status));
  };
  if (running->partial == nullptr) {
    call->costs = WantsCosts(*running->step);
    return running->step->RunAsync(call, &end, ended);
  }
  running->partial->step().RunPartAsync(call, std::move(part), &end, ended);
}

void MasterSession::EndStep(RunningCall* step, Status status) {
  // What cancelled the step is a better answer than what its parts said when they were cancelled.
  if (status.code() == StatusCode::kCancelled && step->cancellation().cancelled()) {
    status = step->cancellation().status();
  }
  // Its last kernels may have been under way when the time was over.
  if (status.ok() && step->limit && environment_.clock->Now() - step->begin > *step->limit) {
    status = TookLonger(*step->limit);
  }
  if (step->token != Cancellation::kAlreadyCancelled) step->outer->Deregister(step->token);
  if (step->timer != 0) environment_.clock->CancelTimer(step->timer);
  const bool forget = step->partial != nullptr && step->partial->EndCall(status);
  const auto done = std::move(step->done);
  const std::shared_ptr<MasterSession> keep = step->session;
  std::shared_ptr<RunningCall> last;  // dies after the lock
  {
    MutexLock lock(mu_);
    const auto found = running_.find(step);
    last = std::move(found->second);
    running_.erase(found);
    if (forget) {
      erase_if(partial_runs_, [&](const auto& p) { return p.second == last->partial; });
    }
    if (running_.empty()) {
      last_use_ = environment_.clock->Now();
      idle_.NotifyAll();
    }
  }
  done(std::move(status));
}

bool MasterSession::BeginClose(const Status& why) {
  {
    MutexLock lock(mu_);
    if (closed_) return false;
    closed_ = true;
  }
  CancelAll(why);
  return true;
}

void MasterSession::CancelAll(const Status& why) {
  closing_.Cancel(why);
  std::vector<std::shared_ptr<RunningCall>> running;
  StringMap<std::shared_ptr<PartialRun>> partial_runs;
  {
    MutexLock lock(mu_);
    for (const auto& [key, step] : running_) running.push_back(step);
    partial_runs.swap(partial_runs_);
  }
  // Without the lock: a step may end on this thread, inside Cancel.
  for (const std::shared_ptr<RunningCall>& step : running) step->cancellation().Cancel(why);
  for (const auto& [handle, run] : partial_runs) run->End(why);
}

std::optional<Clock::Duration> MasterSession::Idle() {
  MutexLock lock(mu_);
  if (uses_ > 0 || !running_.empty()) return std::nullopt;
  return environment_.clock->Now() - last_use_;
}

void MasterSession::TouchWorkers() {
  if (!graph_mu_.TryLock()) return;  // it is busy: the workers hear of it anyway
  if (!closing_.cancelled()) tasks_.Touch();
  graph_mu_.Unlock();
}

void MasterSession::RememberTasks() {
  std::vector<std::string> others;
  for (const auto& [task, devices] : tasks_.reached()) {
    if (task != environment_.task) others.push_back(task);
  }
  MutexLock lock(mu_);
  other_tasks_ = std::move(others);
}

void MasterSession::AskTasksOfLongStep() {
  Clock::Duration longest{0};
  std::vector<std::string> tasks;
  {
    MutexLock lock(mu_);
    const Clock::Time now = environment_.clock->Now();
    if (uses_ > 0) longest = now - uses_begin_;
    for (const auto& [key, step] : running_) longest = std::max(longest, now - step->begin);
    tasks = other_tasks_;
  }
  if (longest < kWatchPause) return silent_tasks_.Forget();
  silent_tasks_.Ask(tasks, longest);
}

void MasterSession::Describe(cluster::SessionStatus* out) {
  using Seconds = std::chrono::duration<double>;
  out->set_id(handle_.substr(0, 8));
  out->set_nodes(num_nodes_);
  const auto idle = Idle();
  if (idle) out->set_idle_seconds(Seconds(*idle).count());
  MutexLock lock(mu_);
  out->set_signatures(static_cast<int64_t>(steps_.size()));
  const Clock::Time now = environment_.clock->Now();
  for (const auto& [key, step] : running_) {
    out->add_running_seconds(Seconds(now - step->begin).count());
  }
}

void MasterSession::WaitUntilIdle() {
  MutexLock lock(mu_);
  while (!running_.empty()) idle_.Wait(mu_);
}

void MasterSession::DeleteWorkerSessions(WorkerDeletions* deletions) {
  graph_mu_.Lock();  // nothing opens sessions any more when it is free
  const HeldLock lock(graph_mu_);
  tasks_.Delete(deletions);
}

void MasterSession::Close() {
  if (!BeginClose(Cancelled("Step was cancelled by an explicit call to `Session::Close()`."))) {
    return;
  }
  WaitUntilIdle();
  WorkerDeletions deletions(&WorkerInterface::DeleteWorkerSessionAsync);
  DeleteWorkerSessions(&deletions);
  // A worker that is gone has lost the session anyway.
  deletions.Wait(nullptr).IgnoreError();
}

Status MasterSession::ListDevices(std::vector<DeviceAttributes>* devices,
                                  Cancellation* cancellation) {
  const Use use(*this);
  EitherEnd end(closing_, cancellation);
  if (!graph_mu_.LockUnless(*end.get())) return end.get()->status();
  const HeldLock lock(graph_mu_);
  TENON_RETURN_IF_ERROR(tasks_.Reach(tasks_.All(), end.get()));
  RememberTasks();
  for (const auto& [task, attributes] : tasks_.reached()) {
    devices->insert(devices->end(), attributes.begin(), attributes.end());
  }
  return OkStatus();
}

}  // namespace tenon
