// SPDX-License-Identifier: Apache-2.0
#include "distributed/master_session.h"

#include <algorithm>
#include <future>

#include "core/proto_io_graph.h"
#include "runtime/passes/pass.h"
#include "runtime/placer.h"

namespace tenon {
namespace {

/// How long one attempt to reach a task takes at most, and the pause before the next.
constexpr std::chrono::milliseconds kRetryPause{100};

/// A year: longer limits would overflow a clock.
constexpr int64_t kLongestTimeoutMs = int64_t{365} * 24 * 3600 * 1000;

/// Ids are kept to catch a request that the client's transport sent twice; only recent ones matter.
constexpr size_t kRememberedRequests = 4096;

PassOptions PassesOf(const ConfigProto& config) {
  PassOptions options;
  const GraphOptions& graph = config.graph_options();
  options.enabled = graph.optimizer_options().opt_level() != OptimizerOptions::L0 &&
                    !graph.rewrite_options().disable_meta_optimizer();
  if (graph.rewrite_options().constant_folding() == RewriterConfig::OFF) {
    options.disabled.push_back("constant-folding");
  }
  if (graph.rewrite_options().common_subgraph_elimination() == RewriterConfig::OFF) {
    options.disabled.push_back("common-subexpressions");
  }
  return options;
}

/// Runs an asynchronous call to its end on this thread.
template <typename Start>
Status Await(Start start) {
  std::promise<Status> promise;
  start([&](Status s) { promise.set_value(std::move(s)); });
  return promise.get_future().get();
}

}  // namespace

struct MasterSession::RunningStep {
  std::shared_ptr<MasterSession> session;
  std::shared_ptr<MasterStep> step;
  Cancellation own;
  Cancellation* outer = nullptr;
  Cancellation::Token token = Cancellation::kAlreadyCancelled;
  std::function<void(Status)> done;
};

MasterSession::MasterSession(const MasterEnvironment& environment, std::string handle,
                             ConfigProto config)
    : environment_(environment), handle_(std::move(handle)), config_(std::move(config)) {}

MasterSession::~MasterSession() = default;

Status MasterSession::Start(const GraphDef& proto) {
  MutexLock lock(graph_mu_);
  TENON_ASSIGN_OR_RETURN(Graph graph, GraphFromProto(proto, *environment_.registry));
  TENON_RETURN_IF_ERROR(ReachTasks(graph));
  TENON_RETURN_IF_ERROR(Place(&graph));
  graph_ = std::make_unique<Graph>(std::move(graph));
  return OkStatus();
}

Status MasterSession::Extend(const GraphDef& proto, int64_t current_version,
                             int64_t* new_version) {
  MutexLock lock(graph_mu_);
  if (current_version != version_) {
    return Aborted("Current version is ", version_, " but caller expected ", current_version, ".");
  }
  Graph extended = graph_->Clone();
  TENON_RETURN_IF_ERROR(ExtendGraphFromProto(proto, &extended));
  TENON_RETURN_IF_ERROR(ReachTasks(extended));
  TENON_RETURN_IF_ERROR(Place(&extended));
  *graph_ = std::move(extended);
  *new_version = ++version_;
  return OkStatus();
}

bool MasterSession::TaskAllowed(const std::string& task) const {
  if (config_.device_filters().empty() || task == environment_.task) return true;
  const auto name = DeviceName::Parse(task);
  return name.ok() && std::any_of(config_.device_filters().begin(), config_.device_filters().end(),
                                  [&](const std::string& filter) {
                                    const auto f = DeviceName::Parse(filter);
                                    return f.ok() && f->Matches(*name);
                                  });
}

std::vector<std::string> MasterSession::TasksFor(const DeviceName& name) const {
  std::vector<std::string> tasks;
  for (const auto& [job, members] : environment_.cluster.jobs()) {
    if (name.job && *name.job != job) continue;
    for (const auto& [task, address] : members) {
      if (name.task && *name.task != task) continue;
      if (TaskAllowed(TaskName(job, task))) tasks.push_back(TaskName(job, task));
    }
  }
  return tasks;
}

Status MasterSession::ReachTasks(const Graph& graph) {
  std::set<std::string> wanted;
  StringSet seen;
  for (const Node* n : graph.nodes()) {
    const std::string& request = n->requested_device();
    if (request.empty() || !seen.insert(request).second) continue;
    TENON_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(request));
    if (!name.job && !name.task) continue;  // stays on the master's own task
    for (std::string& task : TasksFor(name)) wanted.insert(std::move(task));
  }
  wanted.insert(environment_.task);
  const Clock::Time deadline = environment_.clock->Now() + environment_.start_up_deadline;
  for (const std::string& task : wanted) TENON_RETURN_IF_ERROR(ReachTask(task, deadline));
  return OkStatus();
}

