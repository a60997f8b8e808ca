// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"
#include "ops/state/register.h"
#include "ops/state/state_ops.h"
#include "ops/training/training_ops.h"
#include "ops/state/variable_update.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

template <Update kUpdate>
class ScatterUpdateKernel final : public Kernel {
 public:
  explicit ScatterUpdateKernel(KernelConstruction& c) : Kernel(c) {}
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const std::shared_ptr<VariableResource> variable,
                           variable_.Find(ctx, ctx.input(2).dtype()));
    TENON_RETURN_IF_ERROR(ScatterVariable(variable.get(), kUpdate, ctx.input(1), ctx.input(2)));
    if (ctx.num_outputs() > 0) ctx.set_output_ref(0, variable.get());
    return OkStatus();
  }

 private:
  VariableInput variable_;
};

KernelOptions OptionsOf(Update update, std::string_view attr) {
  if (update == Update::kSet) return {};
  return {.types = {{std::string(attr), DTypesOf(NumericTypes())}}};
}

template <Update kUpdate>
void AddScatter(OpRegistry& ops, std::string_view name) {
  OpBuilder op = ops.Get(StrCat("Scatter", name));
  op.Shape(UnchangedShape)
      .Kernel<ScatterUpdateKernel<kUpdate>>(kCpu, OptionsOf(kUpdate, "T"))
      .NoExample("needs a variable; scatter_update_ops_test covers it");
  if (kUpdate != Update::kSet) op.NotDifferentiable();
  ops.Get(StrCat("ResourceScatter", name))
      .Shape(NoOutputShape)
      .Kernel<ScatterUpdateKernel<kUpdate>>(kCpu, OptionsOf(kUpdate, "dtype"))
      .NoExample("needs a variable; scatter_update_ops_test covers it");
}

}  // namespace

void RegisterScatterUpdateOps(OpRegistry& ops) {
  AddScatter<Update::kSet>(ops, "Update");
  AddScatter<Update::kAdd>(ops, "Add");
  AddScatter<Update::kSubtract>(ops, "Sub");
}

}  // namespace tenon
