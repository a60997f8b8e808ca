// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/op_registry.h"
#include "core/op/shape_inference.h"
#include "ops/glm/design_message.h"
#include "ops/glm/glm_sums.h"
#include "ops/io/files_for.h"
#include "ops/state/resource_node.h"
#include "ops/table/table_resource.h"

namespace tenon {
namespace {

/// The pass that a node makes.
struct PassState : KernelState {
  explicit PassState(KernelConstruction& c) {
    // In the order of GlmPass.
    constexpr std::string_view kNames[] = {"deviance", "gradient", "rows", "newton", "squares"};
    const auto name = c.Attr<std::string>("pass");
    pass = static_cast<GlmPass>(std::find(std::begin(kNames), std::end(kNames), name) -
                                std::begin(kNames));
  }
  GlmPass pass;
};

/// InvalidArgument where a design has a column for numbers that a shard has texts in, or the other
/// way round.
Status CheckKinds(const GlmDesign& design, const TableShard& shard) {
  if (shard.num_rows() == 0) return OkStatus();
  const auto check = [&](int64_t column, bool as_text) -> Status {
    if (column < 0 || shard.IsText(column) == as_text) return OkStatus();
    return InvalidArgument("column ", column, " of the table has ", as_text ? "numbers" : "texts",
                           ", the design wants ", as_text ? "texts" : "numbers");
  };
  const auto check_number = [&](const GlmNumber& number) -> Status {
    for (const int64_t column : number.columns) TENON_RETURN_IF_ERROR(check(column, false));
    return OkStatus();
  };
  TENON_RETURN_IF_ERROR(check(design.response.column, true));
  TENON_RETURN_IF_ERROR(check(design.weight_column, false));
  TENON_RETURN_IF_ERROR(check_number(design.response.number));
  TENON_RETURN_IF_ERROR(check_number(design.response.failures));
  for (const auto* numbers : {&design.offsets, &design.numbers}) {
    for (const GlmNumber& number : *numbers) TENON_RETURN_IF_ERROR(check_number(number));
  }
  for (const GlmFactor& factor : design.factors) {
    TENON_RETURN_IF_ERROR(check(factor.column, true));
    TENON_RETURN_IF_ERROR(check_number(factor.number));
  }
  return OkStatus();
}

Status SumsKernel(KernelContext& ctx, const PassState& state) {
  TENON_ASSIGN_OR_RETURN(const auto table, ResourceInput<TableResource>(ctx));
  TENON_ASSIGN_OR_RETURN(const GlmDesign design, ParseDesign(ctx.input(1).data<TString>()[0]));
  const Tensor& coefficients = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  return table->Use([&](TableShard* shard) -> Status {
    TENON_RETURN_IF_ERROR(design.Check(static_cast<int64_t>(shard->schema().columns.size())));
    TENON_RETURN_IF_ERROR(shard->CheckRead());
    TENON_RETURN_IF_ERROR(CheckKinds(design, *shard));
    const GlmSumsLayout layout(design, state.pass);
    TENON_ASSIGN_OR_RETURN(
        const auto sums,
        AddGlmSums(layout, *shard,
                   {coefficients.data<double>(), static_cast<size_t>(coefficients.num_elements())},
                   files));
    TENON_ASSIGN_OR_RETURN(Tensor* const out, ctx.CreateOutput(0, {layout.size()}));
    std::copy(sums.begin(), sums.end(), out->data<double>());
    return OkStatus();
  });
}

}  // namespace

void RegisterGlmKernels(OpRegistry& ops) {
  ops.Get("TenonGlmSums")
      .Shape(DeclaredShape)
      .NoExample("needs a table in files; glm_fit_test covers it")
      .Kernel(kCpu, SumsKernel);
}

}  // namespace tenon
