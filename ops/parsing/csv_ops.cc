// SPDX-License-Identifier: Apache-2.0
#include "core/base/mutex.h"
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/parsing/csv.h"

namespace tenon {
namespace {

/// What a node's attributes say.
struct CsvAttrs : KernelState {
  explicit CsvAttrs(KernelConstruction& c)
      : format{.columns = c.Attr<std::vector<int64_t>>("select_cols"),
               .excluded = {},
               .not_there = c.Attr<std::string>("na_value"),
               .quotes = c.Attr<bool>("use_quote_delim"),
               .wanted = c.output_types().size()} {
    c.Fail(FinishCsvFormat(c.Attr<std::string>("field_delim"), &format));
  }
  CsvFormat format;
};

Status DecodeCsvKernel(KernelContext& ctx, const Tensor& records, const CsvAttrs& attrs) {
  const int count = ctx.num_outputs();
  std::vector<Tensor> defaults;
  std::vector<Tensor*> outs(count);
  for (int f = 0; f < count; ++f) {
    defaults.push_back(ctx.input(1 + f));
    TENON_RETURN_IF_ERROR(CheckCsvDefault(defaults.back(), f));
    TENON_ASSIGN_OR_RETURN(outs[f], ctx.AllocateOutput(f, records.shape()));
  }
  Mutex mu;
  Status first;
  int64_t first_record = INT64_MAX;
  ParallelFor(records.num_elements(), 30. * count, [&](int64_t begin, int64_t end) {
    CsvLine line(attrs.format);
    std::vector<std::string_view> fields;
    for (int64_t i = begin; i < end; ++i) {
      Status status = CsvError(line.Cut(records.data<TString>()[i], &fields), line, attrs.format, i,
                               "Quoted field has to end with quote followed by delim or end");
      if (status.ok()) status = ConvertCsvFields(fields, attrs.format, i, defaults, outs, i);
      if (status.ok()) continue;
      MutexLock lock(mu);
      if (i < first_record) std::tie(first_record, first) = std::tie(i, status);
      return;
    }
  });
  return first;
}

Status DecodeCsvShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    const PartialShape& fallback = c.input(1 + i);
    if (fallback.rank() > 1) {
      return InvalidArgument("Shape must be at most rank 1 but is rank ", fallback.rank(),
                             ": the default of field ", i, " has shape ", fallback);
    }
    if (fallback.rank() == 1 && fallback.dim(0) > 1) {
      return InvalidArgument("the default of field ", i,
                             " must be a scalar or one element, found shape ", fallback);
    }
    c.set_output(i, c.input(0));
  }
  return OkStatus();
}

}  // namespace

void RegisterCsvOps(OpRegistry& ops) {
  ops.Add("DecodeCSV", DecodeCsvShape, DecodeCsvKernel)
      .Example({Tensor::Vector({"1,ab", "2,\"c,\"\"d\"\"\""}), Tensor::Scalar(0.5f),
                Tensor::Vector({"none"})});
}

}  // namespace tenon
