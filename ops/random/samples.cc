// SPDX-License-Identifier: Apache-2.0
//
// Bit-identical to TensorFlow's: the order in which words are used, the single precision steps and
// glibc's logf, sinf and cosf all matter. This file must not be compiled with a vector library or
// relaxed floating point.
#include "ops/random/random_ops.h"

#include <bit>
#include <cmath>
#include <numbers>
#include <random>

#include "core/counted_memory.h"
#include "core/interruption.h"
#include "core/mutex.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/random/philox.h"
#include "ops/random/register.h"

namespace tenon {
namespace {

/// Blocks that TensorFlow sets aside for each output, of which a run uses few.
constexpr uint64_t kReservedPerOutput = 256;

float UniformFloat(uint32_t x) { return std::bit_cast<float>((x & 0x7fffff) | 127u << 23) - 1.0f; }

double UniformDouble(uint32_t a, uint32_t b) {
  return std::bit_cast<double>(uint64_t{1023} << 52 | uint64_t{a & 0xfffff} << 32 | b) - 1.0;
}

/// Box and Muller's two normal values from two uniform ones.
void NormalPair(uint32_t a, uint32_t b, float* out) {
  const float u = std::max(UniformFloat(a), 1.0e-7f);
  const auto v = static_cast<float>(2 * std::numbers::pi * UniformFloat(b));
  const float r = std::sqrt(-2.0f * std::log(u));
  out[0] = std::sin(v) * r;
  out[1] = std::cos(v) * r;
}

void NormalPair(const uint32_t* x, double* out) {
  const double u = std::max(UniformDouble(x[0], x[1]), 1.0e-7);
  const double v = 2 * std::numbers::pi * UniformDouble(x[2], x[3]);
  const double r = std::sqrt(-2.0 * std::log(u));
  out[0] = std::sin(v) * r;
  out[1] = std::cos(v) * r;
}

/// Each distribution turns the stream into elements: kPerBlock of them from one block.
template <typename T>
struct Uniform {
  static constexpr int kPerBlock = 4;
  static void Fill(const Philox::Block& x, T* out) {
    for (int i = 0; i < 4; ++i) {
      if constexpr (std::is_same_v<T, float>) {
        out[i] = UniformFloat(x[i]);
      } else if constexpr (std::is_same_v<T, Half>) {
        const auto bits = static_cast<uint16_t>((x[i] & 0x3ff) | 15 << 10);
        out[i] = Half(Half::FromBits(bits) - 1.0f);
      } else {
        const auto bits = static_cast<uint16_t>((x[i] & 0x7f) | 127 << 7);
        out[i] = BFloat16(BFloat16::FromBits(bits) - 1.0f);
      }
    }
  }
};
template <>
struct Uniform<double> {
  static constexpr int kPerBlock = 2;
  static void Fill(const Philox::Block& x, double* out) {
    out[0] = UniformDouble(x[0], x[1]);
    out[1] = UniformDouble(x[2], x[3]);
  }
};

template <typename T>
struct Normal {
  static constexpr int kPerBlock = 4;
  static void Fill(const Philox::Block& x, T* out) {
    float values[4];
    NormalPair(x[0], x[1], values);
    NormalPair(x[2], x[3], values + 2);
    for (int i = 0; i < 4; ++i) out[i] = static_cast<T>(values[i]);
  }
};
template <>
struct Normal<double> {
  static constexpr int kPerBlock = 2;
  static void Fill(const Philox::Block& x, double* out) { NormalPair(x.data(), out); }
};

template <typename Distribution, typename T>
void FillFrom(Philox stream, absl::Span<T> out) {
  constexpr size_t kPerBlock = Distribution::kPerBlock;
  T values[kPerBlock];
  for (size_t i = 0; i < out.size(); i += kPerBlock) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) return;
    Distribution::Fill(stream.Next(), values);
    std::copy_n(values, std::min(kPerBlock, out.size() - i), out.begin() + i);
  }
}

/// Groups of outputs restart at fixed places, since how many words one takes is not known before.
template <typename T>
void FillTruncated(const Philox& base, absl::Span<T> out) {
  constexpr bool kDouble = std::is_same_v<T, double>;
  constexpr size_t kGroup = kDouble ? 2 : 4;
  constexpr double kLimit = 2;
  for (size_t g = 0; g * kGroup < out.size(); ++g) {
    if (g % kStepsBetweenLooks == 0 && Interrupted()) return;
    Philox stream = base;
    stream.Skip(g * (kDouble ? kReservedPerOutput / 2 : kReservedPerOutput));
    const size_t wanted = std::min(kGroup, out.size() - g * kGroup);
    size_t found = 0;
    const auto keep = [&](auto value) {
      if (found < wanted && std::abs(value) < kLimit) {
        out[g * kGroup + found++] = static_cast<T>(value);
      }
    };
    while (found < wanted) {
      const Philox::Block x = stream.Next();
      if constexpr (kDouble) {
        double pair[2];
        NormalPair(x.data(), pair);
        keep(pair[0]);
        keep(pair[1]);
      } else {
        for (const int i : {0, 2}) {
          float pair[2];
          NormalPair(x[i], x[i + 1], pair);
          keep(pair[0]);
          keep(pair[1]);
        }
      }
    }
  }
}

/// What the random kernels share: the stream, which goes on from run to run.
class RandomKernel : public Kernel {
 public:
  explicit RandomKernel(KernelConstruction& c) : Kernel(c), stream_(MakeStream(c)) {}

 protected:
  /// The stream's present place; passes over `blocks` for the runs to come.
  Philox Reserve(uint64_t blocks) const {
    MutexLock lock(mu_);
    const Philox stream = stream_;
    stream_.Skip(blocks);
    return stream;
  }

