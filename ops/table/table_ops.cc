// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/io/files_for.h"
#include "ops/maths.h"
#include "ops/state/resource_node.h"
#include "ops/table/table_message.h"
#include "ops/table/table_resource.h"

namespace tenon {
namespace {

StatusOr<std::shared_ptr<TableResource>> TableInputOf(const KernelContext& ctx) {
  return ResourceInput<TableResource>(ctx);
}

std::string_view TextInput(const KernelContext& ctx, int i) {
  return ctx.input(i).data<TString>()[0];
}

/// The column at the place that input `i` says. InvalidArgument where there is none.
StatusOr<int64_t> ColumnInput(const KernelContext& ctx, int i, const TableShard& shard) {
  const int64_t column = ctx.input(i).data<int64_t>()[0];
  const auto size = static_cast<int64_t>(shard.schema().columns.size());
  if (column >= 0 && column < size) return column;
  return InvalidArgument("a table of ", size, " columns has no column ", column);
}

Status OpenKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto table, TableInputOf(ctx));
  TENON_ASSIGN_OR_RETURN(TablePlan plan, ParseTablePlan(TextInput(ctx, 1)));
  auto shard = std::make_unique<TableShard>(std::move(plan.files), std::move(plan.schema),
                                            std::move(plan.units));
  if (plan.memory > 0) shard->LimitMemory(plan.memory);
  table->Open(std::move(shard));
  return OkStatus();
}

Status ReadKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto table, TableInputOf(ctx));
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  return table->Change([&](TableShard* shard) -> Status {
    TENON_ASSIGN_OR_RETURN(const TableReading reading,
                           ParseTableReading(TextInput(ctx, 1), shard->num_units(),
                                             static_cast<int64_t>(shard->schema().columns.size())));
    shard->TakeAsText(reading.as_text);
    TENON_RETURN_IF_ERROR(shard->Read(reading.units, files));
    return ctx.Return(Tensor::Scalar(SerializeReports(*shard, reading)));
  });
}

Status LevelsKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto table, TableInputOf(ctx));
  return table->Use([&](const TableShard* shard) -> Status {
    TENON_ASSIGN_OR_RETURN(const int64_t column, ColumnInput(ctx, 1, *shard));
    if (!shard->HasLevels(column)) {
      return FailedPrecondition("column ", column, " of a table is not one of texts as read");
    }
    const ColumnLevels levels = shard->LevelsOf(column);
    TENON_ASSIGN_OR_RETURN(Tensor* const texts, ctx.CreateOutput(0, {levels.levels.size()}));
    for (int32_t i = 0; i < levels.levels.size(); ++i) {
      texts->data<TString>()[i] = levels.levels.text(i);
    }
    ctx.set_output(1, Tensor::Vector<int64_t>(levels.counts));
    return OkStatus();
  });
}

Status RecodeKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto table, TableInputOf(ctx));
  return table->Change([&](TableShard* shard) -> Status {
    TENON_ASSIGN_OR_RETURN(const int64_t column, ColumnInput(ctx, 1, *shard));
    if (!shard->HasLevels(column)) {
      return FailedPrecondition("column ", column, " of a table is not one of texts as read");
    }
    const Tensor& texts = ctx.input(2);
    std::vector<std::string> all(texts.data<TString>(),
                                 texts.data<TString>() + texts.num_elements());
    shard->Recode(column, all);
    return OkStatus();
  });
}

Status TextsKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto table, TableInputOf(ctx));
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  return table->Use([&](const TableShard* shard) -> Status {
    const int64_t unit = ctx.input(1).data<int64_t>()[0], most = ctx.input(3).data<int64_t>()[0];
    TENON_ASSIGN_OR_RETURN(const int64_t column, ColumnInput(ctx, 2, *shard));
    if (unit < 0 || unit >= shard->num_units() || most < 0) {
      return InvalidArgument("a table of ", shard->num_units(), " units has no ", most,
                             " texts of unit ", unit);
    }
    TENON_ASSIGN_OR_RETURN(
        const auto found, shard->FindTexts({unit, shard->report(unit).began}, column, most, files));
    const auto count = static_cast<int64_t>(found.size());
    TENON_ASSIGN_OR_RETURN(Tensor* const texts, ctx.CreateOutput(0, {count}));
    TENON_ASSIGN_OR_RETURN(Tensor* const lines, ctx.CreateOutput(1, {count}));
    TENON_ASSIGN_OR_RETURN(Tensor* const records, ctx.CreateOutput(2, {count}));
    for (int64_t i = 0; i < count; ++i) {
      texts->data<TString>()[i] = found[i].text;
      lines->data<int64_t>()[i] = found[i].line;
      records->data<TString>()[i] = found[i].record;
    }
    return OkStatus();
  });
}

Status RejectedKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto table, TableInputOf(ctx));
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  return table->Use([&](const TableShard* shard) -> Status {
    const int64_t unit = ctx.input(1).data<int64_t>()[0];
    if (unit < 0 || unit >= shard->num_units()) {
      return InvalidArgument("a table of ", shard->num_units(), " units has no unit ", unit);
    }
    TENON_ASSIGN_OR_RETURN(const auto rejected,
                           shard->FindRejected({unit, shard->report(unit).began}, files));
    return ctx.Return(Tensor::Scalar(SerializeRejected(rejected)));
  });
}

}  // namespace

void RegisterTableKernels(OpRegistry& ops) {
  const auto get = [&ops](std::string_view name) {
    return ops.Get(name)
        .Shape(DeclaredShape)
        .NoExample("needs a table in files; glm_fit_test covers it");
  };
  get("TenonTable").Shape(ScalarShape).Kernel<ResourceNodeKernel<TableResource>>(kCpu);
  get("TenonTableOpen").Kernel(kCpu, OpenKernel);
  get("TenonTableRead").Kernel(kCpu, ReadKernel);
  get("TenonTableLevels").Kernel(kCpu, LevelsKernel);
  get("TenonTableRecode").Kernel(kCpu, RecodeKernel);
  get("TenonTableTexts").Kernel(kCpu, TextsKernel);
  get("TenonTableRejected").Kernel(kCpu, RejectedKernel);
}

}  // namespace tenon
