// SPDX-License-Identifier: Apache-2.0
//
// Bit-identical to TensorFlow's: the order in which words are used, the single precision steps and
// glibc's logf, sinf and cosf all matter. This file must not be compiled with a vector library or
// relaxed floating point.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
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

enum class Kind { kUniform, kNormal, kTruncated, kUniformInt, kFullInt };

template <Kind kind>
Status Fill(const Philox& place, Tensor* out) {
  return DispatchStatus(out->dtype(), FloatTypes(), [&]<typename T>(T) {
    if constexpr (kind == Kind::kUniform) FillFrom<Uniform<T>>(place, out->flat<T>());
    if constexpr (kind == Kind::kNormal) FillFrom<Normal<ComputeType<T>>>(place, out->flat<T>());
    if constexpr (kind == Kind::kTruncated) FillTruncated(place, out->flat<T>());
  });
}

/// The words of a block as integers.
template <typename T>
auto Integers(const Philox::Block& x) {
  if constexpr (sizeof(T) == 4) {
    return x;
  } else {
    return std::array{x[0] | uint64_t{x[1]} << 32, x[2] | uint64_t{x[3]} << 32};
  }
}

using SampledInts = TypeList<int32_t, int64_t, uint32_t, uint64_t>;

template <>
Status Fill<Kind::kFullInt>(const Philox& place, Tensor* out) {
  return DispatchStatus(out->dtype(), SampledInts(),
                        [&]<typename T>(T) { FillFrom<Integers<T>>(place, out->flat<T>()); });
}

/// Integers in [minval, maxval), which are inputs `first` and `first` + 1, from what `reserve`
/// gives.
template <typename Reserve>
Status FillInts(const KernelContext& ctx, int first, Reserve reserve, Tensor* out) {
  return DispatchStatus(out->dtype(), SampledInts(), [&]<typename T>(T) -> Status {
    using U = std::make_unsigned_t<T>;
    const T low = ctx.input(first).scalar<T>(), high = ctx.input(first + 1).scalar<T>();
    if (low >= high) return InvalidArgument("Need minval < maxval, got ", low, " >= ", high);
    const U range = static_cast<U>(high) - static_cast<U>(low);
    const auto values = out->flat<T>();
    FillFrom<Integers<T>>(reserve(), values);
    for (T& value : values)
      value = static_cast<T>(static_cast<U>(low) + static_cast<U>(value) % range);
    return OkStatus();
  });
}

template <Kind kind>
Status RandomFloatsKernel(KernelContext& ctx, const Stream& stream) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "shape"));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  return Fill<kind>(stream.Reserve(kReservedPerOutput * shape.num_elements()), out);
}

Status RandomIntsKernel(KernelContext& ctx, const Stream& stream) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "shape"));
  TENON_RETURN_IF_ERROR(CheckScalars(ctx, 1, {"minval", "maxval"}));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  const uint64_t blocks = kReservedPerOutput * shape.num_elements();
  return FillInts(
      ctx, 1, [&] { return stream.Reserve(blocks); }, out);
}

/// What an op of two seeds draws from: they are mixed, so that any of their bits counts.
StatusOr<Philox> SeededPlace(const Tensor& seed) {
  if (seed.shape() != Shape{2}) {
    return InvalidArgument("seed must have shape [2], not ", seed.shape());
  }
  TENON_ASSIGN_OR_RETURN(const DimVector words, ReadIntegers(seed, "seed"));
  const Philox::Block mixed = Philox(0x02461e293ec8f720, words[0], words[1]).Next();
  return Philox(mixed[0] | uint64_t{mixed[1]} << 32, mixed[2] | uint64_t{mixed[3]} << 32);
}

/// TensorFlow's numbers of algorithms: Philox, and that the device may choose.
constexpr int kPhilox = 1, kAutomatic = 3;

