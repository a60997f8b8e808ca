// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/master.h"

#include <algorithm>

#include "core/device/device_name.h"
#include "distributed/protocol/proto_io_cluster.h"

namespace tenon {
namespace {

Status UnknownSession(const std::string& handle) {
  return Aborted("Session ", handle, " is not found.");
}

constexpr std::chrono::seconds kLongestSweepPause{600};

Status SessionClosed() {
  return Cancelled("Step was cancelled by an explicit call to `Session::Close()`.");
}

/// 128 random bits: nobody guesses another client's session.
std::string NewHandle(Entropy& entropy) {
  return StrCat(absl::Hex(entropy.Next(), absl::kZeroPad16),
                absl::Hex(entropy.Next(), absl::kZeroPad16));
}

std::shared_ptr<const MasterEnvironment> WithStepIds(MasterEnvironment environment) {
  environment.step_ids = std::make_shared<StepIds>(environment.entropy->Next());
  return std::make_shared<const MasterEnvironment>(std::move(environment));
}

}  // namespace

Master::Master(MasterEnvironment environment)
    : shared_environment_(WithStepIds(std::move(environment))) {
  {
    MutexLock lock(alive_->mu);
    alive_->master = this;
  }
}

void Master::StartSweeping() {
  if (environment_.limits.session_timeout.count() > 0 && !sweeping_.exchange(true)) SweepLater();
  if (environment_.notice && !watching_.exchange(true)) WatchLater();
}

Master::~Master() {
  {
    MutexLock lock(alive_->mu);
    alive_->master = nullptr;
  }
  CloseAll(TakeSessions(), Cancelled("the server of ", environment_.task, " is shutting down"));
}

void Master::SweepLater() {
  const auto pause = std::clamp<Clock::Duration>(
      environment_.limits.session_timeout / 4, std::chrono::milliseconds(100), kLongestSweepPause);
  environment_.clock->CallAfter(pause, [alive = std::weak_ptr<Alive>(alive_)] {
    const auto held = alive.lock();
    if (held == nullptr) return;
    MutexLock lock(held->mu);
    if (held->master != nullptr) held->master->Sweep();
  });
}

void Master::WatchLater() {
  environment_.clock->CallAfter(kWatchPause, [alive = std::weak_ptr<Alive>(alive_)] {
    const auto held = alive.lock();
    if (held == nullptr) return;
    MutexLock lock(held->mu);
    if (held->master == nullptr) return;
    std::vector<std::shared_ptr<MasterSession>> sessions;
    {
      MutexLock sessions_lock(held->master->mu_);
      for (const auto& [handle, session] : held->master->sessions_) sessions.push_back(session);
    }
    for (const auto& session : sessions) session->AskTasksOfLongStep();
    held->master->WatchLater();
  });
}

void Master::Sweep() {
  std::vector<std::pair<std::string, std::shared_ptr<MasterSession>>> sessions;
  {
    MutexLock lock(mu_);
    sessions.assign(sessions_.begin(), sessions_.end());
  }
  MasterSession::WorkerDeletions deletions(&WorkerInterface::DeleteWorkerSessionAsync);
  for (const auto& [handle, session] : sessions) {
    const auto idle = session->Idle();
    if (!idle || *idle < environment_.limits.session_timeout) {
      session->TouchWorkers();
      continue;
    }
    {
      MutexLock lock(mu_);
      sessions_.erase(handle);
    }
    if (!session->BeginClose(Aborted("the session was not used for ",
                                     environment_.limits.session_timeout.count(), " s"))) {
      continue;
    }
    session->DeleteWorkerSessions(&deletions);  // nobody waits for it
  }
  if (environment_.on_sweep) environment_.on_sweep();
  SweepLater();
}

void Master::Describe(cluster::ServerStatusResponse* out) {
  std::vector<std::shared_ptr<MasterSession>> sessions;
  {
    MutexLock lock(mu_);
    for (const auto& [handle, session] : sessions_) sessions.push_back(session);
  }
  for (const auto& session : sessions) session->Describe(out->add_sessions());
}

Master::Sessions Master::TakeSessions() {
  MutexLock lock(mu_);
  return std::exchange(sessions_, {});
}

void Master::CloseAll(const Sessions& sessions, const Status& why) {
  for (const auto& [handle, session] : sessions) session->BeginClose(why);
  MasterSession::WorkerDeletions deletions(&WorkerInterface::DeleteWorkerSessionAsync);
  for (const auto& [handle, session] : sessions) {
    session->WaitUntilIdle();
    session->DeleteWorkerSessions(&deletions);
  }
  // A worker that is gone has lost its sessions anyway.
  deletions.Wait(nullptr).IgnoreError();
}

void Master::Stop(const Status& why) {
  stopping_.Cancel(why);
  std::vector<std::shared_ptr<MasterSession>> sessions;
  {
    MutexLock lock(mu_);
    for (const auto& [handle, session] : sessions_) sessions.push_back(session);
  }
  for (const auto& session : sessions) session->CancelAll(why);
}

std::shared_ptr<MasterSession> Master::Find(const std::string& handle) {
  MutexLock lock(mu_);
  const auto found = sessions_.find(handle);
  return found == sessions_.end() ? nullptr : found->second;
}

StatusOr<std::shared_ptr<const MasterEnvironment>> Master::EnvironmentFor(
    const CreateSessionRequest& request) const {
  const ClusterDef& proto = request.config().cluster_def();
  if (proto.job_size() == 0) return shared_environment_;
  if (environment_.session_directories == nullptr) {
    return Unimplemented("this master takes no session with a cluster_def in its ConfigProto");
  }
  auto environment = std::make_shared<MasterEnvironment>(environment_);
  TENON_ASSIGN_OR_RETURN(environment->cluster, ClusterFromProto(proto));
  TENON_ASSIGN_OR_RETURN(environment->identity, AddressOfTarget(request.target()));
  const std::vector<std::string> tasks = environment->cluster.TaskNames();
  const auto own = std::find_if(tasks.begin(), tasks.end(), [&](const std::string& task) {
    const auto name = DeviceName::Parse(task);
    return *environment->cluster.Address(*name->job, *name->task) == environment->identity;
  });
  if (own == tasks.end()) {
    return InvalidArgument("the session's cluster_def, ", environment->cluster.ToString(),
                           ", has no task at its master's address, ", environment->identity);
  }
  environment->task = *own;
  environment->session_cluster = proto;
  TENON_ASSIGN_OR_RETURN(environment->session_workers,
                         environment_.session_directories(environment->cluster, *own));
  environment->workers = environment->session_workers.get();
  return environment;
}

Status Master::CreateSession(const CreateSessionRequest& request, CreateSessionResponse* response,
                             Cancellation* cancellation) {
  const ConfigProto& config = request.config();
  if (config.use_per_session_threads() || config.session_inter_op_thread_pool_size() > 0) {
    return InvalidArgument("Distributed session does not support session thread pool options.");
  }
  TENON_ASSIGN_OR_RETURN(auto environment, EnvironmentFor(request));
  struct Opening {
    explicit Opening(Master& master) : master(master) {
      MutexLock lock(master.mu_);
      ++master.opening_;
    }
    ~Opening() {
      MutexLock lock(master.mu_);
      --master.opening_;
    }
    Master& master;
  } opening(*this);
  {
    MutexLock lock(mu_);
    const int64_t open = static_cast<int64_t>(sessions_.size()) + opening_ - 1;
    if (open >= environment_.limits.sessions) {
      return ResourceExhausted("the server has ", open, " sessions, as many as it may have");
    }
  }
  const std::string handle = NewHandle(*environment_.entropy);
  Cancellation end;
  const CancellationLink stopping(&stopping_, end), caller(cancellation, end);
  auto session = std::make_shared<MasterSession>(std::move(environment), handle, config);
  Status status = session->Start(request.graph_def(), &end);
  if (status.ok()) {
    MutexLock lock(mu_);
    // Stop has not seen the session when it came in between.
    status = stopping_.status();
    if (status.ok()) sessions_.emplace(handle, session);
  }
  if (!status.ok()) {
    session->Close();
    return status;
  }
  response->set_session_handle(handle);
  return OkStatus();
}

Status Master::ExtendSession(const ExtendSessionRequest& request, ExtendSessionResponse* response,
                             Cancellation* cancellation) {
  const auto session = Find(request.session_handle());
  if (session == nullptr) return UnknownSession(request.session_handle());
  int64_t version = 0;
  TENON_RETURN_IF_ERROR(session->Extend(request.graph_def(), request.current_graph_version(),
                                        &version, cancellation));
  response->set_new_graph_version(version);
  return OkStatus();
}

Status Master::CloseSession(const CloseSessionRequest& request) {
  std::shared_ptr<MasterSession> session;
  {
    MutexLock lock(mu_);
    const auto found = sessions_.find(request.session_handle());
    if (found == sessions_.end()) {
      return Aborted("Session ", request.session_handle(),
                     " is not found. Possibly, this master has restarted.");
    }
    session = std::move(found->second);
    sessions_.erase(found);
  }
  session->Close();
  return OkStatus();
}

Status Master::MakeCallable(const MakeCallableRequest& request, MakeCallableResponse* response,
                            Cancellation* cancellation) {
  TENON_RETURN_IF_ERROR(callable_requests_.Track(request.request_id(), "MakeCallable (Master)"));
  const auto session = Find(request.session_handle());
  if (session == nullptr) return UnknownSession(request.session_handle());
  TENON_ASSIGN_OR_RETURN(const int64_t handle,
                         session->MakeCallable(request.options(), cancellation));
  response->set_handle(handle);
  return OkStatus();
}

Status Master::ReadCallable(const RunCallableRequest& request, ClientCall* call) {
  const auto session = Find(request.session_handle());
  if (session == nullptr) return UnknownSession(request.session_handle());
  TENON_ASSIGN_OR_RETURN(const auto callable, session->callables().Find(request.handle()));
  const Signature& signature = callable->signature;
  if (request.feed_size() != static_cast<int>(signature.feeds.size())) {
    return InvalidArgument("found ", request.feed_size(), " feeds, the callable takes ",
                           signature.feeds.size());
  }
  call->session_handle = request.session_handle();
  for (const std::string& name : signature.feeds) call->feeds.emplace_back(name, Tensor());
  call->fetches = signature.fetches;
  call->targets = signature.targets;
  call->connections = signature.connections;
  call->request_id = request.request_id();
  return call->SetOptions(callable->options);
}

Status Master::ReleaseCallable(const ReleaseCallableRequest& request) {
  const auto session = Find(request.session_handle());
  if (session == nullptr) return UnknownSession(request.session_handle());
  session->callables().Release(request.handle());
  return OkStatus();
}

Status Master::SetUpPartialRun(const PartialRunSetupRequest& request,
                               PartialRunSetupResponse* response, Cancellation* cancellation) {
  TENON_RETURN_IF_ERROR(set_up_requests_.Track(request.request_id(), "PartialRunSetup (Master)"));
  const auto session = Find(request.session_handle());
  if (session == nullptr) return UnknownSession(request.session_handle());
  const Signature signature{{request.feed().begin(), request.feed().end()},
                            {request.fetch().begin(), request.fetch().end()},
                            {request.target().begin(), request.target().end()}};
  TENON_ASSIGN_OR_RETURN(*response->mutable_partial_run_handle(),
                         session->SetUpPartialRun(signature, cancellation));
  return OkStatus();
}

Status Master::ListDevices(const ListDevicesRequest& request, ListDevicesResponse* response,
                           Cancellation* cancellation) {
  std::shared_ptr<MasterSession> session = Find(request.session_handle());
  if (session == nullptr) {
    if (!request.session_handle().empty()) {
      return InvalidArgument("Session ", request.session_handle(),
                             " is not found. Possibly, this master has restarted.");
    }
    session = std::make_shared<MasterSession>(shared_environment_, NewHandle(*environment_.entropy),
                                              ConfigProto());
  }
  Cancellation end;
  const CancellationLink stopping(&stopping_, end), caller(cancellation, end);
  std::vector<DeviceAttributes> devices;
  const Status status = session->ListDevices(&devices, &end);
  if (request.session_handle().empty()) session->Close();
  TENON_RETURN_IF_ERROR(status);
  for (DeviceAttributes& d : devices) *response->add_local_device() = std::move(d);
  return OkStatus();
}

Status Master::Reset(const ResetRequest& request, Cancellation* cancellation) {
  std::vector<DeviceName> filters;
  for (const std::string& filter : request.device_filters()) {
    TENON_ASSIGN_OR_RETURN(filters.emplace_back(), DeviceName::Parse(filter));
  }
  CloseAll(TakeSessions(), SessionClosed());
  CleanupAllRequest cleanup;
  for (const std::string& c : request.container()) cleanup.add_container(c);
  WorkerCalls<CleanupAllRequest, CleanupAllResponse> calls(&WorkerInterface::CleanupAllAsync);
  for (const std::string& task : environment_.cluster.TaskNames()) {
    TENON_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(task));
    const bool wanted =
        filters.empty() || std::any_of(filters.begin(), filters.end(),
                                       [&](const DeviceName& f) { return f.Matches(name); });
    if (!wanted) continue;
    TENON_ASSIGN_OR_RETURN(auto worker, environment_.workers->Get(task));
    calls.Start(std::move(worker), cleanup);
  }
  Cancellation end;
  const CancellationLink stopping(&stopping_, end), caller(cancellation, end);
  TENON_RETURN_IF_ERROR(calls.Wait(&end));
  Status status;
  for (size_t i = 0; i < calls.size(); ++i) status.Update(calls.status(i));
  return status;
}

