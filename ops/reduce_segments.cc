// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce_segments.h"

#include <algorithm>
#include <limits>

#include "ops/maths.h"
#include "ops/segment_loop.h"

namespace tenon {
namespace {

template <typename C>
C DividedBy(C sum, int64_t count) {
  if (count == 0) return C(0);
  if constexpr (std::is_signed_v<C> && std::is_integral_v<C>) return static_cast<C>(sum / count);
  if constexpr (std::is_unsigned_v<C>) return static_cast<C>(sum / static_cast<uint64_t>(count));
  return sum / static_cast<C>(count);
}

constexpr auto kAsItIs = [](auto acc, int64_t) { return acc; };
/// For sums that begin with -0.
constexpr auto kZeroIfEmpty = [](auto acc, int64_t n) { return n == 0 ? decltype(acc)(0) : acc; };

template <typename T>
T Highest() {
  if constexpr (std::is_same_v<T, Half>) return T::FromBits(0x7bff);
  if constexpr (std::is_same_v<T, BFloat16>) return T::FromBits(0x7f7f);
  if constexpr (std::is_arithmetic_v<T>) return std::numeric_limits<T>::max();
}

template <typename T>
T Lowest() {
  if constexpr (std::is_arithmetic_v<T>) return std::numeric_limits<T>::lowest();
  if constexpr (!std::is_arithmetic_v<T>) return T(-static_cast<float>(Highest<T>()));
}

/// kMax and kMin. A NaN holds until the next row, as in TensorFlow.
Status Extremes(bool max, const Tensor& from, const SegmentedRows& by, int64_t width, Tensor* to,
                bool zero_if_empty) {
  return DispatchStatus(to->dtype(), RealTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const auto finish = [=](C acc, int64_t n) { return zero_if_empty && n == 0 ? C(0) : acc; };
    if (max) {
      AccumulateSegments<T>(
          from.data<T>(), by, width, to->data<T>(), C(Lowest<T>()),
          [](auto x, auto y, int64_t) { return x > y ? x : y; }, finish);
    } else {
      AccumulateSegments<T>(
          from.data<T>(), by, width, to->data<T>(), C(Highest<T>()),
          [](auto x, auto y, int64_t) { return x < y ? x : y; }, finish);
    }
  });
}

Status ScaledSum(const Tensor& from, const SegmentedRows& by, int64_t width, Tensor* to,
                 absl::Span<const double> scales) {
  return DispatchStatus(to->dtype(), FloatTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const auto add = [&](auto acc, auto x, int64_t k) {
      return acc + x * static_cast<C>(scales[by.rows[k]]);
    };
    AccumulateSegments<T>(from.data<T>(), by, width, to->data<T>(), C(-0.0), add, kZeroIfEmpty);
  });
}

}  // namespace

SegmentedRows GroupRows(absl::Span<const int64_t> ids, int64_t segments,
                        absl::Span<const int64_t> values) {
  SegmentedRows by{CountedVector<int64_t>(segments + 1), {}};
  if (std::is_sorted(ids.begin(), ids.end())) {
    // Where the rows of a segment follow each other, nothing is counted.
    const auto first = std::lower_bound(ids.begin(), ids.end(), 0) - ids.begin();
    by.rows.resize(ids.size() - first);
    int64_t segment = 0;
    for (auto i = first; i < static_cast<int64_t>(ids.size()); ++i) {
      while (segment <= ids[i]) by.starts[segment++] = i - first;
      by.rows[i - first] = values.empty() ? i : values[i];
    }
    while (segment <= segments) by.starts[segment++] = static_cast<int64_t>(by.rows.size());
    return by;
  }
  for (const int64_t id : ids) {
    if (id >= 0) ++by.starts[id];
  }
  int64_t end = 0;
  for (int64_t& start : by.starts) start = end += start;
  by.rows.resize(end);
  // Each segment's begin goes down from its end as the rows come, the last one first.
  for (auto i = static_cast<int64_t>(ids.size()) - 1; i >= 0; --i) {
    if (ids[i] >= 0) by.rows[--by.starts[ids[i]]] = values.empty() ? i : values[i];
  }
  return by;
}

StatusOr<int64_t> SortedSegments(absl::Span<const int64_t> ids, std::optional<int64_t> limit) {
  const int64_t last = ids.empty() ? -1 : ids.back();
  if (!ids.empty() && last < 0 && !limit) {
    return InvalidArgument("segment ids must be >= 0, found ", last);
  }
  if (last == INT64_MAX) return InvalidArgument("segment id ", last, " is too large");
  if (limit && last >= *limit) {
    return InvalidArgument("segment ids must be < num_segments = ", *limit, ", found ", last);
  }
  const int64_t segments = limit.value_or(last + 1);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + 1 < ids.size() && ids[i + 1] < ids[i]) {
      return InvalidArgument("segment ids are not increasing: ", ids[i], " comes before ",
                             ids[i + 1]);
    }
    if (ids[i] >= 0 && ids[i] < segments) continue;
    return InvalidArgument("Segment id ", ids[i], " out of range [0, ", segments,
                           "), possibly because 'segment_ids' input is not sorted.");
  }
  return segments;
}

Status ReduceSegments(Reduction reduction, const Tensor& from, const SegmentedRows& segments,
                      int64_t width, Tensor* to, const ReduceSegmentsOptions& options) {
  if (to->num_elements() == 0) return OkStatus();
  if (reduction == Reduction::kMax || reduction == Reduction::kMin) {
    return Extremes(reduction == Reduction::kMax, from, segments, width, to, options.zero_if_empty);
  }
  if (!options.scales.empty()) return ScaledSum(from, segments, width, to, options.scales);
  return DispatchStatus(to->dtype(), NumericTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const C zero = options.keep_negative_zero ? C(-0.0) : C(0);
    const auto add = [](auto x, auto y, int64_t) {
      if constexpr (std::is_floating_point_v<T>) return x + y;
      if constexpr (!std::is_floating_point_v<T>) return Plus(x, y);
    };
    const auto accumulate = [&](C init, auto fn, auto finish) {
      AccumulateSegments<T>(from.data<T>(), segments, width, to->data<T>(), init, fn, finish);
    };
    if (reduction == Reduction::kProd) {
      const auto multiply = [](auto x, auto y, int64_t) {
        if constexpr (std::is_floating_point_v<T>) return x * y;
        if constexpr (!std::is_floating_point_v<T>) return Times(x, y);
      };
      accumulate(C(1), multiply, kAsItIs);
    } else if (reduction == Reduction::kSum) {
      accumulate(zero, add, kZeroIfEmpty);
    } else if (reduction == Reduction::kMean) {
      accumulate(zero, add, DividedBy<C>);
    } else if constexpr (std::is_floating_point_v<C>) {
      accumulate(zero, add, [](C sum, int64_t n) {
        return n == 0 ? C(0) : sum / std::sqrt(static_cast<C>(n));
      });
    }
  });
}

}  // namespace tenon
