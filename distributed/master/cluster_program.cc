// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/cluster_program.h"

#include <algorithm>
#include <optional>

#include "core/device/device_name.h"
#include "core/device/rendezvous.h"
#include "core/proto/proto_io_graph.h"
#include "distributed/master/cost_graph.h"
#include "runtime/compile/partition.h"
#include "runtime/device/deferral.h"

namespace tenon {
namespace {

/// An error of a worker, as TensorFlow's master words it.
Status FromTask(const Status& status, const std::string& task) {
  if (status.ok() || Message(status).starts_with("From /job:")) return status;
  return WithMessage(status, StrCat("From ", task, ":\n", Message(status)));
}

bool HasReferences(const std::vector<Node*>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* n) {
    return std::any_of(n->output_types().begin(), n->output_types().end(), IsRef);
  });
}

/// The value of `fetched`, which `retval` takes, at one moment, whatever variable it follows. Texts
/// stay as they are: TensorFlow's workers have no kernel that copies them.
StatusOr<Endpoint> SnapshotOf(Endpoint fetched, const Node& retval, Graph* graph) {
  const DType type = BaseType(fetched.node->output_type(fetched.index));
  if (!IsPlain(type) || fetched.node->op() == "Snapshot") return fetched;
  TENON_ASSIGN_OR_RETURN(Node * snapshot,
                         graph->AddNode(graph->UniqueName(StrCat("_snapshot_", retval.name())),
                                        "Snapshot", {{"T", type}}, {fetched}));
  snapshot->set_assigned_device(retval.assigned_device());
  return Endpoint{snapshot, 0};
}

}  // namespace

/// A step, or one call of it, on its way through the workers.
struct ClusterProgram::Execution {
  ClusterProgram* program;
  ClientCall* call;
  Cancellation* cancellation;
  std::function<void(Status)> done;
  std::optional<CallShare> share;  // of a step that runs in several calls
  int64_t step_id;
  std::vector<RunGraphCall> graphs = {};
  std::atomic<size_t> left = 0;
  Mutex mu{};
  Status status ABSL_GUARDED_BY(mu) = {};

  /// Where the call has a feed or fetch of the signature; -1 when it has not.
  int FeedAt(int number) const { return share ? share->feeds[number] : number; }
  int FetchAt(int number) const { return share ? share->fetches[number] : number; }
  void PartDone(size_t i, const Status& s);
  void Finish();
};

StatusOr<std::unique_ptr<ClusterProgram>> ClusterProgram::Register(Graph graph,
                                                                   const Signature& signature,
                                                                   FeedSpec feeds,
                                                                   const Environment& environment,
                                                                   Cancellation* cancellation) {
  PartitionOptions options;
  options.incarnation = environment.incarnation;
  options.location = [](const Node& n) { return TaskPartOf(n.assigned_device()); };
  TENON_ASSIGN_OR_RETURN(auto graphs, PartitionGraph(std::move(graph), options));
  std::unique_ptr<ClusterProgram> program(new ClusterProgram(std::move(feeds)));
  program->session_handle_ = environment.session_handle;
  program->step_ids_ = environment.step_ids;
  for (auto& [task, part] : graphs) {
    TENON_RETURN_IF_ERROR(program->AddPartition(task, std::move(part), signature, environment));
  }
  TENON_RETURN_IF_ERROR(program->RegisterPartitions(environment, cancellation));
  return program;
}

