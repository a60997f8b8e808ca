// SPDX-License-Identifier: Apache-2.0
//
// Datasets that take sparse tensors apart, and make them of elements.
#include <algorithm>

#include "ops/data/batch.h"
#include "ops/elements.h"
#include "ops/sparse/held_tensor.h"

namespace tenon {
namespace {

/// The rows of a sparse tensor, each a sparse tensor of one dimension less: indices, values and
/// shape.
struct SparseSliceDataset final : Dataset {
  SparseSliceDataset(Tensor at, Tensor of, Tensor shape)
      : Dataset({DType::kInt64, of.dtype(), DType::kInt64},
                {PartialShape{-1, at.dim(1) - 1}, PartialShape{-1}, PartialShape{at.dim(1) - 1}}),
        indices(std::move(at)),
        values(std::move(of)),
        dense_shape(std::move(shape)) {}

  class Walk final : public ElementIterator {
   public:
    explicit Walk(std::shared_ptr<const SparseSliceDataset> of) : of_(std::move(of)) {}
    StatusOr<bool> Next(DatasetElement* out) override {
      if (row_ == of_->Cardinality()) return false;
      const int64_t rank = of_->indices.dim(1), first = entry_;
      const int64_t* const indices = of_->indices.data<int64_t>();
      while (entry_ < of_->indices.dim(0) && indices[entry_ * rank] == row_) ++entry_;
      TENON_ASSIGN_OR_RETURN(Tensor places, Tensor::Allocate(CpuAllocator(), DType::kInt64,
                                                             Shape{entry_ - first, rank - 1}));
      for (int64_t i = first; i < entry_; ++i) {
        std::copy_n(indices + i * rank + 1, rank - 1,
                    places.data<int64_t>() + (i - first) * (rank - 1));
      }
      *out = {std::move(places), of_->values.Slice(first, entry_), of_->dense_shape.Slice(1, rank)};
      ++row_;
      return true;
    }
    bool IsReady() const override { return true; }

   private:
    const std::shared_ptr<const SparseSliceDataset> of_;
    int64_t row_ = 0, entry_ = 0;
  };
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr&) const override {
    return std::make_unique<Walk>(Self<SparseSliceDataset>());
  }
  int64_t CountElements() const override { return dense_shape.data<int64_t>()[0]; }

  const Tensor indices, values, dense_shape;
};

Status SparseSliceKernel(KernelContext& ctx) {
  const Tensor &indices = ctx.input(0), &values = ctx.input(1), &shape = ctx.input(2);
  if (shape.dim(0) == 0) {
    return InvalidArgument("The shape argument requires at least one element.");
  }
  const absl::Span<const int64_t> dims(shape.data<int64_t>(), shape.dim(0));
  TENON_RETURN_IF_ERROR(Shape::Create(dims).status());
  int64_t before = 0;
  for (int64_t i = 0; i < indices.dim(0); ++i) {
    const int64_t row = indices.data<int64_t>()[i * indices.dim(1)];
    if (row < before) {
      return Unimplemented("The SparseTensor must be ordered in the batch dimension; found row ",
                           row, " at ", i, " after ", before);
    }
    if (row >= dims[0]) {
      return InvalidArgument("indices[", i, ",0] is ", row, ", wanted less than ", dims[0]);
    }
    before = row;
  }
  return ReturnDataset(ctx, std::make_shared<SparseSliceDataset>(indices, values, shape));
}

/// Elements of one component, each a row of a sparse tensor that has all its values, zeros too.
struct SparseBatchDataset final : DatasetOver<SparseBatchDataset> {
  SparseBatchDataset(DatasetPtr from, const ElementSpec& spec, int64_t n, PartialShape row)
      : DatasetOver(std::move(from), spec), rows(n), row_shape(std::move(row)) {}

