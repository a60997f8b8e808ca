// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/cluster_graph.h"

#include "core/proto/proto_io_graph.h"
#include "distributed/protocol/device_config.h"
#include "distributed/protocol/pass_options.h"
#include "runtime/compile/graph_extension.h"

namespace tenon {

ClusterGraph::ClusterGraph(const MasterEnvironment& environment, const std::string& handle,
                           const ConfigProto& config)
    : environment_(environment),
      handle_(handle),
      config_(config),
      compiler_({.devices = environment.devices}, {.passes = PassesOf(config.graph_options()),
                                                   .max_nodes = environment.limits.graph_nodes}),
      tasks_(environment, handle, config) {}

Status ClusterGraph::CheckSize(int64_t nodes) const {
  if (nodes <= environment_.limits.graph_nodes) return OkStatus();
  return ResourceExhausted("the graph would have ", nodes, " nodes; a session may have ",
                           environment_.limits.graph_nodes);
}

Status ClusterGraph::Start(const GraphDef& proto, Cancellation* cancellation) {
  if (!mu_.LockUnless(*cancellation)) return cancellation->status();
  const HeldLock lock(mu_);
  TENON_RETURN_IF_ERROR(CheckSize(proto.node_size()));
  TENON_ASSIGN_OR_RETURN(Graph graph, GraphFromProto(proto, *environment_.registry));
  graph_ = std::make_unique<Graph>(std::move(graph));
  TENON_RETURN_IF_ERROR(compiler_.Expand(graph_.get()));
  return Take(0, cancellation);
}

Status ClusterGraph::Extend(const GraphDef& proto, int64_t current_version, int64_t* new_version,
                            Cancellation* cancellation) {
  if (!mu_.LockUnless(*cancellation)) return cancellation->status();
  const HeldLock lock(mu_);
  TENON_RETURN_IF_ERROR(CheckSize(num_nodes_ + proto.node_size()));
  if (current_version != version_) {
    return Aborted("Current version is ", version_, " but caller expected ", current_version, ".");
  }
  GraphExtension extension(graph_.get());
  TENON_RETURN_IF_ERROR(ExtendGraphFromProto(proto, graph_.get()));
  TENON_RETURN_IF_ERROR(extension.Expand(compiler_));
  TENON_RETURN_IF_ERROR(Take(extension.first_id(), cancellation));
  extension.Keep();
  *new_version = ++version_;
  return OkStatus();
}

Status ClusterGraph::Take(int first_id, Cancellation* cancellation) {
  TENON_ASSIGN_OR_RETURN(const std::set<std::string> tasks, tasks_.Wanted(*graph_, first_id));
  TENON_RETURN_IF_ERROR(Reach(tasks, cancellation));
  TENON_RETURN_IF_ERROR(Place(first_id));
  num_nodes_ = graph_->num_nodes();
  return OkStatus();
}

Status ClusterGraph::Reach(const std::set<std::string>& tasks, Cancellation* cancellation) {
  TENON_RETURN_IF_ERROR(tasks_.Reach(tasks, cancellation));
  std::vector<std::string> others;
  for (const auto& [task, devices] : tasks_.reached()) {
    if (task != environment_.task) others.push_back(task);
  }
  MutexLock lock(known_mu_);
  other_tasks_ = std::move(others);
  return OkStatus();
}

Status ClusterGraph::Place(int first_id) {
  std::vector<PlacementDevice> devices;
  for (const auto& [task, attributes] : tasks_.reached()) {
    for (const DeviceAttributes& d : attributes) {
      TENON_ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(d.name()));
      if (!MayUse(name, config_)) continue;
      devices.push_back({std::move(name), DeviceKind::Find(d.device_type())});
    }
  }
  PlacementOptions options;
  TENON_ASSIGN_OR_RETURN(options.default_device, DeviceName::Parse(environment_.task));
  options.allow_soft_placement = config_.allow_soft_placement();
  options.why_no_gpu = environment_.why_no_gpu;
  options.first_id = first_id;
  return compiler_.Place(graph_.get(), std::move(devices), std::move(options));
}

