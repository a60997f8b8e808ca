// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/worker.h"

#include "core/device/device_name.h"
#include "core/proto/proto_io_graph.h"
#include "distributed/protocol/pass_options.h"
#include "distributed/protocol/proto_io_cluster.h"
#include "distributed/worker/partial_graph.h"
#include "distributed/worker/step_stats.h"
#include "runtime/compile/compiler.h"
#include "runtime/compile/placer.h"
#include "runtime/device/session_device.h"

namespace tenon {

/// A partition at work.
struct Worker::RunningGraph {
  RunGraphCall* call;
  Cancellation* outer;
  Done done;
  std::shared_ptr<const RegisteredGraph> graph;
  std::shared_ptr<MasterState> session;  // keeps the kernels
  std::unique_ptr<RunGroups> groups;
  std::shared_ptr<TaskRun> step;
  ProgramRun run;
  std::vector<Tensor> no_args, no_retvals;  // the values come and go by the rendezvous
  Cancellation cancellation;
  Cancellation::Token token = Cancellation::kAlreadyCancelled;
  RunTrace trace;
};

Worker::Worker(WorkerEnvironment environment)
    : environment_(std::move(environment)),
      runtime_{environment_.devices, environment_.pool},
      // Everything in the environment outlives the worker.
      peers_(new TaskPeers{
          environment_.task,
          environment_.group_leader.empty() ? environment_.task : environment_.group_leader,
          {std::shared_ptr<WorkerDirectory>(), environment_.workers},
          ArrivalMemory(environment_.devices)}),
      steps_(environment_.task, *environment_.clock),
      groups_(std::make_shared<TaskGroups>(peers_, environment_.devices, steps_, *environment_.pool,
                                           *environment_.clock)),
      group_leader_(*environment_.entropy, *environment_.clock, groups_->LeaderSteps()) {
  auto legacy = std::make_shared<MasterState>();
  legacy->peers = peers_;
  legacy->groups = groups_;
  legacy->runtime = runtime_;
  MutexLock lock(mu_);
  sessions_.emplace("", std::move(legacy));
}

Worker::~Worker() = default;

Worker::MasterState::~MasterState() {
  if (own_resources == nullptr) return;
  // What iterates holds functions, these the devices, and these the resources.
  for (const ResourceStore::Usage& usage : own_resources->Usages()) {
    own_resources->Clear(usage.container);
  }
}

void Worker::Shutdown() {
  {
    MutexLock lock(mu_);
    closing_ = true;
  }
  const Status why = Cancelled("the server of ", environment_.task, " is shutting down");
  EndGroups(why);
  steps_.AbortAll(why);
  runtime_.running->CloseAndWait(why, why);
  MutexLock lock(mu_);
  while (running_ > 0) idle_.Wait(mu_);
}

void Worker::EndGroups(const Status& why) {
  std::vector<std::shared_ptr<TaskGroups>> groups;
  {
    MutexLock lock(mu_);
    for (const auto& [handle, session] : sessions_) groups.push_back(session->groups);
  }
  for (const auto& g : groups) g->End(why);
}

void Worker::GetStatusAsync(const GetStatusRequest&, GetStatusResponse* response, Done done) {
  for (const Device* d : environment_.devices) {
    DeviceAttributes* const out = response->add_device_attributes();
    out->set_name(d->name());
    out->set_device_type(std::string(d->kind().name()));
    out->set_memory_limit(d->memory_limit());
    out->set_incarnation(d->incarnation());
    out->mutable_locality();
    out->set_xla_global_id(-1);
  }
  done(OkStatus());
}

StatusOr<std::shared_ptr<Worker::MasterState>> Worker::NewSession(
    const CreateWorkerSessionRequest& request) {
  const auto end = [run_blocking = environment_.run_blocking](MasterState* ended) {
    const auto work = [ended] { delete ended; };
    if (ended->own_resources == nullptr || run_blocking == nullptr || !run_blocking(work).ok()) {
      work();
    }
  };
  const std::shared_ptr<MasterState> session(new MasterState(environment_.limits), end);
  session->last_use = environment_.clock->Now();
  session->master_task = request.master_task();
  session->master_incarnation = request.master_incarnation();
  session->peers = peers_;
  session->groups = groups_;
  session->runtime = runtime_;
  const ServerDef& server = request.server_def();
  const bool has_cluster = server.cluster().job_size() > 0;
  if (!has_cluster && !request.isolate_session_state()) return session;
  if (has_cluster) {
    TENON_ASSIGN_OR_RETURN(const ClusterSpec cluster, ClusterFromProto(server.cluster()));
    TENON_RETURN_IF_ERROR(cluster.Address(server.job_name(), server.task_index()).status());
    if (environment_.session_directories == nullptr) {
      return Unimplemented(environment_.task, " takes no session with a cluster of its own");
    }
    auto peers = std::make_shared<TaskPeers>();
    peers->task = TaskName(server.job_name(), server.task_index());
    peers->memory = peers_->memory;
    TENON_ASSIGN_OR_RETURN(peers->workers, environment_.session_directories(cluster, peers->task));
    peers->leader = GroupLeaderOf(cluster);
    session->peers = std::move(peers);
    session->groups = std::make_shared<TaskGroups>(session->peers, environment_.devices, steps_,
                                                   *environment_.pool, *environment_.clock);
  }
  const auto devices = SessionDevices::Make(environment_.devices, session->peers->task);
  session->own_resources = devices->resources;
  session->runtime.devices.clear();
  for (const auto& d : devices->devices) session->runtime.devices.push_back(d.get());
  session->runtime.owner = devices;
  return session;
}

void Worker::CreateWorkerSessionAsync(const CreateWorkerSessionRequest& request,
                                      CreateWorkerSessionResponse*, Done done) {
  if (request.session_handle().empty()) return done(InvalidArgument("Session must be non-empty."));
  if (request.master_task() == environment_.task &&
      static_cast<uint64_t>(request.master_incarnation()) !=
          environment_.devices[0]->incarnation()) {
    // It would end this task's own sessions, as a master that has restarted does.
    return done(PermissionDenied("a master that is not ", environment_.task,
                                 " says that it is: incarnation ", request.master_incarnation()));
  }
  auto made = NewSession(request);
  if (!made.ok()) return done(made.status());
  std::vector<std::pair<std::string, std::shared_ptr<MasterState>>> outlived;
  bool full = false;
  {
    MutexLock lock(mu_);
    // A master that comes with a new incarnation has restarted: nobody can use its old sessions.
    for (auto it = sessions_.begin(); it != sessions_.end();) {
      const MasterState& s = *it->second;
      if (!request.master_task().empty() && s.master_task == request.master_task() &&
          s.master_incarnation != request.master_incarnation()) {
        outlived.emplace_back(it->first, std::move(it->second));
        sessions_.erase(it++);
      } else {
        ++it;
      }
    }
    const auto found = sessions_.find(request.session_handle());
    if (found != sessions_.end()) {
      found->second->last_use = environment_.clock->Now();
    } else if (static_cast<int64_t>(sessions_.size()) > environment_.limits.sessions) {
      full = true;
    } else {
      idle_since_ = (*made)->last_use;
      sessions_.emplace(request.session_handle(), *std::move(made));
    }
  }
  for (const auto& [handle, session] : outlived) EndSession(handle, *session);
  if (environment_.on_master) {
    environment_.on_master(request.master_task(), request.master_incarnation());
  }
  done(full ? ResourceExhausted(environment_.task, " has ", environment_.limits.sessions,
                                " sessions, as many as it may have")
            : OkStatus());
}

void Worker::DeleteWorkerSessionAsync(const DeleteWorkerSessionRequest& request,
                                      DeleteWorkerSessionResponse*, Done done) {
  std::shared_ptr<MasterState> dying;
  if (!request.session_handle().empty()) {
    MutexLock lock(mu_);
    const auto found = sessions_.find(request.session_handle());
    if (found != sessions_.end()) {
      dying = std::move(found->second);
      sessions_.erase(found);
    }
  }
  if (dying != nullptr) EndSession(request.session_handle(), *dying);
  done(OkStatus());
}

void Worker::EndSession(const std::string& handle, MasterState& session) {
  steps_.RemoveSession(handle);
  if (session.groups != groups_) session.groups->End(Cancelled("the session has ended"));
  MutexLock lock(mu_);
  idle_since_ = environment_.clock->Now();
}

StatusOr<std::shared_ptr<Worker::MasterState>> Worker::FindSession(const std::string& handle) {
  MutexLock lock(mu_);
  const auto found = sessions_.find(handle);
  if (found != sessions_.end()) return found->second;
  return Aborted("Session handle is not found: ", handle, ". Possibly this worker (\"",
                 environment_.task, "\") just restarted.");
}

void Worker::RegisterGraphAsync(const RegisterGraphRequest& request,
                                RegisterGraphResponse* response, Done done) {
  done(RegisterGraph(request, response));
}

Status Worker::RegisterGraph(const RegisterGraphRequest& request, RegisterGraphResponse* response) {
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<MasterState> session,
                         FindSession(request.session_handle()));
  const ChargedTo account(session->memory.get());  // the constants
  GraphImportOptions import;
  import.allow_internal_names = true;
  import.infer_shapes = false;  // the master has done it on the whole graph
  TENON_ASSIGN_OR_RETURN(Graph graph,
                         GraphFromProto(request.graph_def(), *environment_.registry, import));
  AssignRequestedDevices(&graph);
  const PassOptions passes =
      PassesOf(request.has_config_proto() ? request.config_proto().graph_options()
                                          : request.graph_options());
  const Compiler compiler(session->runtime,
                          {.passes = passes, .max_nodes = environment_.limits.graph_nodes});
  auto registered = std::make_shared<RegisteredGraph>();
  registered->group_parts = CountGroupParts(graph);
  TENON_ASSIGN_OR_RETURN(registered->program, compiler.Build(std::move(graph), session->kernels));
  MutexLock lock(mu_);
  const std::string handle = StrCat(absl::Hex(session->next_graph++, absl::kZeroPad16));
  session->graphs.emplace(handle, std::move(registered));
  session->last_use = environment_.clock->Now();
  response->set_graph_handle(handle);
  return OkStatus();
}

