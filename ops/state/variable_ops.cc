// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "ops/arguments.h"
#include "ops/inline_kernel.h"
#include "ops/state/register.h"
#include "ops/state/state_ops.h"
#include "ops/training/training_ops.h"
#include "ops/state/variable_update.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

/// Finds or makes the variable at its first run, and again when something has been removed from the
/// store, so that nobody goes on with a variable that no longer exists. References are borrowed from
/// this kernel, which therefore keeps every variable that it has ever given, the old ones empty.
class VariableKernel final : public Kernel {
 public:
  explicit VariableKernel(KernelConstruction& c)
      : Kernel(c),
        container_(c.Attr<std::string>("container")),
        shared_name_(c.Attr<std::string>("shared_name")),
        dtype_(c.Attr<DType>("dtype")),
        shape_(c.Attr<PartialShape>("shape")) {}

  Status Compute(KernelContext& ctx) const override {
    const bool known =
        removals_.load(std::memory_order_acquire) == ctx.resources().removals();
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
      return InvalidArgument("Trying to share variable ", key, ", but specified ", ToString(dtype_),
                             shape_.ToString(), " and found already created ",
                             ToString(found->dtype()), found->shape().ToString());
    }
    if (variables_.empty() || variables_.back() != found) {
      if (!variables_.empty()) variables_.back()->Assign(Tensor());
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

Status VariableOpShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  c.set_output(0, std::move(shape));
  return OkStatus();
}

Status MissingReference() { return InvalidArgument("the first input is not a reference"); }

class AssignKernel final : public Kernel {
 public:
  explicit AssignKernel(KernelConstruction& c)
      : Kernel(c), validate_shape_(c.Attr<bool>("validate_shape")) {}
  Status Compute(KernelContext& ctx) const override {
    VariableResource* variable = ctx.ref(0);
    if (variable == nullptr) return MissingReference();
    TENON_ASSIGN_OR_RETURN(Tensor value, ForVariable(ctx.TakeInput(1)));
    if (validate_shape_) {
      const Tensor current = variable->Read();
      const PartialShape wanted = current.valid() ? current.shape() : variable->shape();
      if (!wanted.IsCompatibleWith(value.shape())) {
        return InvalidArgument("Assign requires shapes of both tensors to match. lhs shape= ",
                               wanted.ToString(), " rhs shape= ", value.shape().ToString());
      }
    }
    variable->Assign(std::move(value));
    ctx.set_output_ref(0, variable);
    return OkStatus();
  }
  bool is_expensive() const override { return false; }

 private:
  const bool validate_shape_;
};

Status AssignShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const bool validate, c.Attr<bool>("validate_shape"));
  if (!validate) {
    c.set_output(0, c.input(1));
    return OkStatus();
  }
  auto merged = c.input(0).MergeWith(c.input(1));
  if (!merged.ok()) {
    return InvalidArgument("Assign requires shapes of both tensors to match. lhs shape= ",
                           c.input(0).ToString(), " rhs shape= ", c.input(1).ToString());
  }
  c.set_output(0, *std::move(merged));
  return OkStatus();
}

template <Update kUpdate>
Status AssignUpdate(KernelContext& ctx) {
  VariableResource* variable = ctx.ref(0);
  if (variable == nullptr) return MissingReference();
  TENON_RETURN_IF_ERROR(UpdateVariable(variable, kUpdate, ctx.input(1)));
  ctx.set_output_ref(0, variable);
  return OkStatus();
}

Status IsInitialized(KernelContext& ctx) {
  if (ctx.ref(0) == nullptr) return MissingReference();
  ctx.set_output(0, Tensor::Scalar(ctx.ref(0)->initialized()));
  return OkStatus();
}

template <Update kUpdate>
void AddAssignUpdate(OpRegistry& ops, std::string_view name) {
  ops.Get(name)
      .Shape(MergedShape)
      .Kernel(kCpu, AssignUpdate<kUpdate>, {.types = {{"T", DTypesOf(NumericTypes())}}})
      .NotDifferentiable()
      .NoExample("needs a variable; variable_ops_test covers it");
}

}  // namespace

void RegisterVariableOps(OpRegistry& ops) {
  ops.Get("VariableV2")
      .Shape(VariableOpShape)
      .Kernel<VariableKernel>(kCpu)
      .NoExample("is uninitialised when run alone; variable_ops_test covers it");
  ops.Get("Variable")
      .Shape(VariableOpShape)
      .Kernel<VariableKernel>(kCpu)
      .NoExample("is uninitialised when run alone; variable_ops_test covers it");
  ops.Get("Assign")
      .Shape(AssignShape)
      .Kernel<AssignKernel>(kCpu)
      .NotDifferentiable()
      .NoExample("needs a variable; variable_ops_test covers it");
  AddAssignUpdate<Update::kAdd>(ops, "AssignAdd");
  AddAssignUpdate<Update::kSubtract>(ops, "AssignSub");
  ops.Get("IsVariableInitialized")
      .Shape(ScalarShape)
      .Kernel<InlineKernel<IsInitialized>>(kCpu)
      .NoExample("needs a variable; variable_ops_test covers it");
}

}  // namespace tenon
