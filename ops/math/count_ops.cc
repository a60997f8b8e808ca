// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op_registry.h"
#include "core/parallel.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/maths.h"

// Ops that count elements, or say what they are counted with.

namespace tenon {
namespace {

using CountTypes = TypeList<float, double, int32_t, int64_t>;

/// The boundaries of a Bucketize, which must ascend.
struct Boundaries : KernelState {
  explicit Boundaries(KernelConstruction& c) : values(c.Attr<std::vector<float>>("boundaries")) {
    if (!std::is_sorted(values.begin(), values.end())) {
      c.Fail(InvalidArgument("Expected sorted boundaries"));
    }
  }
  const std::vector<float> values;
};

Status BucketizeKernel(KernelContext& ctx, const Boundaries& boundaries) {
  const Tensor& x = ctx.input(0);
  const std::vector<float>& limits = boundaries.values;
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, x.shape()));
  int32_t* buckets = out->data<int32_t>();
  return DispatchStatus(x.dtype(), CountTypes(), [&]<typename T>(T) {
    ParallelFor(x.num_elements(), 10, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto above = std::upper_bound(limits.begin(), limits.end(), x.data<T>()[i]);
        buckets[i] = static_cast<int32_t>(above - limits.begin());
      }
    });
  });
}

/// Counts the elements of each row of `values`, which has `rows` of them, in a row of `out`: those
/// in [0, size), each by its weight (1 without weights), or once.
Status CountRows(const Tensor& values, const Tensor& weights, bool once, int64_t rows,
                 Tensor* out) {
  ZeroElements(out);
  if (values.num_elements() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const IndexVector bins, ReadIndices(values, "the values to count"));
  const int64_t size = out->num_elements() / rows, columns = values.num_elements() / rows;
  return DispatchStatus(out->dtype(), CountTypes(), [&]<typename T>(T) -> Status {
    const T* weight = weights.num_elements() > 0 ? weights.data<T>() : nullptr;
    T* counts = out->data<T>();
    bool negative = false;
    SerialFor(values.num_elements(), 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        negative |= bins[i] < 0;
        if (bins[i] < 0 || bins[i] >= size) continue;
        T& count = counts[i / columns * size + bins[i]];
        count = once ? T(1) : Plus(count, weight == nullptr ? T(1) : weight[i]);
      }
    });
    return negative ? InvalidArgument("Input arr must be non-negative!") : OkStatus();
  });
}

StatusOr<int64_t> ReadSize(const Tensor& t) {
  TENON_ASSIGN_OR_RETURN(const int64_t size, ReadInteger(t, "size"));
  if (size < 0) return InvalidArgument("size (", size, ") must be non-negative");
  return size;
}

Status CheckWeights(const Tensor& values, const Tensor& weights) {
  if (weights.num_elements() == 0 || weights.shape() == values.shape()) return OkStatus();
  return InvalidArgument("weights must have the values' shape ", values.shape(),
                         " or no elements, found shape ", weights.shape());
}

Status BincountKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const int64_t size, ReadSize(ctx.input(1)));
  TENON_RETURN_IF_ERROR(CheckWeights(ctx.input(0), ctx.input(2)));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {size}));
  return CountRows(ctx.input(0), ctx.input(2), /*once=*/false, 1, out);
}

Status DenseBincountKernel(KernelContext& ctx, bool binary_output) {
  const Tensor& values = ctx.input(0);
  if (values.rank() > 2) {
    return InvalidArgument("input must be of rank 2 or less, found shape ", values.shape());
  }
  TENON_ASSIGN_OR_RETURN(const int64_t size, ReadSize(ctx.input(1)));
  TENON_RETURN_IF_ERROR(CheckWeights(values, ctx.input(2)));
  const bool matrix = values.rank() == 2;
  const DimVector dims = matrix ? DimVector{values.dim(0), size} : DimVector{size};
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
  return CountRows(values, ctx.input(2), binary_output, matrix ? values.dim(0) : 1, out);
}

/// Vectors as long as input `i` says: one, or one for each row of input 0.
Status BinsShape(ShapeContext& c, int i, bool rows) {
  int64_t size = PartialShape::kUnknownDim;
  if (c.constant(i) != nullptr) {
    TENON_ASSIGN_OR_RETURN(size, ReadInteger(*c.constant(i), "size"));
    if (size < 0) return InvalidArgument("size (", size, ") must be non-negative");
  }
  if (!rows) return c.Return(PartialShape{size});
  return c.Return(PartialShape{c.input(0).dim(0), size});
}

Status HistogramKernel(KernelContext& ctx) {
  const Tensor &values = ctx.input(0), &range = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const int64_t bins, ReadInteger(ctx.input(2), "nbins"));
  if (bins <= 0) return InvalidArgument("nbins should be a positive number, but got '", bins, "'");
  if (range.shape() != Shape{2}) {
    return InvalidArgument("value_range should be a vector of 2 elements, found shape ",
                           range.shape());
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {bins}));
  ZeroElements(out);
  return DispatchStatus(values.dtype(), CountTypes(), [&]<typename T>(T) -> Status {
    const T low = range.data<T>()[0], high = range.data<T>()[1];
    if (!(low < high)) {
      return InvalidArgument(
          "value_range should satisfy value_range[0] < value_range[1], but got '[", low, ", ", high,
          "]'");
    }
    const double step = static_cast<double>(high - low) / static_cast<double>(bins);
    return DispatchStatus(out->dtype(), TypeList<int32_t, int64_t>(), [&]<typename Count>(Count) {
      Count* counts = out->data<Count>();
      SerialFor(values.num_elements(), 3, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T x = values.data<T>()[i];
          // NaN is counted as the least is.
          const double bin = x > low ? static_cast<double>(x - low) / step : 0;
          ++counts[static_cast<int64_t>(std::min(bin, static_cast<double>(bins - 1)))];
        }
      });
    });
  });
}

}  // namespace

void RegisterCountOps(OpRegistry& ops) {
  const Tensor values = Tensor::Of<int32_t>({2, 3}, {0, 3, 1, 3, 7, 3}), size = Tensor::Scalar(4);
  ops.Add("Bucketize", UnchangedShape, BucketizeKernel)
      .Example({Shape{2, 3}}, {{"boundaries", std::vector<float>{-1, 0, 0.5}}});
  ops.Add(
         "Bincount", [](ShapeContext& c) { return BinsShape(c, 1, false); }, BincountKernel)
      .Example({values, size, Shape{2, 3}})
      .Example({values, size, Shape{0}});
  ops.Add("DenseBincount",
          [](ShapeContext& c) {
            return c.input(0).rank_known() ? BinsShape(c, 1, c.input(0).rank() == 2) : OkStatus();
          },
          DenseBincountKernel, {.attrs = {"binary_output"}})
      .Example({values, size, Shape{2, 3}})
      .Example({Tensor::Vector({1, 1, 2}), size, Shape{0}}, {{"binary_output", true}});
  ops.Add(
         "HistogramFixedWidth", [](ShapeContext& c) { return BinsShape(c, 2, false); },
         HistogramKernel)
      .Example({Shape{2, 3}, Tensor::Vector<float>({-1, 1}), Tensor::Scalar(3)});
}

}  // namespace tenon