void Worker::DeregisterGraphAsync(const DeregisterGraphRequest& request, DeregisterGraphResponse*,
                                  Done done) {
  auto session = FindSession(request.session_handle());
  if (!session.ok()) return done(session.status());
  const auto dying = [&] {
    MutexLock lock(mu_);
    return (*session)->graphs.extract(request.graph_handle());
  }();
  done(!dying.empty() ? OkStatus()
                      : Aborted("Graph handle is not found: ", request.graph_handle(),
                                ". Possibly, this worker just restarted."));
}

void Worker::RunGraphAsync(RunGraphCall* call, Cancellation* cancellation, Done done) {
  if (Status s = graph_requests_.Track(call->request_id, "RunGraph (Worker)"); !s.ok()) {
    return done(s);
  }
  auto session = FindSession(call->session_handle);
  if (!session.ok()) return done(session.status());
  auto run = std::make_shared<RunningGraph>();
  run->call = call;
  run->outer = cancellation;
  run->session = *std::move(session);
  {
    MutexLock lock(mu_);
    const auto found = run->session->graphs.find(call->graph_handle);
    if (found != run->session->graphs.end() && !closing_) run->graph = found->second;
    if (run->graph != nullptr) {
      ++running_;
      ++run->session->running;
    }
  }
  if (run->graph == nullptr) {
    return done(Aborted("Graph handle is not found: ", call->graph_handle));
  }
  run->done = std::move(done);
  auto step = steps_.Run(call->step_id, call->session_handle, run->session->peers);
  if (!step.ok()) return EndRun(*run->session, run->done, step.status());
  run->step = *std::move(step);
  for (auto& [text, tensor] : call->send) {
    Status status = RendezvousKey::Parse(text).status();
    if (status.ok()) status = run->step->Send(text, std::move(tensor), false);
    if (!status.ok()) return FinishGraph(run, status);
  }
  if (call->is_partial) return RunPart(run);
  run->groups = std::make_unique<RunGroups>(run->session->groups, run->graph->group_parts);
  run->run = run->step->MakeRun(call->settings, run->cancellation, run->session->memory.get(),
                                &run->trace, *run->groups);
  run->cancellation.Register([step = run->step](const Status& why) { step->Abort(why); });
  if (cancellation != nullptr) {
    run->token =
        cancellation->Register([run](const Status& why) { run->cancellation.Cancel(why); });
    if (run->token == Cancellation::kAlreadyCancelled) {
      return FinishGraph(run, cancellation->status());
    }
  }
  run->graph->program->Start(run->run, run->no_args, &run->no_retvals,
                             [this, run](Status s) { FinishGraph(run, std::move(s)); });
}

