// SPDX-License-Identifier: Apache-2.0
#include "ops/data/dataset.h"

#include <algorithm>
#include <thread>

#include "core/base/exceptions.h"
#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/memory/memory_account.h"

namespace tenon {
DTypeVector TypesOf(const DatasetElement& element) {
  DTypeVector types;
  for (const Tensor& t : element) types.push_back(t.dtype());
  return types;
}

StatusOr<std::shared_ptr<const RunnableFunction>> IteratorContext::Instantiate(
    const DatasetFunction& function) {
  std::string key =
      StrCat(reinterpret_cast<uintptr_t>(function.runtime.get()), " ", function.name.name);
  for (const auto& [name, value] : function.name.attrs) {
    StrAppend(&key, " ", name, "=", value.ToString());
  }
  std::vector<Tensor> bound;
  if (function.captures_targets) bound = function.captured;
  for (size_t i = 0; i < bound.size(); ++i) {
    if (!FunctionRuntime::IsBound(bound[i])) continue;
    const TString& text = bound[i].scalar<TString>();
    StrAppend(&key, " ", i, ":", text.size(), ":", std::string_view(text));
  }
  MutexLock lock(mu_);
  if (const auto found = functions_.find(key); found != functions_.end()) {
    return found->second.function;
  }
  TENON_ASSIGN_OR_RETURN(auto made, function.runtime->Instantiate(function.name, bound));
  functions_.emplace(std::move(key), Instance{function.runtime, made});
  return made;
}

StatusOr<DatasetPtr> DatasetIn(const Tensor& t) {
  if (t.dtype() == DType::kVariant && t.rank() == 0) {
    if (auto dataset = std::dynamic_pointer_cast<const Dataset>(t.scalar<Variant>().value)) {
      return dataset;
    }
  }
  return InvalidArgument("wanted a dataset, a scalar variant that holds one; found ",
                         ToString(t.dtype()), t.shape());
}

Tensor TensorOf(DatasetPtr dataset) { return Tensor::Scalar(Variant{std::move(dataset)}); }

Status ReturnDataset(KernelContext& ctx, DatasetPtr dataset) {
  const auto is_it = [&](const Variant& v) { return v.value == dataset; };
  bool is_input = false;
  for (int i = 0; i < ctx.num_inputs() && !is_input; ++i) {
    const Tensor& t = ctx.input(i);
    if (t.dtype() != DType::kVariant) continue;
    const auto held = t.flat<Variant>();
    is_input = std::any_of(held.begin(), held.end(), is_it);
  }
  // The dataset was just made: nobody shares it, and no dataset is made const.
  auto& made = const_cast<Dataset&>(*dataset);
  for (int i = 0; i < ctx.num_inputs() && !is_input; ++i) {
    TENON_RETURN_IF_ERROR(made.CountDepth(ctx.input(i)));
  }
  return ctx.Return(TensorOf(std::move(dataset)));
}

ElementSpec::ElementSpec(KernelConstruction& c)
    : types(c.Attr<DTypeVector>(c.attrs().Find("output_types") != nullptr ? "output_types"
                                                                          : "Toutput_types")),
      shapes(c.Attr<std::vector<PartialShape>>("output_shapes")) {
  if (shapes.size() == types.size()) return;
  c.Fail(InvalidArgument("output_types has ", types.size(), " components, output_shapes ",
                         shapes.size()));
}

Status CheckSpec(const ElementSpec& wanted, const DTypeVector& found,
                 const std::vector<PartialShape>& found_shapes) {
  if (found != wanted.types) {
    return InvalidArgument("Number of components or their dtypes do not match: expected (",
                           Join(wanted.types, ", "), ") but got (", Join(found, ", "), ").");
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (i >= std::min(wanted.shapes.size(), found_shapes.size()) ||
        wanted.shapes[i].IsCompatibleWith(found_shapes[i])) {
      continue;
    }
    return InvalidArgument("Incompatible shapes at component ", i, ": expected ",
                           wanted.shapes[i].ToString(), " but got ", found_shapes[i].ToString(),
                           ".");
  }
  return OkStatus();
}

Status CheckElement(const ElementSpec& wanted, const DatasetElement& found) {
  std::vector<PartialShape> shapes;
  for (const Tensor& t : found) shapes.emplace_back(t.shape());
  return CheckSpec(wanted, TypesOf(found), shapes);
}

Status ShapesOfElement(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const auto shapes, c.Attr<std::vector<PartialShape>>("output_shapes"));
  for (int i = 0; i < c.num_outputs() && i < static_cast<int>(shapes.size()); ++i) {
    c.set_output(i, shapes[i]);
  }
  return OkStatus();
}

