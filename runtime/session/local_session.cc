// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/local_session.h"

#include "core/base/exceptions.h"
#include "core/base/parallel.h"
#include "runtime/compile/placer.h"
#include "runtime/execute/local_rendezvous.h"
#include "runtime/execute/program.h"
#include "runtime/execute/time_limit.h"
#include "runtime/functions/expansion.h"

namespace tenon {
namespace {

constexpr std::string_view kTask = "/job:localhost/replica:0/task:0";
/// With the bodies of functions: a few of these may be called a million times.
constexpr int64_t kMaxNodes = 1 << 23;

class LocalSession;

class LocalPreparedStep final : public PreparedStep {
 public:
  /// Finds the place where a node was built; see AnnotateWithPlace.
  using PlaceOf = std::function<std::source_location(std::string_view node)>;
  LocalPreparedStep(RunningCalls& running, Clock& clock, PlaceOf place_of,
                    std::shared_ptr<Program> step, FeedSpec feeds, size_t num_fetches)
      : running_(running),
        clock_(clock),
        place_of_(std::move(place_of)),
        step_(std::move(step)),
        feeds_(std::move(feeds)),
        num_fetches_(num_fetches) {}

  Status Run(const std::vector<Tensor>& feeds, std::vector<Tensor>* fetched,
             const StepOptions& options) override {
    TENON_RETURN_IF_ERROR(feeds_.Check(feeds));
    if (options.timeout.count() == 0) return RunNow(feeds, fetched, options, nullptr);
    const Status late =
        DeadlineExceeded("Timed out waiting for notification: the step took longer than ",
                         options.timeout.count(), " ms");
    const Clock::Time begin = clock_.Now();
    return CatchExceptions([&] {
      Cancellation cancellation;
      const TimeLimit limit(cancellation, options.timeout, late, clock_);
      const Status status = RunNow(feeds, fetched, options, &cancellation);
      // Its last kernels may have been under way when the time was over.
      const Clock::Duration took = clock_.Now() - begin;
      const bool is_late =
          std::chrono::duration_cast<std::chrono::milliseconds>(took) >= options.timeout;
      return status.ok() && is_late ? late : status;
    });
  }

 private:
  Status RunNow(const std::vector<Tensor>& feeds, std::vector<Tensor>* fetched,
                const StepOptions& options, Cancellation* outer) {
    Cancellation own;
    Cancellation& cancellation = outer == nullptr ? own : *outer;
    LocalRendezvous rendezvous;
    ResourceStore step_resources;
    Trace trace;
    Program::Call call;
    call.args = feeds;
    call.rendezvous = &rendezvous;
    call.cancellation = &cancellation;
    call.step_resources = &step_resources;
    call.trace = options.trace == nullptr ? nullptr : &trace;
    Cancellation::Token token = Cancellation::kAlreadyCancelled;
    if (step_->has_transfers()) {
      token = cancellation.Register([&](const Status& why) { rendezvous.Abort(why); });
    }
    Status status = running_.AddStep(&cancellation);
    if (status.ok()) {
      status = step_->Run(call);
      running_.RemoveStep(&cancellation);
    }
    // The rendezvous dies with this frame, the cancellation perhaps later.
    if (token != Cancellation::kAlreadyCancelled) cancellation.Deregister(token);
    if (!status.ok()) return AnnotateWithPlace(status, place_of_);
    if (options.trace != nullptr) *options.trace = trace.Take();
    call.retvals.resize(num_fetches_);
    // A fetch shows the updates of its whole step and none of later ones, as in TensorFlow.
    for (Tensor& t : call.retvals) t.Settle();
    if (fetched != nullptr) *fetched = std::move(call.retvals);
    return OkStatus();
  }

  RunningCalls& running_;
  Clock& clock_;
  const PlaceOf place_of_;
  const std::shared_ptr<Program> step_;
  const FeedSpec feeds_;
  const size_t num_fetches_;
};

class LocalSession final : public Session {
 public:
  LocalSession(const Graph& graph, const LocalSessionOptions& options, TaskDevices devices)
      : options_(options), devices_(std::move(devices)), graph_(graph.Clone()) {
    for (const auto& device : devices_.devices) runtime_.devices.push_back(device.get());
    for (const auto& device : options.other_devices) runtime_.devices.push_back(device.get());
    const int threads = options.threads > 0 ? options.threads : ThreadBudget();
    if (threads > 1) pool_ = std::make_unique<ThreadPool>(threads - 1);
    runtime_.pool = pool_.get();
    AcceptOutputsOf(graph);
  }
  ~LocalSession() override { CloseAndWait(); }

  Status Init() {
    MutexLock lock(mu_);
    return Place();
  }

