// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/math/math_ops.h"
#include "ops/nn/windows.h"

namespace tenon {
namespace {

/// The windows that patches are, of the spatial sizes ksizes.
struct Patches : KernelState {
  explicit Patches(KernelConstruction& c) : windows(c) {
    const Windows& w = windows;
    for (const DimVector* list : {&w.ksize, &w.strides, &w.dilations}) {
      if (!list->empty() && list->back() != 1) {
        c.Fail(
            InvalidArgument("patches along channels are not supported: [", Join(*list, ","), "]"));
      }
    }
  }
  Windows windows;
};

absl::Span<const int64_t> SpatialSizes(const Windows& w) {
  return absl::MakeConstSpan(w.ksize).subspan(1, w.num_spatial());
}

/// Elements of each channel in a patch, times channels.
StatusOr<int64_t> PatchSize(const Windows& w, int64_t channels) {
  for (const int64_t size : SpatialSizes(w)) {
    TENON_ASSIGN_OR_RETURN(channels, MultiplySizes(channels, size));
  }
  return channels;
}

Status PatchesKernel(KernelContext& ctx, const Tensor& in, const Patches& patches) {
  const Windows& w = patches.windows;
  TENON_ASSIGN_OR_RETURN(const WindowAxes axes, w.Axes(in.shape(), SpatialSizes(w)));
  const int64_t channels = in.dim(w.rank - 1);
  TENON_ASSIGN_OR_RETURN(const int64_t size, PatchSize(w, channels));
  TENON_ASSIGN_OR_RETURN(const PartialShape shape, w.Output(in.shape(), SpatialSizes(w), size));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, shape.dims()));
  if (out->num_elements() == 0) return OkStatus();
  ZeroElements(out);  // what lies outside the image
  ParallelFor(out->num_elements() / size, 2 + static_cast<double>(size),
              [&](int64_t begin, int64_t end) {
                WindowCursor window(axes, begin);
                for (int64_t row = begin; row < end; ++row, window.Next()) {
                  const int64_t image = window.image() * Pixels(axes);
                  window.ForEachPixel([&](int64_t tap, int64_t pixel) {
                    CopyElements(in, (image + pixel) * channels, out, row * size + tap * channels,
                                 channels);
                  });
                }
              });
  return OkStatus();
}

Status PatchesShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const Windows w, Windows::Create(c.attrs()));
  TENON_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, w.rank));
  int64_t size = in.dim(w.rank - 1);
  if (size >= 0) {
    TENON_ASSIGN_OR_RETURN(size, PatchSize(w, size));
  }
  return c.Return(
      w.Output(in.rank_known() ? in : PartialShape::OfRank(w.rank), SpatialSizes(w), size));
}

/// The gradient of each element of a patch goes to the pixel it came from: which, the patches of
/// the pixels' numbers tell, where 0 stands for what lies outside.
void PatchesGrad(GradContext& g) {
  const auto rank = static_cast<int64_t>(g.Attr<std::vector<int64_t>>("ksizes").size());
  const Output shape = ShapeVector(g.in(0));
  const Output sides = Slice(shape, {1}, {rank - 2}), batch = Slice(shape, {0}, {1}),
               channels = Slice(shape, {rank - 1}, {1});
  const Output count = Prod(sides);
  const Output numbers = Reshape(Range(1, count + 1, 1), ConcatV2({{1}, sides, {1}}, 0));
  const Output from = Reshape(WithWindowsOf(g, g.node().op(), {numbers}), {-1}) - 1;
  const Output dy = Reshape(g.dy(0), ConcatV2({batch, ShapeVector(from), channels}, 0));
  const Output sums = UnsortedSegmentSum(Transpose(dy, {1, 0, 2}), from, count);
  g.dx(0) = Reshape(Transpose(sums, {1, 0, 2}), shape);
}

}  // namespace

void RegisterPatches(OpRegistry& ops) {
  using List = std::vector<int64_t>;
  ops.Add("ExtractImagePatches", PatchesShape, PatchesKernel)
      .Grad(PatchesGrad)
      .Example({Shape{2, 4, 5, 2}}, {{"ksizes", List{1, 2, 3, 1}},
                                     {"strides", List{1, 2, 1, 1}},
                                     {"rates", List{1, 1, 2, 1}},
                                     {"padding", "SAME"}});
  ops.Add("ExtractVolumePatches", PatchesShape, PatchesKernel)
      .Grad(PatchesGrad)
      .Example({Shape{1, 3, 2, 3, 2}}, {{"ksizes", List{1, 2, 2, 1, 1}},
                                        {"strides", List{1, 1, 1, 2, 1}},
                                        {"padding", "VALID"}});
}

}  // namespace tenon
