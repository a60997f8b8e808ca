// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "core/op/op_registry.h"
#include "ops/state/assign.h"
#include "ops/state/variable_update.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

/// Finds or makes the variable at its first run, and again when something has been removed from the
/// store, so that nobody goes on with a variable that no longer exists. References are borrowed
/// from this kernel, which therefore keeps every variable that it has ever given, the old ones
/// empty.
class VariableKernel final : public Kernel {
 public:
  explicit VariableKernel(KernelConstruction& c)
      : Kernel(c),
        container_(c.Attr<std::string>("container")),
        shared_name_(c.Attr<std::string>("shared_name")),
        dtype_(c.Attr<DType>("dtype")),
        shape_(c.Attr<PartialShape>("shape")) {}

  Status Compute(KernelContext& ctx) const override {
    const bool known = removals_.load(std::memory_order_acquire) == ctx.resources().removals();
    VariableResource* variable = known ? ready_.load(std::memory_order_acquire) : nullptr;
    if (variable == nullptr) {
      TENON_ASSIGN_OR_RETURN(variable, Find(ctx.resources()));
    }
    ctx.set_output_ref(0, variable);
    return OkStatus();
  }
  bool is_expensive() const override { return false; }

 private:
  StatusOr<VariableResource*> Find(ResourceStore& store) const {
    // Over the lookup, so that the newest variable comes last.
    MutexLock lock(mu_);
    const uint64_t removals = store.removals();
    const std::string& key = shared_name_.empty() ? name() : shared_name_;
    TENON_ASSIGN_OR_RETURN(std::shared_ptr<RefVariable> found,
                           store.LookupOrCreate<RefVariable>(container_, key, [&] {
                             return std::make_shared<RefVariable>(dtype_, shape_, name());
                           }));
    if (found->dtype() != dtype_ || !found->shape().IsCompatibleWith(shape_)) {
      return InvalidArgument("Trying to share variable ", key, ", but specified ", dtype_, shape_,
                             " and found already created ", found->dtype(), found->shape());
    }
    if (variables_.empty() || variables_.back() != found) {
      if (!variables_.empty()) TENON_RETURN_IF_ERROR(variables_.back()->Assign(Tensor()));
      variables_.push_back(std::move(found));
    }
    ready_.store(variables_.back().get(), std::memory_order_release);
    removals_.store(removals, std::memory_order_release);
    return variables_.back().get();
  }

  const std::string container_;
  const std::string shared_name_;
  const DType dtype_;
  const PartialShape shape_;
  mutable Mutex mu_;
  mutable std::vector<std::shared_ptr<RefVariable>> variables_ ABSL_GUARDED_BY(mu_);
  mutable std::atomic<VariableResource*> ready_{nullptr};
  mutable std::atomic<uint64_t> removals_{0};  // when `ready_` was looked up
};

Status VariableOpShape(ShapeContext& c) { return c.Return(c.Attr<PartialShape>("shape")); }

Status AssignKernel(KernelContext& ctx, bool validate_shape) {
  return AssignToReference(ctx, validate_shape);
}

Status AssignShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const bool validate, c.Attr<bool>("validate_shape"));
  if (!validate) return c.Return(c.input(1));
  if (const auto merged = c.Merged(); merged.ok()) return c.Return(merged);
  return InvalidArgument("Assign requires shapes of both tensors to match. lhs shape= ", c.input(0),
                         " rhs shape= ", c.input(1));
}

template <Update kUpdate>
Status AssignUpdateKernel(KernelContext& ctx) {
  VariableResource* variable = ctx.ref(0);
  if (variable == nullptr) return MissingReference();
  TENON_RETURN_IF_ERROR(UpdateVariable(variable, kUpdate, ctx.input(1)));
  ctx.set_output_ref(0, variable);
  return OkStatus();
}

Status IsInitializedKernel(KernelContext& ctx) {
  if (ctx.ref(0) == nullptr) return MissingReference();
  return ctx.Return(Tensor::Scalar(ctx.ref(0)->initialized()));
}

}  // namespace

void RegisterVariableOps(OpRegistry& ops) {
  for (const char* op : {"Variable", "VariableV2"}) {
    ops.Add<VariableKernel>(op, VariableOpShape, {.memory = kAnyMemory})
        .NoExample("is uninitialised when run alone; variable_ops_test covers it");
  }
  const auto get = [&ops](std::string_view name, ShapeFn shape) {
    return ops.Get(name).Shape(shape).NoExample("needs a variable; variable_ops_test covers it");
  };
  const KernelOptions numeric = {.types = {{"T", DTypesOf(NumericTypes())}}};
  get("Assign", AssignShape)
      .Kernel(kCpu, AssignKernel,
              {.attrs = {"validate_shape"}, .cheap = true, .memory = kAnyMemory});
  get("AssignAdd", MergedShape).Kernel(kCpu, AssignUpdateKernel<Update::kAdd>, numeric);
  get("AssignSub", MergedShape).Kernel(kCpu, AssignUpdateKernel<Update::kSubtract>, numeric);
  get("IsVariableInitialized", ScalarShape)
      .Kernel(kCpu, IsInitializedKernel, {.cheap = true, .memory = kAnyMemory});
}

}  // namespace tenon
