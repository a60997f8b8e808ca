// SPDX-License-Identifier: Apache-2.0
#include "core/op_registry.h"
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

template <Update kUpdate>
void AddScatter(OpRegistry& ops, std::string_view name) {
  for (const bool resource : {false, true}) {
    KernelOptions options;
    if (kUpdate != Update::kAssign) {
      options.types = {{resource ? "dtype" : "T", DTypesOf(NumericTypes())}};
    }
    ops.Add<ScatterUpdateKernel<kUpdate>>(StrCat(resource ? "ResourceScatter" : "Scatter", name),
                                          resource ? NoOutputShape : UnchangedShape, options)
        .NoExample("needs a variable; scatter_update_ops_test covers it");
  }
}

}  // namespace

void RegisterScatterUpdateOps(OpRegistry& ops) {
  AddScatter<Update::kAssign>(ops, "Update");
  AddScatter<Update::kAdd>(ops, "Add");
  AddScatter<Update::kSubtract>(ops, "Sub");
}

}  // namespace tenon
