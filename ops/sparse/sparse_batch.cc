// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/sparse_batch.h"

#include <algorithm>

#include "core/base/interruption.h"
#include "ops/arguments.h"
#include "ops/elements.h"

namespace tenon {

Status ForEachRow(KernelContext& ctx, const SparseTensor& batch,
                  absl::FunctionRef<Status(int64_t row, const SparseParts& parts)> take) {
  if (batch.rank() < 2) {
    return InvalidArgument("Rank of input SparseTensor should be > 1, but saw rank: ",
                           batch.rank());
  }
  TENON_RETURN_IF_ERROR(batch.CheckSorted());
  const int rank = batch.rank() - 1;
  const Tensor shape = Tensor::Of<int64_t>({rank}, absl::MakeSpan(batch.dims).subspan(1));
  for (int64_t row = 0, begin = 0, end = 0; row < batch.dims[0]; ++row, begin = end) {
    if (row % kStepsBetweenLooks == 0 && Interrupted()) break;
    while (end < batch.size() && batch.index(end)[0] == row) ++end;
    const int64_t n = end - begin;
    SparseParts parts{.indices = {}, .values = {}, .shape = shape};
    TENON_ASSIGN_OR_RETURN(parts.indices, ctx.AllocateTemp(DType::kInt64, {n, rank}));
    TENON_ASSIGN_OR_RETURN(parts.values, ctx.AllocateTemp(batch.values.dtype(), {n}));
    CopyElements(batch.values, begin, &parts.values, 0, n);
    for (int64_t i = 0; i < n; ++i) {
      const absl::Span<const int64_t> rest = batch.index(begin + i).subspan(1);
      std::copy(rest.begin(), rest.end(), parts.indices.data<int64_t>() + i * rank);
    }
    TENON_RETURN_IF_ERROR(take(row, parts));
  }
  return OkStatus();
}

namespace {

/// The tensors, checked against each other and `dtype`.
StatusOr<std::vector<SparseTensor>> CheckParts(const std::vector<SparseParts>& many, DType dtype,
                                               bool taken) {
  std::vector<SparseTensor> checked;
  for (const SparseParts& parts : many) {
    const size_t i = checked.size();
    if (parts.indices.dtype() != DType::kInt64 || parts.shape.dtype() != DType::kInt64) {
      return InvalidArgument("indices and shape of SparseTensor[", i, "] must be of int64, found ",
                             parts.indices.dtype(), " and ", parts.shape.dtype());
    }
    if (parts.values.dtype() != dtype) {
      return InvalidArgument("Requested SparseTensor of type ", dtype, " but SparseTensor[", i,
                             "].values.dtype() == ", parts.values.dtype());
    }
    TENON_ASSIGN_OR_RETURN(SparseTensor sparse,
                           SparseTensor::Of(parts.indices, parts.values, parts.shape));
    if (i > 0 && checked[0].rank() != sparse.rank()) {
      // The message is TensorFlow's: the rank of those taken out of a map counts the dimension of
      // the handles.
      return InvalidArgument("Inconsistent ", taken ? "rank" : "shape",
                             " across SparseTensors: rank prior to SparseTensor[", i,
                             "] was: ", checked[0].rank() + taken, " but rank of SparseTensor[", i,
                             "] is: ", sparse.rank() + taken);
    }
    checked.push_back(std::move(sparse));
  }
  return checked;
}

}  // namespace

Status WriteTogether(KernelContext& ctx, const std::vector<SparseParts>& many,
                     absl::Span<const int64_t> outer, bool taken) {
  if (many.empty()) return InvalidArgument("there must be at least one sparse tensor");
  TENON_ASSIGN_OR_RETURN(const std::vector<SparseTensor> parts,
                         CheckParts(many, ctx.output_type(1), taken));
  DimVector dims(parts[0].rank(), 0);
  int64_t count = 0;
  for (const SparseTensor& part : parts) {
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = std::max(dims[d], part.dims[d]);
    count += part.size();
  }
  dims = Concat(outer, dims);
  TENON_ASSIGN_OR_RETURN(Tensor * indices,
                         ctx.CreateOutput(0, {count, static_cast<int64_t>(dims.size())}));
  TENON_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, {count}));
  const DimVector strides = StridesOf(outer);
  int64_t* next = indices->data<int64_t>();
  int64_t end = 0;
  for (size_t k = 0; k < parts.size() && !Interrupted(); ++k) {
    for (int64_t i = 0; i < parts[k].size(); ++i) {
      for (size_t d = 0; d < outer.size(); ++d) {
        *next++ = static_cast<int64_t>(k) / strides[d] % outer[d];
      }
      next = std::copy(parts[k].index(i).begin(), parts[k].index(i).end(), next);
    }
    CopyElements(parts[k].values, 0, values, end, parts[k].size());
    end += parts[k].size();
  }
  return WriteVector(ctx, 2, dims);
}

}  // namespace tenon
