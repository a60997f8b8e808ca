// SPDX-License-Identifier: Apache-2.0
//
// Datasets that put elements together, and take them apart.
#include <algorithm>
#include <deque>

#include "ops/data/batch.h"
#include "ops/elements.h"

namespace tenon {
namespace {

/// A batch of `rows` elements, each component padded at its end to `shapes` if there are any, with
/// -1 for the largest size in the batch.
class Batcher {
 public:
  Batcher(std::vector<DatasetElement> rows, const std::vector<PartialShape>* shapes,
          const std::vector<Tensor>* padding)
      : rows_(std::move(rows)), shapes_(shapes), padding_(padding) {}

  Status Make(DatasetElement* out) {
    DatasetElement batch;
    for (size_t c = 0; c < rows_[0].size(); ++c) {
      TENON_ASSIGN_OR_RETURN(Tensor component, Component(c));
      batch.push_back(std::move(component));
    }
    *out = std::move(batch);
    return OkStatus();
  }

 private:
  StatusOr<Tensor> Component(size_t c) {
    TENON_ASSIGN_OR_RETURN(const Shape row, shapes_ == nullptr ? SameShape(c) : PaddedShape(c));
    DimVector dims = {static_cast<int64_t>(rows_.size())};
    dims.insert(dims.end(), row.dims().begin(), row.dims().end());
    TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TENON_ASSIGN_OR_RETURN(Tensor batch,
                           Tensor::Allocate(CpuAllocator(), rows_[0][c].dtype(), shape));
    const int64_t size = row.num_elements();
    for (size_t i = 0; i < rows_.size(); ++i) {
      Tensor& from = rows_[i][c];
      from.Renew();
      const int64_t at = static_cast<int64_t>(i) * size;
      if (from.shape() == row) {
        CopyElements(from, 0, &batch, at, size);
      } else {
        Fill((*padding_)[c], &batch, at, size);
        CopyPadded(from, row, &batch, at, 0, 0);
      }
      from = Tensor();
    }
    return batch;
  }

  StatusOr<Shape> SameShape(size_t c) const {
    const Shape& first = rows_[0][c].shape();
    for (const DatasetElement& row : rows_) {
      if (row[c].shape() == first) continue;
      return InvalidArgument("Cannot batch tensors with different shapes in component ", c,
                             ". First element had shape ", first, " and element ", &row - &rows_[0],
                             " had shape ", row[c].shape(), ".");
    }
    return first;
  }

  StatusOr<Shape> PaddedShape(size_t c) const {
    const PartialShape& wanted = (*shapes_)[c];
    DimVector dims(wanted.dims().begin(), wanted.dims().end());
    for (const DatasetElement& row : rows_) {
      const Shape& found = row[c].shape();
      if (found.rank() != wanted.rank()) {
        return InvalidArgument(
            "All elements in a batch must have the same rank as the padded "
            "shape for component",
            c, ": expected rank ", wanted.rank(), " but got element with rank ", found.rank());
      }
      for (int d = 0; d < found.rank(); ++d) {
        if (wanted.dim(d) < 0) {
          dims[d] = std::max(dims[d], found.dim(d));
        } else if (found.dim(d) > wanted.dim(d)) {
          return DataLoss("Attempted to pad to a smaller size than the input element: component ",
                          c, " has shape ", found, ", wanted at most ", wanted.ToString());
        }
      }
    }
    return Shape::Create(dims);
  }

  static void Fill(const Tensor& value, Tensor* batch, int64_t at, int64_t count) {
    DispatchElement(batch->dtype(), [&]<typename T>(T) {
      std::fill_n(static_cast<T*>(batch->raw_data()) + at, count,
                  *static_cast<const T*>(value.raw_data()));
    });
  }