  class Walk final : public WalkOver<SparseBatchDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      const int rank = of_->row_shape.rank();
      DimVector dense = {0};
      for (const int64_t d : of_->row_shape.dims()) dense.push_back(std::max<int64_t>(d, 0));
      std::vector<Tensor> rows;
      int64_t count = 0;
      while (input_ != nullptr && dense[0] < of_->rows) {
        DatasetElement element;
        TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&element));
        if (!found) {
          input_ = nullptr;
          break;
        }
        const Tensor& row = rows.emplace_back(std::move(element[0]));
        TENON_RETURN_IF_ERROR(Widen(row, &dense));
        TENON_ASSIGN_OR_RETURN(count, AddSizes(count, row.num_elements()));
        ++dense[0];
      }
      if (rows.empty()) return false;
      TENON_ASSIGN_OR_RETURN(const Shape matrix, Shape::Create({count, int64_t{rank} + 1}));
      TENON_ASSIGN_OR_RETURN(Tensor indices,
                             Tensor::Allocate(CpuAllocator(), DType::kInt64, matrix));
      TENON_ASSIGN_OR_RETURN(Tensor values,
                             Tensor::Allocate(CpuAllocator(), rows[0].dtype(), Shape{count}));
      int64_t* to = indices.data<int64_t>();
      int64_t at = 0;
      for (size_t i = 0; i < rows.size(); ++i) {
        const Tensor& row = rows[i];
        DimVector place(rank, 0);
        for (int64_t k = 0; k < row.num_elements(); ++k) {
          *to++ = static_cast<int64_t>(i);
          to = std::copy(place.begin(), place.end(), to);
          for (int d = rank - 1; d >= 0 && ++place[d] == row.dim(d); --d) place[d] = 0;
        }
        CopyElements(row, 0, &values, at, row.num_elements());
        at += row.num_elements();
      }
      TENON_ASSIGN_OR_RETURN(Tensor parts,
                             Tensor::Allocate(CpuAllocator(), DType::kVariant, Shape{3}));
      const Tensor tensors[] = {std::move(indices), std::move(values),
                                Tensor::Vector<int64_t>({dense.begin(), dense.end()})};
      for (int i = 0; i < 3; ++i) {
        const auto held = std::make_shared<HeldTensor>(tensors[i]);
        TENON_RETURN_IF_ERROR(held->CountDepth(tensors[i]));
        parts.data<Variant>()[i].value = held;
      }
      *out = {std::move(parts)};
      return true;
    }

   private:
    /// Makes `dense` as large as `row`, where that is left open.
    Status Widen(const Tensor& row, DimVector* dense) const {
      const PartialShape& wanted = of_->row_shape;
      if (row.rank() != wanted.rank()) {
        return InvalidArgument("Input element had shape (", row.shape(),
                               ") that is incompatible with the row shape (", wanted.ToString(),
                               ").");
      }
      for (int d = 0; d < row.rank(); ++d) {
        if (wanted.dim(d) < 0) {
          (*dense)[d + 1] = std::max((*dense)[d + 1], row.dim(d));
        } else if (row.dim(d) > wanted.dim(d)) {
          return DataLoss("Input element had shape (", row.shape(),
                          ") that is larger than the row shape (", wanted.ToString(), ").");
        }
      }
      return OkStatus();
    }
  };
  int64_t CountElements() const override {
    const int64_t n = input->Cardinality();
    return n < 0 ? n : n / rows + (n % rows == 0 ? 0 : 1);
  }

  const int64_t rows;
  const PartialShape row_shape;
};

Status SparseBatchKernel(KernelContext& ctx, DatasetPtr input, const ElementSpec& spec) {
  if (input->types().size() != 1) {
    return InvalidArgument(
        "DenseToSparseBatchDataset only supports inputs with a single component, found ",
        input->types().size());
  }
  TENON_ASSIGN_OR_RETURN(const BatchSize size, ReadBatchSize(ctx, 1, ctx.num_inputs()));
  TENON_ASSIGN_OR_RETURN(const DimVector dims, ReadIntegerVector(ctx.input(2), "row_shape"));
  TENON_ASSIGN_OR_RETURN(PartialShape row, PartialShape::Create(dims));
  return ReturnDataset(
      ctx, std::make_shared<SparseBatchDataset>(std::move(input), spec, size.rows, std::move(row)));
}

}  // namespace

void RegisterSparseDatasets(OpRegistry& ops) {
  constexpr std::string_view kCovered = "needs an iterator; datasets_test covers it";
  ops.Add("SparseTensorSliceDataset", ScalarShape, SparseSliceKernel).NoExample(kCovered);
  ops.Add("DenseToSparseBatchDataset", ScalarShape, SparseBatchKernel).NoExample(kCovered);
}

}  // namespace tenon
