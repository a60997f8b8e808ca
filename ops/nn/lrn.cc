// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/lrn.h"

#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/math/vector_reductions.h"
#include "ops/maths.h"
#include "ops/nn/nn_ops.h"

namespace tenon {
namespace {

using LrnTypes = TypeList<float, Half, BFloat16>;

/// What the attributes come to for a row of channels.
struct Lrn : LrnAttrs {
  /// sums[c] = the sum of what is at most radius away from terms[c]. Before and after the terms are
  /// as many zeros.
  void AddNeighbours(const float* terms, int64_t n, float* sums) const {
    using Vector = Eight<float>::Type;
    constexpr int64_t kLanes = Eight<float>::kLanes;
    int64_t c = 0;
    for (; c + kLanes <= n; c += kLanes) {
      Vector sum = {};
      for (int64_t d = -radius; d <= radius; ++d) {
        Vector term;
        std::memcpy(&term, terms + c + d, sizeof(term));
        sum += term;
      }
      std::memcpy(sums + c, &sum, sizeof(sum));
    }
    for (; c < n; ++c) {
      sums[c] = 0;
      for (int64_t d = -radius; d <= radius; ++d) sums[c] += terms[c + d];
    }
  }

  /// norms[c] = what is raised to -beta. `squares`, with room as for AddNeighbours, is overwritten.
  void Norms(const float* x, int64_t n, float* squares, float* norms) const {
    for (int64_t c = 0; c < n; ++c) squares[c] = x[c] * x[c];
    AddNeighbours(squares, n, norms);
    for (int64_t c = 0; c < n; ++c) norms[c] = bias + alpha * norms[c];
  }

  /// powers[c] = norms[c]^-beta. The exponents that networks use go by square roots.
  void Powers(const float* norms, int64_t n, float* powers) const {
    const auto each = [&](auto power) {
      TENON_SIMD
      for (int64_t c = 0; c < n; ++c) powers[c] = power(norms[c]);
    };
    if (beta == 0.5f) return each([](float x) { return 1 / std::sqrt(x); });
    if (beta == 0.75f)
      return each([](float x) { return 1 / (std::sqrt(x) * std::sqrt(std::sqrt(x))); });
    if (beta == 1) return each([](float x) { return 1 / x; });
    for (int64_t c = 0; c < n; ++c) powers[c] = std::pow(norms[c], -beta);
  }

  /// fn(first element, n, buffer) for each row, in parallel. The buffer has room for so many rows,
  /// and for twice the radius; what is not written is 0.
  template <typename Fn>
  void ForEachRow(const Tensor& x, int buffers, Fn fn) const {
    const int64_t n = x.dim(3);
    if (x.num_elements() == 0) return;
    const double cost = static_cast<double>(n) * (2 + 0.1 * static_cast<double>(radius));
    ParallelFor(x.num_elements() / n, cost, [&](int64_t begin, int64_t end) {
      CountedVector<float> buffer(buffers * n + 2 * radius);
      for (int64_t r = begin; r < end; ++r) fn(r * n, n, buffer.data());
    });
  }
};

Status LrnKernel(KernelContext& ctx, int64_t radius, float bias, float alpha, float beta) {
  const Tensor& x = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const LrnAttrs attrs, CheckLrn(x, radius, bias, alpha, beta));
  const Lrn lrn{attrs};
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
  Dispatch(x.dtype(), LrnTypes(), [&]<typename T>(T) {
    lrn.ForEachRow(x, 3, [&, radius = attrs.radius](int64_t first, int64_t n, float* buffer) {
      float *const row = buffer, *const squares = row + n + radius;
      float* const norms = squares + n + radius;
      std::copy_n(x.data<T>() + first, n, row);
      lrn.Norms(row, n, squares, norms);
      lrn.Powers(norms, n, squares);
      T* const out = y->data<T>() + first;
      for (int64_t c = 0; c < n; ++c) out[c] = static_cast<T>(row[c] * squares[c]);
    });
  });
  return OkStatus();
}

/// dx[c] = dy[c] * norm[c]^-beta - 2 alpha beta x[c] * sum of dy y / norm near c.
Status LrnGradKernel(KernelContext& ctx, int64_t radius, float bias, float alpha, float beta) {
  const Tensor &dy = ctx.input(0), &x = ctx.input(1), &y = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const LrnAttrs attrs, CheckLrn(x, radius, bias, alpha, beta));
  const Lrn lrn{attrs};
  TENON_RETURN_IF_ERROR(CheckLrnGrad(ctx));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.shape()));
  Dispatch(x.dtype(), LrnTypes(), [&]<typename T>(T) {
    lrn.ForEachRow(x, 4, [&, radius = attrs.radius](int64_t first, int64_t n, float* buffer) {
      float *const row = buffer, *const terms = row + n + radius;
      float* const norms = terms + n + radius;
      float* const sums = norms + n;
      const T *const grad = dy.data<T>() + first, *const result = y.data<T>() + first;
      std::copy_n(x.data<T>() + first, n, row);
      lrn.Norms(row, n, terms, norms);
      for (int64_t c = 0; c < n; ++c) {
        terms[c] = static_cast<float>(grad[c]) * static_cast<float>(result[c]) / norms[c];
      }
      lrn.AddNeighbours(terms, n, sums);
      lrn.Powers(norms, n, terms);
      T* const out = dx->data<T>() + first;
      for (int64_t c = 0; c < n; ++c) {
        out[c] = static_cast<T>(static_cast<float>(grad[c]) * terms[c] -
                                2 * lrn.alpha * lrn.beta * row[c] * sums[c]);
      }
    });
  });
  return OkStatus();
}

Status LrnShape(ShapeContext& c) { return c.Return(c.WithRank(0, 4)); }

}  // namespace

StatusOr<LrnAttrs> CheckLrn(const Tensor& x, int64_t radius, float bias, float alpha, float beta) {
  if (radius < 0 || radius >= std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("depth_radius is ", radius, ", wanted an int32 of at least 0");
  }
  if (x.rank() != 4) return InvalidArgument("input must be 4-dimensional: ", x.shape());
  return LrnAttrs{std::min(radius, x.dim(3)), bias, alpha, beta};
}

Status CheckLrnGrad(const KernelContext& ctx) {
  const Tensor &dy = ctx.input(0), &x = ctx.input(1), &y = ctx.input(2);
  if (dy.shape() == x.shape() && y.shape() == x.shape()) return OkStatus();
  return InvalidArgument("input_grads, input_image and output_image must have the same shape: ",
                         dy.shape(), ", ", x.shape(), " and ", y.shape());
}

void RegisterLrn(OpRegistry& ops) {
  const KernelOptions options = {.types = {{"T", DTypesOf(LrnTypes())}},
                                 .attrs = {"depth_radius", "bias", "alpha", "beta"}};
  const Shape x = {1, 1, 2, 5};
  ops.Add("LRN", LrnShape, LrnKernel, options)
      .Grad([](GradContext& g) {
        g.dx(0) = LRNGrad(g.dy(0), g.in(0), g.out(0),
                          {.depth_radius = g.Attr<int64_t>("depth_radius"),
                           .bias = g.Attr<float>("bias"),
                           .alpha = g.Attr<float>("alpha"),
                           .beta = g.Attr<float>("beta")});
      })
      .Example({x}, {{"depth_radius", 1}});
  ops.Add("LRNGrad", LrnGradKernel, options).Example({x, x, x});
}

}  // namespace tenon
