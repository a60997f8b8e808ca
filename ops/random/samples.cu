// SPDX-License-Identifier: Apache-2.0
//
// Random values on the GPU, those of samples.cc: any place of the stream is reached at once, so
// each thread makes what its block of words, or its group of truncated values, becomes. They are
// the CPU's bit for bit, but for normal values of double: the logarithm, sine and cosine of CUDA
// differ from the C library's by up to 2 in the last place, and so may the values by a few; a
// truncated one that lies so near the limit may be accepted by one alone.
#include "ops/arguments.h"
#include "ops/cuda/check.cuh"
#include "ops/cuda/element.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"
#include "ops/random/draws.h"
#include "ops/random/float_maths.h"
#include "ops/random/stream.h"

namespace tenon::cuda {
namespace {

enum class Kind { kUniform, kNormal, kTruncated, kUniformInt, kFullInt };

struct DeviceMaths {
  template <typename C>
  __device__ static C LogOf(C x) {
    if constexpr (std::is_same_v<C, float>) return float_maths::LogOf(x);
    return log(x);
  }
  template <typename C>
  __device__ static C SinOf(C x) {
    if constexpr (std::is_same_v<C, float>) return float_maths::SinOrCosOf(x, 0);
    return sin(x);
  }
  template <typename C>
  __device__ static C CosOf(C x) {
    if constexpr (std::is_same_v<C, float>) return float_maths::SinOrCosOf(x, 1);
    return cos(x);
  }
};

/// Where to draw: a place that the host knows, or one whose key and counter are in the device's
/// memory.
struct Place {
  Philox known{0, 0};
  const uint64_t* key = nullptr;
  const uint64_t* counter = nullptr;

  __device__ Philox Get() const {
    return key == nullptr ? known : Philox(*key, counter[0], counter[1]);
  }
};

/// The values of T that a block gives, before they are narrowed.
template <Kind kind, typename T>
__device__ auto Draw(const Philox::Block& x) {
  if constexpr (kind == Kind::kNormal || kind == Kind::kTruncated) {
    return Normal<ComputeType<T>, DeviceMaths>(x);
  } else if constexpr (kind != Kind::kUniform) {
    return Integers<T>(x);
  } else if constexpr (sizeof(T) == 2) {
    // A mantissa's bits as a fraction: what 1.mantissa - 1 is in 16 bits, without rounding.
    constexpr int kBits = std::is_same_v<T, Half> ? 10 : 7;
    std::array<float, 4> values;
    for (int k = 0; k < 4; ++k) {
      values[k] = static_cast<float>(x[k] & ((1u << kBits) - 1)) / (1 << kBits);
    }
    return values;
  } else {
    return Uniform<T>(x);
  }
}

/// The bounds of integers: known, or in the device's memory.
template <typename T>
struct Bounds {
  T low{}, high{};
  const T *low_at = nullptr, *high_at = nullptr;
};

template <Kind kind, typename T>
struct FillBlock {
  Place place;
  T* out;
  int64_t n;
  Bounds<T> bounds;
  RunCheck check;

  __device__ void operator()(int64_t block) const {
    Philox stream = place.Get();
    stream.Skip(block);
    const auto values = Draw<kind, T>(stream.Next());
    constexpr int kPerBlock = static_cast<int>(std::tuple_size_v<decltype(Draw<kind, T>({}))>);
    [[maybe_unused]] T low{}, high{};
    if constexpr (kind == Kind::kUniformInt) {
      low = bounds.low_at == nullptr ? bounds.low : *bounds.low_at;
      high = bounds.high_at == nullptr ? bounds.high : *bounds.high_at;
      if (low >= high) {
        if (block == 0) NoteFailure(check, 1);
        return;
      }
    }
    const int64_t first = block * kPerBlock;
#pragma unroll
    for (int k = 0; k < kPerBlock; ++k) {
      if (first + k >= n) break;
      if constexpr (kind == Kind::kUniformInt) {
        out[first + k] = IntegerBetween<T>(low, high, values[k]);
      } else {
        out[first + k] = Narrow<T>(values[k]);
      }
    }
  }
};

template <typename T>
struct FillGroup {
  Place place;
  T* out;
  int64_t n;