void Worker::RunPart(const std::shared_ptr<RunningGraph>& run) {
  RunGraphCall* const call = run->call;
  bool is_first = false;
  const std::shared_ptr<PartialGraph> partial = run->step->FindOrMakePartial([&] {
    is_first = true;
    return std::make_shared<PartialGraph>(
        run->graph, std::shared_ptr<MemoryAccount>(run->session, run->session->memory.get()),
        call->settings, run->session->groups);
  });
  if (partial->graph() != run->graph.get()) {
    return FinishGraph(run, InvalidArgument("step ", call->step_id, " runs another graph"));
  }
  if (is_first) {
    {
      MutexLock lock(mu_);
      ++running_;
    }
    partial->Start(run->step, [this] {
      MutexLock lock(mu_);
      if (--running_ == 0) idle_.NotifyAll();
    });
  }
  partial->Take(call, run->step, run->outer,
                [this, session = run->session, done = std::move(run->done)](Status status) {
                  EndRun(*session, done, std::move(status));
                });
}

void Worker::FinishGraph(std::shared_ptr<RunningGraph> run, Status status) {
  if (run->token != Cancellation::kAlreadyCancelled) run->outer->Deregister(run->token);
  RunGraphCall& call = *run->call;
  if (status.ok()) {
    call.received.resize(call.recv_keys.size());
    for (size_t i = 0; i < call.recv_keys.size(); ++i) {
      // Every send of the partition has happened, so it is there now or never.
      bool dead = false;
      status = run->step->HandOut(call.recv_keys[i], &call.received[i], &dead);
      if (status.ok() && dead) status = DeadFetch(call, i);
      if (!status.ok()) break;
    }
  }
  if (!status.ok()) {
    run->step->Abort(status);
    if (run->groups != nullptr) run->groups->HandleFailure(status);
  }
  if (call.settings.trace) TraceToStepStats(run->trace.Take(), &call.step_stats);
  const Done done = std::move(run->done);
  const std::shared_ptr<MasterState> session = std::move(run->session);
  run.reset();
  EndRun(*session, done, std::move(status));
}

