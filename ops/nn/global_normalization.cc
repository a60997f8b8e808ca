// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/maths.h"
#include "ops/nn/nn_ops.h"

// Normalisation as the earliest graphs have it: the mean and the variance are inputs.

namespace tenon {
namespace {

using GlobalNormTypes = TypeList<float, double, Half>;

constexpr double kNormNs = 1;

/// That the image is of rank 4 and the other inputs, but for `grad`, have an element for each
/// channel.
Status CheckNormInputs(const KernelContext& ctx, int grad) {
  const Tensor& x = ctx.input(0);
  for (int i = 1; i < 5; ++i) {
    const Shape& shape = ctx.input(i).shape();
    if (i == grad ? shape == x.shape() : shape == Shape{x.dim(3)}) continue;
    return InvalidArgument("input ", i, " has shape ", shape, ", which does not fit ", x.shape());
  }
  return OkStatus();
}

/// For each channel 1 / sqrt(variance + epsilon), and times gamma if so wished.
template <typename T, typename C = ComputeType<T>>
CountedVector<C> Factors(const Tensor& variance, float epsilon, const Tensor* gamma) {
  CountedVector<C> factors(variance.num_elements());
  for (size_t c = 0; c < factors.size(); ++c) {
    factors[c] = 1 / std::sqrt(static_cast<C>(variance.data<T>()[c]) + static_cast<C>(epsilon));
    if (gamma != nullptr) factors[c] *= static_cast<C>(gamma->data<T>()[c]);
  }
  return factors;
}

Status GlobalNormKernel(KernelContext& ctx, float epsilon, bool scaled) {
  TENON_RETURN_IF_ERROR(CheckNormInputs(ctx, -1));
  const Tensor &x = ctx.input(0), &mean = ctx.input(1), &variance = ctx.input(2);
  const Tensor &beta = ctx.input(3), &gamma = ctx.input(4);
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
  if (x.num_elements() == 0) return OkStatus();
  Dispatch(x.dtype(), GlobalNormTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const int64_t n = x.dim(3);
    const CountedVector<C> factors = Factors<T>(variance, epsilon, scaled ? &gamma : nullptr);
    const T *const means = mean.data<T>(), *const offsets = beta.data<T>();
    const double cost = kNormNs * static_cast<double>(n);
    ParallelFor(x.num_elements() / n, cost, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* const from = x.data<T>() + r * n;
        T* const to = y->data<T>() + r * n;
        for (int64_t c = 0; c < n; ++c) {
          const C centred = static_cast<C>(from[c]) - static_cast<C>(means[c]);
          to[c] = static_cast<T>(centred * factors[c] + static_cast<C>(offsets[c]));
        }
      }
    });
  });
  return OkStatus();
}

Status GlobalNormGradKernel(KernelContext& ctx, float epsilon, bool scaled) {
  TENON_RETURN_IF_ERROR(CheckNormInputs(ctx, 4));
  const Tensor &x = ctx.input(0), &mean = ctx.input(1), &variance = ctx.input(2);
  const Tensor &gamma = ctx.input(3), &dy = ctx.input(4);
  Tensor* outputs[5];
  for (int i = 0; i < 5; ++i) {
    TENON_ASSIGN_OR_RETURN(outputs[i], ctx.AllocateOutput(i, i == 0 ? x.shape() : mean.shape()));
  }
  const int64_t n = x.dim(3), rows = n == 0 ? 0 : x.num_elements() / n;
  Dispatch(x.dtype(), GlobalNormTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const CountedVector<C> inverses = Factors<T>(variance, epsilon, nullptr);
    const CountedVector<C> factors = Factors<T>(variance, epsilon, scaled ? &gamma : nullptr);
    // The sums over each channel of dy and of dy * (x - mean).
    CountedVector<double> sums(n), products(n);
    SerialFor(rows, 2 * kNormNs * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * n; i < end * n; ++i) {
        const int64_t c = i % n;
        const C grad = static_cast<C>(dy.data<T>()[i]);
        outputs[0]->data<T>()[i] = static_cast<T>(grad * factors[c]);
        sums[c] += grad;
        products[c] += grad * (static_cast<C>(x.data<T>()[i]) - static_cast<C>(mean.data<T>()[c]));
      }
    });
    for (int64_t c = 0; c < n; ++c) {
      const double inverse = inverses[c], factor = factors[c];
      outputs[1]->data<T>()[c] = T(-sums[c] * factor);
      outputs[2]->data<T>()[c] = T(products[c] * factor * inverse * inverse / -2);
      outputs[3]->data<T>()[c] = T(sums[c]);
      outputs[4]->data<T>()[c] = T(scaled ? products[c] * inverse : 0);
    }
  });
  return OkStatus();
}

}  // namespace

void RegisterGlobalNormalization(OpRegistry& ops) {
  const KernelOptions options = {.types = {{"T", DTypesOf(GlobalNormTypes())}},
                                 .attrs = {"variance_epsilon", "scale_after_normalization"}};
  const Shape x = {1, 2, 2, 3}, c = {3};
  OpBuilder norm = ops.Add("BatchNormWithGlobalNormalization", GlobalNormKernel, options);
  norm.InDomain(0.5, 2).Grad([](GradContext& g) {
    const auto grads = BatchNormWithGlobalNormalizationGrad(
        g.in(0), g.in(1), g.in(2), g.in(4), g.dy(0), g.Attr<float>("variance_epsilon"),
        g.Attr<bool>("scale_after_normalization"));
    g.dx(0) = grads.dx;
    g.dx(1) = grads.dm;
    g.dx(2) = grads.dv;
    g.dx(3) = grads.db;
    g.dx(4) = grads.dg;
  });
  OpBuilder grad = ops.Add("BatchNormWithGlobalNormalizationGrad", GlobalNormGradKernel, options);
  grad.InDomain(0.5, 2);
  for (const bool scaled : {true, false}) {
    const AttributeMap attrs = {{"variance_epsilon", 0.5f}, {"scale_after_normalization", scaled}};
    norm.Example({x, c, c, c, c}, attrs);
    grad.Example({x, c, c, c, x}, attrs);
  }
}

}  // namespace tenon
