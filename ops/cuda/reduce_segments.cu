// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/reduce_segments.h"

#include <bit>
#include <limits>

#include "ops/cuda/element.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/strided_index.h"

namespace tenon::cuda {
namespace {

/// The largest number of a T.
template <typename T>
constexpr ComputeType<T> Highest() {
  if constexpr (std::is_same_v<T, Half>) return 65504.0f;
  if constexpr (std::is_same_v<T, BFloat16>) return std::bit_cast<float>(0x7f7f0000u);
  if constexpr (std::is_arithmetic_v<T>) return std::numeric_limits<T>::max();
}
template <typename T>
constexpr ComputeType<T> Lowest() {
  if constexpr (std::is_arithmetic_v<T>) return std::numeric_limits<T>::lowest();
  if constexpr (!std::is_arithmetic_v<T>) return -Highest<T>();
}

template <typename T, Reduction kReduction>
struct SegmentElement {
  using C = ComputeType<T>;
  const T* from;
  const uint32_t* rows;
  const int64_t* starts;
  T* to;
  Divisor width;
  bool zero_if_empty;

  __device__ static C Start() {
    if constexpr (kReduction == Reduction::kProd) return C(1);
    if constexpr (kReduction == Reduction::kMax) return Lowest<T>();
    if constexpr (kReduction == Reduction::kMin) return Highest<T>();
    return C(0);
  }
  /// A NaN holds until the next row, as in TensorFlow.
  __device__ static C Merge(C acc, C x) {
    if constexpr (kReduction == Reduction::kProd) return Times(acc, x);
    if constexpr (kReduction == Reduction::kMax) return acc > x ? acc : x;
    if constexpr (kReduction == Reduction::kMin) return acc < x ? acc : x;
    return Plus(acc, x);
  }
  __device__ C Finish(C acc, int64_t n) const {
    constexpr bool kExtreme = kReduction == Reduction::kMax || kReduction == Reduction::kMin;
    if (kExtreme && zero_if_empty && n == 0) return C(0);
    if constexpr (kReduction == Reduction::kMean) {
      using N = std::conditional_t<std::is_floating_point_v<C>, C,
                                   std::conditional_t<std::is_signed_v<C>, int64_t, uint64_t>>;
      return n == 0 ? C(0) : static_cast<C>(acc / static_cast<N>(n));
    }
    return acc;
  }

  __device__ void operator()(int64_t i) const {
    const int64_t s = width.Quotient(i), j = i - s * width.value();
    const int64_t begin = starts[s], end = starts[s + 1];
    C acc = Start();
    for (int64_t k = begin; k < end; ++k) {
      acc = Merge(acc, Widen(from[int64_t{rows[k]} * width.value() + j]));
    }
    to[i] = Narrow<T>(Finish(acc, end - begin));
  }
};

template <Reduction kReduction, typename Types>
Status Reduce(KernelContext& ctx, Types types, DType type, const Tensor& from,
              const GroupedRows& grouped, int64_t width, bool zero_if_empty, Tensor* to) {
  const int64_t n = to->num_elements();
  return DispatchStatus(type, types, [&]<typename T>(T) {
    return ForEach(ctx, n,
                   SegmentElement<T, kReduction>{
                       static_cast<const T*>(from.raw_data()), grouped.rows.data<uint32_t>(),
                       grouped.starts.data<int64_t>(), static_cast<T*>(to->raw_data()),
                       Divisor(width, n), zero_if_empty});
  });
}

}  // namespace

Status ReduceGrouped(KernelContext& ctx, Reduction reduction, const Tensor& from,
                     const GroupedRows& grouped, int64_t width, bool zero_if_empty, Tensor* to) {
  if (to->num_elements() == 0) return OkStatus();
  const DType type = to->dtype();
  const RealTypes types;
  switch (reduction) {
    case Reduction::kSum:
      if (type == DType::kBool) {
        return Reduce<Reduction::kMax>(ctx, TypeList<uint8_t>(), DType::kUInt8, from, grouped,
                                       width, true, to);
      }
      return Reduce<Reduction::kSum>(ctx, types, type, from, grouped, width, true, to);
    case Reduction::kMean:
      return Reduce<Reduction::kMean>(ctx, types, type, from, grouped, width, true, to);
    case Reduction::kProd:
      return Reduce<Reduction::kProd>(ctx, types, type, from, grouped, width, true, to);
    case Reduction::kMax:
      return Reduce<Reduction::kMax>(ctx, types, type, from, grouped, width, zero_if_empty, to);
    case Reduction::kMin:
      return Reduce<Reduction::kMin>(ctx, types, type, from, grouped, width, zero_if_empty, to);
    case Reduction::kSqrtN:
      break;
  }
  return Unimplemented("no such reduction of segments");
}

}  // namespace tenon::cuda