  /// Copies `from` into the beginning of the block of shape `row` at element `at`; dimensions
  /// before `d` are walked through already, and `source` is the first element.
  static void CopyPadded(const Tensor& from, const Shape& row, Tensor* batch, int64_t at,
                         int64_t source, int d) {
    if (from.num_elements() == 0) return;
    if (d == row.rank() - 1) return CopyElements(from, source, batch, at, from.dim(d));
    int64_t to_step = 1, from_step = 1;
    for (int i = d + 1; i < row.rank(); ++i) {
      to_step *= row.dim(i);
      from_step *= from.dim(i);
    }
    for (int64_t i = 0; i < from.dim(d); ++i) {
      CopyPadded(from, row, batch, at + i * to_step, source + i * from_step, d + 1);
    }
  }

  std::vector<DatasetElement> rows_;
  const std::vector<PartialShape>* const shapes_;
  const std::vector<Tensor>* const padding_;
};

/// Rows that become a batch; an empty one has no rows.
struct BatchDataset final : DatasetOver<BatchDataset> {
  static constexpr unsigned kTraits = kKeepsFiles;

  BatchDataset(DatasetPtr from, const ElementSpec& spec, const BatchSize& rows_of)
      : DatasetOver(std::move(from), spec), size(rows_of) {}

  class Walk final : public WalkOver<BatchDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      if (input_ == nullptr) return false;
      std::vector<DatasetElement> rows;
      const int64_t size = of_->size.rows;
      rows.reserve(std::min<int64_t>(size, 1 << 12));
      while (static_cast<int64_t>(rows.size()) < size) {
        DatasetElement row;
        TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&row));
        if (!found) {
          input_ = nullptr;
          break;
        }
        rows.push_back(std::move(row));
      }
      if (rows.empty()) return false;
      if (of_->size.drop_remainder && static_cast<int64_t>(rows.size()) < size) return false;
      const bool padded = !of_->padding.empty();
      TENON_RETURN_IF_ERROR(Batcher(std::move(rows), padded ? &of_->padded_shapes : nullptr,
                                    padded ? &of_->padding : nullptr)
                                .Make(out));
      return true;
    }
  };
  int64_t CountElements() const override {
    const int64_t n = input->Cardinality();
    return n < 0 ? n : n / size.rows + (!size.drop_remainder && n % size.rows != 0 ? 1 : 0);
  }
  int64_t batch_size() const override { return tells_size ? size.rows : 0; }

  const BatchSize size;
  bool tells_size = true;
  std::vector<PartialShape> padded_shapes;
  std::vector<Tensor> padding;  // none: rows are not padded
};

Status BatchKernel(KernelContext& ctx, DatasetPtr input, const ElementSpec& spec) {
  TENON_ASSIGN_OR_RETURN(const BatchSize size, ReadBatchSize(ctx, 1, 2));
  return ReturnDataset(ctx, MakeBatchDataset(std::move(input), spec, size));
}

/// num_parallel_calls stands before drop_remainder. Copies are made on the thread that asks for
/// them: what takes time is to make the elements.
Status ParallelBatchKernel(KernelContext& ctx, DatasetPtr input, const ElementSpec& spec) {
  TENON_ASSIGN_OR_RETURN(const BatchSize size, ReadBatchSize(ctx, 1, 3));
  TENON_RETURN_IF_ERROR(ReadParallelism(ctx.input(2), "num_parallel_calls").status());
  auto dataset = std::make_shared<BatchDataset>(std::move(input), spec, size);
  dataset->tells_size = false;  // to strategies, as TensorFlow has it
  return ReturnDataset(ctx, std::move(dataset));
}

