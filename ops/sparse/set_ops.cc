// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/maths.h"
#include "ops/reduce_segments.h"
#include "ops/sparse/sparse_tensor.h"

namespace tenon {
namespace {

using SetTypes = TypeList<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, TString>;

/// Sets along the last dimension of a tensor: the sizes before it, and of each value, by its place
/// in row-major order of these, the set that it is in.
struct Sets {
  DimVector dims;
  Tensor values;
  CountedVector<int64_t> set_of;
};

Status CheckSetRank(size_t rank) {
  return rank >= 2 ? OkStatus() : InvalidArgument("Invalid rank ", rank, ", wanted 2 or more");
}

StatusOr<Sets> DenseSets(const Tensor& t) {
  TENON_RETURN_IF_ERROR(CheckSetRank(t.rank()));
  const auto dims = t.shape().dims();
  Sets sets{DimVector(dims.begin(), dims.end() - 1), t, CountedVector<int64_t>(t.num_elements())};
  for (int64_t i = 0; i < t.num_elements(); ++i) sets.set_of[i] = i / dims.back();
  return sets;
}

/// Bounds are needed in any case; without validation TensorFlow words them another way.
Status CheckUnvalidated(const SparseTensor& in) {
  for (int64_t i = 0; i < in.size(); ++i) {
    for (int d = 0; d < in.rank(); ++d) {
      const int64_t at = in.index(i)[d];
      if (at >= 0 && at < in.dims[d]) continue;
      return InvalidArgument("indices[", i, ", ", d, "] expected < ", in.dims[d], ", got ", at);
    }
  }
  return OkStatus();
}

StatusOr<Sets> SparseSets(const KernelContext& ctx, int first, bool validate_indices) {
  TENON_ASSIGN_OR_RETURN(const SparseTensor in, SparseTensor::Read(ctx, first));
  TENON_RETURN_IF_ERROR(CheckSetRank(in.dims.size()));
  TENON_RETURN_IF_ERROR(in.DenseShape());
  TENON_RETURN_IF_ERROR(validate_indices ? in.CheckSorted() : CheckUnvalidated(in));
  Sets sets{DimVector(in.dims.begin(), in.dims.end() - 1), in.values,
            CountedVector<int64_t>(in.size(), 0)};
  const DimVector strides = StridesOf(sets.dims);
  for (int64_t i = 0; i < in.size(); ++i) {
    for (size_t d = 0; d < strides.size(); ++d) sets.set_of[i] += in.index(i)[d] * strides[d];
  }
  return sets;
}

/// The numbers of the different values of a set, in the order of the values.
template <typename T>
absl::Span<int64_t> Distinct(const T* values, SegmentedRows* by, int64_t set) {
  int64_t* const begin = by->rows.data() + by->starts[set];
  int64_t* end = by->rows.data() + by->starts[set + 1];
  std::sort(begin, end, [=](int64_t i, int64_t j) { return values[i] < values[j]; });
  end = std::unique(begin, end, [=](int64_t i, int64_t j) { return values[i] == values[j]; });
  return {begin, static_cast<size_t>(end - begin)};
}

/// Which of the values of two sets a and b are in the result.
struct SetOperation {
  bool only_in_a, in_both, only_in_b;
};

StatusOr<SetOperation> ParseOperation(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (lower == "a-b") return SetOperation{true, false, false};
  if (lower == "b-a") return SetOperation{false, false, true};
  if (lower == "intersection") return SetOperation{false, true, false};
  if (lower == "union") return SetOperation{true, true, true};
  return InvalidArgument("Invalid set_operation ", name);
}

/// Adds the result for a pair of sets at `index`, whose last entry becomes the column.
template <typename T>
void Combine(SetOperation operation, const T* a, absl::Span<const int64_t> in_a, const T* b,
             absl::Span<const int64_t> in_b, DimVector* index, SparseEntries* out) {
  index->back() = 0;
  const auto add = [&](bool wanted, int64_t from) {
    if (!wanted) return;
    out->Add(*index, from);
    ++index->back();
  };
  for (size_t i = 0, j = 0; i < in_a.size() || j < in_b.size();) {
    if (j == in_b.size() || (i < in_a.size() && a[in_a[i]] < b[in_b[j]])) {
      add(operation.only_in_a, in_a[i++]);
    } else if (i == in_a.size() || b[in_b[j]] < a[in_a[i]]) {
      add(operation.only_in_b, ~in_b[j++]);
    } else {
      add(operation.in_both, in_a[i++]);
      ++j;
    }
  }
}

Status WriteSetOperation(KernelContext& ctx, std::string_view name, const Sets& a, const Sets& b) {
  TENON_ASSIGN_OR_RETURN(const SetOperation operation, ParseOperation(name));
  if (a.dims != b.dims) {
    return InvalidArgument("Mismatched shapes [", Join(a.dims, ","), "] vs [", Join(b.dims, ","),
                           "]");
  }
  // The sets that have values, of which there may be far fewer than sets.
  CountedVector<int64_t> present = a.set_of;
  present.insert(present.end(), b.set_of.begin(), b.set_of.end());
  std::sort(present.begin(), present.end());
  present.erase(std::unique(present.begin(), present.end()), present.end());
  const auto grouped = [&](const Sets& sets) {
    CountedVector<int64_t> ids(sets.set_of.size());
    std::transform(sets.set_of.begin(), sets.set_of.end(), ids.begin(), [&](int64_t set) {
      return std::lower_bound(present.begin(), present.end(), set) - present.begin();
    });
    return GroupRows(ids, static_cast<int64_t>(present.size()));
  };
  SegmentedRows by_a = grouped(a), by_b = grouped(b);
  const int rank = static_cast<int>(a.dims.size()) + 1;
  const DimVector strides = StridesOf(a.dims);
  SparseEntries out(rank);
  DimVector shape = Concat(a.dims, {0}), index(rank, 0);
  TENON_RETURN_IF_ERROR(DispatchStatus(a.values.dtype(), SetTypes(), [&]<typename T>(T) {
    const T *of_a = a.values.data<T>(), *of_b = b.values.data<T>();
    for (size_t s = 0; s < present.size() && !Interrupted(); ++s) {
      for (size_t d = 0; d < strides.size(); ++d) {
        index[d] = present[s] / strides[d] % a.dims[d];
      }
      Combine(operation, of_a, Distinct(of_a, &by_a, s), of_b, Distinct(of_b, &by_b, s), &index,
              &out);
      shape.back() = std::max(shape.back(), index.back());
    }
  }));
  TENON_RETURN_IF_ERROR(out.WriteIndices(ctx, 0));
  TENON_RETURN_IF_ERROR(out.WriteValues(ctx, 1, a.values, b.values));
  return WriteVector(ctx, 2, shape);
}

Status DenseToDenseKernel(KernelContext& ctx, const std::string& operation) {
  TENON_ASSIGN_OR_RETURN(const Sets a, DenseSets(ctx.input(0)));
  TENON_ASSIGN_OR_RETURN(const Sets b, DenseSets(ctx.input(1)));
  return WriteSetOperation(ctx, operation, a, b);
}

Status DenseToSparseKernel(KernelContext& ctx, const std::string& operation, bool validate) {
  TENON_ASSIGN_OR_RETURN(const Sets a, DenseSets(ctx.input(0)));
  TENON_ASSIGN_OR_RETURN(const Sets b, SparseSets(ctx, 1, validate));
  return WriteSetOperation(ctx, operation, a, b);
}

Status SparseToSparseKernel(KernelContext& ctx, const std::string& operation, bool validate) {
  TENON_ASSIGN_OR_RETURN(const Sets a, SparseSets(ctx, 0, validate));
  TENON_ASSIGN_OR_RETURN(const Sets b, SparseSets(ctx, 3, validate));
  return WriteSetOperation(ctx, operation, a, b);
}

Status SetOperationShape(ShapeContext& c) {
  // A dense first set has the rank of the result.
  int rank = c.num_inputs() == 6 ? -1 : c.input(0).rank();
  if (c.num_inputs() == 6) {
    TENON_ASSIGN_OR_RETURN(const PartialShape a, SparseInputShape(c, 0));
    rank = a.rank();
  }
  if (rank >= 0) TENON_RETURN_IF_ERROR(CheckSetRank(rank));
  SetSparseOutputs(c, 0, PartialShape::kUnknownDim, rank);
  return OkStatus();
}

Status SetSizeKernel(KernelContext& ctx, bool validate_indices) {
  if (ctx.input(2).rank() != 1) {
    return InvalidArgument("Shape must be a 1D tensor, found a set_shape of shape ",
                           ctx.input(2).shape());
  }
  TENON_ASSIGN_OR_RETURN(const Sets sets, SparseSets(ctx, 0, validate_indices));
  TENON_ASSIGN_OR_RETURN(Tensor * sizes, ctx.CreateOutput(0, sets.dims));
  const int64_t count = sizes->num_elements();
  SegmentedRows by = GroupRows(sets.set_of, count);
  return DispatchStatus(sets.values.dtype(), SetTypes(), [&]<typename T>(T) {
    for (int64_t s = 0; s < count; ++s) {
      if (s % kStepsBetweenLooks == 0 && Interrupted()) break;
      sizes->data<int32_t>()[s] =
          static_cast<int32_t>(Distinct(sets.values.data<T>(), &by, s).size());
    }
  });
}

Status SetSizeShape(ShapeContext& c) {
  // The kernel refuses a shape that is no vector.
  if (c.input(2).rank_known() && c.input(2).rank() != 1) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const PartialShape sets, SparseInputShape(c));
  if (!sets.rank_known()) return OkStatus();
  TENON_RETURN_IF_ERROR(CheckSetRank(sets.rank()));
  return c.Return(sets.Part(0, sets.rank() - 1));
}

}  // namespace

