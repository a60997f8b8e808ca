// SPDX-License-Identifier: Apache-2.0
#include "runtime/functions/function_runtime.h"

#include <optional>
#include <utility>

#include "core/base/exceptions.h"
#include "runtime/compile/placer.h"
#include "runtime/execute/local_rendezvous.h"
#include "runtime/functions/expansion.h"

namespace tenon {
namespace {

constexpr int64_t kMaxFunctionNodes = 1 << 20;

/// One call, and all that dies with it.
struct FunctionCall {
  Cancellation cancellation;
  LocalRendezvous rendezvous;
  ResourceStore step_resources;
  Program::Call call;
};

/// One that goes on after RunAsync has returned, and may end while it is cancelled.
struct AsyncCall : FunctionCall {
  RunnableFunction::Done done;
  std::optional<CancellationLink> closing, outer;
};

class LocalFunction final : public RunnableFunction,
                            public std::enable_shared_from_this<LocalFunction> {
 public:
  LocalFunction(DTypeVector argument_types, DTypeVector result_types, std::string name,
                std::shared_ptr<RunningCalls> running)
      : argument_types_(std::move(argument_types)),
        result_types_(std::move(result_types)),
        name_(std::move(name)),
        running_(std::move(running)) {}

  Status Compile(Graph graph, const LocalRuntime& runtime, const PassOptions& passes) {
    TENON_ASSIGN_OR_RETURN(step_, Program::Create(std::move(graph), runtime, passes, kernels_));
    return OkStatus();
  }

  const DTypeVector& result_types() const override { return result_types_; }

  Status Run(std::vector<Tensor> arguments, Cancellation* cancellation,
             std::vector<Tensor>* results) const override {
    TENON_RETURN_IF_ERROR(Check(arguments));
    TENON_RETURN_IF_ERROR(running_->BeginFunction());
    Status status;
    {
      FunctionCall call;
      const CancellationLink closing(&running_->closing(), call.cancellation);
      const CancellationLink outer(cancellation, call.cancellation);
      Prepare(std::move(arguments), &call);
      status = CatchExceptions([&] { return step_->Run(call.call); });
      if (status.ok()) *results = TakeResults(call);
    }
    running_->EndFunction();
    return status;
  }

  void RunAsync(std::vector<Tensor> arguments, Cancellation* cancellation,
                Done done) const override {
    Status status = Check(arguments);
    if (status.ok()) status = running_->BeginFunction();
    if (!status.ok()) return done(status, {});
    auto call = std::make_shared<AsyncCall>();
    Prepare(std::move(arguments), call.get());
    call->done = std::move(done);
    const std::shared_ptr<Cancellation> end(call, &call->cancellation);
    call->closing.emplace(&running_->closing(), end);
    call->outer.emplace(cancellation, end);
    Program::Call& run = call->call;
    // The last who holds the function may give it up in `done`.
    step_->RunAsync(run,
                    [call = std::move(call), self = shared_from_this()](const Status& s) mutable {
                      call->closing.reset();
                      call->outer.reset();
                      std::vector<Tensor> results;
                      if (s.ok()) results = self->TakeResults(*call);
                      const Done callback = std::move(call->done);
                      call = nullptr;
                      callback(s, std::move(results));
                      self->running_->EndFunction();
                    });
  }

 private:
  Status Check(const std::vector<Tensor>& arguments) const {
    bool fits = arguments.size() == argument_types_.size();
    for (size_t i = 0; fits && i < arguments.size(); ++i) {
      fits = arguments[i].dtype() == argument_types_[i];
    }
    if (fits) return OkStatus();
    DTypeVector found;
    for (const Tensor& t : arguments) found.push_back(t.dtype());
    return InvalidArgument("function '", name_, "' takes (", Join(argument_types_, ", "),
                           "), found (", Join(found, ", "), ")");
  }

  void Prepare(std::vector<Tensor> arguments, FunctionCall* c) const {
    c->call.args = std::move(arguments);
    c->call.rendezvous = &c->rendezvous;
    c->call.cancellation = &c->cancellation;
    c->call.step_resources = &c->step_resources;
    c->call.memory = CurrentMemoryAccount();
    if (step_->has_transfers()) {
      c->cancellation.Register([c](const Status& why) { c->rendezvous.Abort(why); });
    }
  }

  std::vector<Tensor> TakeResults(FunctionCall& c) const {
    c.call.retvals.resize(result_types_.size());
    return std::move(c.call.retvals);
  }

  const DTypeVector argument_types_, result_types_;
  const std::string name_;
  const std::shared_ptr<RunningCalls> running_;
  KernelCache kernels_;
  std::shared_ptr<Program> step_;
};

class LocalFunctionRuntime final : public FunctionRuntime {
 public:
  LocalFunctionRuntime(std::shared_ptr<const FunctionLibrary> library, const OpRegistry& registry,
                       const LocalRuntime& runtime, const PassOptions& passes)
      : library_(std::move(library)), registry_(registry), runtime_(runtime), passes_(passes) {}