  __device__ void operator()(int64_t group) const {
    constexpr int kGroup = kTruncatedGroup<T>;
    Philox stream = place.Get();
    stream.Skip(group * kReservedPerOutput * kGroup / 4);
    const int64_t end = min((group + 1) * kGroup, n);
    for (int64_t i = group * kGroup; i < end;) {
      const auto values = Draw<Kind::kTruncated, T>(stream.Next());
      for (int k = 0; k < static_cast<int>(values.size()); ++k) {
        if (i < end && fabs(static_cast<double>(values[k])) < kTruncatedLimit) {
          out[i++] = Narrow<T>(values[k]);
        }
      }
    }
  }
};

using SampledInts = TypeList<int32_t, int64_t, uint32_t, uint64_t>;

template <Kind kind, typename T>
Status FillWith(const KernelContext& ctx, const Place& place, Tensor* out,
                const Bounds<T>& bounds = {}, RunCheck check = {}) {
  const int64_t n = out->num_elements();
  constexpr int kGroup = kTruncatedGroup<T>;
  if constexpr (kind == Kind::kTruncated) {
    return ForEach(ctx, (n + kGroup - 1) / kGroup, FillGroup<T>{place, out->data<T>(), n});
  } else {
    // A block of four words is as many values, or half as many of 8 bytes.
    constexpr int kPerBlock = sizeof(T) == 8 ? 2 : 4;
    return ForEach(ctx, (n + kPerBlock - 1) / kPerBlock,
                   FillBlock<kind, T>{place, out->data<T>(), n, bounds, check});
  }
}

template <Kind kind>
Status Fill(const KernelContext& ctx, const Place& place, Tensor* out) {
  if constexpr (kind == Kind::kFullInt) {
    return DispatchStatus(out->dtype(), SampledInts(),
                          [&]<typename T>(T) { return FillWith<kind, T>(ctx, place, out); });
  } else {
    return DispatchStatus(out->dtype(), FloatTypes(),
                          [&]<typename T>(T) { return FillWith<kind, T>(ctx, place, out); });
  }
}

template <Kind kind>
Status FloatsKernel(KernelContext& ctx, const Shape& shape, const Stream& stream) {
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  const Place place{stream.Reserve(kReservedPerOutput * shape.num_elements())};
  return Fill<kind>(ctx, place, out);
}

/// minval and maxval are in host memory.
Status IntsKernel(KernelContext& ctx, const Shape& shape, const Stream& stream) {
  TENON_RETURN_IF_ERROR(CheckBounds(ctx, 1));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  return DispatchStatus(out->dtype(), TypeList<int32_t, int64_t>(), [&]<typename T>(T) -> Status {
    const Bounds<T> bounds{ctx.input(1).scalar<T>(), ctx.input(2).scalar<T>()};
    TENON_RETURN_IF_ERROR(CheckOrder(bounds.low, bounds.high));
    const Place place{stream.Reserve(kReservedPerOutput * shape.num_elements())};
    return FillWith<Kind::kUniformInt, T>(ctx, place, out, bounds);
  });
}

template <bool kKeyed>
StatusOr<Place> PlaceOf(const KernelContext& ctx) {
  if constexpr (!kKeyed) {
    TENON_ASSIGN_OR_RETURN(const Philox place, SeededPlace(ctx.input(1)));
    return Place{place};
  } else {
    TENON_RETURN_IF_ERROR(CheckKeyedPlace(ctx));
    return Place{Philox(0, 0), ctx.input(1).data<uint64_t>(), ctx.input(2).data<uint64_t>()};
  }
}

template <Kind kind, bool kKeyed>
Status StatelessKernel(KernelContext& ctx, const Shape& shape, const NodeIdentity& node) {
  TENON_ASSIGN_OR_RETURN(const Place place, PlaceOf<kKeyed>(ctx));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if constexpr (kind != Kind::kUniformInt) {
    return Fill<kind>(ctx, place, out);
  } else {
    constexpr int kBounds = kKeyed ? 4 : 2;
    TENON_RETURN_IF_ERROR(CheckBounds(ctx, kBounds));
    const RunCheck check = AddCheck(
        ctx, node, [](uint64_t) -> Status { return InvalidArgument("Need minval < maxval"); });
    return DispatchStatus(out->dtype(), SampledInts(), [&]<typename T>(T) {
      const Bounds<T> bounds{
          {}, {}, ctx.input(kBounds).data<T>(), ctx.input(kBounds + 1).data<T>()};
      return FillWith<kind, T>(ctx, place, out, bounds, check);
    });
  }
}

/// Key and counter of a seed, which is in host memory as the algorithm is.
Status KeyCounterKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const Philox place, SeededPlace(ctx.input(0)));
  DeviceQueue& queue = *ctx.device().queue();
  TENON_ASSIGN_OR_RETURN(Tensor key, queue.CopyToDevice(Tensor::Vector<uint64_t>({place.key()})));
  ctx.set_output(0, std::move(key));
  TENON_ASSIGN_OR_RETURN(Tensor counter,
                         queue.CopyToDevice(Tensor::Vector<uint64_t>({0, place.seed2()})));
  ctx.set_output(1, std::move(counter));
  if (ctx.num_outputs() > 2) ctx.set_output(2, Tensor::Scalar<int32_t>(kPhilox));
  return OkStatus();
}

template <Kind kind>
void AddStateless(OpRegistry& ops, const std::string& name) {
  AddKernel(ops, name, StatelessKernel<kind, false>, {});
  AddKernel(ops, name + "V2", StatelessKernel<kind, true>, {});
}

}  // namespace
}  // namespace tenon::cuda

namespace tenon {

void RegisterCudaSamples(OpRegistry& ops) {
  using namespace cuda;  // NOLINT
  AddKernel(ops, "RandomUniform", FloatsKernel<Kind::kUniform>, {});
  AddKernel(ops, "RandomStandardNormal", FloatsKernel<Kind::kNormal>, {});
  AddKernel(ops, "TruncatedNormal", FloatsKernel<Kind::kTruncated>, {});
  AddKernel(ops, "RandomUniformInt", IntsKernel, {});
  AddStateless<Kind::kUniform>(ops, "StatelessRandomUniform");
  AddStateless<Kind::kNormal>(ops, "StatelessRandomNormal");
  AddStateless<Kind::kTruncated>(ops, "StatelessTruncatedNormal");
  AddStateless<Kind::kUniformInt>(ops, "StatelessRandomUniformInt");
  AddStateless<Kind::kFullInt>(ops, "StatelessRandomUniformFullInt");
  AddKernel(ops, "StatelessRandomGetKeyCounter", KeyCounterKernel, {});
  AddKernel(ops, "StatelessRandomGetKeyCounterAlg", KeyCounterKernel, {});
}

}  // namespace tenon
