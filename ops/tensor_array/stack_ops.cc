// SPDX-License-Identifier: Apache-2.0
//
// Stacks hold the values that the gradient of a loop needs, one an iteration. They live and die
// with the step. No graph-building functions: gradients of loops make them.
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/tensor_array/step_resource.h"

namespace tenon {
namespace {

class Stack final : public Resource {
 public:
  static constexpr std::string_view kKind = "stack", kContainer = "_stacks",
                                    kTypeName = "N10tensorflow5StackE";

  Stack(DType dtype, int64_t max_size, std::string name)
      : dtype_(dtype), max_size_(max_size), name_(std::move(name)) {}
  std::string_view kind() const override { return kKind; }

  Status Push(Tensor value) {
    if (value.dtype() != dtype_) {
      return InvalidArgument("Must have type ", dtype_, " but got ", value.dtype());
    }
    MutexLock lock(mu_);
    TENON_RETURN_IF_ERROR(CheckOpen());
    if (max_size_ >= 0 && static_cast<int64_t>(values_.size()) >= max_size_) {
      return InvalidArgument("Stack[", name_, "] overflowed its max_size (", max_size_, ")");
    }
    values_.push_back(std::move(value));
    return OkStatus();
  }

  StatusOr<Tensor> Pop() {
    MutexLock lock(mu_);
    TENON_RETURN_IF_ERROR(CheckOpen());
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
  Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!closed_) return OkStatus();
    return InvalidArgument("Stack[", name_, "] has already been closed.");
  }

  const DType dtype_;
  const int64_t max_size_;  // negative: no limit
  const std::string name_;
  Mutex mu_;
  CountedVector<Tensor> values_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

Status StackKernel(KernelContext& ctx, const NodeName& node, DType elem_type,
                   const std::string& stack_name) {
  int64_t max_size = -1;
  if (ctx.num_inputs() > 0) {
    TENON_ASSIGN_OR_RETURN(max_size, ReadInteger(ctx.input(0), "max_size"));
  }
  const std::string unique = UniqueName(stack_name, node.value);
  return ctx.Return(StepResourceHandle<Stack>(
      ctx, unique, [&] { return std::make_shared<Stack>(elem_type, max_size, unique); }));
}

Status PushKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto stack, StepResourceInput<Stack>(ctx));
  TENON_RETURN_IF_ERROR(stack->Push(ctx.input(1)));
  return ctx.Return(ctx.TakeInput(1));
}

Status PopKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto stack, StepResourceInput<Stack>(ctx));
  if (stack->dtype() != ctx.output_type(0)) {
    return InvalidArgument("the stack holds ", stack->dtype(), ", wanted ", ctx.output_type(0));
  }
  return ctx.Return(stack->Pop());
}

Status CloseStackKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto stack, StepResourceInput<Stack>(ctx));
  stack->Close();
  return OkStatus();
}

Status PushShape(ShapeContext& c) { return c.Return(c.input(1)); }

Status HandleShape(ShapeContext& c) {
  return c.Return(c.num_inputs() == 0 ? PartialShape{2} : PartialShape(Shape{}));
}

}  // namespace

void RegisterStackOps(OpRegistry& ops) {
  for (const char* version : {"", "V2"}) {
    const auto add = [&](std::string_view name, ShapeFn shape, auto kernel,
                         std::vector<std::string> attrs = {}) {
      ops.Add(StrCat(name, version), shape, kernel,
              {.attrs = std::move(attrs), .memory = kAnyMemory})
          .NoExample("needs a step's resources; stack_ops_test covers it");
    };
    add("Stack", HandleShape, StackKernel, {"elem_type", "stack_name"});
    add("StackPush", PushShape, PushKernel);
    add("StackPop", UnknownShape, PopKernel);
    add("StackClose", NoOutputShape, CloseStackKernel);
  }
}

}  // namespace tenon
