// SPDX-License-Identifier: Apache-2.0
//
// Stacks hold the values that the gradient of a loop needs, one an iteration. They live and die
// with the step. No graph-building functions: gradients of loops make them.
#include <atomic>

#include "ops/arguments.h"
#include "ops/tensor_array/register.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

class Stack final : public Resource {
 public:
  static constexpr std::string_view kKind = "stack";

  Stack(DType dtype, int64_t max_size, std::string name)
      : dtype_(dtype), max_size_(max_size), name_(std::move(name)) {}
  std::string_view kind() const override { return kKind; }

  Status Push(Tensor value) {
    if (value.dtype() != dtype_) {
      return InvalidArgument("Must have type ", ToString(dtype_), " but got ",
                             ToString(value.dtype()));
    }
    MutexLock lock(mu_);
    if (closed_) return InvalidArgument("Stack[", name_, "] has already been closed.");
    if (max_size_ >= 0 && static_cast<int64_t>(values_.size()) >= max_size_) {
      return InvalidArgument("Stack[", name_, "] overflowed its max_size (", max_size_, ")");
    }
    values_.push_back(std::move(value));
    return OkStatus();
  }

  StatusOr<Tensor> Pop() {
    MutexLock lock(mu_);
    if (closed_) return InvalidArgument("Stack[", name_, "] has already been closed.");
    if (values_.empty()) return InvalidArgument("Stack[", name_, "] is empty when calling Pop().");
    Tensor value = std::move(values_.back());
    values_.pop_back();
    return value;
  }

  void Close() {
    MutexLock lock(mu_);
    closed_ = true;
    values_.clear();
  }
  DType dtype() const { return dtype_; }

 private:
  const DType dtype_;
  const int64_t max_size_;  // negative: no limit
  const std::string name_;
  Mutex mu_;
  std::vector<Tensor> values_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

constexpr char kStackContainer[] = "_stacks";

StatusOr<std::shared_ptr<Stack>> StackInput(const KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, 0));
  TENON_ASSIGN_OR_RETURN(const ResourceStore* store, StepResources(ctx));
  return store->Lookup<Stack>(handle->container, handle->name);
}

class StackKernel final : public Kernel {
 public:
  explicit StackKernel(KernelConstruction& c)
      : Kernel(c),
        dtype_(c.Attr<DType>("elem_type")),
        stack_name_(c.Attr<std::string>("stack_name")) {}
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const int64_t max_size, ReadInteger(ctx.input(0), "max_size"));
    TENON_ASSIGN_OR_RETURN(ResourceStore * store, StepResources(ctx));
    ResourceHandle handle;
    handle.device = ctx.device().name();
    handle.container = kStackContainer;
    // Every run makes a stack of its own: inside an outer loop there is one an iteration.
    handle.name = StrCat(stack_name_.empty() ? name() : stack_name_, "_", made_.fetch_add(1));
    handle.type_name = "N10tensorflow5StackE";
    TENON_RETURN_IF_ERROR(store->LookupOrCreate<Stack>(kStackContainer, handle.name, [&] {
      return std::make_shared<Stack>(dtype_, max_size, std::string(handle.name));
    }));
    ctx.set_output(0, Tensor::Scalar(std::move(handle)));
    return OkStatus();
  }

 private:
  /// One count for all kernels: two nodes may use the same stack_name.
  static inline std::atomic<int64_t> made_{0};
  const DType dtype_;
  const std::string stack_name_;
};

Status PushKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<Stack> stack, StackInput(ctx));
  TENON_RETURN_IF_ERROR(stack->Push(ctx.input(1)));
  ctx.set_output(0, ctx.TakeInput(1));
  return OkStatus();
}

Status PopKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<Stack> stack, StackInput(ctx));
  if (stack->dtype() != ctx.output_type(0)) {
    return InvalidArgument("the stack holds ", ToString(stack->dtype()), ", wanted ",
                           ToString(ctx.output_type(0)));
  }
  TENON_ASSIGN_OR_RETURN(Tensor value, stack->Pop());
  ctx.set_output(0, std::move(value));
  return OkStatus();
}

Status CloseKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<Stack> stack, StackInput(ctx));
  stack->Close();
  return OkStatus();
}

Status PushShape(ShapeContext& c) {
  c.set_output(0, c.input(1));
  return OkStatus();
}

constexpr char kNeedsStack[] = "needs a step's resources; stack_ops_test covers it";

}  // namespace

void RegisterStackOps(OpRegistry& ops) {
  ops.Get("StackV2")
      .Shape(ScalarShape)
      .Kernel<StackKernel>(kCpu, {.host_args = {"max_size", "handle"}})
      .NoExample(kNeedsStack);
  ops.Get("StackPushV2")
      .Shape(PushShape)
      .Kernel(kCpu, PushKernel, {.host_args = {"handle"}})
      .NoExample(kNeedsStack);
  ops.Get("StackPopV2")
      .Shape(UnknownShape)
      .Kernel(kCpu, PopKernel, {.host_args = {"handle"}})
      .NoExample(kNeedsStack);
  ops.Get("StackCloseV2")
      .Shape(NoOutputShape)
      .Kernel(kCpu, CloseKernel, {.host_args = {"handle"}})
      .NoExample(kNeedsStack);
}

}  // namespace tenon
