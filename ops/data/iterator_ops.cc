// SPDX-License-Identifier: Apache-2.0
#include "ops/data/handle_text.h"
#include "ops/data/iterator.h"
#include "ops/data/optional_element.h"
#include "ops/state/resource_node.h"

namespace tenon {
namespace {

StatusOr<std::shared_ptr<Iterator>> IteratorInput(const KernelContext& ctx, int i = 0) {
  return ResourceInput<Iterator>(ctx, i);
}

Status MakeIteratorKernel(KernelContext& ctx, DatasetPtr dataset) {
  TENON_ASSIGN_OR_RETURN(const auto iterator, IteratorInput(ctx, 1));
  return iterator->Begin(dataset);
}

template <bool as_optional>
class GetNextKernel final : public AsyncKernel {
 public:
  explicit GetNextKernel(KernelConstruction& c) : AsyncKernel(c), spec_(c) {}

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    StatusOr<std::shared_ptr<Iterator>> found = IteratorInput(ctx);
    Status status = found.status();
    if (status.ok()) status = (*found)->CheckShared(spec_);
    if (!status.ok()) return done(status);
    Iterator* const iterator = found->get();
    iterator->GetNext(ctx, as_optional, [keep = *std::move(found), done](Status s) { done(s); });
  }

 private:
  const ElementSpec spec_;
};

/// The iterator of a dataset that a function makes.
class OneShotIterator final : public ResourceNodeKernel<Iterator> {
 public:
  explicit OneShotIterator(KernelConstruction& c)
      : ResourceNodeKernel(c), factory_(c, "dataset_factory") {
    if (const std::string shared = c.Attr<std::string>("shared_name"); !shared.empty()) {
      c.Fail(
          InvalidArgument("OneShotIteratorOp must not have a shared_name, found '", shared, "'"));
    }
  }

 private:
  StatusOr<std::shared_ptr<Iterator>> Make(KernelContext& ctx,
                                           const std::string& name) const override {
    TENON_ASSIGN_OR_RETURN(const auto factory, factory_.runtime->Instantiate(factory_.name));
    DatasetElement results;
    TENON_RETURN_IF_ERROR(factory->Run({}, ctx.run().cancellation, &results));
    if (results.size() != 1) {
      return InvalidArgument("dataset_factory must give one dataset, found ", results.size(),
                             " results");
    }
    TENON_ASSIGN_OR_RETURN(const DatasetPtr dataset, DatasetIn(results[0]));
    auto iterator = std::make_shared<Iterator>(options(), name);
    TENON_RETURN_IF_ERROR(iterator->Begin(dataset));
    return iterator;
  }

  const FunctionSpec factory_;
};

/// Calls that function, when the node first runs, on a thread of its own.
class OneShotIteratorKernel final : public AsyncKernel {
 public:
  explicit OneShotIteratorKernel(KernelConstruction& c) : AsyncKernel(c), iterator_(c) {}

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    Status status;
    if (iterator_.ComputeIfMade(ctx, &status)) return done(status);
    RunOnOwnThread([this, &ctx] { return iterator_.Compute(ctx); }, std::move(done));
  }

 private:
  const OneShotIterator iterator_;
};

StatusOr<std::shared_ptr<const OptionalElement>> OptionalInput(const KernelContext& ctx) {
  const Tensor& t = ctx.input(0);
  if (t.rank() == 0) {
    auto found = std::dynamic_pointer_cast<const OptionalElement>(t.scalar<Variant>().value);
    if (found != nullptr) return found;
  }
  return InvalidArgument("wanted an optional, a scalar variant that holds one");
}

Status OptionalFromValueKernel(KernelContext& ctx) {
  auto optional = std::make_shared<OptionalElement>();
  optional->exists = true;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    TENON_RETURN_IF_ERROR(optional->CountDepth(ctx.input(i)));
    optional->element.push_back(ctx.input(i));
  }
  return ctx.Return(Tensor::Scalar(Variant{std::move(optional)}));
}

Status OptionalNoneKernel(KernelContext& ctx) {
  return ctx.Return(Tensor::Scalar(Variant{std::make_shared<OptionalElement>()}));
}

