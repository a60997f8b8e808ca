// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/strided_copy.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "ops/random/draws.h"
#include "ops/random/float_maths.h"
#include "ops/random/stream.h"

namespace tenon {
namespace {

/// Fills `out` with what `fill(words, to)` makes of one batch of blocks after the other, so many
/// values of each block; `value_ns` is a guess of what one takes.
template <int kPerBlock, typename T, typename Fill>
void FillBatches(const Philox& place, double value_ns, absl::Span<T> out, Fill fill) {
  constexpr int64_t kPerBatch = kPerBlock * Philox::kBatch;
  const auto size = static_cast<int64_t>(out.size());
  const int64_t batches = (size + kPerBatch - 1) / kPerBatch;
  ParallelFor(batches, value_ns * kPerBatch, [&](int64_t begin, int64_t end) {
    Philox stream = place;
    stream.Skip(begin * Philox::kBatch);
    Philox::Batch words;
    for (int64_t batch = begin; batch < end; ++batch) {
      if (batch % 64 == 0 && Interrupted()) return;
      stream.NextBatch(words);
      const int64_t first = batch * kPerBatch;
      if (first + kPerBatch <= size) {
        fill(words, out.data() + first);
      } else {
        T last[kPerBatch];
        fill(words, last);
        std::copy_n(last, size - first, out.data() + first);
      }
    }
  });
}

/// Guesses of what a value takes.
constexpr double kWordNs = 1.5, kNormalNs = 4, kClassNs = 5;

/// The values that `kDistribution` makes of one block after the other.
template <auto kDistribution, typename T>
void FillFrom(const Philox& place, double value_ns, absl::Span<T> out) {
  constexpr int kPerBlock = std::tuple_size_v<decltype(kDistribution(Philox::Block()))>;
  FillBatches<kPerBlock>(place, value_ns, out, [](const Philox::Batch& words, T* to) {
    TENON_SIMD
    for (int b = 0; b < Philox::kBatch; ++b) {
      const auto values = kDistribution({words[0][b], words[1][b], words[2][b], words[3][b]});
      for (int k = 0; k < kPerBlock; ++k) to[b * kPerBlock + k] = static_cast<T>(values[k]);
    }
  });
}

/// The values of Normal<float> for each block, in loops that compilers make vectors of.
void Normals(const Philox::Batch& words, float* to) {
  constexpr int kBlocks = Philox::kBatch;
  float radius[kBlocks], angle[kBlocks], sine[kBlocks], cosine[kBlocks];
  for (const int k : {0, 2}) {
    TENON_SIMD
    for (int b = 0; b < kBlocks; ++b) {
      radius[b] = std::max(UniformOf<float>(words[k][b]), 1.0e-7f);
      angle[b] = static_cast<float>(2 * std::numbers::pi * UniformOf<float>(words[k + 1][b]));
    }
    TENON_SIMD
    for (int b = 0; b < kBlocks; ++b) radius[b] = float_maths::LogOf(radius[b]);
    TENON_SIMD
    for (int b = 0; b < kBlocks; ++b) sine[b] = float_maths::SinOrCosOf(angle[b], 0);
    TENON_SIMD
    for (int b = 0; b < kBlocks; ++b) cosine[b] = float_maths::SinOrCosOf(angle[b], 1);
    TENON_SIMD
    for (int b = 0; b < kBlocks; ++b) {
      const float r = std::sqrt(-2.0f * radius[b]);
      to[4 * b + k] = sine[b] * r;
      to[4 * b + k + 1] = cosine[b] * r;
    }
  }
}

template <typename T>
void FillNormal(const Philox& place, absl::Span<T> out) {
  if constexpr (std::is_same_v<T, double>) {
    FillFrom<Normal<double>>(place, 10 * kNormalNs, out);
  } else {
    FillBatches<4>(place, kNormalNs, out, [](const Philox::Batch& words, T* to) {
      float values[4 * Philox::kBatch];
      Normals(words, values);
      std::transform(std::begin(values), std::end(values), to, [](float v) { return T(v); });
    });
  }
}

template <typename T>
void FillTruncated(const Philox& base, absl::Span<T> out) {
  constexpr int64_t kGroup = kTruncatedGroup<T>;
  constexpr double kGroupNs = 100;
  const auto size = static_cast<int64_t>(out.size());
  ParallelFor((size + kGroup - 1) / kGroup, kGroupNs, [&](int64_t begin, int64_t last) {
    for (int64_t g = begin; g < last; ++g) {
      if (g % kStepsBetweenLooks == 0 && Interrupted()) return;
      Philox stream = base;
      stream.Skip(g * kReservedPerOutput * kGroup / 4);
      const int64_t end = std::min((g + 1) * kGroup, size);
      for (int64_t i = g * kGroup; i < end;) {
        for (const auto value : Normal<ComputeType<T>>(stream.Next())) {
          if (i < end && std::abs(value) < kTruncatedLimit) out[i++] = static_cast<T>(value);
        }
      }
    }
  });
}

enum class Kind { kUniform, kNormal, kTruncated, kUniformInt, kFullInt };

template <Kind kind>
Status Fill(const Philox& place, Tensor* out) {
  return DispatchStatus(out->dtype(), FloatTypes(), [&]<typename T>(T) {
    if constexpr (kind == Kind::kUniform) FillFrom<Uniform<T>>(place, kWordNs, out->flat<T>());
    if constexpr (kind == Kind::kNormal) FillNormal(place, out->flat<T>());
    if constexpr (kind == Kind::kTruncated) FillTruncated(place, out->flat<T>());
  });
}

using SampledInts = TypeList<int32_t, int64_t, uint32_t, uint64_t>;

template <>
Status Fill<Kind::kFullInt>(const Philox& place, Tensor* out) {
  return DispatchStatus(out->dtype(), SampledInts(), [&]<typename T>(T) {
    FillFrom<Integers<T>>(place, kWordNs, out->flat<T>());
  });
}

/// Integers in [minval, maxval), which are inputs `first` and `first` + 1, from what `reserve`
/// gives.
template <typename Reserve>
Status FillInts(const KernelContext& ctx, int first, Reserve reserve, Tensor* out) {
  return DispatchStatus(out->dtype(), SampledInts(), [&]<typename T>(T) -> Status {
    using U = std::make_unsigned_t<T>;
    const T low = ctx.input(first).scalar<T>(), high = ctx.input(first + 1).scalar<T>();
    TENON_RETURN_IF_ERROR(CheckOrder(low, high));
    const auto values = out->flat<T>();
    TENON_ASSIGN_OR_RETURN(const Philox place, reserve());
    FillFrom<Integers<T>>(place, kWordNs, values);
    for (T& value : values) value = IntegerBetween(low, high, static_cast<U>(value));
    return OkStatus();
  });
}

template <Kind kind>
Status RandomFloatsKernel(KernelContext& ctx, const Shape& shape, const Stream& stream) {
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  return Fill<kind>(stream.Reserve(kReservedPerOutput * shape.num_elements()), out);
}

Status RandomIntsKernel(KernelContext& ctx, const Shape& shape, const Stream& stream) {
  TENON_RETURN_IF_ERROR(CheckBounds(ctx, 1));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  const uint64_t blocks = kReservedPerOutput * shape.num_elements();
  return FillInts(
      ctx, 1, [&]() -> StatusOr<Philox> { return stream.Reserve(blocks); }, out);
}

/// The kernel of ops whose values follow from the inputs alone: (shape, seed, ...), and the second
/// version, (shape, key, counter, alg, ...). Behind those come the bounds of integers in an
/// interval.
template <Kind kind, bool kKeyed>
Status StatelessKernel(KernelContext& ctx, const Shape& shape) {
  TENON_ASSIGN_OR_RETURN(const Philox place, kKeyed ? KeyedPlace(ctx) : SeededPlace(ctx.input(1)));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if constexpr (kind != Kind::kUniformInt) return Fill<kind>(place, out);
  constexpr int kBounds = kKeyed ? 4 : 2;
  TENON_RETURN_IF_ERROR(CheckBounds(ctx, kBounds));
  return FillInts(
      ctx, kBounds, [&]() -> StatusOr<Philox> { return place; }, out);
}

/// The kernel of ops whose generator is a variable: (resource, algorithm, shape, ...). The first
/// version of one op has no algorithm: it stands in the variable.
template <Kind kind, bool kAlgInState>
Status StatefulKernel(KernelContext& ctx, const VariableInput& state) {
  constexpr int kShape = kAlgInState ? 1 : 2, kAlg = kAlgInState ? -1 : 1;
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(kShape), "shape"));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  const auto advance = [&] { return AdvanceGenerator(ctx, state, kAlg, shape.num_elements()); };
  if constexpr (kind == Kind::kUniformInt) {
    TENON_RETURN_IF_ERROR(CheckBounds(ctx, 3));
    return FillInts(ctx, 3, advance, out);
  } else {
    TENON_ASSIGN_OR_RETURN(const Philox place, advance());
    return Fill<kind>(place, out);
  }
}

