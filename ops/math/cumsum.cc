// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/math/columns.h"
#include "ops/math/math_ops.h"
#include "ops/maths.h"

namespace tenon {
namespace {

// What a scan begins with and how it goes on.

struct ScanSum {
  using Types = NumericTypes;
  template <typename T>
  static T Start() {
    return T(0);
  }
  static auto Next(auto sum, auto x) { return Plus(sum, x); }
};

struct ScanProduct {
  using Types = NumericTypes;
  template <typename T>
  static T Start() {
    return T(1);
  }
  static auto Next(auto product, auto x) { return Times(product, x); }
};

struct ScanLogSumExp {
  using Types = FloatTypes;
  template <typename T>
  static T Start() {
    return -std::numeric_limits<T>::infinity();
  }
  template <typename T>
  static T Next(T log_sum, T x) {
    // As in TensorFlow NaN does not win over the sum so far.
    const T low = x < log_sum ? x : log_sum, high = log_sum < x ? x : log_sum;
    // The sum of nothing but zeros, whose logarithms must not be subtracted.
    if (high < std::numeric_limits<T>::lowest()) return high;
    return Log1p(Exp(low - high)) + high;
  }
};

template <typename Scan, typename T>
void ScanLine(const T* x, T* out, int64_t n, bool exclusive, bool reverse) {
  using C = ComputeType<T>;
  C sum = Scan::template Start<C>();
  SerialFor(n, 2, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t at = reverse ? n - 1 - k : k;
      const C before = sum;
      sum = Scan::Next(sum, C(x[at]));
      out[at] = T(exclusive ? before : sum);
    }
  });
}

/// Columns that are scanned side by side: what lies together is read together.
constexpr int64_t kScanColumns = 256;

/// ScanLine of `columns` <= kScanColumns lines that begin beside each other.
template <typename Scan, typename T>
void ScanBlock(const T* x, T* out, int64_t n, int64_t stride, int64_t columns, bool exclusive,
               bool reverse) {
  using C = ComputeType<T>;
  C sums[kScanColumns];
  std::fill_n(sums, columns, Scan::template Start<C>());
  SerialFor(n, 2.0 * static_cast<double>(columns), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t at = (reverse ? n - 1 - k : k) * stride;
      const T* const from = x + at;
      T* const to = out + at;
      TENON_SIMD
      for (int64_t j = 0; j < columns; ++j) {
        const C before = sums[j];
        sums[j] = Scan::Next(before, C(from[j]));
        to[j] = T(exclusive ? before : sums[j]);
      }
    }
  });
}

template <typename Scan>
Status ScanKernel(KernelContext& ctx, const Tensor& x, bool exclusive, bool reverse) {
  TENON_ASSIGN_OR_RETURN(const int axis, ReadAxis(ctx.input(1), x.rank(), "scan axis"));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, x.shape()));
  if (x.num_elements() == 0) return OkStatus();
  const int64_t n = x.dim(axis);
  const int64_t inner = Product(x.shape().dims(), axis + 1, x.rank());
  const int64_t outer = x.num_elements() / n / inner;
  const int64_t width = ColumnsOfItem(outer, inner, kScanColumns);
  const int64_t blocks = (inner + width - 1) / width, items = outer * blocks;
  return DispatchStatus(x.dtype(), typename Scan::Types(), [&]<typename T>(T) {
    ParallelFor(items, 2.0 * static_cast<double>(n * width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i % blocks * width;
        const T* const from = x.data<T>() + i / blocks * n * inner + column;
        T* const to = out->data<T>() + i / blocks * n * inner + column;
        if (inner == 1) {
          ScanLine<Scan>(from, to, n, exclusive, reverse);
        } else {
          ScanBlock<Scan>(from, to, n, inner, std::min(width, inner - column), exclusive, reverse);
        }
      }
    });
  });
}

Status ScanShape(ShapeContext& c) {
  TENON_RETURN_IF_ERROR(ReadAxis(c, 1, c.input(0).rank(), "scan axis"));
  return UnchangedShape(c);
}

void CumsumGrad(GradContext& g) {
  g.dx(0) = Cumsum(g.dy(0), g.in(1),
                   {.exclusive = g.Attr("exclusive", false), .reverse = !g.Attr("reverse", false)});
}

/// What came after each element, times that product without the element itself.
void CumprodGrad(GradContext& g) {
  const bool exclusive = g.Attr("exclusive", false), reverse = g.Attr("reverse", false);
  const Output sums =
      Cumsum(g.out(0) * g.dy(0), g.in(1), {.exclusive = exclusive, .reverse = !reverse});
  g.dx(0) = DivNoNan(sums, g.in(0));
}

/// x's part in each sum, times dy, in logarithms: of what is positive and of what is negative
/// apart.
void CumulativeLogsumexpGrad(GradContext& g) {
  const bool exclusive = g.Attr("exclusive", false), reverse = g.Attr("reverse", false);
  const auto sum = [&](const Output& dy) {
    const Output part = Log(Maximum(dy, Const(0, {.dtype = dy.dtype()}))) - g.out(0);
    return Exp(g.in(0) +
               CumulativeLogsumexp(part, g.in(1), {.exclusive = exclusive, .reverse = !reverse}));
  };
  g.dx(0) = sum(g.dy(0)) - sum(-g.dy(0));
}

template <typename Scan>
OpBuilder AddScan(OpRegistry& ops, std::string_view name) {
  return ops
      .Add(name, ScanShape, ScanKernel<Scan>,
           {.types = {{"T", DTypesOf(typename Scan::Types())}}, .attrs = {"exclusive", "reverse"}})
      .Example({Shape{2, 3}, Tensor::Scalar<int32_t>(-1)})
      .Example({Shape{2, 3}, Tensor::Scalar<int64_t>(0)}, {{"reverse", true}});
}

}  // namespace

void RegisterScans(OpRegistry& ops) {
  // The logarithm of nothing, -infinity, has no differences to compare its gradient with.
  const AttributeMap both = {{"exclusive", true}, {"reverse", true}};
  AddScan<ScanSum>(ops, "Cumsum")
      .Grad(CumsumGrad)
      .Example({Shape{2, 3}, Tensor::Scalar<int64_t>(0)}, both);
  AddScan<ScanProduct>(ops, "Cumprod")
      .InDomain(0.3, 2)
      .Grad(CumprodGrad)
      .Example({Shape{2, 3}, Tensor::Scalar<int64_t>(0)}, both);
  AddScan<ScanLogSumExp>(ops, "CumulativeLogsumexp").Grad(CumulativeLogsumexpGrad);
}

}  // namespace tenon