Status ClusterProgram::AddPartition(const std::string& task, Graph graph,
                                    const Signature& signature, const Environment& environment) {
  Partition part;
  part.task = task;
  TENON_ASSIGN_OR_RETURN(part.worker, environment.workers->Get(task));
  const std::vector<Node*> nodes = graph.nodes();
  // A fetch of the master's task is read when that has done its part of the step; fetches of other
  // tasks are sent there at once by TensorFlow's masters.
  const bool reads_at_once = task != environment.task && HasReferences(nodes);
  std::vector<Node*> replaced;
  for (Node* n : nodes) {
    const bool arg = n->is_arg();
    if (!arg && !n->is_retval()) continue;
    const auto index = static_cast<int>(n->attrs().GetOr<int64_t>("index", 0));
    const std::string& device = n->assigned_device();
    const std::string tensor_name =
        arg ? signature.feeds[index] : StrCat("fetch_", index, "_", signature.fetches[index]);
    const uint64_t incarnation = environment.incarnation(device);
    const DType type = n->attrs().GetOr("T", DType::kInvalid);
    AttributeMap attrs = {{"tensor_name", tensor_name},
                          {"send_device", device},
                          {"send_device_incarnation", static_cast<int64_t>(incarnation)},
                          {"recv_device", device},
                          {"client_terminated", true}};
    const std::string key =
        RendezvousKey{device, incarnation, device, tensor_name, 0, 0}.ToString();
    if (arg) {
      attrs.Set("tensor_type", type);
      TENON_ASSIGN_OR_RETURN(
          Node * recv,
          graph.AddNode(graph.UniqueName(StrCat("_recv_", n->name())), "_Recv", attrs));
      recv->set_assigned_device(device);
      TENON_RETURN_IF_ERROR(graph.ReplaceUses({n, 0}, {recv, 0}));
      part.feeds.emplace_back(index, key);
    } else {
      attrs.Set("T", type);
      Endpoint fetched = n->input(0);
      if (reads_at_once) {
        TENON_ASSIGN_OR_RETURN(fetched, SnapshotOf(fetched, *n, &graph));
      }
      TENON_ASSIGN_OR_RETURN(
          Node * send,
          graph.AddNode(graph.UniqueName(StrCat("_send_", n->name())), "_Send", attrs));
      send->set_assigned_device(device);
      TENON_RETURN_IF_ERROR(graph.Connect(fetched, send, 0));
      part.fetches.emplace_back(index, key);
    }
    replaced.push_back(n);
  }
  graph.RemoveNodes(replaced);
  TENON_RETURN_IF_ERROR(GraphToProto(graph, &part.graph, {true}));
  partitions_.push_back(std::move(part));
  return OkStatus();
}

Status ClusterProgram::RegisterPartitions(const Environment& environment,
                                          Cancellation* cancellation) {
  Registrations calls(&WorkerInterface::RegisterGraphAsync);
  for (const Partition& part : partitions_) {
    RegisterGraphRequest request;
    request.set_session_handle(environment.session_handle);
    request.set_create_worker_session_called(true);
    *request.mutable_graph_def() = part.graph;
    request.mutable_graph_options();
    request.mutable_debug_options();
    *request.mutable_config_proto() = environment.config;
    calls.Start(part.worker, std::move(request));
  }
  if (Status s = calls.Wait(cancellation); !s.ok()) {
    Deregister(calls);
    return s;
  }
  Status status;
  for (size_t i = 0; i < partitions_.size(); ++i) {
    status.Update(FromTask(calls.status(i), partitions_[i].task));
    partitions_[i].graph_handle = calls.response(i).graph_handle();
  }
  if (!status.ok()) Deregister(calls);
  return status;
}

void ClusterProgram::Deregister(Registrations& calls) {
  std::vector<std::shared_ptr<WorkerInterface>> workers;
  for (const Partition& part : partitions_) workers.push_back(part.worker);
  calls.WhenEnded([workers, session = session_handle_](size_t i, const Status& status,
                                                       const RegisterGraphResponse& registered) {
    if (!status.ok()) return;
    DeregisterGraphRequest request;
    request.set_session_handle(session);
    request.set_create_worker_session_called(true);
    request.set_graph_handle(registered.graph_handle());
    WorkerCalls<DeregisterGraphRequest, DeregisterGraphResponse> call(
        &WorkerInterface::DeregisterGraphAsync);
    call.Start(workers[i], std::move(request));  // nobody waits for it
  });
}

void ClusterProgram::RunAsync(ClientCall* call, Cancellation* cancellation,
                              std::function<void(Status)> done) {
  std::vector<Tensor> feeds;
  for (const auto& [name, value] : call->feeds) feeds.push_back(value);
  if (Status s = feeds_.Check(feeds); !s.ok()) return done(s);
  const int64_t step_id = NewStepId();
  Start(std::unique_ptr<Execution>(
      new Execution{this, call, cancellation, std::move(done), std::nullopt, step_id}));
}

