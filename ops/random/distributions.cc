// SPDX-License-Identifier: Apache-2.0
//
// Distributions that take any number of random words a value: each value has a place of its own in
// the stream.
#include <limits>
#include <unsupported/Eigen/SpecialFunctions>

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/broadcast.h"
#include "ops/broadcast_gradient.h"
#include "ops/composition.h"
#include "ops/elementwise.h"
#include "ops/random/draws.h"
#include "ops/random/random_ops.h"
#include "ops/random/stream.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

using SampledFloats = TypeList<Half, float, double>;
using SampledNumbers = TypeList<Half, float, double, int32_t, int64_t>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A drawn value as a T; what is no integer becomes the lowest of an integer type.
template <typename T>
T Stored(double value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr double kLimit = -static_cast<double>(std::numeric_limits<T>::min());
    if (!(value >= -kLimit && value < kLimit)) return std::numeric_limits<T>::min();
  }
  return static_cast<T>(value);
}

/// How many values there are of each of some distributions, whose parameters' shape is the end of
/// the output's.
struct Samples {
  int64_t each;
  int64_t distributions;
};

/// Calls `draw(d, stream)` for each value of distribution d, with its part of the stream, and
/// stores what it gives.
template <typename T, typename Draw>
void FillDraws(const Samples& samples, const Philox& place, Tensor* out, Draw draw) {
  T* const values = out->data<T>();
  ParallelFor(out->num_elements(), 150, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t d = i / samples.each;
      values[i % samples.each * samples.distributions + d] = Stored<T>(draw(d, place, i));
    }
  });
}

Philox ValuesPlace(Philox place, int64_t value, uint64_t blocks = kReservedPerOutput) {
  place.Skip(blocks * static_cast<uint64_t>(value));
  return place;
}

/// Marsaglia and Tsang's rejection of cubes of normal values ("A simple method for generating gamma
/// variables", 2000).
double DrawGamma(double alpha, Philox stream) {
  BackwardDraws<Normal<double>> normal;
  BackwardDraws<Uniform<double>> uniform;
  if (alpha == 1) return -std::log1p(-uniform.Next(stream));
  // A smaller alpha is that of alpha + 1, multiplied by a power of a uniform value.
  const double d = alpha + (alpha < 1 ? 2.0 / 3 : -1.0 / 3);
  const double c = 1.0 / 3 / std::sqrt(d);
  if (!(d > 0)) return kNan;
  while (true) {
    const double x = normal.Next(stream);
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = uniform.Next(stream);
    if (u < 1 - 0.0331 * (x * x) * (x * x) ||
        std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) {
      const double result = d * v;
      return alpha < 1 ? result * std::pow(uniform.Next(stream), 1 / alpha) : result;
    }
  }
}

/// Knuth's product of uniform values for small rates, else Hormann's transformed rejection ("The
/// transformed rejection method for generating Poisson random variables", 1993).
double DrawPoisson(double rate, Philox stream) {
  if (!std::isfinite(rate)) return rate > 0 ? rate : kNan;
  BackwardDraws<Uniform<double>> uniform;
  if (rate < 10) {
    const double enough = std::exp(-rate);
    double product = 1;
    for (double x = 0;; x += 1) {
      product *= uniform.Next(stream);
      if (product <= enough) return x;
    }
  }
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  while (true) {
    const double u = uniform.Next(stream) - 0.5, v = uniform.Next(stream);
    const double shifted = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / shifted + b) * u + rate + 0.43);
    if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (shifted < 0.013 && v > shifted)) continue;
    const double s = std::log(v * inverse_alpha / (a / (shifted * shifted) + b));
    if (s <= -rate + k * log_rate - std::lgamma(k + 1)) return k;
  }
}

/// How many geometric values fit into count.
double DrawFewOf(double count, double prob, Philox stream) {
  BackwardDraws<Uniform<double>> uniform;
  double sum = 0;
  for (double drawn = 0;; ++drawn) {
    sum += std::ceil(std::log(uniform.Next(stream)) / std::log1p(-prob));
    if (!(sum <= count)) return drawn;
  }
}

