// SPDX-License-Identifier: Apache-2.0
//
// Bit-identical to TensorFlow's: the order in which words are used, the single precision steps and
// glibc's logf, sinf and cosf all matter. This file must not be compiled with a vector library or
// relaxed floating point.
#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/counted_memory.h"
#include "core/interruption.h"
#include "core/mutex.h"
#include "core/op_registry.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "ops/random/philox.h"

namespace tenon {
namespace {

/// Blocks that TensorFlow sets aside for each output, of which a run uses few.
constexpr uint64_t kReservedPerOutput = 256;

template <typename T>
T UniformOf(uint32_t x) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>((x & 0x7fffff) | 127u << 23) - 1.0f;
  } else if constexpr (std::is_same_v<T, Half>) {
    return Half(Half::FromBits(static_cast<uint16_t>((x & 0x3ff) | 15 << 10)) - 1.0f);
  } else {
    return BFloat16(BFloat16::FromBits(static_cast<uint16_t>((x & 0x7f) | 127 << 7)) - 1.0f);
  }
}

double UniformOf(uint32_t a, uint32_t b) {
  return std::bit_cast<double>(uint64_t{1023} << 52 | uint64_t{a & 0xfffff} << 32 | b) - 1.0;
}

/// The uniform values that one block gives.
template <typename T>
auto Uniform(const Philox::Block& x) {
  if constexpr (std::is_same_v<T, double>) {
    return std::array{UniformOf(x[0], x[1]), UniformOf(x[2], x[3])};
  } else {
    return std::array{UniformOf<T>(x[0]), UniformOf<T>(x[1]), UniformOf<T>(x[2]),
                      UniformOf<T>(x[3])};
  }
}

/// Box and Muller's two normal values from each two uniform ones.
template <typename C>
auto Normal(const Philox::Block& x) {
  auto values = Uniform<C>(x);
  for (size_t i = 0; i < values.size(); i += 2) {
    const C u = std::max(values[i], C(1.0e-7));
    const C v = static_cast<C>(2 * std::numbers::pi * values[i + 1]);
    const C r = std::sqrt(C(-2) * std::log(u));
    values[i] = std::sin(v) * r;
    values[i + 1] = std::cos(v) * r;
  }
  return values;
}

/// The values that `kDistribution` makes of one block after the other.
template <auto kDistribution, typename T>
void FillFrom(Philox stream, absl::Span<T> out) {
  constexpr size_t kPerBlock = std::tuple_size_v<decltype(kDistribution(Philox::Block()))>;
  for (size_t i = 0; i < out.size(); i += kPerBlock) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) return;
    const auto values = kDistribution(stream.Next());
    const size_t count = std::min(kPerBlock, out.size() - i);
    for (size_t k = 0; k < count; ++k) out[i + k] = static_cast<T>(values[k]);
  }
}

/// Groups of outputs restart at fixed places, since how many words one takes is not known before.
template <typename T>
void FillTruncated(const Philox& base, absl::Span<T> out) {
  constexpr size_t kGroup = std::is_same_v<T, double> ? 2 : 4;
  constexpr double kLimit = 2;
  for (size_t g = 0; g * kGroup < out.size(); ++g) {
    if (g % kStepsBetweenLooks == 0 && Interrupted()) return;
    Philox stream = base;
    stream.Skip(g * kReservedPerOutput * kGroup / 4);
    const size_t end = std::min((g + 1) * kGroup, out.size());
    for (size_t i = g * kGroup; i < end;) {
      for (const auto value : Normal<ComputeType<T>>(stream.Next())) {
        if (i < end && std::abs(value) < kLimit) out[i++] = static_cast<T>(value);
      }
    }
  }
}

/// The stream of a random kernel, which goes on from run to run.
class Stream : public KernelState {
 public:
  explicit Stream(KernelConstruction& c)
      : next_(Philox::FromSeeds(c.Attr<int64_t>("seed"), c.Attr<int64_t>("seed2"))) {}

  /// The present place; passes over `blocks` for the runs to come.
  Philox Reserve(uint64_t blocks) const {
    MutexLock lock(mu_);
    const Philox place = next_;
    next_.Skip(blocks);
    return place;
  }

 private:
  mutable Mutex mu_;
  mutable Philox next_ ABSL_GUARDED_BY(mu_);
};