void ClusterProgram::RunShareAsync(ClientCall* call, CallShare share, Cancellation* cancellation,
                                   std::function<void(Status)> done) {
  const int64_t step_id = share.step_id;
  Start(std::unique_ptr<Execution>(
      new Execution{this, call, cancellation, std::move(done), std::move(share), step_id}));
}

void ClusterProgram::Start(std::unique_ptr<Execution> owned) {
  owned->call->fetched.assign(owned->call->fetches.size(), Tensor());
  if (partitions_.empty()) return owned->done(OkStatus());
  Execution* const run = owned.release();
  Cancellation* const cancellation = run->cancellation;
  run->left = partitions_.size();
  run->graphs.resize(partitions_.size());
  for (size_t i = 0; i < partitions_.size(); ++i) {
    RunGraphCall& g = run->graphs[i];
    g.session_handle = session_handle_;
    g.graph_handle = partitions_[i].graph_handle;
    g.step_id = run->step_id;
    g.settings = run->call->settings;
    g.settings.trace |= run->call->costs;
    g.is_partial = run->share.has_value();
    g.is_last_partial_run = run->share && run->share->is_last;
    for (const auto& [number, key] : partitions_[i].feeds) {
      const int at = run->FeedAt(number);
      if (at >= 0) g.send.emplace_back(key, run->call->feeds[at].second);
    }
    for (const auto& [number, key] : partitions_[i].fetches) {
      if (run->FetchAt(number) >= 0) g.recv_keys.push_back(key);
    }
  }
  // Remote partitions first: they travel while the local one already works on this thread.
  std::vector<size_t> order;
  for (const bool remote : {true, false}) {
    for (size_t i = 0; i < partitions_.size(); ++i) {
      if (partitions_[i].worker->is_remote() == remote) order.push_back(i);
    }
  }
  const DeferralScope scope;
  for (const size_t i : order) {
    partitions_[i].worker->RunGraphAsync(&run->graphs[i], cancellation,
                                         [run, i](Status s) { run->PartDone(i, s); });
  }
}

void ClusterProgram::Execution::PartDone(size_t i, const Status& s) {
  if (!s.ok()) {
    const Status error = FromTask(s, program->partitions_[i].task);
    bool first = false;
    {
      MutexLock lock(mu);
      first = status.ok();
      // A cancelled partition is the effect of something: the cause replaces it.
      if (first ||
          (status.code() == StatusCode::kCancelled && s.code() != StatusCode::kCancelled)) {
        status = error;
      }
    }
    if (first) cancellation->Cancel(error);
  }
  if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) Finish();
}

void ClusterProgram::Execution::Finish() {
  Status result;
  {
    MutexLock lock(mu);
    result = status;
  }
  for (size_t i = 0; i < graphs.size(); ++i) {
    const Partition& registered = program->partitions_[i];
    size_t received = 0;
    for (const auto& [number, key] : registered.fetches) {
      const int at = FetchAt(number);
      if (at >= 0 && result.ok()) call->fetched[at] = std::move(graphs[i].received[received++]);
    }
    if (call->costs) {
      AddCosts(registered.graph, graphs[i].step_stats, call->metadata.mutable_cost_graph());
    }
    if (call->settings.trace) call->metadata.mutable_step_stats()->MergeFrom(graphs[i].step_stats);
    if (call->output_partition_graphs) *call->metadata.add_partition_graphs() = registered.graph;
  }
  const auto callback = std::move(done);
  if (!share) program->CleanUp(step_id);
  delete this;
  callback(std::move(result));
}

void ClusterProgram::CleanUp(int64_t step_id) const {
  struct Cleanup {
    CleanupGraphRequest request;
    CleanupGraphResponse response;
  };
  for (const Partition& part : partitions_) {
    auto cleanup = std::make_shared<Cleanup>();
    cleanup->request.set_step_id(step_id);
    // Nobody waits for it: a worker that is gone has nothing to clean up.
    part.worker->CleanupGraphAsync(cleanup->request, &cleanup->response,
                                   [cleanup, worker = part.worker](Status) {});
  }
}

}  // namespace tenon