/// What an op draws from that has a key, a counter and an algorithm as inputs 1 to 3.
StatusOr<Philox> KeyedPlace(const KernelContext& ctx) {
  const Tensor &key = ctx.input(1), &counter = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const int64_t alg, ReadInteger(ctx.input(3), "alg"));
  if (alg != kPhilox && alg != kAutomatic) {
    return InvalidArgument("Unsupported algorithm id: ", alg, ", wanted 1 (Philox)");
  }
  if (key.shape() != Shape{1}) return InvalidArgument("key must have shape [1], not ", key.shape());
  if (counter.rank() != 1 || counter.dim(0) < 2) {
    return InvalidArgument("counter must be a vector of 2 elements or more, not ", counter.shape());
  }
  const uint64_t* const c = counter.data<uint64_t>();
  return Philox(key.data<uint64_t>()[0], c[0], c[1]);
}

/// Of the ops whose values follow from the inputs alone: (shape, seed, ...), and the second
/// version, (shape, key, counter, alg, ...). Behind those come the bounds of integers in an
/// interval.
template <Kind kind, bool kKeyed>
Status StatelessKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "shape"));
  TENON_ASSIGN_OR_RETURN(const Philox place, kKeyed ? KeyedPlace(ctx) : SeededPlace(ctx.input(1)));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if constexpr (kind != Kind::kUniformInt) return Fill<kind>(place, out);
  constexpr int kBounds = kKeyed ? 4 : 2;
  TENON_RETURN_IF_ERROR(CheckScalars(ctx, kBounds, {"minval", "maxval"}));
  return FillInts(
      ctx, kBounds, [&] { return place; }, out);
}

/// Key and counter of a seed, and the algorithm where that is an output too.
Status KeyCounterKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const Philox place, SeededPlace(ctx.input(0)));
  ctx.set_output(0, Tensor::Vector<uint64_t>({place.key()}));
  ctx.set_output(1, Tensor::Vector<uint64_t>({0, place.seed2()}));
  if (ctx.num_outputs() > 2) ctx.set_output(2, Tensor::Scalar<int32_t>(kPhilox));
  return OkStatus();
}

Status KeyCounterShape(ShapeContext& c) {
  c.set_output(0, PartialShape{1});
  c.set_output(1, PartialShape{2});
  if (c.num_outputs() > 2) c.set_output(2, PartialShape(Shape{}));
  return OkStatus();
}

Status GetAlgKernel(KernelContext& ctx) { return ctx.Return(Tensor::Scalar<int32_t>(kPhilox)); }

/// Draws classes for each row of input 0, the logits, as many as input 1 says. `reserve` gives the
/// place for so many blocks.
template <typename Reserve>
Status DrawClasses(KernelContext& ctx, Reserve reserve) {
  const Tensor& logits = ctx.input(0);
  TENON_RETURN_IF_ERROR(CheckRank(logits, 2, "logits"));
  TENON_ASSIGN_OR_RETURN(const int64_t samples, ReadInteger(ctx.input(1), "num_samples"));
  if (samples < 0) return InvalidArgument("num_samples should be nonnegative, got ", samples);
  const int64_t rows = logits.dim(0), classes = logits.dim(1);
  if (classes < 1 && rows > 0) {
    return InvalidArgument("num_classes should be positive, got ", classes);
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {rows, samples}));
  if (out->num_elements() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(Philox place, reserve(rows, samples));
  CountedVector<double> sums(classes);
  return DispatchStatus(logits.dtype(), RealTypes(), [&]<typename T>(T) {
    Philox::Block x{};
    int64_t drawn = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const absl::Span<const T> line = logits.flat<T>().subspan(row * classes, classes);
      double highest = -std::numeric_limits<double>::max();
      for (const T& logit : line) {
        const double value = static_cast<double>(logit);
        if (std::isfinite(value)) highest = std::max(highest, value);
      }
      double sum = 0;
      for (int64_t k = 0; k < classes; ++k) {
        const double value = static_cast<double>(line[k]);
        if (std::isfinite(value)) sum += std::exp(value - highest);
        sums[k] = sum;
      }
      for (int64_t i = 0; i < samples; ++i, ++drawn) {
        if (drawn % kStepsBetweenLooks == 0 && Interrupted()) return;
        if (drawn % 2 == 0) x = place.Next();
        const double wanted = UniformOf(x[drawn % 2 * 2], x[drawn % 2 * 2 + 1]) * sum;
        const int64_t found = std::upper_bound(sums.begin(), sums.end(), wanted) - sums.begin();
        Dispatch(out->dtype(), TypeList<int32_t, int64_t>(),
                 [&]<typename I>(I) { out->data<I>()[drawn] = static_cast<I>(found); });
      }
    }
  });
}