/// Inputs 2 to N + 1 are the shapes, the next N what fills them up; then, of version 2, whether a
/// remainder is dropped.
Status PaddedBatchKernel(KernelContext& ctx, DatasetPtr input, const ElementSpec& spec) {
  const int count = static_cast<int>(input->types().size());
  if (static_cast<int>(spec.types.size()) != count || ctx.num_inputs() < 2 + 2 * count) {
    return InvalidArgument(
        "Number of padded shapes (", spec.types.size(),
        ") must match the number of components in the input dataset's elements (", count, ")");
  }
  TENON_ASSIGN_OR_RETURN(const BatchSize size, ReadBatchSize(ctx, 1, 2 + 2 * count));
  auto dataset = std::make_shared<BatchDataset>(input, spec, size);
  for (int c = 0; c < count; ++c) {
    TENON_ASSIGN_OR_RETURN(const DimVector dims,
                           ReadIntegerVector(ctx.input(2 + c), "padded_shapes"));
    for (const int64_t d : dims) {
      if (d < -1) return InvalidArgument("padded_shapes must be -1 or sizes, found ", d);
    }
    dataset->padded_shapes.emplace_back(dims);
    const Tensor& padding = ctx.input(2 + count + c);
    if (padding.rank() != 0) return InvalidArgument("All padding values must be scalars");
    if (padding.dtype() != input->types()[c]) {
      return InvalidArgument("Mismatched type between padding value ", c,
                             " and input dataset's component: ", ToString(padding.dtype()), " vs. ",
                             ToString(input->types()[c]));
    }
    dataset->padding.push_back(padding);
  }
  return ReturnDataset(ctx, std::move(dataset));
}

/// The rows of the input's elements, each an element of its own.
struct UnbatchDataset final : DatasetOver<UnbatchDataset> {
  static constexpr unsigned kTraits = kKeepsFiles;

  using DatasetOver::DatasetOver;

  class Walk final : public WalkOver<UnbatchDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      while (row_ == num_rows_) {
        row_ = num_rows_ = 0;
        TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&batch_));
        if (!found) return false;
        TENON_ASSIGN_OR_RETURN(num_rows_, NumRows(batch_));
      }
      out->clear();
      for (const Tensor& t : batch_) {
        const Shape shape(t.shape().dims().subspan(1));
        TENON_ASSIGN_OR_RETURN(Tensor row, t.Slice(row_, row_ + 1).Reshaped(shape));
        out->push_back(std::move(row));
      }
      ++row_;
      return true;
    }
    bool IsReady() const override { return row_ < num_rows_; }

   private:
    DatasetElement batch_;
    int64_t row_ = 0, num_rows_ = 0;
  };
};

Status UnbatchKernel(KernelContext& ctx, DatasetPtr input, const ElementSpec& spec) {
  return ReturnDataset(ctx, std::make_shared<UnbatchDataset>(std::move(input), spec));
}

/// Values of one component, as a dataset.
struct ListedDataset final : Dataset {
  ListedDataset(DType type, const PartialShape& shape, std::vector<Tensor> listed)
      : Dataset({type}, {shape}), values(std::move(listed)) {}

  class Walk final : public ElementIterator {
   public:
    explicit Walk(std::shared_ptr<const ListedDataset> of) : of_(std::move(of)) {}
    StatusOr<bool> Next(DatasetElement* out) override {
      if (at_ == of_->values.size()) return false;
      *out = {of_->values[at_++]};
      return true;
    }
    bool IsReady() const override { return true; }

   private:
    const std::shared_ptr<const ListedDataset> of_;
    size_t at_ = 0;
  };
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr&) const override {
    return std::make_unique<Walk>(Self<ListedDataset>());
  }
  int64_t CountElements() const override { return static_cast<int64_t>(values.size()); }

  const std::vector<Tensor> values;
};

/// `size` elements that are `stride` apart, as datasets; the next window begins `shift` further.
struct WindowDataset final : DatasetOver<WindowDataset> {
  static constexpr unsigned kTraits = kKeepsFiles;

  WindowDataset(DatasetPtr from, const ElementSpec& spec, int64_t elements, int64_t next,
                int64_t apart, bool drops)
      : DatasetOver(std::move(from), spec),
        size(elements),
        shift(next),
        stride(apart),
        drop_remainder(drops) {}

