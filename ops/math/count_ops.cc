// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/math/bincount.h"
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

Status BucketizeKernel(KernelContext& ctx, const Tensor& x, const Boundaries& boundaries) {
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

Status HistogramShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const int64_t bins, KnownBins(c, 2));
  return c.Return(PartialShape{bins});
}

/// How far `high` is above `low`; with `halved` half of that, which fits where the whole does not.
template <typename T>
double Difference(T low, T high, bool halved = false) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<double>(static_cast<uint64_t>(high) - static_cast<uint64_t>(low));
  } else {
    const double factor = halved ? 0.5 : 1;
    return static_cast<double>(high) * factor - static_cast<double>(low) * factor;
  }
}

Status HistogramKernel(KernelContext& ctx, const Tensor& values, const Tensor& range,
                       Integer bins) {
  if (bins <= 0)
    return InvalidArgument("nbins should be a positive number, but got '", bins.value, "'");
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
    if constexpr (std::is_floating_point_v<T>) {
      const auto all = values.flat<T>();
      if (std::any_of(all.begin(), all.end(), [](T x) { return std::isnan(x); })) {
        return InvalidArgument("Histogram values must not contain NaN");
      }
    }
    const bool halved = !std::isfinite(Difference(low, high));
    const double step = Difference(low, high, halved) / static_cast<double>(bins);
    const auto last = static_cast<double>(bins - 1);
    return DispatchStatus(out->dtype(), TypeList<int32_t, int64_t>(), [&]<typename Count>(Count) {
      Count* counts = out->data<Count>();
      SerialFor(values.num_elements(), 3, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T x = values.data<T>()[i];
          const double bin = x > low ? Difference(low, std::min(x, high), halved) / step : 0;
          // NaN, which an infinite range may give, is counted at its end.
          ++counts[static_cast<int64_t>(bin < last ? bin : last)];
        }
      });
    });
  });
}

}  // namespace

void RegisterCountOps(OpRegistry& ops) {
  ops.Add("Bucketize", UnchangedShape, BucketizeKernel)
      .Example({Shape{2, 3}}, {{"boundaries", std::vector<float>{-1, 0, 0.5}}});
  ops.Add("HistogramFixedWidth", HistogramShape, HistogramKernel)
      .Example({Shape{2, 3}, Tensor::Vector<float>({-1, 1}), Tensor::Scalar(3)});
}

}  // namespace tenon