/// log k! less Stirling's approximation of it.
double StirlingTail(double k) {
  constexpr double kFirst[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                               0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                               0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                               0.00833056343336287};
  if (k <= 9) return kFirst[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/// Hormann's transformed rejection ("The generation of binomial random variates", 1993).
double DrawManyOf(double count, double prob, Philox stream) {
  BackwardDraws<Uniform<double>> uniform;
  const double deviation = std::sqrt(count * prob * (1 - prob));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * prob;
  const double c = count * prob + 0.5;
  const double limit = 0.92 - 4.2 / b;
  const double r = prob / (1 - prob);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double m = std::floor((count + 1) * prob);
  while (true) {
    const double u = uniform.Next(stream) - 0.5;
    double v = uniform.Next(stream);
    const double shifted = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / shifted + b) * u + c);
    if (shifted >= 0.07 && v <= limit) return k;
    if (k < 0 || k > count) continue;
    v = std::log(v * alpha / (a / (shifted * shifted) + b));
    const double bound = (m + 0.5) * std::log((m + 1) / (r * (count - m + 1))) +
                         (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(r * (count - k + 1) / (k + 1)) + StirlingTail(m) +
                         StirlingTail(count - m) - StirlingTail(k) - StirlingTail(count - k);
    if (v <= bound) return k;
  }
}

/// In T's arithmetic it is decided how to draw.
template <typename T>
double DrawBinomial(T count, T prob, const Philox& place, int64_t i) {
  using C = ComputeType<T>;
  const double n = static_cast<double>(count);
  if (std::isnan(n) || std::isnan(C(prob)) || (std::isinf(n) && n > 0)) return kNan;
  if (n <= 0 || C(prob) <= 0) return 0;
  if (C(prob) >= 1) return n;
  const bool rather_fails = C(prob) > C(0.5);
  const T p = rather_fails ? T(C(1) - C(prob)) : prob;
  const double q = static_cast<double>(p);
  constexpr uint64_t kFew = 42;
  const double drawn = C(T(C(count) * C(p))) >= C(10)
                           ? DrawManyOf(n, q, ValuesPlace(place, i))
                           : DrawFewOf(n, q, ValuesPlace(place, i, kFew));
  return rather_fails ? n - drawn : drawn;
}

/// The output of the ops that draw `shape` values of each distribution: shape + parameters.
StatusOr<Samples> AllocateEach(KernelContext& ctx, const Tensor& parameters, Tensor** out) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "shape"));
  const DimVector dims = Concat(shape.dims(), parameters.shape().dims());
  TENON_ASSIGN_OR_RETURN(*out, ctx.CreateOutput(0, dims));
  return Samples{shape.num_elements(), parameters.num_elements()};
}

/// Allocates the output of ops that are given its shape, which must end with that of the
/// parameters.
StatusOr<Samples> AllocateAll(KernelContext& ctx, int shape_input, const Shape& parameters,
                              Tensor** out) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(shape_input), "shape"));
  const int before = shape.rank() - parameters.rank();
  if (before < 0 || shape.dims().subspan(before) != parameters.dims()) {
    return InvalidArgument("Shape passed in must end with broadcasted shape, found ", shape,
                           " and ", parameters);
  }
  TENON_ASSIGN_OR_RETURN(*out, ctx.AllocateOutput(0, shape));
  return Samples{Product(shape.dims(), 0, before), parameters.num_elements()};
}

Status FillGamma(const Samples& samples, const Philox& place, const Tensor& alpha, Tensor* out) {
  return DispatchStatus(alpha.dtype(), SampledFloats(), [&]<typename T>(T) {
    FillDraws<T>(samples, place, out, [&](int64_t d, const Philox& p, int64_t i) {
      return DrawGamma(static_cast<double>(alpha.data<T>()[d]), ValuesPlace(p, i));
    });
  });
}

Status FillPoisson(const Samples& samples, const Philox& place, const Tensor& rate, Tensor* out) {
  return DispatchStatus(rate.dtype(), SampledNumbers(), [&]<typename R>(R) {
    Dispatch(out->dtype(), SampledNumbers(), [&]<typename T>(T) {
      FillDraws<T>(samples, place, out, [&](int64_t d, const Philox& p, int64_t i) {
        const double drawn = DrawPoisson(static_cast<double>(rate.data<R>()[d]), ValuesPlace(p, i));
        // No integer stands for infinity.
        return std::is_integral_v<T> && std::isinf(drawn) ? 0 : drawn;
      });
    });
  });
}

/// The kernel of RandomGamma and RandomPoisson, which draw from a stream.
template <auto kFill>
Status StreamKernel(KernelContext& ctx, const Stream& stream) {
  Tensor* out = nullptr;
  TENON_ASSIGN_OR_RETURN(const Samples samples, AllocateEach(ctx, ctx.input(1), &out));
  if (out->num_elements() == 0) return OkStatus();
  const Philox place = stream.Reserve(kReservedPerOutput * out->num_elements());
  return kFill(samples, place, ctx.input(1), out);
}

/// The kernel of ops that draw from seeds, or from a key and a counter; the parameters are the last
/// input.
template <auto kFill>
Status StatelessDrawsKernel(KernelContext& ctx) {
  const bool keyed = ctx.num_inputs() > 3;
  TENON_ASSIGN_OR_RETURN(const Philox place, keyed ? KeyedPlace(ctx) : SeededPlace(ctx.input(1)));
  const Tensor& parameters = ctx.input(ctx.num_inputs() - 1);
  Tensor* out = nullptr;
  TENON_ASSIGN_OR_RETURN(const Samples samples, AllocateAll(ctx, 0, parameters.shape(), &out));
  if (out->num_elements() == 0) return OkStatus();
  return kFill(samples, place, parameters, out);
}

