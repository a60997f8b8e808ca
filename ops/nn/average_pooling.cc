// SPDX-License-Identifier: Apache-2.0
#include "core/interruption.h"
#include "core/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/nn/nn_ops.h"
#include "ops/nn/pooling.h"

namespace tenon {
namespace {

StatusOr<Pooling> MakeAveraging(const Windows& w, const Shape& input) {
  if (w.ksize[w.channel_axis()] == 1) return MakePooling(w, input);
  return InvalidArgument("averages along channels are not supported: ksize is [",
                         Join(w.ksize, ","), "]");
}

/// How many elements window `o` has in the image.
int64_t CountIn(const WindowAxes& axes, int64_t o) {
  int64_t count = 1;
  for (int i = 2; i >= 0; o /= axes[i].out, --i) {
    const int64_t at = o % axes[i].out;
    count *= std::max<int64_t>(0, axes[i].Last(at) - axes[i].First(at));
  }
  return count;
}

Status AvgPoolKernel(KernelContext& ctx, const Windows& w) {
  const Tensor& x = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const Pooling p, MakeAveraging(w, x.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.CreateOutput(0, p.output));
  if (y->num_elements() == 0) return OkStatus();
  Dispatch(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const int64_t n = p.channels;
    ParallelFor(p.batch * p.windows(), p.cost(), [&](int64_t begin, int64_t end) {
      CountedVector<C> buffer(n);
      C* const sum = buffer.data();
      for (int64_t row = begin; row < end; ++row) {
        const T* const image = x.data<T>() + row / p.windows() * p.image();
        T* const out = y->data<T>() + row * n;
        std::fill_n(sum, n, C(0));
        ForEachPixel(p.axes, row % p.windows(), [&](int64_t, int64_t pixel) {
          const T* const in = image + pixel * n;
          TENON_SIMD
          for (int64_t c = 0; c < n; ++c) sum[c] += static_cast<C>(in[c]);
        });
        const C count = static_cast<C>(CountIn(p.axes, row % p.windows()));
        for (int64_t c = 0; c < n; ++c) out[c] = static_cast<T>(sum[c] / count);
      }
    });
  });
  return OkStatus();
}

Status AvgPoolGradKernel(KernelContext& ctx, const Windows& w) {
  const Tensor& dy = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "orig_input_shape"));
  TENON_ASSIGN_OR_RETURN(const Pooling p, MakeAveraging(w, shape));
  TENON_RETURN_IF_ERROR(CheckDims("grad", dy, p.output));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, shape));
  const double cost = p.cost() * static_cast<double>(p.windows());
  Dispatch(dy.dtype(), FloatTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const int64_t n = p.channels;
    SumIntoImages(p.batch, p.image(), cost, dx->data<T>(), [&](int64_t image, C* sums) {
      for (int64_t o = 0; o < p.windows() && !Interrupted(); ++o) {
        const T* const from = dy.data<T>() + (image * p.windows() + o) * n;
        const C count = static_cast<C>(CountIn(p.axes, o));
        ForEachPixel(p.axes, o, [&](int64_t, int64_t pixel) {
          C* const sum = sums + pixel * n;
          TENON_SIMD
          for (int64_t c = 0; c < n; ++c) sum[c] += static_cast<C>(from[c]) / count;
        });
      }
    });
  });
  return OkStatus();
}

Status OriginalShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const Windows w, Windows::Create(c.attrs()));
  TENON_RETURN_IF_ERROR(c.WithRank(1, w.rank).status());
  TENON_ASSIGN_OR_RETURN(const PartialShape shape, c.ConstantShape(0));
  return c.Return(shape.MergeWith(PartialShape::OfRank(w.rank)));
}

void RegisterAverage(OpRegistry& ops, const std::string& name, const Shape& x, const Shape& y,
                     const AttributeMap& attrs) {
  const std::string grad = name + "Grad";
  const KernelOptions floats = {.types = {{"T", DTypesOf(FloatTypes())}}};
  ops.Add(name, PoolingShape, AvgPoolKernel, floats)
      .Grad([grad](GradContext& g) {
        g.dx(0) = WithWindowsOf(g, grad, {ShapeVector(g.in(0)), g.dy(0)});
      })
      .Example({x}, attrs);
  ops.Add(grad, OriginalShape, AvgPoolGradKernel, floats)
      .Grad([name](GradContext& g) { g.dx(1) = WithWindowsOf(g, name, {g.dy(0)}); })
      .Example({ShapeTensor(x, DType::kInt32).value(), y}, attrs);
}

}  // namespace

void RegisterAveragePooling(OpRegistry& ops) {
  using List = std::vector<int64_t>;
  RegisterAverage(
      ops, "AvgPool", {2, 4, 3, 2}, {2, 2, 3, 2},
      {{"ksize", List{1, 3, 2, 1}}, {"strides", List{1, 2, 1, 1}}, {"padding", "SAME"}});
  RegisterAverage(
      ops, "AvgPool3D", {1, 3, 4, 2, 2}, {1, 2, 2, 1, 2},
      {{"ksize", List{1, 2, 2, 2, 1}}, {"strides", List{1, 1, 2, 1, 1}}, {"padding", "VALID"}});
  ops.Get("AvgPool").Example({Shape{1, 2, 3, 3}}, {{"ksize", List{1, 1, 2, 2}},
                                                   {"strides", List{1, 1, 1, 1}},
                                                   {"padding", "VALID"},
                                                   {"data_format", "NCHW"}});
}

}  // namespace tenon