template <int kInput>
Status ShapeFrom(ShapeContext& c) {
  return c.Return(c.ConstantShape(kInput));
}

/// RngReadAndSkip gives the state as it was.
Status SkipKernel(KernelContext& ctx, const VariableInput& state) {
  for (const int i : {1, 2}) {
    if (ctx.input(i).rank() == 0) continue;
    return InvalidArgument(i == 1 ? "algorithm" : "delta", " must have shape [], not ",
                           ctx.input(i).shape());
  }
  const Tensor& delta = ctx.input(2);
  const uint64_t outputs = delta.dtype() == DType::kUInt64
                               ? delta.scalar<uint64_t>()
                               : static_cast<uint64_t>(delta.scalar<int64_t>());
  TENON_ASSIGN_OR_RETURN(const Philox place, AdvanceGenerator(ctx, state, 1, outputs));
  if (ctx.num_outputs() == 0) return OkStatus();
  return ctx.Return(Tensor::Vector<int64_t>({static_cast<int64_t>(place.low()),
                                             static_cast<int64_t>(place.seed2()),
                                             static_cast<int64_t>(place.key())}));
}

Status ReadAndSkipShape(ShapeContext& c) { return c.Return(PartialShape{3}); }

Status NonDeterministicIntsKernel(KernelContext& ctx, const Shape& shape) {
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  return Fill<Kind::kFullInt>(Philox::FromSeeds(0, 0), out);
}

