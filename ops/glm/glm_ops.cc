// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/op_registry.h"
#include "core/op/shape_inference.h"
#include "ops/glm/bad_row.h"
#include "ops/glm/design_input.h"
#include "ops/glm/glm_scores.h"
#include "ops/glm/glm_sums.h"
#include "ops/glm/stream_ops.h"
#include "ops/io/files_for.h"
#include "ops/state/resource_node.h"
#include "ops/table/table_resource.h"

namespace tenon {
namespace {

/// The pass that a node makes.
struct PassState : KernelState {
  explicit PassState(KernelConstruction& c) {
    // In the order of GlmPass.
    constexpr std::string_view kNames[] = {"deviance", "gradient", "residual", "diagonal",
                                           "rows",     "newton",   "squares"};
    const auto name = c.Attr<std::string>("pass");
    pass = static_cast<GlmPass>(std::find(std::begin(kNames), std::end(kNames), name) -
                                std::begin(kNames));
  }
  GlmPass pass;
};

Status BadRowKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto table, ResourceInput<TableResource>(ctx));
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  return table->Use([&](const TableShard* shard) -> Status {
    TENON_ASSIGN_OR_RETURN(const GlmDesign design, DesignInput(ctx, 1, *shard));
    TENON_ASSIGN_OR_RETURN(const BadGlmRow bad, FindBadGlmRow(design, *shard, files));
    PlacedText placed = {"", 0, ""};
    if (bad.unit >= 0) {
      const TableShard::ReadUnit unit = {bad.unit, shard->report(bad.unit).began};
      TENON_ASSIGN_OR_RETURN(
          placed, shard->FindRow(unit, std::max<int64_t>(bad.column, 0), bad.row, files));
    }
    ctx.set_output(0, Tensor::Vector<int64_t>({bad.unit, placed.line, bad.column, bad.part}));
    ctx.set_output(1, Tensor::Scalar(bad.value));
    ctx.set_output(2, Tensor::Scalar<TString>(placed.text));
    ctx.set_output(3, Tensor::Scalar<TString>(placed.record));
    return OkStatus();
  });
}

/// Calls `add(design, shard, coefficients, files)`, which gives numbers or a Status, with the
/// inputs of an op over a table, which were checked, and outputs the numbers.
template <typename Add>
Status AddUp(KernelContext& ctx, Add add) {
  TENON_ASSIGN_OR_RETURN(const auto table, ResourceInput<TableResource>(ctx));
  const Tensor& coefficients = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  return table->Use([&](const TableShard* shard) -> Status {
    TENON_ASSIGN_OR_RETURN(const GlmDesign design, DesignInput(ctx, 1, *shard));
    const absl::Span<const double> values = {coefficients.data<double>(),
                                             static_cast<size_t>(coefficients.num_elements())};
    TENON_ASSIGN_OR_RETURN(const auto numbers, add(design, *shard, values, files));
    TENON_ASSIGN_OR_RETURN(Tensor* const out,
                           ctx.CreateOutput(0, {static_cast<int64_t>(numbers.size())}));
    std::copy(numbers.begin(), numbers.end(), out->data<double>());
    return OkStatus();
  });
}

Status SumsKernel(KernelContext& ctx, const PassState& state) {
  return AddUp(ctx, [&](const GlmDesign& design, const TableShard& shard,
                        absl::Span<const double> coefficients, const FileContext& files) {
    return AddGlmSums(GlmSumsLayout(design, state.pass), shard, coefficients, files);
  });
}

Status ScoresKernel(KernelContext& ctx) { return AddUp(ctx, AddGlmScores); }

}  // namespace

void RegisterGlmKernels(OpRegistry& ops) {
  const auto get = [&ops](std::string_view name) {
    return ops.Get(name)
        .Shape(DeclaredShape)
        .NoExample("needs a table in files; glm_fit_test covers it");
  };
  get("TenonGlmBadRow").Kernel(kCpu, BadRowKernel);
  get("TenonGlmSums").Kernel(kCpu, SumsKernel);
  get("TenonGlmScores").Kernel(kCpu, ScoresKernel);
  RegisterStreamKernels(ops);
}

}  // namespace tenon