Status MultinomialKernel(KernelContext& ctx, const Stream& stream) {
  return DrawClasses(ctx, [&](int64_t rows, int64_t samples) -> StatusOr<Philox> {
    return stream.Reserve(2 * kReservedPerOutput * rows * ((samples + 3) / 4 * 4));
  });
}

Status StatelessMultinomialKernel(KernelContext& ctx) {
  return DrawClasses(ctx, [&](int64_t, int64_t) { return SeededPlace(ctx.input(2)); });
}

Status MultinomialShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape logits, c.WithRank(0, 2));
  int64_t samples = PartialShape::kUnknownDim;
  if (c.constant(1) != nullptr) {
    TENON_ASSIGN_OR_RETURN(samples, ReadInteger(*c.constant(1), "num_samples"));
    if (samples < 0) return InvalidArgument("num_samples should be nonnegative, got ", samples);
  }
  return c.Return(PartialShape{logits.dim(0), samples});
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

/// Both versions of an op.
template <Kind kind>
void AddStateless(OpRegistry& ops, const std::string& name) {
  std::vector<ExampleInput> seeded = {Tensor::Vector({2, 3}), Tensor::Vector({1, 2})};
  std::vector<ExampleInput> keyed = {Tensor::Vector({2, 3}), Tensor::Vector<uint64_t>({1}),
                                     Tensor::Vector<uint64_t>({2, 3}), Tensor::Scalar(kPhilox)};
  if (kind == Kind::kUniformInt) {
    for (auto* inputs : {&seeded, &keyed}) {
      inputs->insert(inputs->end(), {Tensor::Scalar(-3), Tensor::Scalar(5)});
    }
  }
  AttributeMap attrs;
  if (kind == Kind::kFullInt) attrs.Set("dtype", DType::kInt64);
  ops.Add(name, ShapeFromInput, StatelessKernel<kind, false>).Example(seeded, attrs);
  ops.Add(name + "V2", ShapeFromInput, StatelessKernel<kind, true>).Example(keyed, attrs);
}

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
  AddStateless<Kind::kUniform>(ops, "StatelessRandomUniform");
  AddStateless<Kind::kNormal>(ops, "StatelessRandomNormal");
  AddStateless<Kind::kTruncated>(ops, "StatelessTruncatedNormal");
  AddStateless<Kind::kUniformInt>(ops, "StatelessRandomUniformInt");
  AddStateless<Kind::kFullInt>(ops, "StatelessRandomUniformFullInt");
  const Tensor seed = Tensor::Vector({1, 2});
  for (const char* name : {"StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg"}) {
    ops.Add(name, KeyCounterShape, KeyCounterKernel, {.cheap = true}).Example({seed});
  }
  ops.Add("StatelessRandomGetAlg", ScalarShape, GetAlgKernel, {.cheap = true}).Example({});
  ops.Add("Multinomial", MultinomialShape, MultinomialKernel)
      .Example({Shape{2, 3}, Tensor::Scalar(4)}, seeds);
  ops.Add("StatelessMultinomial", MultinomialShape, StatelessMultinomialKernel)
      .Example({Shape{2, 3}, Tensor::Scalar(4), seed});
  ops.Add("RandomShuffle", UnchangedShape, ShuffleKernel).Example({Shape{4, 2}}, seeds);
}

}  // namespace tenon