/// Key and counter of a seed, and the algorithm where that is an output too.
Status KeyCounterKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const Philox place, SeededPlace(ctx.input(0)));
  ctx.set_output(0, Tensor::Vector<uint64_t>({place.key()}));
  ctx.set_output(1, Tensor::Vector<uint64_t>({0, place.seed2()}));
  if (ctx.num_outputs() > 2) ctx.set_output(2, Tensor::Scalar<int32_t>(kPhilox));
  return OkStatus();
}

Status GetAlgKernel(KernelContext& ctx) { return ctx.Return(Tensor::Scalar<int32_t>(kPhilox)); }

/// Draws classes for each row of input 0, the logits, as many as input 1 says. `reserve` gives the
/// place for so many blocks.
template <typename Reserve>
Status DrawClasses(KernelContext& ctx, Reserve reserve) {
  const Tensor& logits = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const int64_t samples, CheckClasses(ctx));
  const int64_t rows = logits.dim(0), classes = logits.dim(1);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {rows, samples}));
  if (out->num_elements() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const Philox place, reserve(rows, samples));
  const double cost = kClassNs * static_cast<double>(classes) + 20 * static_cast<double>(samples);
  const auto draw = [&]<typename T>(int64_t begin, int64_t end, T) {
    CountedVector<double> sums(classes);
    // Two draws are made of a block.
    int64_t drawn = begin * samples;
    Philox stream = place;
    stream.Skip(drawn / 2);
    Philox::Block x = drawn % 2 == 0 ? Philox::Block() : stream.Next();
    for (int64_t row = begin; row < end; ++row) {
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
        if (drawn % 2 == 0) x = stream.Next();
        const double wanted = UniformOf(x[drawn % 2 * 2], x[drawn % 2 * 2 + 1]) * sum;
        const int64_t found = std::upper_bound(sums.begin(), sums.end(), wanted) - sums.begin();
        Dispatch(out->dtype(), TypeList<int32_t, int64_t>(),
                 [&]<typename I>(I) { out->data<I>()[drawn] = static_cast<I>(found); });
      }
    }
  };
  return DispatchStatus(logits.dtype(), RealTypes(), [&]<typename T>(T zero) {
    ParallelFor(rows, cost, [&](int64_t begin, int64_t end) { draw(begin, end, zero); });
  });
}

Status MultinomialKernel(KernelContext& ctx, const Stream& stream) {
  return DrawClasses(ctx, [&](int64_t rows, int64_t samples) -> StatusOr<Philox> {
    return stream.Reserve(BlocksOfClasses(rows, samples));
  });
}

Status StatelessMultinomialKernel(KernelContext& ctx) {
  return DrawClasses(ctx, [&](int64_t, int64_t) { return SeededPlace(ctx.input(2)); });
}