  StatusOr<std::shared_ptr<const RunnableFunction>> Instantiate(
      const FunctionName& function) override {
    if (library_->Find(function.name) == nullptr) {
      return InvalidArgument("the graph's library has no function '", function.name, "'");
    }
    // The devices are there while a call runs.
    TENON_RETURN_IF_ERROR(runtime_.running->BeginFunction());
    std::shared_ptr<const RunnableFunction> made;
    const Status status = CatchExceptions([&]() -> Status {
      TENON_ASSIGN_OR_RETURN(made, Make(function));
      return OkStatus();
    });
    runtime_.running->EndFunction();
    if (!status.ok()) return Annotate(status, StrCat("function '", function.name, "'"));
    return made;
  }

 private:
  /// A graph of one node that calls the function is made a step of: its feeds are the arguments.
  StatusOr<std::shared_ptr<const RunnableFunction>> Make(const FunctionName& function) {
    Graph graph(registry_);
    graph.set_functions(library_);
    AttributeMap attrs;
    for (const auto& [name, value] : function.attrs) attrs.Set(name, value);
    TENON_ASSIGN_OR_RETURN(Node * call, graph.AddNode("call", function.name, std::move(attrs)));
    Signature signature;
    for (int i = 0; i < call->num_inputs(); ++i) {
      TENON_ASSIGN_OR_RETURN(
          Node * argument,
          graph.AddNode(StrCat("argument_", i), "Placeholder",
                        {{"dtype", call->input_types()[i]}, {"shape", PartialShape()}}, {}));
      TENON_RETURN_IF_ERROR(graph.Connect({argument, 0}, call, i));
      signature.feeds.push_back(argument->name());
    }
    for (int i = 0; i < call->num_outputs(); ++i) {
      signature.fetches.push_back(StrCat("call:", i));
    }
    signature.targets.push_back("call");
    auto runnable = std::make_shared<LocalFunction>(call->input_types(), call->output_types(),
                                                    function.name, runtime_.running);
    TENON_RETURN_IF_ERROR(ExpandFunctions(&graph, kMaxFunctionNodes));
    TENON_RETURN_IF_ERROR(PlaceNodes(&graph, runtime_.devices, /*allow_soft_placement=*/true));
    TENON_ASSIGN_OR_RETURN(Graph step, MakeStepGraph(graph, signature));
    TENON_RETURN_IF_ERROR(RunPasses(PassStage::kStep, &step, {runtime_.devices[0]}, passes_));
    TENON_RETURN_IF_ERROR(runnable->Compile(std::move(step), runtime_, passes_));
    return runnable;
  }

  const std::shared_ptr<const FunctionLibrary> library_;
  const OpRegistry& registry_;
  const LocalRuntime runtime_;
  const PassOptions passes_;
};

/// Collects what functions are named, and follows them.
class Collector {
 public:
  explicit Collector(const FunctionLibrary& library) : library_(library) {}

  void AddOp(const std::string& op, const AttributeMap& attrs) {
    Add(op);
    for (const auto& [name, value] : attrs) AddAttribute(value);
  }
  const StringSet& names() const { return names_; }

 private:
  void AddAttribute(const Attribute& value) {
    if (const auto* one = value.get_if<FunctionName>()) AddName(*one);
    if (const auto* several = value.get_if<std::vector<FunctionName>>()) {
      for (const FunctionName& f : *several) AddName(f);
    }
  }
  void AddName(const FunctionName& function) {
    Add(function.name);
    for (const auto& [name, value] : function.attrs) AddAttribute(value);
  }
  void Add(const std::string& name) {
    const FunctionDefinition* const found = library_.Find(name);
    if (found == nullptr || !names_.insert(name).second) return;
    for (const FunctionNode& node : found->nodes) AddOp(node.op, node.attrs);
    if (!found->gradient.empty()) Add(found->gradient);
  }

  const FunctionLibrary& library_;
  StringSet names_;
};

}  // namespace

std::shared_ptr<FunctionRuntime> MakeFunctionRuntime(std::shared_ptr<const FunctionLibrary> library,
                                                     const OpRegistry& registry,
                                                     const LocalRuntime& runtime,
                                                     const PassOptions& passes) {
  return std::make_shared<LocalFunctionRuntime>(std::move(library), registry, runtime, passes);
}

std::shared_ptr<const FunctionLibrary> FunctionsNeeded(const Graph& graph) {
  if (graph.functions().empty()) return graph.shared_functions();
  Collector collector(graph.functions());
  for (const Node* node : graph.nodes()) collector.AddOp(node->op(), node->attrs());
  return std::make_shared<FunctionLibrary>(graph.functions().Subset(collector.names()));
}

}  // namespace tenon
