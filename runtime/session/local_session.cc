// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/local_session.h"

#include "core/base/exceptions.h"
#include "core/base/parallel.h"
#include "runtime/collectives/local_groups.h"
#include "runtime/compile/compiler.h"
#include "runtime/compile/feed_spec.h"
#include "runtime/compile/graph_extension.h"
#include "runtime/device/task_devices.h"
#include "runtime/execute/local_run.h"
#include "runtime/execute/time_limit.h"

namespace tenon {
namespace {

constexpr std::string_view kTask = "/job:localhost/replica:0/task:0";

class LocalSession;

class LocalPreparedStep final : public PreparedStep {
 public:
  /// Finds the place where a node was built; see AnnotateWithPlace.
  using PlaceOf = std::function<std::source_location(std::string_view node)>;
  LocalPreparedStep(RunningCalls& running, const LocalSessionOptions& options, PlaceOf place_of,
                    std::shared_ptr<Program> program, FeedSpec feeds, size_t num_fetches)
      : running_(running),
        clock_(*options.clock),
        communicator_(options.communicator),
        place_of_(std::move(place_of)),
        program_(std::move(program)),
        feeds_(std::move(feeds)),
        num_fetches_(num_fetches) {}

  Status Run(const std::vector<Tensor>& feeds, std::vector<Tensor>* fetched,
             const StepOptions& options) override {
    TENON_RETURN_IF_ERROR(feeds_.Check(feeds));
    LocalRun run(*program_, options.settings());
    run.communicator = communicator_;
    LocalGroups groups(clock_);
    run.groups = &groups;
    const Status status = options.timeout.count() == 0
                              ? RunNow(run, feeds, fetched)
                              : RunWithin(options.timeout, run, feeds, fetched);
    if (status.ok() && options.trace != nullptr) *options.trace = run.own_trace.Take();
    return status;
  }

 private:
  Status RunWithin(std::chrono::milliseconds timeout, LocalRun& run,
                   const std::vector<Tensor>& feeds, std::vector<Tensor>* fetched) {
    const Status late = DeadlineExceeded(
        "Timed out waiting for notification: the step took longer than ", timeout.count(), " ms");
    const Clock::Time begin = clock_.Now();
    return CatchExceptions([&] {
      const TimeLimit limit(run.own_cancellation, timeout, late, clock_);
      const Status status = RunNow(run, feeds, fetched);
      // Its last kernels may have been under way when the time was over.
      const Clock::Duration took = clock_.Now() - begin;
      const bool is_late = std::chrono::duration_cast<std::chrono::milliseconds>(took) >= timeout;
      return status.ok() && is_late ? late : status;
    });
  }

  Status RunNow(LocalRun& run, const std::vector<Tensor>& feeds, std::vector<Tensor>* fetched) {
    TENON_RETURN_IF_ERROR(running_.AddStep(&run.own_cancellation));
    std::vector<Tensor> values;
    const Status status = program_->Execute(run, feeds, &values);
    running_.RemoveStep(&run.own_cancellation);
    if (!status.ok()) return AnnotateWithPlace(status, place_of_);
    values.resize(num_fetches_);
    // A fetch shows the updates of its whole step and none of later ones, as in TensorFlow.
    for (Tensor& t : values) t.Settle();
    if (fetched != nullptr) *fetched = std::move(values);
    return OkStatus();
  }

  RunningCalls& running_;
  Clock& clock_;
  Communicator* const communicator_;
  const PlaceOf place_of_;
  const std::shared_ptr<Program> program_;
  const FeedSpec feeds_;
  const size_t num_fetches_;
};

class LocalSession final : public Session {
 public:
  LocalSession(const Graph& graph, const LocalSessionOptions& options, TaskDevices devices)
      : options_(options),
        devices_(std::move(devices)),
        pool_(MakePool(options.threads > 0 ? options.threads : ThreadBudget())),
        compiler_(RuntimeOf(devices_, options, pool_.get()), {.passes = options.passes}),
        graph_(graph.Clone()) {
    AcceptOutputsOf(graph);
  }
  ~LocalSession() override { CloseAndWait(); }

  Status Init() {
    MutexLock lock(mu_);
    TENON_RETURN_IF_ERROR(compiler_.Expand(&graph_));
    return Place(0);
  }