FunctionSpec::FunctionSpec(KernelConstruction& c, std::string_view attr)
    : runtime(c.functions()), name(c.Attr<FunctionName>(attr)) {
  if (runtime == nullptr) {
    c.Fail(InvalidArgument("the graph's library has no function '", name.name, "'"));
  }
}

DatasetFunction FunctionSpec::Capture(const KernelContext& ctx, int first, int count) const {
  DatasetFunction function{runtime, name, {}};
  for (int i = first; i < first + count; ++i) function.captured.push_back(ctx.input(i));
  return function;
}

ElementFunction::ElementFunction(KernelConstruction& c)
    : function(c, c.attrs().Find("f") != nullptr ? "f" : "predicate"),
      captured(static_cast<int>(c.Attr<DTypeVector>("Targuments").size())) {}

StatusOr<FunctionCaller> FunctionCaller::Make(const ContextPtr& context,
                                              const DatasetFunction& function) {
  FunctionCaller caller;
  TENON_ASSIGN_OR_RETURN(caller.function_, context->Instantiate(function));
  caller.context_ = context;
  caller.captured_ = function.captured;
  return caller;
}

std::vector<Tensor> FunctionCaller::Arguments(DatasetElement element) const {
  element.insert(element.end(), captured_.begin(), captured_.end());
  return element;
}

Status FunctionCaller::Call(DatasetElement element, DatasetElement* results) const {
  return function_->Run(Arguments(std::move(element)), &context_->cancellation(), results);
}

Status FunctionCaller::CallToItsEnd(DatasetElement element, DatasetElement* results) const {
  return function_->Run(Arguments(std::move(element)), nullptr, results);
}

void FunctionCaller::CallAsync(DatasetElement element, RunnableFunction::Done done) const {
  // The cancellation lives until the end of the call.
  function_->RunAsync(
      Arguments(std::move(element)), &context_->cancellation(),
      [context = context_, done = std::move(done)](const Status& status, DatasetElement results) {
        done(status, std::move(results));
      });
}

void RunOnOwnThread(std::function<Status()> work, Kernel::Done done) {
  const auto run = [work = std::move(work), done, account = CurrentMemoryAccount()]() mutable {
    Status status;
    {
      const BusyThread busy;
      const ChargedTo charged(account);
      status = CatchExceptions(work);
    }
    work = nullptr;  // it may be the last to hold devices, which end after the steps
    done(status);
  };
  // The system may have no thread to give.
  const Status started = CatchExceptions([&] {
    std::thread(run).detach();
    return OkStatus();
  });
  if (!started.ok()) done(started);
}

void WalkOnOwnThread(KernelContext& ctx, DatasetPtr dataset, Kernel::Done done,
                     std::function<Status(const ContextPtr& context, ElementIterator& walk)> work) {
  const auto walk_through = [&ctx, dataset = std::move(dataset), work = std::move(work)] {
    const auto context = std::make_shared<IteratorContext>();
    const CancellationLink link(ctx.run().cancellation, context->cancellation());
    const InterruptibleBy interruption(&context->cancellation());
    IteratorPtr walk;
    const Status status = CatchExceptions([&]() -> Status {
      TENON_ASSIGN_OR_RETURN(walk, dataset->MakeIterator(context));
      return work(context, *walk);
    });
    // What makes elements ahead is not waited for.
    context->cancellation().Cancel(Cancelled("the walk is over"));
    return status;
  };
  RunOnOwnThread(walk_through, std::move(done));
}

StatusOr<bool> IsMapped(const Status& status, bool keeps_cardinality) {
  if (status.code() != StatusCode::kOutOfRange) {
    TENON_RETURN_IF_ERROR(status);
    return true;
  }
  if (!keeps_cardinality) return false;
  return InvalidArgument("Function invocation produced OutOfRangeError: ", Message(status));
}

StatusOr<IteratorPtr> IteratorOfResult(const ContextPtr& context, const DatasetElement& results) {
  if (results.size() != 1) {
    return InvalidArgument("the function must give one dataset, found ", results.size(),
                           " results");
  }
  TENON_ASSIGN_OR_RETURN(const DatasetPtr dataset, DatasetIn(results[0]));
  return dataset->MakeIterator(context);
}

StatusOr<int64_t> ReadParallelism(const Tensor& wanted, std::string_view name) {
  TENON_ASSIGN_OR_RETURN(const int64_t n, ReadInteger(wanted, name));
  if (n == -1) return ThreadBudget();
  if (n > 0) return n;
  return InvalidArgument(name, " must be greater than zero.");
}

}  // namespace tenon
