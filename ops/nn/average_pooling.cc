// SPDX-License-Identifier: Apache-2.0
#include "core/base/interruption.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/nn/nn_ops.h"
#include "ops/nn/pooling.h"

namespace tenon {
namespace {

Status AvgPoolKernel(KernelContext& ctx, const Tensor& x, const Windows& w) {
  TENON_ASSIGN_OR_RETURN(const Pooling p, MakeAveraging(w, x.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.CreateOutput(0, p.output));
  if (y->num_elements() == 0) return OkStatus();
  Dispatch(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const T* const from = x.data<T>();
    T* const to = y->data<T>();
    ParallelFor(p.batch * p.windows(), p.cost(), [&](int64_t begin, int64_t end) {
      PooledWindow window(p, begin);
      for (int64_t row = begin; row < end; ++row, window.Next()) {
        const C count = static_cast<C>(window.count());
        ReduceWindow(
            window, p.channels, from, to + row * p.channels, C(0),
            [](C sum, C x) { return sum + x; }, [count](C sum) { return sum / count; });
      }
    });
  });
  return OkStatus();
}

Status AvgPoolGradKernel(KernelContext& ctx, const Shape& shape, const Tensor& dy,
                         const Windows& w) {
  TENON_ASSIGN_OR_RETURN(const Pooling p, MakeAveraging(w, shape));
  TENON_RETURN_IF_ERROR(CheckDims("grad", dy, p.output));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, shape));
  if (dx->num_elements() == 0) return OkStatus();
  const double cost = p.cost() * static_cast<double>(p.windows());
  Dispatch(dy.dtype(), FloatTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const int64_t n = p.channels;
    const T* const dys = dy.data<T>();
    SumIntoImages(p.batch, p.image(), cost, dx->data<T>(), [&](int64_t image, C* sums) {
      if (p.windows() == 0) return;
      PooledWindow window(p, 0);
      for (int64_t o = 0; o < p.windows() && !Interrupted(); ++o, window.Next()) {
        const T* const from = dys + (image * p.windows() + o) * n;
        const C count = static_cast<C>(window.count());
        C* const to = sums + window.first_in_image();
        window.ForEachPixel([&](int64_t pixel) {
          C* const sum = to + pixel * n;
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