  Status ExtendBy(const Graph& graph) override {
    TENON_RETURN_IF_ERROR(graph.Validate());
    TENON_RETURN_IF_ERROR(running().CheckOpen());
    MutexLock lock(mu_);
    GraphExtension extension(&graph_);
    graph_.set_functions(graph.shared_functions());
    std::vector<const Node*> added;
    for (const Node* n : graph.nodes()) {
      if (graph_.Find(n->name()) != nullptr) continue;
      TENON_RETURN_IF_ERROR(graph_.CopyNode(*n).status());
      added.push_back(n);
    }
    for (const Node* n : added) {
      Node* copy = graph_.Find(n->name());
      for (int i = 0; i < n->num_inputs(); ++i) {
        const Endpoint& in = n->input(i);
        TENON_RETURN_IF_ERROR(graph_.Connect({graph_.Find(in.node->name()), in.index}, copy, i));
      }
      for (const Node* c : n->control_inputs()) {
        graph_.AddControlEdge(graph_.Find(c->name()), copy);
      }
    }
    TENON_RETURN_IF_ERROR(graph_.TopologicalOrder(extension.first_id()).status());
    TENON_RETURN_IF_ERROR(extension.Expand(compiler_));
    TENON_RETURN_IF_ERROR(Place(extension.first_id()));
    extension.Keep();
    return OkStatus();
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
  /// Null for one thread, which is the caller's.
  static std::unique_ptr<ThreadPool> MakePool(int threads) {
    return threads > 1 ? std::make_unique<ThreadPool>(threads - 1) : nullptr;
  }
  static LocalRuntime RuntimeOf(const TaskDevices& devices, const LocalSessionOptions& options,
                                ThreadPool* pool) {
    LocalRuntime runtime;
    for (const auto& device : devices.devices) runtime.devices.push_back(device.get());
    for (const auto& device : options.other_devices) runtime.devices.push_back(device.get());
    runtime.pool = pool;
    return runtime;
  }
  RunningCalls& running() { return *compiler_.runtime().running; }

  void CloseAndWait() {
    running().CloseAndWait(
        Cancelled("Step was cancelled by an explicit call to `Session::Close()`."),
        FailedPrecondition("Session is closed."));
  }

  std::source_location PlaceOf(std::string_view node) {
    MutexLock lock(mu_);
    const Node* const found = graph_.Find(node);
    return found == nullptr ? std::source_location() : found->place();
  }

  /// Places the nodes from `first_id` on.
  Status Place(int first_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return AnnotateWithPlace(
        compiler_.Place(&graph_, {.allow_soft_placement = options_.allow_soft_placement,
                                  .why_no_gpu = devices_.why_no_gpu,
                                  .first_id = first_id}),
        [&graph = std::as_const(graph_)](std::string_view node) {
          const Node* const found = graph.Find(node);
          return found == nullptr ? std::source_location() : found->place();
        });
  }

  StatusOr<std::shared_ptr<LocalPreparedStep>> Lookup(const Signature& signature) {
    TENON_RETURN_IF_ERROR(running().CheckOpen());
    const std::string key = signature.Key();
    MutexLock lock(mu_);
    if (const auto found = steps_.find(key); found != steps_.end()) return found->second;
    TENON_ASSIGN_OR_RETURN(Graph cut, compiler_.Cut(graph_, signature));
    TENON_ASSIGN_OR_RETURN(std::shared_ptr<Program> program,
                           compiler_.Build(std::move(cut), kernels_));
    auto step = std::make_shared<LocalPreparedStep>(
        running(), options_, [this](std::string_view name) { return PlaceOf(name); },
        std::move(program), FeedSpec(graph_, signature), signature.fetches.size());
    steps_.emplace(key, step);
    return step;
  }

  const LocalSessionOptions options_;
  const TaskDevices devices_;
  const std::unique_ptr<ThreadPool> pool_;
  const Compiler compiler_;
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
  DeviceOptions wanted = options.devices;
  if (!wanted.gpus && !options.other_devices.empty()) wanted.gpus = 0;
  TENON_ASSIGN_OR_RETURN(
      TaskDevices devices,
      MakeTaskDevices({std::string(kTask), std::move(wanted), resources, options.files}));
  auto session = std::make_unique<LocalSession>(graph, options, std::move(devices));
  TENON_RETURN_IF_ERROR(session->Init());
  return session;
}

}  // namespace tenon