/// `place(samples)` gives where to draw; counts are input `first`, probabilities the next one.
template <typename Place>
Status FillBinomial(KernelContext& ctx, int shape_input, int first, Place place_for) {
  const Tensor &counts = ctx.input(first), &probs = ctx.input(first + 1);
  const Shape* shapes[] = {&counts.shape(), &probs.shape()};
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast(shapes));
  Tensor* out = nullptr;
  TENON_ASSIGN_OR_RETURN(const Samples samples, AllocateAll(ctx, shape_input, plan.shape, &out));
  TENON_ASSIGN_OR_RETURN(const Philox place, place_for(samples));
  if (out->num_elements() == 0) return OkStatus();
  CountedVector<int64_t> count_of(samples.distributions), prob_of(samples.distributions);
  ForEachRun(plan, 1, [&](const int64_t* from, int64_t begin, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      count_of[begin + i] = from[0] + i * plan.inner().strides[0];
      prob_of[begin + i] = from[1] + i * plan.inner().strides[1];
    }
  });
  return DispatchStatus(counts.dtype(), SampledNumbers(), [&]<typename P>(P) {
    Dispatch(out->dtype(), SampledNumbers(), [&]<typename T>(T) {
      FillDraws<T>(samples, place, out, [&](int64_t d, const Philox& p, int64_t i) {
        return DrawBinomial<P>(counts.data<P>()[count_of[d]], probs.data<P>()[prob_of[d]], p, i);
      });
    });
  });
}

Status StatelessBinomialKernel(KernelContext& ctx) {
  return FillBinomial(ctx, 0, 2, [&](const Samples&) { return SeededPlace(ctx.input(1)); });
}

Status StatefulBinomialKernel(KernelContext& ctx, const VariableInput& state) {
  return FillBinomial(ctx, 2, 3, [&](const Samples& samples) -> StatusOr<Philox> {
    const int64_t outputs = samples.distributions * 2 * 100 * (samples.each + 3) / 4;
    return AdvanceGenerator(ctx, state, 1, outputs);
  });
}

Status EachShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape shape, c.ConstantShape(0));
  return c.Return(shape.ConcatWith(c.input(1)));
}

struct RandomGammaGradOp : Elementwise<"RandomGammaGrad", TypeList<float, double>> {
  static constexpr double kCost = 200;
  static constexpr Domain kDomain{0.5, 3};
  static auto Apply(auto alpha, auto sample) {
    return Eigen::numext::gamma_sample_der_alpha(alpha, sample);
  }
};

/// The gradient by alpha, the last input.
void GammaGrad(GradContext& g) {
  const int i = g.num_inputs() - 1;
  const Output alpha = g.in(i), sample = g.out(0);
  g.dx(i) = SumToOperand(alpha, sample, g.dy(0) * RandomGammaGrad(alpha, sample));
}

}  // namespace

void RegisterDistributions(OpRegistry& ops) {
  RegisterBinaryList(ops, TypeList<RandomGammaGradOp>());
  const AttributeMap seeds = {{"seed", 1}, {"seed2", 2}};
  const Tensor shape = Tensor::Vector({3, 2}), seed = Tensor::Vector({1, 2});
  const Tensor alpha = Tensor::Vector<float>({0.5, 12});
  ops.Add("RandomGamma", EachShape, StreamKernel<FillGamma>)
      .Grad(GammaGrad)
      .Example({shape, alpha}, seeds);
  ops.Add("StatelessRandomGammaV2", ShapeFromInput, StatelessDrawsKernel<FillGamma>)
      .Grad(GammaGrad)
      .Example({shape, seed, alpha});
  ops.Add("StatelessRandomGammaV3", ShapeFromInput, StatelessDrawsKernel<FillGamma>)
      .Grad(GammaGrad)
      .Example({shape, Tensor::Vector<uint64_t>({1}), Tensor::Vector<uint64_t>({2, 3}),
                Tensor::Scalar(kPhilox), alpha});
  ops.Add("RandomPoisson", EachShape, StreamKernel<FillPoisson>).Example({shape, alpha}, seeds);
  ops.Add("RandomPoissonV2", EachShape, StreamKernel<FillPoisson>).Example({shape, alpha}, seeds);
  ops.Add("StatelessRandomPoisson", ShapeFromInput, StatelessDrawsKernel<FillPoisson>)
      .Example({shape, seed, alpha}, {{"dtype", DType::kFloat}});
  const Tensor counts = Tensor::Vector<float>({5, 100}), probs = Tensor::Scalar(0.4f);
  ops.Add("StatelessRandomBinomial", ShapeFromInput, StatelessBinomialKernel)
      .Example({shape, seed, counts, probs});
  ops.Add(
         "StatefulRandomBinomial", [](ShapeContext& c) { return c.Return(c.ConstantShape(2)); },
         StatefulBinomialKernel)
      .NoExample("needs a variable; random_state_test covers it");
}

}  // namespace tenon
