// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <vector>

#include "core/base/hash_map.h"
#include "core/op/op_registry.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

/// CountUpTo and ResourceCountUpTo.
Status CountUpToKernel(KernelContext& ctx, int64_t limit, const VariableInput& input) {
  TENON_ASSIGN_OR_RETURN(const auto variable, input.Find(ctx, ctx.output_type(0)));
  TENON_ASSIGN_OR_RETURN(Tensor * before, ctx.AllocateOutput(0, {}));
  return variable->Modify([&](const Tensor& current, Tensor* next) -> Status {
    if (current.rank() != 0) {
      return InvalidArgument("the variable must hold a scalar, found shape ", current.shape());
    }
    return DispatchStatus(current.dtype(), TypeList<int32_t, int64_t>(), [&]<typename T>(T) {
      const T value = current.scalar<T>();
      *before->data<T>() = value;
      if (value >= limit) return OutOfRange("Reached limit of ", limit);
      *next->data<T>() = Plus(value, T(1));
      return OkStatus();
    });
  });
}

/// Reads share a variable's memory in any case.
Status DisableCopyOnReadKernel(KernelContext& ctx, const VariableInput& input) {
  TENON_ASSIGN_OR_RETURN(const auto variable, input.Find(ctx, DType::kInvalid));
  return variable->initialized() ? OkStatus() : variable->Uninitialized();
}

/// The temporary variables of a step. Those that were removed stay, empty, until it ends: a
/// reference to one may still be on its way.
class TemporaryVariables final : public Resource {
 public:
  static constexpr std::string_view kKind = "temporary variables";
  std::string_view kind() const override { return kKind; }

  /// AlreadyExists when the step has one of that name.
  StatusOr<VariableResource*> Add(const std::string& name, DType dtype, const PartialShape& shape) {
    MutexLock lock(mu_);
    VariableResource*& named = by_name_[name];
    if (named != nullptr) {
      return AlreadyExists("the step has a temporary variable ", name, " already");
    }
    variables_.push_back(std::make_unique<RefVariable>(dtype, shape, name));
    return named = variables_.back().get();
  }
  /// NotFound when `variable` is not the one of that name.
  Status Remove(const std::string& name, VariableResource* variable) {
    MutexLock lock(mu_);
    const auto found = by_name_.find(name);
    if (found == by_name_.end() || found->second != variable) {
      return NotFound("the step has no temporary variable ", name, " that is the input");
    }
    by_name_.erase(found);
    return variable->Assign(Tensor());
  }

 private:
  Mutex mu_;
  std::vector<std::unique_ptr<RefVariable>> variables_ ABSL_GUARDED_BY(mu_);
  StringMap<VariableResource*> by_name_ ABSL_GUARDED_BY(mu_);  // those that were not removed
};

StatusOr<std::shared_ptr<TemporaryVariables>> TemporariesOf(const KernelContext& ctx) {
  return ctx.run().resources->LookupOrCreate<TemporaryVariables>(
      "", "temporary", [] { return std::make_shared<TemporaryVariables>(); });
}

/// Each turn of a loop has temporary variables of its own.
std::string NameInLoop(const KernelContext& ctx, const std::string& name) {
  return StrCat(name, "/", ctx.frame, ":", ctx.iteration);
}

/// It holds zeros until something is assigned to it, as far as its shape is known; on devices with
/// memory of their own, nothing.
Status TemporaryVariableKernel(KernelContext& ctx, DType dtype, PartialShape shape,
                               std::string var_name, const NodeName& node) {
  const std::string name = NameInLoop(ctx, var_name.empty() ? node.value : var_name);
  TENON_ASSIGN_OR_RETURN(const auto temporaries, TemporariesOf(ctx));
  TENON_ASSIGN_OR_RETURN(VariableResource * variable, temporaries->Add(name, dtype, shape));
  if (ctx.device().kind() == kCpu && shape.IsFullyKnown()) {
    TENON_ASSIGN_OR_RETURN(const Shape full, Shape::Create(shape.dims()));
    TENON_ASSIGN_OR_RETURN(Tensor zeros, ctx.AllocateTemp(dtype, full));
    ZeroElements(&zeros);
    TENON_RETURN_IF_ERROR(variable->Assign(std::move(zeros)));
  }
  ctx.set_output_ref(0, variable);
  return OkStatus();
}

Status DestroyTemporaryVariableKernel(KernelContext& ctx, std::string var_name) {
  VariableResource* const variable = ctx.ref(0);
  if (variable == nullptr) return InvalidArgument("the input is not a reference");
  TENON_ASSIGN_OR_RETURN(const auto temporaries, TemporariesOf(ctx));
  Tensor value = variable->Read();
  TENON_RETURN_IF_ERROR(temporaries->Remove(NameInLoop(ctx, var_name), variable));
  if (!value.valid()) return variable->Uninitialized();
  return ctx.Return(std::move(value));
}

Status ShapeOfAttr(ShapeContext& c) { return c.Return(c.Attr<PartialShape>("shape")); }

}  // namespace

void RegisterTemporaryVariableOps(OpRegistry& ops) {
  const auto add = [&](std::string_view name, ShapeFn shape, auto kernel,
                       const KernelOptions& options) {
    ops.Add(name, shape, kernel, options)
        .NoExample("needs a variable; temporary_variable_test covers it");
  };
  for (const char* name : {"CountUpTo", "ResourceCountUpTo"}) {
    add(name, ScalarShape, CountUpToKernel, {.attrs = {"limit"}, .cheap = true});
  }
  add("DisableCopyOnRead", NoOutputShape, DisableCopyOnReadKernel,
      {.cheap = true, .memory = kAnyMemory});
  add("TemporaryVariable", ShapeOfAttr, TemporaryVariableKernel,
      {.attrs = {"dtype", "shape", "var_name"}, .cheap = true, .memory = kAnyMemory});
  add("DestroyTemporaryVariable", UnchangedShape, DestroyTemporaryVariableKernel,
      {.attrs = {"var_name"}, .cheap = true, .memory = kAnyMemory});
}

}  // namespace tenon
