// SPDX-License-Identifier: Apache-2.0
#include "distributed/client/remote_session.h"

#include <future>

#include "core/proto/proto_io_graph.h"
#include "distributed/client/channel_session.h"
#include "distributed/protocol/cluster_spec.h"
#include "distributed/protocol/limits.h"

namespace tenon {
namespace {

constexpr std::chrono::milliseconds kConnectPause{100};

class LocalChannel final : public MasterChannel {
 public:
  explicit LocalChannel(Master& master) : master_(master) {}
  /// Waits for the end of the asynchronous steps.
  ~LocalChannel() override {
    MutexLock lock(mu_);
    while (running_ > 0) ended_.Wait(mu_);
  }
  Status CreateSession(const CreateSessionRequest& request,
                       CreateSessionResponse* response) override {
    return master_.CreateSession(request, response, nullptr);
  }
  Status ExtendSession(const ExtendSessionRequest& request,
                       ExtendSessionResponse* response) override {
    return master_.ExtendSession(request, response, nullptr);
  }
  Status CloseSession(const CloseSessionRequest& request) override {
    return master_.CloseSession(request);
  }
  Status RunStep(ClientCall* call) override {
    std::promise<Status> done;
    RunStepAsync(call, [&](Status s) { done.set_value(std::move(s)); });
    return done.get_future().get();
  }
  void RunStepAsync(ClientCall* call, std::function<void(Status)> done) override {
    auto cancellation = std::make_shared<Cancellation>();
    {
      MutexLock lock(mu_);
      ++running_;
    }
    master_.RunStepAsync(call, cancellation.get(),
                         [this, cancellation, done = std::move(done)](Status s) {
                           done(std::move(s));
                           MutexLock lock(mu_);
                           if (--running_ == 0) ended_.NotifyAll();
                         });
  }

 private:
  Master& master_;
  Mutex mu_;
  CondVar ended_;
  int running_ ABSL_GUARDED_BY(mu_) = 0;
};

/// Node traces out of what a master returned.
std::vector<NodeTrace> ReadTrace(const StepStats& stats) {
  std::vector<NodeTrace> nodes;
  for (const DeviceStepStats& device : stats.dev_stats()) {
    for (const NodeExecStats& n : device.node_stats()) {
      NodeTrace trace;
      trace.name = n.node_name();
      trace.device = device.device();
      const std::string& label = n.timeline_label();  // "name = Op(...)"
      const size_t equals = label.find(" = ");
      if (equals != std::string::npos) {
        trace.op = label.substr(equals + 3, label.find('(', equals) - equals - 3);
      }
      trace.start_ns = n.all_start_nanos() != 0 ? n.all_start_nanos() : n.all_start_micros() * 1000;
      trace.end_ns = trace.start_ns + (n.all_end_rel_nanos() != 0 ? n.all_end_rel_nanos()
                                                                  : n.all_end_rel_micros() * 1000);
      trace.thread = n.thread_id();
      nodes.push_back(std::move(trace));
    }
  }
  return nodes;
}

/// Where the nodes of a session were built; see AnnotateWithPlace. Thread-safe.
class NodePlaces {
 public:
  void Add(const Graph& graph) {
    MutexLock lock(mu_);
    for (const Node* n : graph.nodes()) places_.emplace(n->name(), n->place());
  }
  bool contains(std::string_view node) {
    MutexLock lock(mu_);
    return places_.contains(node);
  }
  Status Annotate(Status status) {
    return AnnotateWithPlace(std::move(status), [this](std::string_view node) {
      MutexLock lock(mu_);
      const auto found = places_.find(node);
      return found == places_.end() ? std::source_location() : found->second;
    });
  }

 private:
  Mutex mu_;
  StringMap<std::source_location> places_ ABSL_GUARDED_BY(mu_);
};

class ChannelPreparedStep final : public PreparedStep {
 public:
  ChannelPreparedStep(MasterChannel& channel, std::shared_ptr<NodePlaces> places, ClientCall call)
      : channel_(channel), places_(std::move(places)), call_(std::move(call)) {}

  Status Run(const std::vector<Tensor>& feeds, std::vector<Tensor>* fetched,
             const StepOptions& options) override {
    ClientCall call = call_;
    TENON_RETURN_IF_ERROR(Fill(feeds, options, &call));
    return End(*places_, channel_.RunStep(&call), &call, fetched, options.trace);
  }

  void RunAsync(const std::vector<Tensor>& feeds, Done done, const StepOptions& options) override {
    auto call = std::make_shared<ClientCall>(call_);
    if (Status s = Fill(feeds, options, call.get()); !s.ok()) return done(s, {});
    channel_.RunStepAsync(call.get(), [places = places_, call, done = std::move(done),
                                       trace = options.trace](Status status) {
      std::vector<Tensor> fetched;
      status = End(*places, std::move(status), call.get(), &fetched, trace);
      done(status, std::move(fetched));
    });
  }

 private:
  static Status Fill(const std::vector<Tensor>& feeds, const StepOptions& options,
                     ClientCall* call) {
    if (feeds.size() != call->feeds.size()) {
      return InvalidArgument("found ", feeds.size(), " feeds, wanted ", call->feeds.size());
    }
    for (size_t i = 0; i < feeds.size(); ++i) call->feeds[i].second = feeds[i];
    call->timeout_ms = options.timeout.count();
    call->settings = options.settings();
    return OkStatus();
  }
  static Status End(NodePlaces& places, Status status, ClientCall* call,
                    std::vector<Tensor>* fetched, std::vector<NodeTrace>* trace) {
    TENON_RETURN_IF_ERROR(places.Annotate(std::move(status)));
    if (trace != nullptr) *trace = ReadTrace(call->metadata.step_stats());
    if (fetched != nullptr) *fetched = std::move(call->fetched);
    return OkStatus();
  }