/// `place` gives where to draw so many words.
template <typename Place>
Status Shuffle(KernelContext& ctx, Place place) {
  const Tensor& in = ctx.input(0);
  const int64_t rows = in.rank() == 0 ? 0 : in.dim(0);
  if (rows <= 1 || in.num_elements() == 0) return ctx.Return(in);
  CountedVector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  WordDraws draws(place(rows - 1));
  for (int64_t i = 0; i < rows - 1; ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) return OkStatus();
    std::swap(order[i], order[i + draws.Word() % static_cast<uint64_t>(rows - i)]);
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  const int64_t row = in.num_elements() / rows;
  for (int64_t i = 0; i < rows; ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
    CopyElements(in, order[i] * row, out, i * row, row);
  }
  return OkStatus();
}

Status ShuffleKernel(KernelContext& ctx, const Stream& stream) {
  return Shuffle(ctx, [&](uint64_t words) { return stream.Reserve((words + 3) / 4); });
}

Status StatelessShuffleKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const Philox place, KeyedPlace(ctx));
  return Shuffle(ctx, [&](uint64_t) { return place; });
}

/// A box of the size that input 1 gives, somewhere in input 0.
Status RandomCropKernel(KernelContext& ctx, const Tensor& image, const Stream& stream) {
  TENON_ASSIGN_OR_RETURN(const DimVector size, ReadIntegerVector(ctx.input(1), "size", 2));
  DimVector box = {size[0], size[1], image.dim(2)};
  for (int i = 0; i < 2; ++i) {
    if (size[i] >= 0 && size[i] <= image.dim(i)) continue;
    return InvalidArgument("size must be in [0, ", image.dim(i), "], found ", size[i]);
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, box));
  DimVector begin = {0, 0, 0};
  if (box[0] != image.dim(0) || box[1] != image.dim(1)) {
    Philox place = stream.Reserve(1);
    const Philox::Block words = place.Next();
    for (int i = 0; i < 2; ++i) begin[i] = words[i] % (image.dim(i) - box[i] + 1);
  }
  StridedCopy(image, BoxView(image.shape().dims(), begin), out, {0, StridesOf(box)}, box);
  return OkStatus();
}

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
    ops.Add(name, KeyCounterKernel, {.cheap = true}).Example({seed});
  }
  ops.Add("StatelessRandomGetAlg", ScalarShape, GetAlgKernel, {.cheap = true, .memory = kAnyMemory})
      .Example({});
  ops.Add("Multinomial", MultinomialKernel).Example({Shape{2, 3}, Tensor::Scalar(4)}, seeds);
  ops.Add("StatelessMultinomial", StatelessMultinomialKernel)
      .Example({Shape{2, 3}, Tensor::Scalar(4), seed});
  ops.Add("RandomShuffle", UnchangedShape, ShuffleKernel).Example({Shape{4, 2}}, seeds);
  ops.Add("StatelessShuffle", UnchangedShape, StatelessShuffleKernel)
      .Example({Shape{4, 2}, Tensor::Vector<uint64_t>({1}), Tensor::Vector<uint64_t>({2, 3}),
                Tensor::Scalar(kPhilox)});
  ops.Add("RandomCrop", RandomCropKernel)
      .Example({Shape{4, 5, 2}, Tensor::Vector<int64_t>({2, 3})}, seeds);
  const auto stateful = [&ops](std::string_view name, ShapeFn infer, auto kernel) {
    ops.Add(name, infer, kernel).NoExample("needs a variable; random_state_test covers it");
  };
  stateful("StatefulUniform", ShapeFrom<2>, StatefulKernel<Kind::kUniform, false>);
  stateful("StatefulStandardNormal", ShapeFrom<1>, StatefulKernel<Kind::kNormal, true>);
  stateful("StatefulStandardNormalV2", ShapeFrom<2>, StatefulKernel<Kind::kNormal, false>);
  stateful("StatefulTruncatedNormal", ShapeFrom<2>, StatefulKernel<Kind::kTruncated, false>);
  stateful("StatefulUniformInt", ShapeFrom<2>, StatefulKernel<Kind::kUniformInt, false>);
  stateful("StatefulUniformFullInt", ShapeFrom<2>, StatefulKernel<Kind::kFullInt, false>);
  stateful("RngSkip", NoOutputShape, SkipKernel);
  stateful("RngReadAndSkip", ReadAndSkipShape, SkipKernel);
  ops.Add("NonDeterministicInts", ShapeFromInput, NonDeterministicIntsKernel)
      .Example({shape}, {{"dtype", DType::kInt64}});
}

}  // namespace tenon
