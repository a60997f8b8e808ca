// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/design_input.h"

#include "ops/glm/design_message.h"

namespace tenon {
namespace {

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

}  // namespace

StatusOr<GlmDesign> DesignInput(const KernelContext& ctx, int input, const TableShard& shard) {
  TENON_ASSIGN_OR_RETURN(GlmDesign design, ParseDesign(ctx.input(input).data<TString>()[0]));
  TENON_RETURN_IF_ERROR(design.Check(static_cast<int64_t>(shard.schema().columns.size())));
  TENON_RETURN_IF_ERROR(shard.CheckRead());
  TENON_RETURN_IF_ERROR(CheckKinds(design, shard));
  return design;
}

}  // namespace tenon