StatusOr<std::shared_ptr<ClusterProgram>> ClusterGraph::Compile(
    const Signature& signature, Cancellation* cancellation,
    std::shared_ptr<const FeedDependencies>* dependencies) {
  const std::string key = signature.Key();
  if (!mu_.LockUnless(*cancellation)) return cancellation->status();
  const HeldLock lock(mu_);
  std::shared_ptr<ClusterProgram> known;
  {
    MutexLock known_lock(known_mu_);
    const auto found = programs_.find(key);
    if (found != programs_.end()) known = found->second;
    if (dependencies != nullptr) *dependencies = dependencies_[key].lock();
  }
  if (known != nullptr && (dependencies == nullptr || *dependencies != nullptr)) return known;
  TENON_ASSIGN_OR_RETURN(Graph cut, compiler_.Cut(*graph_, signature));
  if (dependencies != nullptr) {
    *dependencies = std::make_shared<const FeedDependencies>(cut, signature.fetches.size());
    MutexLock known_lock(known_mu_);
    dependencies_[key] = *dependencies;
  }
  if (known != nullptr) return known;
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<ClusterProgram> program,
                         Register(std::move(cut), signature, cancellation));
  MutexLock known_lock(known_mu_);
  programs_.emplace(key, program);
  return program;
}

StatusOr<std::shared_ptr<ClusterProgram>> ClusterGraph::Register(Graph cut,
                                                                 const Signature& signature,
                                                                 Cancellation* cancellation) {
  ClusterProgram::Environment environment;
  environment.session_handle = handle_;
  environment.task = environment_.task;
  environment.step_ids = environment_.step_ids;
  environment.workers = environment_.workers;
  environment.config = config_;
  flat_hash_map<std::string, uint64_t> incarnations;
  for (const auto& [task, devices] : tasks_.reached()) {
    for (const DeviceAttributes& d : devices) incarnations[d.name()] = d.incarnation();
  }
  environment.incarnation = [&](const std::string& d) { return incarnations[d]; };
  return ClusterProgram::Register(std::move(cut), signature, FeedSpec(*graph_, signature),
                                  environment, cancellation);
}

std::shared_ptr<ClusterProgram> ClusterGraph::Find(const Signature& signature) {
  const std::string key = signature.Key();
  MutexLock lock(known_mu_);
  const auto found = programs_.find(key);
  return found == programs_.end() ? nullptr : found->second;
}

int64_t ClusterGraph::num_programs() {
  MutexLock lock(known_mu_);
  return static_cast<int64_t>(programs_.size());
}

std::vector<std::string> ClusterGraph::OtherTasks() {
  MutexLock lock(known_mu_);
  return other_tasks_;
}

Status ClusterGraph::ListDevices(std::vector<DeviceAttributes>* devices,
                                 Cancellation* cancellation) {
  if (!mu_.LockUnless(*cancellation)) return cancellation->status();
  const HeldLock lock(mu_);
  TENON_RETURN_IF_ERROR(Reach(tasks_.All(), cancellation));
  for (const auto& [task, attributes] : tasks_.reached()) {
    devices->insert(devices->end(), attributes.begin(), attributes.end());
  }
  return OkStatus();
}

void ClusterGraph::TouchWorkers() {
  if (!mu_.TryLock()) return;  // it is busy: the workers hear of it anyway
  tasks_.Touch();
  mu_.Unlock();
}

void ClusterGraph::DeleteWorkerSessions(SessionTasks::WorkerDeletions* deletions) {
  mu_.Lock();  // nothing opens sessions any more when it is free
  const HeldLock lock(mu_);
  tasks_.Delete(deletions);
}

}  // namespace tenon