bool Master::RunStepMayBlock(const ClientCall& call) {
  const auto session = Find(call.session_handle);
  return session != nullptr && !session->IsCompiled(call);
}

Status Master::Compile(const ClientCall& call, Cancellation* cancellation) {
  const auto session = Find(call.session_handle);
  if (session == nullptr) return UnknownSession(call.session_handle);
  return session->CompileFor(call, cancellation);
}

void Master::RunStepAsync(ClientCall* call, Cancellation* cancellation,
                          std::function<void(Status)> done) {
  if (Status s = step_requests_.Track(call->request_id, "RunStep (Master)"); !s.ok()) {
    return done(s);
  }
  const auto session = Find(call->session_handle);
  if (session == nullptr) return done(UnknownSession(call->session_handle));
  if (running_steps_->fetch_add(1, std::memory_order_relaxed) >= environment_.limits.steps) {
    running_steps_->fetch_sub(1, std::memory_order_relaxed);
    return done(ResourceExhausted("the server has ", environment_.limits.steps,
                                  " steps on their way, as many as it may have"));
  }
  session->RunStepAsync(call, cancellation,
                        [running = running_steps_, done = std::move(done)](Status status) {
                          running->fetch_sub(1, std::memory_order_relaxed);
                          done(std::move(status));
                        });
}

}  // namespace tenon
