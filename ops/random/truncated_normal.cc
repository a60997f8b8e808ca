// SPDX-License-Identifier: Apache-2.0
//
// Normal values between bounds, by the rejection that suits the bounds (Robert: "Simulation of
// truncated normal variables", 1995).
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/maths.h"
#include "ops/random/draws.h"
#include "ops/random/stream.h"

namespace tenon {
namespace {

constexpr int64_t kMaxTries = 1000;

template <typename C>
struct Bounds {
  C mean, deviation, min, max;
};

/// Draws values for `out` from `place` on, which goes on, with the arithmetic of T.
template <typename T>
Status DrawBetween(Bounds<T> b, Philox& place, absl::Span<T> out) {
  const bool bounded = std::isfinite(b.min) || std::isfinite(b.max);
  if (!(b.deviation > 0 && b.min < b.max && bounded)) {
    return InvalidArgument("Invalid parameters: standard deviation ", b.deviation, ", bounds ",
                           b.min, " and ", b.max);
  }
  if ((std::isinf(b.min) && b.min < 0) || b.max < b.mean) {
    std::swap(b.min, b.max);
    b.deviation = -b.deviation;
  }
  const T low = (b.min - b.mean) / b.deviation, high = (b.max - b.mean) / b.deviation;
  const T root = std::sqrt(low * low + T(4));
  const T cutoff = T(2) * std::exp(T(0.5) + (low * (low - root)) / T(4)) / (low + root);
  const T range = high - low;
  size_t filled = 0;
  int64_t tries = 0;
  const auto accept = [&](T value) {
    out[filled++] = value * b.deviation + b.mean;
    tries = 0;
  };
  const auto tried = [&] { return ++tries > kMaxTries; };
  const Status failed = InvalidArgument("no value between ", b.min, " and ", b.max, " with mean ",
                                        b.mean, " and standard deviation ", b.deviation,
                                        " was found in ", kMaxTries, " tries");
  constexpr T kWide = T(1.3);
  if ((low < -kWide && high >= 0) || (high > kWide && low <= 0)) {
    while (filled < out.size()) {
      for (const T value : Normal<T>(place.Next())) {
        if (filled == out.size()) break;
        if (value >= low && value <= high) {
          accept(value);
        } else if (tried()) {
          return failed;
        }
      }
    }
  } else if (range < cutoff) {
    const T plus = low < 0 ? T(0) : low * low;
    while (filled < out.size()) {
      const auto values = Uniform<T>(place.Next()), uniform = Uniform<T>(place.Next());
      for (size_t i = 0; i < values.size() && filled < out.size(); ++i) {
        const T value = values[i] * range + low;
        if (uniform[i] <= std::exp((plus - value * value) / T(2))) {
          accept(value);
        } else if (tried()) {
          return failed;
        }
      }
    }
  } else {
    const T alpha = (low + std::sqrt(low * low + T(4))) / T(2);
    while (filled < out.size()) {
      const auto values = Uniform<T>(place.Next());
      for (size_t i = 0; i < values.size() && filled < out.size(); i += 2) {
        const T value = -std::log(values[i]) / alpha + low;
        const T x = low < alpha ? alpha - value : low - alpha;
        if (values[i + 1] <= std::exp(-x * x / T(2)) && value < high) {
          accept(value);
        } else if (tried()) {
          return failed;
        }
      }
    }
  }
  return OkStatus();
}

Status ParameterizedTruncatedNormalKernel(KernelContext& ctx, const Stream& stream) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "shape"));
  if (shape.rank() < 1) return InvalidArgument("shape must not be that of a scalar");
  int64_t batches = shape.dim(0);
  bool vectors = false;
  constexpr const char* kNames[] = {"means", "stdevs", "minvals", "maxvals"};
  for (int i = 0; i < 4; ++i) {
    const Tensor& t = ctx.input(i + 1);
    vectors |= i < 2 ? t.rank() > 0 && t.num_elements() != 1 : t.rank() > 0;
    if (t.rank() == 0 || (t.rank() == 1 && (t.dim(0) == 1 || t.dim(0) == batches))) continue;
    return InvalidArgument("Input ", kNames[i],
                           " should have length 1 or shape[0], got shape: ", t.shape());
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  const int64_t n = shape.num_elements();
  if (n == 0) return OkStatus();
  int64_t each = n / batches;
  if (!vectors) {
    // One distribution: TensorFlow divides it into parts of this size.
    each = 100;
    batches = (n + each - 1) / each;
  }
  Philox place = stream.Reserve(batches * 2 * kMaxTries * (each + 3) / 4);
  return DispatchStatus(out->dtype(), TypeList<float, double>(), [&]<typename T>(T) -> Status {
    const auto parameter = [&](int i, int64_t batch) {
      const Tensor& t = ctx.input(i);
      return t.data<T>()[t.num_elements() == 1 ? 0 : batch];
    };
    for (int64_t batch = 0; batch < batches && !Interrupted(); ++batch) {
      const Bounds<T> bounds{parameter(1, batch), parameter(2, batch), parameter(3, batch),
                             parameter(4, batch)};
      TENON_RETURN_IF_ERROR(
          DrawBetween<T>(bounds, place, out->flat<T>().subspan(batch * each, each)));
    }
    return OkStatus();
  });
}

}  // namespace

void RegisterTruncatedNormal(OpRegistry& ops) {
  ops.Add("ParameterizedTruncatedNormal", ShapeFromInput, ParameterizedTruncatedNormalKernel,
          {.types = {{"dtype", {DType::kFloat, DType::kDouble}}}})
      .Example({Tensor::Vector({2, 3}), Tensor::Scalar(0.0f), Tensor::Scalar(1.0f),
                Tensor::Scalar(-2.0f), Tensor::Scalar(1.0f)},
               {{"seed", 1}, {"seed2", 2}});
}

}  // namespace tenon
