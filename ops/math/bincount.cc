// SPDX-License-Identifier: Apache-2.0
#include "ops/math/bincount.h"

#include <algorithm>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// Makes counts[b] how many of the numbers are b < bins. A processor that counts the same number
/// twice in a row waits for the first to be written: so four tables take turns.
template <typename T, typename I>
void CountNumbers(absl::Span<const I> numbers, int64_t bins, T* counts) {
  constexpr size_t kTables = 4;
  const int64_t width = bins + 1;  // the last one is for what has no bin
  CountedVector<int64_t> tables(kTables * width);
  const auto count = [&](size_t i) {
    ++tables[i % kTables * width + std::min(static_cast<int64_t>(numbers[i]), bins)];
  };
  size_t i = 0;
  for (; i + kTables <= numbers.size(); i += kTables) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) return;
    count(i), count(i + 1), count(i + 2), count(i + 3);
  }
  for (; i < numbers.size(); ++i) count(i);
  for (int64_t b = 0; b < bins; ++b) {
    int64_t sum = 0;
    for (size_t t = 0; t < kTables; ++t) sum += tables[t * width + b];
    counts[b] = static_cast<T>(sum);
  }
}

}  // namespace

StatusOr<int64_t> ReadBins(const Tensor& size) {
  if (size.rank() != 0) {
    return InvalidArgument("Shape must be rank 0 but is rank ", size.rank(),
                           ": the size of Bincount has shape ", size.shape());
  }
  TENON_ASSIGN_OR_RETURN(const int64_t bins, ReadInteger(size, "size"));
  if (bins >= 0) return bins;
  return InvalidArgument("size (", bins, ") must be non-negative");
}

Status CountBins(const Tensor& values, const Tensor& weights, absl::Span<const int64_t> rows,
                 int64_t bins, bool binary, Tensor* counts) {
  if (weights.num_elements() > 0 && weights.num_elements() != values.num_elements()) {
    return InvalidArgument("weights must be empty or have the shape of the values, ",
                           values.shape(), ", found ", weights.shape());
  }
  ZeroElements(counts);
  using Counts = TypeList<float, double, int32_t, int64_t>;
  return DispatchStatus(values.dtype(), TypeList<int32_t, int64_t>(), [&]<typename I>(I) -> Status {
    const absl::Span<const I> numbers(values.data<I>(), values.num_elements());
    I signs = 0;
    for (const I number : numbers) signs |= number;
    if (signs < 0) return InvalidArgument("Input must be non-negative, found a negative number");
    return DispatchStatus(counts->dtype(), Counts(), [&]<typename T>(T) {
      const T* weight = weights.num_elements() > 0 ? weights.data<T>() : nullptr;
      T* out = counts->data<T>();
      // Where there are many bins, each is counted so rarely that tables cost more than they save.
      const bool often = bins <= 1 << 14 && values.num_elements() >= 16 * bins;
      if (often && weight == nullptr && rows.empty() && !binary) {
        return CountNumbers(numbers, bins, out);
      }
      for (size_t i = 0; i < numbers.size(); ++i) {
        if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
        if (numbers[i] >= bins) continue;
        T& count = out[(rows.empty() ? 0 : rows[i]) * bins + numbers[i]];
        count = binary ? T(1) : Plus(count, weight != nullptr ? weight[i] : T(1));
      }
    });
  });
}

namespace {

Status BincountKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const int64_t bins, ReadBins(ctx.input(1)));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, {bins}));
  return CountBins(ctx.input(0), ctx.input(2), {}, bins, false, out);
}

Status DenseBincountKernel(KernelContext& ctx, bool binary_output) {
  const Tensor &in = ctx.input(0), &weights = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const int64_t bins, ReadBins(ctx.input(1)));
  if (in.rank() > 2) {
    return InvalidArgument("Shape must be at most rank 2 but is rank ", in.rank(), ": ",
                           in.shape());
  }
  if (in.rank() < 1) return InvalidArgument("Shape must be at least rank 1, found a scalar");
  if (weights.num_elements() > 0 && weights.shape() != in.shape()) {
    return InvalidArgument(
        "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in "
        "which case it acts as all weights equal to 1. Received ",
        weights.shape());
  }
  if (in.rank() == 1) {
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, {bins}));
    return CountBins(in, weights, {}, bins, binary_output, out);
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {in.dim(0), bins}));
  CountedVector<int64_t> rows(in.num_elements());
  for (int64_t i = 0; i < in.num_elements(); ++i) rows[i] = i / in.dim(1);
  return CountBins(in, weights, rows, bins, binary_output, out);
}

Status DenseBincountShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  TENON_RETURN_IF_ERROR(c.WithRank(1, 0));
  TENON_ASSIGN_OR_RETURN(const int64_t bins, KnownBins(c, 1));
  if (!in.rank_known()) return OkStatus();
  if (in.rank() > 2) {
    return InvalidArgument("Shape must be at most rank 2 but is rank ", in.rank(), ": ", in);
  }
  return c.Return(in.rank() == 2 ? PartialShape{in.dim(0), bins} : PartialShape{bins});
}

Status BincountShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const int64_t bins, KnownBins(c, 1));
  return c.Return(PartialShape{bins});
}

}  // namespace

StatusOr<int64_t> KnownBins(const ShapeContext& c, int input) {
  TENON_RETURN_IF_ERROR(c.WithRank(input, 0));
  if (c.constant(input) == nullptr) return PartialShape::kUnknownDim;
  return ReadBins(*c.constant(input));
}

void RegisterBincount(OpRegistry& ops) {
  const Tensor size = Tensor::Scalar<int32_t>(4);
  ops.Add("Bincount", BincountShape, BincountKernel)
      .Example({Tensor::Of<int32_t>({2, 2}, {1, 3, 1, 9}), size, Shape{2, 2}});
  ops.Add("DenseBincount", DenseBincountShape, DenseBincountKernel, {.attrs = {"binary_output"}})
      .Example({Tensor::Vector<int32_t>({1, 3, 1, 9}), size, Shape{4}})
      .Example({Tensor::Of<int32_t>({2, 2}, {1, 3, 1, 1}), size, Shape{0}},
               {{"binary_output", true}});
}

}  // namespace tenon