  Status ExtendBy(const Graph& graph) override {
    TENON_RETURN_IF_ERROR(graph.Validate());
    TENON_RETURN_IF_ERROR(runtime_.running->CheckOpen());
    MutexLock lock(mu_);
    Graph extended = graph_.Clone();
    extended.set_functions(graph.shared_functions());
    std::vector<const Node*> added;
    for (const Node* n : graph.nodes()) {
      if (extended.Find(n->name()) != nullptr) continue;
      TENON_RETURN_IF_ERROR(extended.CopyNode(*n).status());
      added.push_back(n);
    }
    for (const Node* n : added) {
      Node* copy = extended.Find(n->name());
      for (int i = 0; i < n->num_inputs(); ++i) {
        const Endpoint& in = n->input(i);
        TENON_RETURN_IF_ERROR(
            extended.Connect({extended.Find(in.node->name()), in.index}, copy, i));
      }
      for (const Node* c : n->control_inputs()) {
        extended.AddControlEdge(extended.Find(c->name()), copy);
      }
    }
    TENON_RETURN_IF_ERROR(extended.Validate());
    std::swap(graph_, extended);
    Status status = Place();
    if (!status.ok()) std::swap(graph_, extended);
    return status;
  }

  StatusOr<std::vector<Tensor>> RunStep(const Feeds& feeds, const std::vector<std::string>& fetches,
                                        const std::vector<std::string>& targets,
                                        const StepOptions& options) override {
    Signature signature{{}, fetches, targets};
    std::vector<Tensor> values;
    for (const auto& [name, value] : feeds) {
      signature.feeds.push_back(name);
      values.push_back(value);
    }
    TENON_ASSIGN_OR_RETURN(std::shared_ptr<LocalPreparedStep> step, Lookup(signature));
    std::vector<Tensor> fetched;
    TENON_RETURN_IF_ERROR(step->Run(values, &fetched, options));
    return fetched;
  }

  StatusOr<std::unique_ptr<PreparedStep>> PrepareStep(
      const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
      const std::vector<std::string>& targets) override {
    TENON_ASSIGN_OR_RETURN(std::shared_ptr<LocalPreparedStep> step,
                           Lookup({feeds, fetches, targets}));
    return std::make_unique<LocalPreparedStep>(*step);
  }

  Status Close() override {
    CloseAndWait();
    return OkStatus();
  }

 private:
  void CloseAndWait() {
    runtime_.running->CloseAndWait(
        Cancelled("Step was cancelled by an explicit call to `Session::Close()`."),
        FailedPrecondition("Session is closed."));
  }

  std::source_location PlaceOf(std::string_view node) {
    MutexLock lock(mu_);
    const Node* const found = graph_.Find(node);
    return found == nullptr ? std::source_location() : found->place();
  }

  Status Place() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    TENON_RETURN_IF_ERROR(ExpandFunctions(&graph_, kMaxNodes));
    return AnnotateWithPlace(
        PlaceNodes(&graph_, runtime_.devices, options_.allow_soft_placement, devices_.why_no_gpu),
        [&graph = std::as_const(graph_)](std::string_view node) {
          const Node* const found = graph.Find(node);
          return found == nullptr ? std::source_location() : found->place();
        });
  }

  StatusOr<std::shared_ptr<LocalPreparedStep>> Lookup(const Signature& signature) {
    TENON_RETURN_IF_ERROR(runtime_.running->CheckOpen());
    const std::string key = signature.Key();
    MutexLock lock(mu_);
    if (const auto found = steps_.find(key); found != steps_.end()) return found->second;
    TENON_ASSIGN_OR_RETURN(Graph step_graph, MakeStepGraph(graph_, signature));
    TENON_RETURN_IF_ERROR(
        RunPasses(PassStage::kStep, &step_graph, {runtime_.devices[0]}, options_.passes));
    TENON_ASSIGN_OR_RETURN(
        std::shared_ptr<Program> compiled,
        Program::Create(std::move(step_graph), runtime_, options_.passes, kernels_));
    auto step = std::make_shared<LocalPreparedStep>(
        *runtime_.running, *options_.clock, [this](std::string_view name) { return PlaceOf(name); },
        std::move(compiled), FeedSpec(graph_, signature), signature.fetches.size());
    steps_.emplace(key, step);
    return step;
  }

  const LocalSessionOptions options_;
  const TaskDevices devices_;
  std::unique_ptr<ThreadPool> pool_;
  LocalRuntime runtime_;
  KernelCache kernels_;
  Mutex mu_;
  Graph graph_ ABSL_GUARDED_BY(mu_);
  StringMap<std::shared_ptr<LocalPreparedStep>> steps_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

StatusOr<std::unique_ptr<Session>> MakeLocalSession(const Graph& graph,
                                                    const LocalSessionOptions& options) {
  TENON_RETURN_IF_ERROR(graph.Validate());
  const auto resources =
      options.resources != nullptr ? options.resources : std::make_shared<ResourceStore>();
  const bool has_others = options.gpu_devices == kAllGpus && !options.other_devices.empty();
  TENON_ASSIGN_OR_RETURN(TaskDevices devices,
                         MakeTaskDevices({std::string(kTask), options.cpu_devices,
                                          has_others ? 0 : options.gpu_devices, options.gpu,
                                          resources, options.files}));
  auto session = std::make_unique<LocalSession>(graph, options, std::move(devices));
  TENON_RETURN_IF_ERROR(session->Init());
  return session;
}

}  // namespace tenon