void RegisterSetOps(OpRegistry& ops) {
  const Tensor dense = Tensor::Of<int32_t>({2, 3}, {3, 1, 1, 2, 2, 5});
  const Tensor indices = Tensor::Of<int64_t>({3, 2}, {0, 0, 0, 3, 1, 1});
  const Tensor values = Tensor::Vector<int32_t>({1, 4, 5});
  const Tensor shape = Tensor::Vector<int64_t>({2, 4});
  const AttributeMap attrs = {{"set_operation", "union"}};
  const KernelOptions validated = {.attrs = {"set_operation", "validate_indices"}};
  ops.Add("DenseToDenseSetOperation", SetOperationShape, DenseToDenseKernel,
          {.attrs = {"set_operation"}})
      .Example({dense, dense}, {{"set_operation", "a-b"}});
  ops.Add("DenseToSparseSetOperation", SetOperationShape, DenseToSparseKernel, validated)
      .Example({dense, indices, values, shape}, attrs);
  ops.Add("SparseToSparseSetOperation", SetOperationShape, SparseToSparseKernel, validated)
      .Example({indices, values, shape, indices, values, shape}, attrs);
  ops.Add("SetSize", SetSizeShape, SetSizeKernel, {.attrs = {"validate_indices"}})
      .Example({indices, values, shape});
}

}  // namespace tenon
