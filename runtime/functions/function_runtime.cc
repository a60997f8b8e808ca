// SPDX-License-Identifier: Apache-2.0
#include "runtime/functions/function_runtime.h"

#include <optional>
#include <utility>

#include "core/base/exceptions.h"
#include "core/memory/memory_account.h"
#include "core/op/function.h"
#include "runtime/execute/local_run.h"

namespace tenon {
namespace {

/// One call, and all that dies with it.
struct FunctionCall {
  explicit FunctionCall(const Program& program) : run(program, {}) {
    run.memory = CurrentMemoryAccount();
  }
  LocalRun run;
  std::vector<Tensor> arguments, results;
};

/// One that goes on after RunAsync has returned, and may end while it is cancelled.
struct AsyncCall : FunctionCall {
  using FunctionCall::FunctionCall;
  RunnableFunction::Done done;
  std::optional<CancellationLink> closing, outer;
};

class LocalFunction final : public RunnableFunction,
                            public std::enable_shared_from_this<LocalFunction> {
 public:
  LocalFunction(DTypeVector argument_types, DTypeVector result_types, std::string name,
                std::shared_ptr<RunningCalls> running, std::shared_ptr<Program> program)
      : argument_types_(std::move(argument_types)),
        result_types_(std::move(result_types)),
        name_(std::move(name)),
        running_(std::move(running)),
        program_(std::move(program)) {}

  const DTypeVector& result_types() const override { return result_types_; }

  Status Run(std::vector<Tensor> arguments, Cancellation* cancellation,
             std::vector<Tensor>* results) const override {
    TENON_RETURN_IF_ERROR(Check(arguments));
    TENON_RETURN_IF_ERROR(running_->BeginFunction());
    Status status;
    {
      FunctionCall call(*program_);
      const CancellationLink closing(&running_->closing(), call.run.own_cancellation);
      const CancellationLink outer(cancellation, call.run.own_cancellation);
      call.arguments = std::move(arguments);
      status = CatchExceptions(
          [&] { return program_->Execute(call.run, call.arguments, &call.results); });
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
    auto call = std::make_shared<AsyncCall>(*program_);
    call->arguments = std::move(arguments);
    call->done = std::move(done);
    const std::shared_ptr<Cancellation> end(call, &call->run.own_cancellation);
    call->closing.emplace(&running_->closing(), end);
    call->outer.emplace(cancellation, end);
    AsyncCall& started = *call;
    // The last who holds the function may give it up in `done`.
    program_->Start(started.run, started.arguments, &started.results,
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

  std::vector<Tensor> TakeResults(FunctionCall& call) const {
    call.results.resize(result_types_.size());
    return std::move(call.results);
  }

  const DTypeVector argument_types_, result_types_;
  const std::string name_;
  const std::shared_ptr<RunningCalls> running_;
  const std::shared_ptr<Program> program_;
};

class LocalFunctionRuntime final : public FunctionRuntime {
 public:
  LocalFunctionRuntime(std::shared_ptr<const FunctionLibrary> library, const OpRegistry& registry,
                       std::shared_ptr<RunningCalls> running, CompileFunction compile)
      : library_(std::move(library)),
        registry_(registry),
        running_(std::move(running)),
        compile_(std::move(compile)) {}

  StatusOr<std::shared_ptr<const RunnableFunction>> Instantiate(
      const FunctionName& function, const std::vector<Tensor>& last) override {
    if (Find(function.name) == nullptr) {
      return InvalidArgument("the graph's library has no function '", function.name, "'");
    }
    // The devices are there while a call runs.
    TENON_RETURN_IF_ERROR(running_->BeginFunction());
    std::shared_ptr<const RunnableFunction> made;
    const Status status = CatchExceptions([&]() -> Status {
      TENON_ASSIGN_OR_RETURN(made, Make(function, last));
      return OkStatus();
    });
    running_->EndFunction();
    if (!status.ok()) return Annotate(status, StrCat("function '", function.name, "'"));
    return made;
  }
  const FunctionDefinition* Find(std::string_view name) const override {
    return library_->Find(name);
  }

 private:
  /// A graph of one node that calls the function is made a step of: its feeds are the arguments.
  StatusOr<std::shared_ptr<const RunnableFunction>> Make(const FunctionName& function,
                                                         const std::vector<Tensor>& last) {
    Graph graph(registry_);
    graph.set_functions(library_);
    AttributeMap attrs;
    for (const auto& [name, value] : function.attrs) attrs.Set(name, value);
    TENON_ASSIGN_OR_RETURN(Node * call, graph.AddNode("call", function.name, std::move(attrs)));
    Signature signature;
    const int first_known = call->num_inputs() - static_cast<int>(last.size());
    for (int i = 0; i < call->num_inputs(); ++i) {
      const DType type = call->input_types()[i];
      const bool is_bound =
          i >= first_known && type == DType::kString && IsBound(last[i - first_known]);
      AttributeMap described({{"dtype", type}});
      if (is_bound) {
        described.Set("value", last[i - first_known]);
      } else {
        described.Set("shape", PartialShape());
      }
      TENON_ASSIGN_OR_RETURN(
          Node * argument, graph.AddNode(StrCat("argument_", i), is_bound ? "Const" : "Placeholder",
                                         std::move(described), {}));
      TENON_RETURN_IF_ERROR(graph.Connect({argument, 0}, call, i));
      signature.feeds.push_back(argument->name());
    }
    for (int i = 0; i < call->num_outputs(); ++i) {
      signature.fetches.push_back(StrCat("call:", i));
    }
    signature.targets.push_back("call");
    const DTypeVector arguments = call->input_types();
    DTypeVector results = call->output_types();
    for (DType& type : results) type = BaseType(type);
    TENON_ASSIGN_OR_RETURN(std::shared_ptr<Program> program, compile_(std::move(graph), signature));
    return std::make_shared<LocalFunction>(arguments, std::move(results), function.name, running_,
                                           std::move(program));
  }

  const std::shared_ptr<const FunctionLibrary> library_;
  const OpRegistry& registry_;
  const std::shared_ptr<RunningCalls> running_;
  const CompileFunction compile_;
};

}  // namespace

std::shared_ptr<FunctionRuntime> MakeFunctionRuntime(std::shared_ptr<const FunctionLibrary> library,
                                                     const OpRegistry& registry,
                                                     std::shared_ptr<RunningCalls> running,
                                                     CompileFunction compile) {
  return std::make_shared<LocalFunctionRuntime>(std::move(library), registry, std::move(running),
                                                std::move(compile));
}

}  // namespace tenon