Status OptionalHasValueKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto optional, OptionalInput(ctx));
  return ctx.Return(Tensor::Scalar(optional->exists));
}

Status OptionalGetValueKernel(KernelContext& ctx, const ElementSpec& spec) {
  TENON_ASSIGN_OR_RETURN(const auto optional, OptionalInput(ctx));
  if (!optional->exists) return InvalidArgument("The given optional does not have a value.");
  TENON_RETURN_IF_ERROR(CheckElement(spec, optional->element));
  for (size_t i = 0; i < spec.types.size(); ++i) {
    ctx.set_output(static_cast<int>(i), optional->element[i]);
  }
  return OkStatus();
}

Status CardinalityKernel(KernelContext& ctx, DatasetPtr dataset) {
  return ctx.Return(Tensor::Scalar<int64_t>(dataset->Cardinality()));
}

/// The only element of a dataset, made on the calling thread.
class SingleElementKernel final : public AsyncKernel {
 public:
  explicit SingleElementKernel(KernelConstruction& c) : AsyncKernel(c), spec_(c) {}

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    const StatusOr<DatasetPtr> dataset = DatasetInput(ctx);
    if (!dataset.ok()) return done(dataset.status());
    WalkOnOwnThread(
        ctx, *dataset, std::move(done),
        [this, &ctx](const ContextPtr&, ElementIterator& walk) { return TakeOne(ctx, walk); });
  }

 private:
  Status TakeOne(KernelContext& ctx, ElementIterator& walk) const {
    DatasetElement element, second;
    TENON_ASSIGN_OR_RETURN(const bool found, walk.Next(&element));
    if (!found) return InvalidArgument("Dataset was empty. Expected exactly one element.");
    TENON_RETURN_IF_ERROR(CheckElement(spec_, element));
    TENON_ASSIGN_OR_RETURN(const bool more, walk.Next(&second));
    if (more) {
      return InvalidArgument("Dataset had more than one element. Expected exactly one element.");
    }
    for (size_t i = 0; i < element.size(); ++i) ctx.set_output(static_cast<int>(i), element[i]);
    return OkStatus();
  }

  const ElementSpec spec_;
};

}  // namespace

void RegisterIteratorOps(OpRegistry& ops) {
  const auto get = [&ops](std::string_view name, ShapeFn shape) {
    return ops.Get(name).Shape(shape).NoExample("needs a dataset; datasets_test covers it");
  };
  for (const char* name : {"Iterator", "IteratorV2"}) {
    get(name, ScalarShape).Kernel<ResourceNodeKernel<Iterator>>(kCpu);
  }
  get("OneShotIterator", ScalarShape).Kernel<OneShotIteratorKernel>(kCpu);
  get("MakeIterator", NoOutputShape).Kernel(kCpu, MakeIteratorKernel);
  for (const char* name : {"IteratorGetNext", "IteratorGetNextSync"}) {
    get(name, ShapesOfElement).Kernel<GetNextKernel<false>>(kCpu);
  }
  get("IteratorGetNextAsOptional", ScalarShape).Kernel<GetNextKernel<true>>(kCpu);
  get("IteratorToStringHandle", ScalarShape).Kernel(kCpu, HandleToTextKernel<Iterator>);
  for (const char* name : {"IteratorFromStringHandle", "IteratorFromStringHandleV2"}) {
    get(name, ScalarShape)
        .Kernel(kCpu, HandleOfTextKernel<Iterator>, {.attrs = {"output_types", "output_shapes"}});
  }
  get("OptionalFromValue", ScalarShape).Kernel(kCpu, OptionalFromValueKernel);
  get("OptionalNone", ScalarShape).Kernel(kCpu, OptionalNoneKernel);
  get("OptionalHasValue", ScalarShape).Kernel(kCpu, OptionalHasValueKernel);
  get("OptionalGetValue", ShapesOfElement).Kernel(kCpu, OptionalGetValueKernel);
  get("DatasetCardinality", ScalarShape).Kernel(kCpu, CardinalityKernel);
  get("DatasetToSingleElement", ShapesOfElement).Kernel<SingleElementKernel>(kCpu);
}

}  // namespace tenon