void Worker::EndRun(MasterState& session, const Done& done, Status status) {
  done(std::move(status));
  MutexLock lock(mu_);
  idle_since_ = environment_.clock->Now();
  if (--session.running == 0) session.last_use = *idle_since_;
  if (--running_ == 0) idle_.NotifyAll();
}

void Worker::Sweep() {
  if (environment_.limits.session_timeout.count() <= 0) return;
  std::vector<std::pair<std::string, std::shared_ptr<MasterState>>> dying;
  {
    MutexLock lock(mu_);
    const Clock::Time limit = environment_.clock->Now() - environment_.limits.session_timeout;
    for (auto it = sessions_.begin(); it != sessions_.end();) {
      const MasterState& s = *it->second;
      // Masters of ours tell of their sessions more often than this.
      if (!it->first.empty() && s.running == 0 && s.last_use < limit) {
        dying.emplace_back(it->first, std::move(it->second));
        sessions_.erase(it++);
      } else {
        ++it;
      }
    }
  }
  for (const auto& [handle, session] : dying) EndSession(handle, *session);
}

void Worker::Describe(cluster::ServerStatusResponse* out) {
  {
    MutexLock lock(mu_);
    for (const auto& [handle, session] : sessions_) {
      if (handle.empty() && session->graphs.empty()) continue;
      auto* s = out->add_worker_sessions();
      s->set_id(handle.substr(0, 8));
      s->set_master(session->master_task);
      s->set_graphs(static_cast<int64_t>(session->graphs.size()));
      s->set_running(session->running);
      s->set_bytes(session->memory->bytes_in_use());
    }
  }
  steps_.Describe(environment_.clock->Now(), out);
  // The devices of a task share their resources.
  for (const ResourceStore::Usage& usage : environment_.devices[0]->resources().Usages()) {
    auto* container = out->add_containers();
    container->set_name(usage.container);
    container->set_resources(usage.resources);
    container->set_bytes(usage.bytes);
  }
}