Status MasterSession::ReachTask(const std::string& task, Clock::Time deadline) {
  if (reached_.contains(task)) return OkStatus();
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<WorkerInterface> worker, environment_.workers->Get(task));
  const GetStatusRequest request;
  while (true) {
    GetStatusResponse response;
    const Status status = Await([&](WorkerInterface::Done done) {
      worker->GetStatusAsync(request, &response, std::move(done));
    });
    if (status.ok()) {
      TENON_RETURN_IF_ERROR(OpenWorkerSession(task, *worker));
      reached_[task] = {response.device_attributes().begin(), response.device_attributes().end()};
      return OkStatus();
    }
    if (status.code() != StatusCode::kUnavailable) return status;
    if (environment_.clock->Now() >= deadline) {
      std::vector<std::string> fine;
      for (const auto& [name, devices] : reached_) fine.push_back(name);
      return DeadlineExceeded(
          "task ", task, " at ", environment_.workers->Address(task), " did not answer within ",
          environment_.start_up_deadline.count() / 1000.0, " s; last error: ", Message(status),
          "; tasks that answered: ", fine.empty() ? "none" : Join(fine, ", "));
    }
    std::promise<void> pause;
    environment_.clock->CallAfter(kRetryPause, [&] { pause.set_value(); });
    pause.get_future().wait();
  }
}

Status MasterSession::OpenWorkerSession(const std::string& task, WorkerInterface& worker) {
  TENON_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(task));
  CreateWorkerSessionRequest request;
  CreateWorkerSessionResponse response;
  request.set_session_handle(handle_);
  request.mutable_server_def()->set_protocol("grpc");
  request.mutable_server_def()->set_job_name(name.job.value_or(""));
  request.mutable_server_def()->set_task_index(name.task.value_or(0));
  request.set_master_task(environment_.task);
  request.set_master_incarnation(
      static_cast<int64_t>(environment_.devices[0]->incarnation()));
  request.set_isolate_session_state(config_.isolate_session_state());
  return Await([&](WorkerInterface::Done done) {
    worker.CreateWorkerSessionAsync(request, &response, std::move(done));
  });
}

Status MasterSession::Place(Graph* graph) {
  std::vector<PlacementDevice> devices;
  for (const auto& [task, attributes] : reached_) {
    for (const DeviceAttributes& d : attributes) {
      TENON_ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(d.name()));
      devices.push_back({std::move(name), d.device_type() == "GPU" ? kCuda : kCpu});
    }
  }
  PlacementOptions options;
  TENON_ASSIGN_OR_RETURN(options.default_device, DeviceName::Parse(environment_.task));
  options.allow_soft_placement = config_.allow_soft_placement();
  return PlaceNodes(graph, devices, options);
}

StatusOr<std::shared_ptr<MasterStep>> MasterSession::Compile(const StepSignature& signature) {
  const std::string key = signature.Key();
  MutexLock lock(graph_mu_);
  {
    MutexLock state_lock(mu_);
    const auto found = steps_.find(key);
    if (found != steps_.end()) return found->second;
  }
  TENON_ASSIGN_OR_RETURN(Graph graph, MakeStepGraph(*graph_, signature));
  TENON_RETURN_IF_ERROR(RunPasses(&graph, {environment_.devices[0]}, PassesOf(config_)));
  MasterStep::Environment environment;
  environment.session_handle = handle_;
  environment.workers = environment_.workers;
  environment.config = config_;
  flat_hash_map<std::string, uint64_t> incarnations;
  for (const auto& [task, devices] : reached_) {
    for (const DeviceAttributes& d : devices) incarnations[d.name()] = d.incarnation();
  }
  environment.incarnation = [&](const std::string& d) { return incarnations[d]; };
  TENON_ASSIGN_OR_RETURN(
      std::shared_ptr<MasterStep> step,
      MasterStep::Register(std::move(graph), signature, FeedSpec(*graph_, signature), environment));
  MutexLock state_lock(mu_);
  steps_.emplace(key, step);
  return step;
}

bool MasterSession::IsCompiled(const RunStepCall& call) {
  StepSignature signature{{}, call.fetches, call.targets};
  for (const auto& [name, value] : call.feeds) signature.feeds.push_back(name);
  MutexLock lock(mu_);
  return steps_.contains(signature.Key());
}

Status MasterSession::CheckRequestId(int64_t id) {
  if (id == 0) return OkStatus();
  MutexLock lock(mu_);
  if (!request_ids_.insert(id).second) {
    return Aborted("The same RunStep (Master) request was received twice. request_id: ", id);
  }
  request_order_.push_back(id);
  if (request_order_.size() > kRememberedRequests) {
    request_ids_.erase(request_order_.front());
    request_order_.pop_front();
  }
  return OkStatus();
}

