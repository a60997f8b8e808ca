// SPDX-License-Identifier: Apache-2.0
#include "distributed/master.h"

#include <future>

#include "core/device_name.h"
#include "runtime/cpu_device.h"

namespace tenon {
namespace {

Status UnknownSession(const std::string& handle) {
  return Aborted("Session ", handle, " is not found.");
}

}  // namespace

Master::~Master() {
  StringMap<std::shared_ptr<MasterSession>> sessions;
  {
    MutexLock lock(mu_);
    sessions.swap(sessions_);
  }
  for (auto& [handle, session] : sessions) session->Close();
}

std::shared_ptr<MasterSession> Master::Find(const std::string& handle) {
  MutexLock lock(mu_);
  const auto found = sessions_.find(handle);
  return found == sessions_.end() ? nullptr : found->second;
}

int Master::num_sessions() {
  MutexLock lock(mu_);
  return static_cast<int>(sessions_.size());
}

Status Master::CreateSession(const CreateSessionRequest& request,
                             CreateSessionResponse* response) {
  const ConfigProto& config = request.config();
  if (config.use_per_session_threads() || config.session_inter_op_thread_pool_size() > 0) {
    return InvalidArgument("Distributed session does not support session thread pool options.");
  }
  if (config.has_cluster_def() && config.cluster_def().job_size() > 0) {
    return Unimplemented("a cluster_def in a session's ConfigProto: the cluster is the one the "
                         "server was started with");
  }
  std::string handle;
  {
    MutexLock lock(mu_);
    do {
      handle = StrCat(absl::Hex(RandomNonZero64(), absl::kZeroPad16));
    } while (sessions_.contains(handle));
  }
  auto session = std::make_shared<MasterSession>(environment_, handle, config);
  if (Status s = session->Start(request.graph_def()); !s.ok()) {
    session->Close();
    return s;
  }
  MutexLock lock(mu_);
  sessions_.emplace(handle, std::move(session));
  response->set_session_handle(handle);
  return OkStatus();
}

Status Master::ExtendSession(const ExtendSessionRequest& request,
                             ExtendSessionResponse* response) {
  const auto session = Find(request.session_handle());
  if (session == nullptr) return UnknownSession(request.session_handle());
  int64_t version = 0;
  TENON_RETURN_IF_ERROR(
      session->Extend(request.graph_def(), request.current_graph_version(), &version));
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

Status Master::ListDevices(const ListDevicesRequest& request, ListDevicesResponse* response) {
  std::shared_ptr<MasterSession> session = Find(request.session_handle());
  if (session == nullptr) {
    if (!request.session_handle().empty()) {
      return InvalidArgument("Session ", request.session_handle(),
                             " is not found. Possibly, this master has restarted.");
    }
    session = std::make_shared<MasterSession>(environment_, "list-devices", ConfigProto());
  }
  std::vector<DeviceAttributes> devices;
  const Status status = session->ListDevices(&devices);
  if (request.session_handle().empty()) session->Close();
  TENON_RETURN_IF_ERROR(status);
  for (DeviceAttributes& d : devices) *response->add_local_device() = std::move(d);
  return OkStatus();
}

Status Master::Reset(const ResetRequest& request) {
  StringMap<std::shared_ptr<MasterSession>> sessions;
  {
    MutexLock lock(mu_);
    sessions.swap(sessions_);
  }
  for (auto& [handle, session] : sessions) session->Close();
  CleanupAllRequest cleanup;
  for (const std::string& c : request.container()) cleanup.add_container(c);
  Status status;
  for (const std::string& task : environment_.cluster.TaskNames()) {
    TENON_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(task));
    bool wanted = request.device_filters().empty();
    for (const std::string& filter : request.device_filters()) {
      TENON_ASSIGN_OR_RETURN(const DeviceName f, DeviceName::Parse(filter));
      wanted |= f.Matches(name);
    }
    if (!wanted) continue;
    TENON_ASSIGN_OR_RETURN(std::shared_ptr<WorkerInterface> worker,
                           environment_.workers->Get(task));
    CleanupAllResponse response;
    std::promise<Status> done;
    worker->CleanupAllAsync(cleanup, &response, [&](Status s) { done.set_value(std::move(s)); });
    status.Update(done.get_future().get());
  }
  return status;
}

bool Master::RunStepMayBlock(const RunStepCall& call) {
  const auto session = Find(call.session_handle);
  return session != nullptr && !session->IsCompiled(call);
}

void Master::RunStepAsync(RunStepCall* call, Cancellation* cancellation,
                          std::function<void(Status)> done) {
  const auto session = Find(call->session_handle);
  if (session == nullptr) return done(UnknownSession(call->session_handle));
  session->RunStepAsync(call, cancellation, std::move(done));
}

}  // namespace tenon