void Worker::RecvTensorAsync(RecvTensorCall* call, Cancellation* cancellation, Done done) {
  auto key = RendezvousKey::Parse(call->key);
  if (!key.ok()) return done(key.status());
  if (Status s = CheckSource(*key); !s.ok()) return done(s);
  if (Status s = receive_requests_.Track(call->request_id, "RecvTensor (GrpcWorker)"); !s.ok()) {
    return done(s);
  }
  const int64_t step_id = call->step_id;
  auto step = steps_.BeginReceive(step_id);
  if (!step.ok()) return done(step.status());
  const std::string text = call->key;  // `call` may be gone once its caller can give up
  /// The waiting receive: answered by the tensor or by its caller giving up, whichever is first.
  struct Waiting {
    Mutex mu;
    Done done ABSL_GUARDED_BY(mu);
    Done Take() {
      MutexLock lock(mu);
      return std::exchange(done, nullptr);
    }
  };
  auto waiting = std::make_shared<Waiting>();
  {
    MutexLock lock(waiting->mu);
    waiting->done = [this, step_id, done = std::move(done)](Status s) {
      steps_.EndReceive(step_id);
      done(std::move(s));
    };
  }
  Cancellation::Token token = Cancellation::kAlreadyCancelled;
  if (cancellation != nullptr) {
    token = cancellation->Register([waiting](const Status& why) {
      if (Done d = waiting->Take()) d(why);
    });
    if (token == Cancellation::kAlreadyCancelled) {
      if (Done d = waiting->Take()) d(cancellation->status());
      return;
    }
  }
  (*step)->HandOutAsync(
      text, [waiting, call, cancellation, token](const Status& status, Tensor value, bool dead) {
        Done d = waiting->Take();
        if (d == nullptr) return;  // `call` and `cancellation` are gone with their caller
        if (cancellation != nullptr) cancellation->Deregister(token);
        call->tensor = std::move(value);
        call->is_dead = dead;
        d(status);
      });
}

Status Worker::CheckSource(const RendezvousKey& key) const {
  const std::string_view device = key.src_device;
  for (Device* d : environment_.devices) {
    // By type and number only: a master may know this task by another name.
    if (DevicePartOf(d->name()) != DevicePartOf(device)) continue;
    if (d->incarnation() == key.src_incarnation) return OkStatus();
    return Aborted("RecvTensor expects a different device incarnation: ", key.src_incarnation,
                   " vs. ", d->incarnation(), ". Your worker job (\"", environment_.task,
                   "\") was probably restarted. Check your worker job for the reason why it was "
                   "restarted.");
  }
  return InvalidArgument(environment_.task, " has no device ", device, ", which a receive names");
}

void Worker::CleanupGraphAsync(const CleanupGraphRequest& request, CleanupGraphResponse*,
                               Done done) {
  steps_.Remove(request.step_id());
  done(OkStatus());
}

void Worker::CompleteGroupAsync(const CompleteGroupRequest& request,
                                CompleteGroupResponse* response, Cancellation* cancellation,
                                Done done) {
  group_leader_.Complete(request, response, cancellation, std::move(done));
}

void Worker::CleanupAllAsync(const CleanupAllRequest& request, CleanupAllResponse*, Done done) {
  for (Device* d : environment_.devices) {
    if (request.container().empty()) d->resources().Clear("");
    for (const std::string& c : request.container()) d->resources().Clear(c);
  }
  done(OkStatus());
}

void Worker::LoggingAsync(const LoggingRequest& request, LoggingResponse* response, Done done) {
  steps_.transfers().Answer(request, response);
  done(OkStatus());
}

}  // namespace tenon