void MasterSession::RunStepAsync(RunStepCall* call, Cancellation* cancellation,
                                 std::function<void(Status)> done) {
  if (Status s = CheckRequestId(call->request_id); !s.ok()) return done(s);
  StepSignature signature{{}, call->fetches, call->targets};
  for (const auto& [name, value] : call->feeds) signature.feeds.push_back(name);
  std::shared_ptr<MasterStep> step;
  {
    MutexLock lock(mu_);
    const auto found = steps_.find(signature.Key());
    if (found != steps_.end()) step = found->second;
  }
  if (step == nullptr) {
    auto compiled = Compile(signature);
    if (!compiled.ok()) return done(compiled.status());
    step = *std::move(compiled);
  }
  // Not make_shared: a timer's weak_ptr would keep the whole step until it fires.
  std::shared_ptr<RunningStep> running(new RunningStep);
  running->session = shared_from_this();
  running->step = std::move(step);
  running->outer = cancellation;
  running->done = std::move(done);
  {
    MutexLock lock(mu_);
    if (closed_) {
      const auto callback = std::move(running->done);
      return callback(FailedPrecondition("Session is closed."));
    }
    running_.emplace(running.get(), running);
  }
  if (cancellation != nullptr) {
    running->token = cancellation->Register(
        [running](const Status& why) { running->own.Cancel(why); });
    if (running->token == Cancellation::kAlreadyCancelled) {
      return EndStep(running.get(), cancellation->status());
    }
  }
  if (call->timeout_ms > 0) {
    environment_.clock->CallAfter(
        std::chrono::milliseconds(std::min(call->timeout_ms, kLongestTimeoutMs)),
        [weak = std::weak_ptr<RunningStep>(running), limit = call->timeout_ms] {
          if (const auto late = weak.lock()) {
            late->own.Cancel(DeadlineExceeded("the step took longer than ", limit, " ms"));
          }
        });
  }
  running->step->RunAsync(call, &running->own, [running](Status status) {
    running->session->EndStep(running.get(), std::move(status));
  });
}

void MasterSession::EndStep(RunningStep* step, Status status) {
  // What cancelled the step is a better answer than what its parts said when they were cancelled.
  if (status.code() == StatusCode::kCancelled && step->own.cancelled()) {
    status = step->own.status();
  }
  if (step->token != Cancellation::kAlreadyCancelled) step->outer->Deregister(step->token);
  const auto done = std::move(step->done);
  const std::shared_ptr<MasterSession> keep = step->session;
  std::shared_ptr<RunningStep> last;  // dies after the lock
  {
    MutexLock lock(mu_);
    const auto found = running_.find(step);
    last = std::move(found->second);
    running_.erase(found);
    if (running_.empty()) idle_.NotifyAll();
  }
  done(std::move(status));
}

void MasterSession::Close() {
  std::vector<std::shared_ptr<RunningStep>> running;
  {
    MutexLock lock(mu_);
    if (closed_) return;
    closed_ = true;
    for (const auto& [key, step] : running_) running.push_back(step);
  }
  // Without the lock: a step may end on this thread, inside Cancel.
  for (const std::shared_ptr<RunningStep>& step : running) {
    step->own.Cancel(Cancelled("Step was cancelled by an explicit call to `Session::Close()`."));
  }
  running.clear();
  {
    MutexLock lock(mu_);
    while (!running_.empty()) idle_.Wait(mu_);
  }
  std::vector<std::string> tasks;
  {
    MutexLock lock(graph_mu_);
    for (const auto& [task, devices] : reached_) tasks.push_back(task);
  }
  DeleteWorkerSessionRequest request;
  request.set_session_handle(handle_);
  for (const std::string& task : tasks) {
    auto worker = environment_.workers->Get(task);
    if (!worker.ok()) continue;
    // A worker that is gone has lost the session anyway.
    DeleteWorkerSessionResponse response;
    Await([&](WorkerInterface::Done done) {
      (*worker)->DeleteWorkerSessionAsync(request, &response, std::move(done));
    }).IgnoreError();
  }
}

Status MasterSession::ListDevices(std::vector<DeviceAttributes>* devices) {
  MutexLock lock(graph_mu_);
  const Clock::Time deadline = environment_.clock->Now() + environment_.start_up_deadline;
  for (const std::string& task : environment_.cluster.TaskNames()) {
    if (TaskAllowed(task)) TENON_RETURN_IF_ERROR(ReachTask(task, deadline));
  }
  for (const auto& [task, attributes] : reached_) {
    devices->insert(devices->end(), attributes.begin(), attributes.end());
  }
  return OkStatus();
}

}  // namespace tenon