  MasterChannel& channel_;
  const std::shared_ptr<NodePlaces> places_;
  const ClientCall call_;
};

class ChannelSession final : public Session {
 public:
  ChannelSession(std::unique_ptr<MasterChannel> channel, std::string handle, const Graph& graph)
      : channel_(std::move(channel)), handle_(std::move(handle)) {
    AcceptOutputsOf(graph);
    places_->Add(graph);
  }
  ~ChannelSession() override { Close().IgnoreError(); }

  Status ExtendBy(const Graph& graph) override {
    MutexLock lock(mu_);
    GraphDef all;
    TENON_RETURN_IF_ERROR(GraphToProto(graph, &all));
    ExtendSessionRequest request;
    request.set_session_handle(handle_);
    request.set_current_graph_version(version_);
    *request.mutable_graph_def()->mutable_versions() = all.versions();
    for (NodeDef& n : *all.mutable_node()) {
      if (!places_->contains(n.name())) *request.mutable_graph_def()->add_node() = std::move(n);
    }
    if (request.graph_def().node_size() == 0) return OkStatus();
    ExtendSessionResponse response;
    TENON_RETURN_IF_ERROR(channel_->ExtendSession(request, &response));
    version_ = response.new_graph_version();
    places_->Add(graph);
    return OkStatus();
  }

  StatusOr<std::vector<Tensor>> RunStep(const Feeds& feeds, const std::vector<std::string>& fetches,
                                        const std::vector<std::string>& targets,
                                        const StepOptions& options) override {
    ClientCall call = NewCall(fetches, targets);
    call.feeds = feeds;
    call.timeout_ms = options.timeout.count();
    call.settings = options.settings();
    TENON_RETURN_IF_ERROR(places_->Annotate(channel_->RunStep(&call)));
    if (options.trace != nullptr) *options.trace = ReadTrace(call.metadata.step_stats());
    return std::move(call.fetched);
  }

  StatusOr<std::unique_ptr<PreparedStep>> PrepareStep(
      const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
      const std::vector<std::string>& targets) override {
    ClientCall call = NewCall(fetches, targets);
    for (const std::string& name : feeds) call.feeds.emplace_back(name, Tensor());
    return std::make_unique<ChannelPreparedStep>(*channel_, places_, std::move(call));
  }

  Status Close() override {
    {
      MutexLock lock(mu_);
      if (closed_) return OkStatus();
      closed_ = true;
    }
    CloseSessionRequest request;
    request.set_session_handle(handle_);
    return channel_->CloseSession(request);
  }

 private:
  ClientCall NewCall(const std::vector<std::string>& fetches,
                     const std::vector<std::string>& targets) const {
    ClientCall call;
    call.session_handle = handle_;
    call.fetches = fetches;
    call.targets = targets;
    return call;
  }

  const std::shared_ptr<NodePlaces> places_ = std::make_shared<NodePlaces>();
  const std::unique_ptr<MasterChannel> channel_;
  const std::string handle_;
  Mutex mu_;
  int64_t version_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

std::unique_ptr<MasterChannel> MakeLocalChannel(Master& master) {
  return std::make_unique<LocalChannel>(master);
}

StatusOr<std::unique_ptr<Session>> OpenChannelSession(std::unique_ptr<MasterChannel> channel,
                                                      const std::string& target, const Graph& graph,
                                                      const RemoteSessionOptions& options) {
  CreateSessionRequest request;
  TENON_RETURN_IF_ERROR(GraphToProto(graph, request.mutable_graph_def()));
  request.set_target(target);
  request.mutable_config()->set_allow_soft_placement(options.allow_soft_placement);
  if (!options.optimize) {
    request.mutable_config()->mutable_graph_options()->mutable_optimizer_options()->set_opt_level(
        OptimizerOptions::L0);
  }
  CreateSessionResponse response;
  Clock& clock = *options.clock;
  const Clock::Time begin = clock.Now();
  const auto deadline = begin + options.connect_deadline;
  auto next_notice = begin + kNoticePause;
  while (true) {
    const Status status = channel->CreateSession(request, &response);
    if (status.ok()) break;
    if (status.code() != StatusCode::kUnavailable) return status;
    if (clock.Now() >= deadline) {
      return DeadlineExceeded("the server at ", target, " did not answer within ",
                              options.connect_deadline.count() / 1000.0,
                              " s; last error: ", Message(status));
    }
    if (const Clock::Time now = clock.Now(); now >= next_notice) {
      next_notice = now + kNoticePause;
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - begin).count();
      if (options.notice) {
        options.notice(StrCat("waiting for ", target, ", ", seconds, " s now: ", Message(status)));
      }
    }
    clock.SleepFor(kConnectPause);
  }
  return std::make_unique<ChannelSession>(std::move(channel), response.session_handle(), graph);
}

StatusOr<std::unique_ptr<Session>> MakeRemoteSession(const std::string& target, const Graph& graph,
                                                     const RemoteSessionOptions& options) {
  TENON_ASSIGN_OR_RETURN(const std::string address, AddressOfTarget(target));
  return OpenChannelSession(MakeGrpcChannel(address, options.credentials), target, graph, options);
}

}  // namespace tenon