 private:
  static Philox MakeStream(KernelConstruction& c) {
    auto seed = static_cast<uint64_t>(c.Attr<int64_t>("seed"));
    auto seed2 = static_cast<uint64_t>(c.Attr<int64_t>("seed2"));
    if (seed == 0 && seed2 == 0) {
      std::random_device device;
      seed = uint64_t{device()} << 32 | device();
      seed2 = uint64_t{device()} << 32 | device();
    }
    return Philox(seed, seed2);
  }

  mutable Mutex mu_;
  mutable Philox stream_ ABSL_GUARDED_BY(mu_);
};

enum class Kind { kUniform, kNormal, kTruncated };

template <Kind kind>
class RandomFloats final : public RandomKernel {
 public:
  using RandomKernel::RandomKernel;
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "shape"));
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const Philox stream = Reserve(kReservedPerOutput * shape.num_elements());
    const bool known = Dispatch(out->dtype(), FloatTypes(), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (kind == Kind::kUniform) FillFrom<Uniform<T>>(stream, out->flat<T>());
      if constexpr (kind == Kind::kNormal) FillFrom<Normal<T>>(stream, out->flat<T>());
      if constexpr (kind == Kind::kTruncated) FillTruncated(stream, out->flat<T>());
    });
    return known ? OkStatus() : Unimplemented("random values of ", ToString(out->dtype()));
  }
};

class RandomInts final : public RandomKernel {
 public:
  using RandomKernel::RandomKernel;
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "shape"));
    for (const int i : {1, 2}) {
      if (ctx.input(i).rank() != 0) {
        return InvalidArgument(i == 1 ? "minval" : "maxval", " must be a scalar, found shape ",
                               ctx.input(i).shape().ToString());
      }
    }
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return OkStatus();
    if (out->dtype() == DType::kInt32) return Fill<int32_t, uint32_t>(ctx, out);
    return Fill<int64_t, uint64_t>(ctx, out);
  }

 private:
  template <typename T, typename U>
  Status Fill(KernelContext& ctx, Tensor* out) const {
    const T low = ctx.input(1).scalar<T>(), high = ctx.input(2).scalar<T>();
    if (low >= high) {
      return InvalidArgument("Need minval < maxval, got ", low, " >= ", high);
    }
    const U range = static_cast<U>(high) - static_cast<U>(low);
    Philox stream = Reserve(kReservedPerOutput * out->num_elements());
    absl::Span<T> values = out->flat<T>();
    constexpr size_t kPerBlock = sizeof(T) == 4 ? 4 : 2;
    for (size_t i = 0; i < values.size(); i += kPerBlock) {
      if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
      const Philox::Block x = stream.Next();
      for (size_t k = 0; k < kPerBlock && i + k < values.size(); ++k) {
        U word = x[k];
        if constexpr (sizeof(T) == 8) word = x[2 * k] | U{x[2 * k + 1]} << 32;
        values[i + k] = static_cast<T>(static_cast<U>(low) + word % range);
      }
    }
    return OkStatus();
  }
};

class Shuffle final : public RandomKernel {
 public:
  using RandomKernel::RandomKernel;
  Status Compute(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const int64_t rows = in.rank() == 0 ? 0 : in.dim(0);
    if (rows <= 1 || in.num_elements() == 0) {
      ctx.set_output(0, in);
      return OkStatus();
    }
    CountedVector<int64_t> order(rows);
    for (int64_t i = 0; i < rows; ++i) order[i] = i;
    Philox stream = Reserve((rows - 1 + 3) / 4);
    Philox::Block x{};
    for (int64_t i = 0; i < rows - 1; ++i) {
      if (i % kStepsBetweenLooks == 0 && Interrupted()) return OkStatus();
      if (i % 4 == 0) x = stream.Next();
      std::swap(order[i], order[i + x[i % 4] % static_cast<uint64_t>(rows - i)]);
    }
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    const int64_t row = in.num_elements() / rows;
    for (int64_t i = 0; i < rows; ++i) {
      if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
      CopyElements(in.dtype(), ElementAt(in, order[i] * row), ElementAt(*out, i * row), row);
    }
    return OkStatus();
  }
};

Status ShapeFromInput(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(PartialShape shape, c.ConstantShape(0));
  c.set_output(0, std::move(shape));
  return OkStatus();
}

}  // namespace

void RegisterRandomKernels(OpRegistry& ops) {
  const Tensor shape = Tensor::Vector({2, 3});
  const AttributeMap seeds = {{"seed", 1}, {"seed2", 2}};
  const AttributeMap floats = {{"seed", 1}, {"seed2", 2}, {"dtype", DType::kFloat}};
  for (const char* op : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    ops.Get(op).Shape(ShapeFromInput).NotDifferentiable().Example({shape}, floats);
  }
  ops.Get("RandomUniform").Kernel<RandomFloats<Kind::kUniform>>(kCpu);
  ops.Get("RandomStandardNormal").Kernel<RandomFloats<Kind::kNormal>>(kCpu);
  ops.Get("TruncatedNormal").Kernel<RandomFloats<Kind::kTruncated>>(kCpu);
  ops.Get("RandomUniformInt")
      .Shape(ShapeFromInput)
      .Kernel<RandomInts>(kCpu)
      .NotDifferentiable()
      .Example({shape, Tensor::Scalar(-3), Tensor::Scalar(5)}, seeds);
  ops.Get("RandomShuffle")
      .Shape(UnchangedShape)
      .Kernel<Shuffle>(kCpu)
      .NotDifferentiable()
      .Example({Shape{4, 2}}, seeds);
}

}  // namespace tenon
