// SPDX-License-Identifier: Apache-2.0
#include "core/op_registry.h"
#include "ops/state/variable_update.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

template <Update kUpdate>
Status ScatterUpdateKernel(KernelContext& ctx, const VariableInput& input) {
  TENON_ASSIGN_OR_RETURN(const auto variable, input.Find(ctx, ctx.input(2).dtype()));
  TENON_RETURN_IF_ERROR(ScatterVariable(variable.get(), kUpdate, ctx.input(1), ctx.input(2)));
  if (ctx.num_outputs() > 0) ctx.set_output_ref(0, variable.get());
  return OkStatus();
}

template <Update kUpdate>
void AddScatter(OpRegistry& ops, std::string_view name) {
  for (const bool resource : {false, true}) {
    KernelOptions options;
    if (kUpdate != Update::kAssign) {
      options.types = {{resource ? "dtype" : "T", DTypesOf(NumericTypes())}};
    }
    ops.Add(StrCat(resource ? "ResourceScatter" : "Scatter", name),
            resource ? NoOutputShape : UnchangedShape, ScatterUpdateKernel<kUpdate>, options)
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