  class Walk final : public WalkOver<WindowDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      const WindowDataset& of = *of_;
      const int64_t span = (of.size - 1) * of.stride + 1;
      while (input_ != nullptr && (skip_ > 0 || static_cast<int64_t>(buffer_.size()) < span)) {
        DatasetElement element;
        TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&element));
        if (!found) {
          input_ = nullptr;
          break;
        }
        if (skip_ > 0) {
          --skip_;
        } else {
          buffer_.push_back(std::move(element));
        }
      }
      if (buffer_.empty()) return false;
      if (of.drop_remainder && static_cast<int64_t>(buffer_.size()) < span) return false;
      out->clear();
      for (size_t c = 0; c < of.input->types().size(); ++c) {
        std::vector<Tensor> values;
        for (size_t i = 0; i < buffer_.size() && static_cast<int64_t>(i) < span; i += of.stride) {
          values.push_back(buffer_[i][c]);
        }
        const auto listed = std::make_shared<ListedDataset>(
            of.input->types()[c], of.input->shapes()[c], std::move(values));
        for (const Tensor& t : listed->values) TENON_RETURN_IF_ERROR(listed->CountDepth(t));
        out->push_back(TensorOf(listed));
      }
      const int64_t gone = std::min<int64_t>(of.shift, buffer_.size());
      buffer_.erase(buffer_.begin(), buffer_.begin() + gone);
      skip_ = of.shift - gone;
      return true;
    }

   private:
    std::deque<DatasetElement> buffer_;
    int64_t skip_ = 0;  // elements between the windows
  };

  const int64_t size, shift, stride;
  const bool drop_remainder;
};

Status WindowKernel(KernelContext& ctx, DatasetPtr input, const ElementSpec& spec) {
  constexpr std::string_view kNames[] = {"size", "shift", "stride"};
  int64_t numbers[3];
  for (int i = 0; i < 3; ++i) {
    const std::string_view name = kNames[i];
    TENON_ASSIGN_OR_RETURN(numbers[i], ReadInteger(ctx.input(1 + i), name));
    if (numbers[i] > 0 && numbers[i] <= int64_t{1} << 31) continue;
    return InvalidArgument("Window ", name, " must be greater than zero and at most 2^31, found ",
                           numbers[i]);
  }
  TENON_RETURN_IF_ERROR(CheckScalars(ctx, 4, {"drop_remainder"}));
  return ReturnDataset(
      ctx, std::make_shared<WindowDataset>(std::move(input), spec, numbers[0], numbers[1],
                                           numbers[2], ctx.input(4).scalar<bool>()));
}

}  // namespace

StatusOr<int64_t> NumRows(const DatasetElement& batch) {
  for (const Tensor& t : batch) {
    if (t.rank() == 0) {
      return InvalidArgument("Input element must have a non-scalar value in each component.");
    }
    if (t.dim(0) == batch[0].dim(0)) continue;
    return InvalidArgument(
        "Input element must have the same batch size in each component. Component 0 had size ",
        batch[0].dim(0), " but component ", &t - &batch[0], " had size, ", t.dim(0), ".");
  }
  return batch[0].dim(0);
}

StatusOr<BatchSize> ReadBatchSize(const KernelContext& ctx, int size, int drop_remainder) {
  BatchSize batch;
  TENON_ASSIGN_OR_RETURN(batch.rows, ReadInteger(ctx.input(size), "batch_size"));
  if (batch.rows <= 0) return InvalidArgument("Batch size must be greater than zero.");
  if (drop_remainder < ctx.num_inputs()) {
    TENON_RETURN_IF_ERROR(CheckScalars(ctx, drop_remainder, {"drop_remainder"}));
    batch.drop_remainder = ctx.input(drop_remainder).scalar<bool>();
  }
  return batch;
}

DatasetPtr MakeBatchDataset(DatasetPtr input, const ElementSpec& spec, const BatchSize& size) {
  return std::make_shared<BatchDataset>(std::move(input), spec, size);
}

void RegisterBatchDatasets(OpRegistry& ops) {
  const auto add = [&ops](std::string_view name, auto kernel) {
    ops.Add(name, ScalarShape, kernel).NoExample("needs an iterator; datasets_test covers it");
  };
  for (const char* name : {"BatchDataset", "BatchDatasetV2"}) {
    add(name, BatchKernel);
  }
  add("ParallelBatchDataset", ParallelBatchKernel);
  for (const char* name : {"PaddedBatchDataset", "PaddedBatchDatasetV2"}) {
    add(name, PaddedBatchKernel);
  }
  add("UnbatchDataset", UnbatchKernel);
  add("WindowDataset", WindowKernel);
}

}  // namespace tenon
