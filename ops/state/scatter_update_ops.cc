// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/state/variable_update.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

using Scatter = Status(VariableResource*, Update, const Tensor& indices, const Tensor& updates);

template <Scatter kScatter, Update kUpdate>
Status ScatterUpdateKernel(KernelContext& ctx, const VariableInput& input) {
  TENON_ASSIGN_OR_RETURN(const auto variable, input.Find(ctx, ctx.input(2).dtype()));
  TENON_RETURN_IF_ERROR(kScatter(variable.get(), kUpdate, ctx.input(1), ctx.input(2)));
  if (ctx.num_outputs() > 0) ctx.set_output_ref(0, variable.get());
  return OkStatus();
}

template <Update kUpdate>
void AddScatter(OpRegistry& ops, std::string_view name, const DTypeVector& types) {
  for (const ScatterOp& op : ScatterOps(ops, name)) {
    KernelOptions options;
    if (!types.empty()) options.types = {{op.type_attr, types}};
    ops.Add(op.name, op.by_handle ? NoOutputShape : UnchangedShape,
            op.tuples ? ScatterUpdateKernel<ScatterNdVariable, kUpdate>
                      : ScatterUpdateKernel<ScatterVariable, kUpdate>,
            options)
        .NoExample("needs a variable; scatter_update_ops_test covers it");
  }
}

}  // namespace

void RegisterScatterUpdateOps(OpRegistry& ops) {
  const DTypeVector numeric = DTypesOf(NumericTypes()), real = DTypesOf(RealTypes());
  AddScatter<Update::kAssign>(ops, "Update", {});
  AddScatter<Update::kAdd>(ops, "Add", numeric);
  AddScatter<Update::kSubtract>(ops, "Sub", numeric);
  AddScatter<Update::kMultiply>(ops, "Mul", numeric);
  AddScatter<Update::kDivide>(ops, "Div", numeric);
  AddScatter<Update::kMin>(ops, "Min", real);
  AddScatter<Update::kMax>(ops, "Max", real);
}

}  // namespace tenon
