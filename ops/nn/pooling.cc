// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/pooling.h"

#include "ops/arguments.h"

namespace tenon {
namespace {

/// Windows along the channels, which end where the next begins.
StatusOr<Pooling> AlongChannels(const Windows& w, const Shape& input) {
  const int axis = w.channel_axis();
  const int64_t window = w.ksize[axis], channels = input.dim(axis);
  const auto refuse = [&](std::string_view what) {
    return Unimplemented(what, ": the input has shape ", input, ", ksize is [", Join(w.ksize, ","),
                         "], strides is [", Join(w.strides, ","), "]");
  };
  if (Product(w.ksize) != window) {
    return refuse("MaxPooling supports exactly one of pooling across depth or width/height");
  }
  if (channels % window != 0) {
    return refuse("Depthwise max pooling requires the depth window to evenly divide the depth");
  }
  if (window != w.strides[axis]) {
    return refuse("Depthwise max pooling requires the depth window to equal the depth stride");
  }
  if (w.channels_first) return refuse("Depthwise max pooling requires the channels to be last");
  Pooling p;
  p.axes[2] = {.in = channels, .window = window, .stride = window, .out = channels / window};
  p.batch = Product(input.dims(), 0, axis);
  p.output.assign(input.dims().begin(), input.dims().end());
  p.output[axis] = channels / window;
  return p;
}

}  // namespace

StatusOr<Pooling> MakePooling(const Windows& w, const Shape& input) {
  const auto sizes = absl::MakeSpan(w.ksize).subspan(w.spatial_axis(0), w.num_spatial());
  Pooling p;
  TENON_ASSIGN_OR_RETURN(p.axes, w.Axes(input, sizes));
  const int channel_axis = w.channel_axis();
  if (w.ksize[channel_axis] != 1) return AlongChannels(w, input);
  if (w.strides[channel_axis] != 1) {
    return InvalidArgument("strides is ", w.strides[channel_axis], " along channels, wanted 1");
  }
  // A window may be larger than the image here: only shape functions, as TensorFlow's, refuse it.
  p.output.assign(input.dims().begin(), input.dims().end());
  for (int i = 0; i < w.num_spatial(); ++i) {
    p.output[w.spatial_axis(i)] = p.axes[i + 3 - w.num_spatial()].out;
  }
  TENON_RETURN_IF_ERROR(Shape::Create(p.output).status());
  for (const WindowAxis& a : p.axes) {
    if (w.padding != "EXPLICIT" || std::max(a.before, a.after) < a.window) continue;
    const bool left = a.before >= a.window;
    return InvalidArgument(left ? "Left" : "Right", " padding ", left ? a.before : a.after,
                           " needs to be smaller than the window size ", a.window);
  }
  p.batch = input.dim(0) * (w.channels_first ? input.dim(1) : 1);
  p.channels = w.channels_first ? 1 : input.dim(channel_axis);
  return p;
}

StatusOr<Pooling> MakeAveraging(const Windows& w, const Shape& input) {
  if (w.ksize[w.channel_axis()] == 1) return MakePooling(w, input);
  return InvalidArgument("averages along channels are not supported: ksize is [",
                         Join(w.ksize, ","), "]");
}

StatusOr<Pooling> MakePlacePooling(const Windows& w, const Shape& input) {
  if (w.ksize[w.channel_axis()] == 1) return MakePooling(w, input);
  return InvalidArgument("windows along channels have no places: ksize is [", Join(w.ksize, ","),
                         "]");
}

StatusOr<Windows> WindowsOf(const KernelContext& ctx, const Windows& w, int first) {
  if (first >= ctx.num_inputs()) return w;
  TENON_ASSIGN_OR_RETURN(Windows with, w.With(ctx.input(first), ctx.input(first + 1)));
  TENON_RETURN_IF_ERROR(with.CheckBatch());
  return with;
}

Status CheckDims(std::string_view what, const Tensor& t, absl::Span<const int64_t> dims) {
  if (t.shape().dims() == dims) return OkStatus();
  return InvalidArgument("Expected ", what, " shape to be [", Join(dims, ","), "], but got ",
                         t.shape());
}

StatusOr<Pooling> PoolingOfGrad(const KernelContext& ctx, const Windows& attrs) {
  TENON_ASSIGN_OR_RETURN(const Windows w, WindowsOf(ctx, attrs, 3));
  TENON_ASSIGN_OR_RETURN(Pooling p, MakePooling(w, ctx.input(0).shape()));
  TENON_RETURN_IF_ERROR(CheckDims("orig_output", ctx.input(1), p.output));
  TENON_RETURN_IF_ERROR(CheckDims("grad", ctx.input(2), p.output));
  return p;
}

StatusOr<Pooling> PoolingOfPlacesGrad(const KernelContext& ctx, const Windows& w) {
  TENON_ASSIGN_OR_RETURN(Pooling p, NarrowPooling(w, ctx.input(0).shape()));
  TENON_RETURN_IF_ERROR(CheckDims("orig_output", ctx.input(1), p.output));
  TENON_RETURN_IF_ERROR(CheckDims("grad", ctx.input(2), p.output));
  return p;
}

StatusOr<Pooling> PoolingOfGradGrad(const KernelContext& ctx, const Windows& attrs) {
  TENON_ASSIGN_OR_RETURN(const Windows w, WindowsOf(ctx, attrs, 3));
  TENON_ASSIGN_OR_RETURN(Pooling p, MakePooling(w, ctx.input(0).shape()));
  TENON_RETURN_IF_ERROR(CheckDims("orig_output", ctx.input(1), p.output));
  TENON_RETURN_IF_ERROR(CheckDims("grad", ctx.input(2), ctx.input(0).shape().dims()));
  return p;
}

Status PoolingShape(ShapeContext& c) {
  if (c.attrs().GetOr<std::string>("data_format", "") == "NCHW_VECT_C") return UnknownShape(c);
  TENON_ASSIGN_OR_RETURN(Windows w, Windows::Create(c.attrs()));
  TENON_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, w.rank));
  if (c.num_inputs() == 3) {
    if (c.constant(1) == nullptr || c.constant(2) == nullptr) {
      return c.Return(PartialShape::OfRank(w.rank).WithDim(0, x.dim(0)));
    }
    TENON_ASSIGN_OR_RETURN(w, w.With(*c.constant(1), *c.constant(2)));
  }
  const bool along_channels = w.ksize[w.channel_axis()] != 1;
  PartialShape y = PartialShape::OfRank(w.rank);
  if (!along_channels) {
    const auto sizes = absl::MakeSpan(w.ksize).subspan(w.spatial_axis(0), w.num_spatial());
    TENON_ASSIGN_OR_RETURN(y, w.Output(x, sizes, x.dim(w.channel_axis())));
  }
  if (x.IsFullyKnown()) {
    TENON_ASSIGN_OR_RETURN(const Pooling p, MakePooling(w, x.ToShape()));
    y = PartialShape(p.output);
  }
  c.set_output(0, y);
  return OkStatus();
}

Status SecondInputShape(ShapeContext& c) { return c.Return(c.input(1)); }

}  // namespace tenon