enum class Kind { kUniform, kNormal, kTruncated };

template <Kind kind>
Status RandomFloatsKernel(KernelContext& ctx, const Stream& stream) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "shape"));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  const Philox place = stream.Reserve(kReservedPerOutput * shape.num_elements());
  return DispatchStatus(out->dtype(), FloatTypes(), [&]<typename T>(T) {
    if constexpr (kind == Kind::kUniform) FillFrom<Uniform<T>>(place, out->flat<T>());
    if constexpr (kind == Kind::kNormal) FillFrom<Normal<ComputeType<T>>>(place, out->flat<T>());
    if constexpr (kind == Kind::kTruncated) FillTruncated(place, out->flat<T>());
  });
}

template <typename T, typename U>
Status FillInts(const KernelContext& ctx, const Stream& stream, absl::Span<T> values) {
  const T low = ctx.input(1).scalar<T>(), high = ctx.input(2).scalar<T>();
  if (low >= high) return InvalidArgument("Need minval < maxval, got ", low, " >= ", high);
  const U range = static_cast<U>(high) - static_cast<U>(low);
  Philox place = stream.Reserve(kReservedPerOutput * values.size());
  constexpr size_t kPerBlock = sizeof(T) == 4 ? 4 : 2;
  for (size_t i = 0; i < values.size(); i += kPerBlock) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
    const Philox::Block x = place.Next();
    for (size_t k = 0; k < kPerBlock && i + k < values.size(); ++k) {
      U word = x[k];
      if constexpr (sizeof(T) == 8) word = x[2 * k] | U{x[2 * k + 1]} << 32;
      values[i + k] = static_cast<T>(static_cast<U>(low) + word % range);
    }
  }
  return OkStatus();
}

Status RandomIntsKernel(KernelContext& ctx, const Stream& stream) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "shape"));
  TENON_RETURN_IF_ERROR(CheckScalars(ctx, 1, {"minval", "maxval"}));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  if (out->dtype() == DType::kInt32) {
    return FillInts<int32_t, uint32_t>(ctx, stream, out->flat<int32_t>());
  }
  return FillInts<int64_t, uint64_t>(ctx, stream, out->flat<int64_t>());
}

Status ShuffleKernel(KernelContext& ctx, const Stream& stream) {
  const Tensor& in = ctx.input(0);
  const int64_t rows = in.rank() == 0 ? 0 : in.dim(0);
  if (rows <= 1 || in.num_elements() == 0) return ctx.Return(in);
  CountedVector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  Philox place = stream.Reserve((rows - 1 + 3) / 4);
  Philox::Block x{};
  for (int64_t i = 0; i < rows - 1; ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) return OkStatus();
    if (i % 4 == 0) x = place.Next();
    std::swap(order[i], order[i + x[i % 4] % static_cast<uint64_t>(rows - i)]);
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  const int64_t row = in.num_elements() / rows;
  for (int64_t i = 0; i < rows; ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
    CopyElements(in, order[i] * row, out, i * row, row);
  }
  return OkStatus();
}

Status ShapeFromInput(ShapeContext& c) { return c.Return(c.ConstantShape(0)); }

}  // namespace

void RegisterSamples(OpRegistry& ops) {
  const Tensor shape = Tensor::Vector({2, 3});
  const AttributeMap seeds = {{"seed", 1}, {"seed2", 2}};
  const AttributeMap floats = {{"seed", 1}, {"seed2", 2}, {"dtype", DType::kFloat}};
  ops.Add("RandomUniform", ShapeFromInput, RandomFloatsKernel<Kind::kUniform>)
      .Example({shape}, floats);
  ops.Add("RandomStandardNormal", ShapeFromInput, RandomFloatsKernel<Kind::kNormal>)
      .Example({shape}, floats);
  ops.Add("TruncatedNormal", ShapeFromInput, RandomFloatsKernel<Kind::kTruncated>)
      .Example({shape}, floats);
  ops.Add("RandomUniformInt", ShapeFromInput, RandomIntsKernel)
      .Example({shape, Tensor::Scalar(-3), Tensor::Scalar(5)}, seeds);
  ops.Add("RandomShuffle", UnchangedShape, ShuffleKernel).Example({Shape{4, 2}}, seeds);
}

}  // namespace tenon
