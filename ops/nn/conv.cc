// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/conv.h"

#include <algorithm>
#include <cstring>

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/maths.h"
#include "ops/nn/bias_add.h"
#include "ops/nn/nn_ops.h"

namespace tenon {

StatusOr<ConvShape> MakeConvShape(const Windows& w, bool depthwise, const Shape& input,
                                  const Shape& filter) {
  if (filter.rank() != w.rank) {
    return InvalidArgument("filter must be ", w.rank, "-dimensional: ", filter);
  }
  ConvShape s;
  s.channels_first = w.channels_first;
  TENON_ASSIGN_OR_RETURN(s.axes, w.Axes(input, filter.dims().first(w.num_spatial())));
  const int64_t inputs = filter.dim(w.rank - 2), outputs = filter.dim(w.rank - 1);
  s.batch = input.dim(0);
  s.in_channels = input.dim(w.channel_axis());
  if (depthwise) {
    if (s.in_channels != inputs) {
      return InvalidArgument("input and filter must have the same depth: ", input, " vs. ", filter);
    }
    s.groups = inputs;
    TENON_ASSIGN_OR_RETURN(s.out_channels, MultiplySizes(inputs, outputs));
    return s;
  }
  if (inputs == 0 || s.in_channels % inputs != 0) {
    return InvalidArgument("input depth must be a multiple of the filter's: ", input, " vs. ",
                           filter);
  }
  s.groups = std::max<int64_t>(1, s.in_channels / inputs);
  s.out_channels = outputs;
  if (outputs % s.groups != 0) {
    return InvalidArgument("output depth must be a multiple of the number of groups: ", outputs,
                           " vs. ", s.groups);
  }
  return s;
}

DimVector OutputDims(const Windows& w, const ConvShape& s) {
  DimVector dims(w.rank, s.out_channels);
  dims[0] = s.batch;
  for (int i = 0; i < w.num_spatial(); ++i) {
    dims[w.spatial_axis(i)] = s.axes[i + 3 - w.num_spatial()].out;
  }
  return dims;
}

namespace {

/// Guess of what it costs to turn a 16-bit float into a float, or back.
constexpr double kConvertNs = 0.5;

/// Whether the one window is the image, so that the images are rows of a matrix. There may be very
/// many of them, each too small for what is prepared for images.
bool IsOneProduct(const ConvShape& s) {
  if (s.groups != 1 || (s.channels_first && s.in_pixels() != 1)) return false;
  return std::all_of(s.axes.begin(), s.axes.end(), [](const WindowAxis& a) {
    const bool is_dense = a.dilation == 1 || a.window == 1;
    return is_dense && a.in == a.window && a.before == 0 && a.after == 0;
  });
}

template <typename T>
Status OneProduct(ConvPass pass, const ConvShape& s, const ConvArrays<T>& arrays) {
  const DType type = kDTypeOf<T>;
  const int64_t m = s.batch, n = s.out_channels, k = s.in_pixels() * s.in_channels;
  switch (pass) {
    case ConvPass::kOutput:
      return Gemm(type, {.m = m, .n = n, .k = k}, arrays.input, arrays.filter, arrays.output);
    case ConvPass::kInput:
      return Gemm(type, {.m = m, .n = k, .k = n, .transpose_b = true}, arrays.output, arrays.filter,
                  arrays.input);
    case ConvPass::kFilter:
      return Gemm(type, {.m = k, .n = n, .k = m, .transpose_a = true}, arrays.input, arrays.output,
                  arrays.filter);
  }
  return Internal("no such pass of a convolution");
}

template <typename T>
Status ConvolveAs(ConvPass pass, const ConvShape& shape, const std::array<Tensor, 3>& tensors) {
  const auto array = [&](int i) { return const_cast<T*>(tensors[i].data<T>()); };
  const ConvArrays<T> arrays = {array(0), array(1), array(2)};
  if (IsOneProduct(shape)) return OneProduct(pass, shape, arrays);
  if constexpr (std::is_same_v<T, float>) {
    TENON_ASSIGN_OR_RETURN(const bool done, FastConv(pass, shape, arrays));
    if (done) return OkStatus();
  }
  return PlainConv(pass, shape, arrays);
}

template <typename From, typename To>
void ConvertElements(const Tensor& from, Tensor* to) {
  ParallelFor(from.num_elements(), kConvertNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      to->data<To>()[i] = static_cast<To>(from.data<From>()[i]);
    }
  });
}

template <typename T>
Status ConvolveAsFloat(ConvPass pass, const ConvShape& shape, std::array<Tensor, 3> tensors,
                       int computed) {
  Tensor result = tensors[computed];
  for (Tensor& t : tensors) {
    TENON_ASSIGN_OR_RETURN(Tensor wide, Tensor::Allocate(CpuAllocator(), DType::kFloat, t.shape()));
    if (&t != &tensors[computed]) ConvertElements<T, float>(t, &wide);
    t = std::move(wide);
  }
  TENON_RETURN_IF_ERROR(ConvolveAs<float>(pass, shape, tensors));
  ConvertElements<float, T>(tensors[computed], &result);
  return OkStatus();
}

// --- Shapes ---

/// The convolution of which `dy` is the gradient by the output.
StatusOr<ConvShape> ConvShapeFor(const Windows& w, bool depthwise, const Shape& input,
                                 const Shape& filter, const Shape& dy) {
  TENON_ASSIGN_OR_RETURN(const ConvShape s, MakeConvShape(w, depthwise, input, filter));
  TENON_ASSIGN_OR_RETURN(const Shape output, Shape::Create(OutputDims(w, s)));
  if (output == dy) return s;
  return InvalidArgument("out_backprop is ", dy, ", and the convolution of ", input, " with ",
                         filter, " gives ", output);
}

template <bool kDepthwise>
Status ConvShapeFn(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const Windows w, Windows::Create(c.attrs()));
  TENON_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, w.rank));
  TENON_ASSIGN_OR_RETURN(const PartialShape filter, c.WithRank(1, w.rank));
  if (!x.rank_known() || !filter.rank_known()) return c.Return(PartialShape::OfRank(w.rank));
  const auto window = filter.dims().first(w.num_spatial());
  const bool empty = std::find(window.begin(), window.end(), 0) != window.end();
  if (x.IsFullyKnown() && filter.IsFullyKnown() && !empty) {
    TENON_RETURN_IF_ERROR(MakeConvShape(w, kDepthwise, x.ToShape(), filter.ToShape()).status());
  }
  int64_t channels = filter.dim(w.rank - 1);
  if (kDepthwise && channels >= 0) {
    const int64_t inputs = filter.dim(w.rank - 2);
    TENON_ASSIGN_OR_RETURN(channels, inputs < 0 ? inputs : MultiplySizes(inputs, channels));
  }
  return c.Return(w.Output(x, window, channels));
}

/// The shape that input `sizes` holds.
template <int kSizes>
Status SizesShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const Windows w, Windows::Create(c.attrs()));
  TENON_ASSIGN_OR_RETURN(const PartialShape dy, c.WithRank(2, w.rank));
  TENON_ASSIGN_OR_RETURN(const PartialShape shape, c.ConstantShape(kSizes));
  // Two sizes are those of an image, of which the rest is known from the other inputs.
  const bool partial = shape.rank() == 2 && w.rank == 4;
  return c.Return(partial ? PartialShape::OfRank(w.rank)
                          : shape.MergeWith(PartialShape::OfRank(w.rank)));
}

// --- Kernels ---

Status ComputeOutput(KernelContext& ctx, const Windows& w, bool depthwise, ConvolveFn convolve) {
  const Tensor &x = ctx.input(0), &filter = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const ConvShape s, MakeConvShape(w, depthwise, x.shape(), filter.shape()));
  TENON_ASSIGN_OR_RETURN(const Tensor* y, ctx.CreateOutput(0, OutputDims(w, s)));
  return convolve(ctx, ConvPass::kOutput, s, x, filter, *y);
}

Status ComputeInput(KernelContext& ctx, const Windows& w, bool depthwise, ConvolveFn convolve) {
  const Tensor &filter = ctx.input(1), &dy = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(DimVector sizes, ReadIntegerVector(ctx.input(0), "input_sizes"));
  if (sizes.size() == 2 && w.rank == 4 && !depthwise && dy.rank() == 4 && filter.rank() == 4) {
    sizes.insert(sizes.begin(), dy.dim(0));
    sizes.insert(sizes.begin() + w.channel_axis(), filter.dim(2));
  }
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
  TENON_ASSIGN_OR_RETURN(const ConvShape s,
                         ConvShapeFor(w, depthwise, shape, filter.shape(), dy.shape()));
  TENON_ASSIGN_OR_RETURN(const Tensor* dx, ctx.AllocateOutput(0, shape));
  return convolve(ctx, ConvPass::kInput, s, *dx, filter, dy);
}

Status ComputeFilter(KernelContext& ctx, const Windows& w, bool depthwise, ConvolveFn convolve) {
  const Tensor &x = ctx.input(0), &dy = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(1), "filter_sizes"));
  TENON_ASSIGN_OR_RETURN(const ConvShape s,
                         ConvShapeFor(w, depthwise, x.shape(), shape, dy.shape()));
  TENON_ASSIGN_OR_RETURN(const Tensor* df, ctx.AllocateOutput(0, shape));
  return convolve(ctx, ConvPass::kFilter, s, x, *df, dy);
}

template <ConvPass kPass, bool kDepthwise>
Status ConvKernel(KernelContext& ctx, const Windows& w) {
  return RunConvolution(ctx, w, kPass, kDepthwise,
                        [](KernelContext&, ConvPass pass, const ConvShape& shape,
                           const Tensor& input, const Tensor& filter, const Tensor& output) {
                          return Convolve(pass, shape, input, filter, output);
                        });
}

/// The bias is added within oneDNN, where that has the convolution, and else after it.
Status ConvWithBiasKernel(KernelContext& ctx, const Windows& w) {
  const Tensor &x = ctx.input(0), &filter = ctx.input(1), &bias = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const ConvShape s, MakeConvShape(w, false, x.shape(), filter.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.CreateOutput(0, OutputDims(w, s)));
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                         PlanBiasAdd(*y, bias, s.channels_first ? "NCHW" : "NHWC"));
  const int64_t elements[] = {x.num_elements(), filter.num_elements(), y->num_elements()};
  if (std::find(std::begin(elements), std::end(elements), 0) == std::end(elements)) {
    const ConvArrays<float> arrays = {const_cast<float*>(x.data<float>()),
                                      const_cast<float*>(filter.data<float>()), y->data<float>(),
                                      bias.data<float>()};
    TENON_ASSIGN_OR_RETURN(const bool done, FastConv(ConvPass::kOutput, s, arrays));
    if (done) return OkStatus();
  }
  TENON_RETURN_IF_ERROR(Convolve(ConvPass::kOutput, s, x, filter, *y));
  AddBias(plan, !s.channels_first, y->raw_data(), bias, y);
  return OkStatus();
}

Status ConvWithBiasShape(ShapeContext& c) {
  TENON_RETURN_IF_ERROR(ConvShapeFn<false>(c));
  return c.WithRank(2, 1).status();
}

// --- Registration ---

/// The names of a convolution and its gradients.
struct ConvOps {
  std::string output, input, filter;
};

/// Each of the three is linear in both operands, and its gradients are the other two.
template <bool kDepthwise>
void RegisterConv(OpRegistry& ops, const ConvOps& names, const DTypeVector& types,
                  const DTypeVector& filter_types, const Shape& x, const Shape& filter,
                  const std::vector<AttributeMap>& attrs) {
  const auto sizes = [](const Shape& shape) { return ShapeTensor(shape, DType::kInt32).value(); };
  OpBuilder output = ops.Add(names.output, ConvShapeFn<kDepthwise>,
                             ConvKernel<ConvPass::kOutput, kDepthwise>, {.types = {{"T", types}}});
  OpBuilder input = ops.Add(names.input, SizesShape<0>, ConvKernel<ConvPass::kInput, kDepthwise>,
                            {.types = {{"T", types}}});
  OpBuilder by_filter =
      ops.Add(names.filter, SizesShape<1>, ConvKernel<ConvPass::kFilter, kDepthwise>,
              {.types = {{"T", filter_types}}});
  output.Grad([names](GradContext& g) {
    const Output x = g.in(0), filter = g.in(1), dy = g.dy(0);
    g.dx(0) = WithWindowsOf(g, names.input, {ShapeVector(x), filter, dy});
    g.dx(1) = WithWindowsOf(g, names.filter, {x, ShapeVector(filter), dy});
  });
  input.Grad([names](GradContext& g) {
    const Output filter = g.in(1), dy = g.in(2), ddx = g.dy(0);
    g.dx(1) = WithWindowsOf(g, names.filter, {ddx, ShapeVector(filter), dy});
    g.dx(2) = WithWindowsOf(g, names.output, {ddx, filter});
  });
  by_filter.Grad([names](GradContext& g) {
    const Output x = g.in(0), dy = g.in(2), ddf = g.dy(0);
    g.dx(0) = WithWindowsOf(g, names.input, {ShapeVector(x), ddf, dy});
    g.dx(2) = WithWindowsOf(g, names.output, {x, ddf});
  });
  for (const AttributeMap& a : attrs) {
    const StatusOr<Windows> w = Windows::Create(a);
    DimVector dims(x.dims().begin(), x.dims().end());
    if (w->channels_first) std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
    const Shape image(dims);
    const StatusOr<ConvShape> s = MakeConvShape(*w, kDepthwise, image, filter);
    TENON_CHECK(s.ok(), s.status().ToString());
    const Shape y(OutputDims(*w, *s));
    output.Example({image, filter}, a);
    input.Example({sizes(image), filter, y}, a);
    by_filter.Example({image, sizes(filter), y}, a);
  }
}

AttributeMap Attrs(std::vector<int64_t> strides, std::string_view padding,
                   const AttributeMap& more = {}) {
  AttributeMap attrs = more;
  attrs.Set("strides", std::move(strides));
  attrs.Set("padding", padding);
  return attrs;
}

}  // namespace

Status RunConvolution(KernelContext& ctx, const Windows& w, ConvPass pass, bool depthwise,
                      ConvolveFn convolve) {
  switch (pass) {
    case ConvPass::kOutput:
      return ComputeOutput(ctx, w, depthwise, convolve);
    case ConvPass::kInput:
      return ComputeInput(ctx, w, depthwise, convolve);
    case ConvPass::kFilter:
      return ComputeFilter(ctx, w, depthwise, convolve);
  }
  return Internal("no such pass");
}

Status Convolve(ConvPass pass, const ConvShape& shape, const Tensor& input, const Tensor& filter,
                const Tensor& output) {
  const std::array<Tensor, 3> tensors = {input, filter, output};
  const int computed = pass == ConvPass::kInput ? 0 : pass == ConvPass::kFilter ? 1 : 2;
  Tensor result = tensors[computed];
  if (result.num_elements() == 0) return OkStatus();
  for (const Tensor& t : tensors) {
    if (t.num_elements() != 0) continue;
    std::memset(result.raw_data(), 0, result.num_bytes());
    return OkStatus();
  }
  switch (input.dtype()) {
    case DType::kFloat:
      return ConvolveAs<float>(pass, shape, tensors);
    case DType::kDouble:
      return ConvolveAs<double>(pass, shape, tensors);
    case DType::kInt32:
      return ConvolveAs<int32_t>(pass, shape, tensors);
    case DType::kHalf:
      return ConvolveAsFloat<Half>(pass, shape, tensors, computed);
    case DType::kBFloat16:
      return ConvolveAsFloat<BFloat16>(pass, shape, tensors, computed);
    default:
      return Unimplemented("convolution of ", input.dtype());
  }
}

void RegisterConvolutions(OpRegistry& ops) {
  const DTypeVector floats = DTypesOf(FloatTypes());
  const DTypeVector and_int = DTypesOf(decltype(ConcatTypes(FloatTypes(), TypeList<int32_t>()))());
  const AttributeMap first = {{"data_format", "NCHW"}};
  const std::vector<AttributeMap> attrs = {Attrs({1, 1, 1, 1}, "SAME"),
                                           Attrs({1, 2, 2, 1}, "VALID"),
                                           Attrs({1, 1, 1, 1}, "VALID", first)};
  const AttributeMap uneven =
      Attrs({1, 2, 1, 1}, "EXPLICIT",
            {{"explicit_paddings", std::vector<int64_t>{0, 0, 1, 2, 0, 1, 0, 0}},
             {"dilations", std::vector<int64_t>{1, 1, 2, 1}}});
  std::vector<AttributeMap> of_conv = attrs;
  of_conv.push_back(uneven);
  RegisterConv<false>(ops, {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"}, and_int,
                      floats, {2, 4, 3, 4}, {2, 2, 2, 2}, of_conv);
  ops.Add("_Conv2DWithBias", ConvWithBiasShape, ConvWithBiasKernel,
          {.types = {{"T", {DType::kFloat}}}})
      .Example({Shape{2, 4, 3, 4}, Shape{2, 2, 2, 2}, Shape{2}}, attrs[0])
      .Example({Shape{2, 2, 4, 3}, Shape{2, 2, 2, 2}, Shape{2}}, attrs[2])
      .Example({Shape{2, 4, 3, 4}, Shape{2, 2, 2, 2}, Shape{2}}, uneven);
  RegisterConv<true>(ops,
                     {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
                      "DepthwiseConv2dNativeBackpropFilter"},
                     floats, floats, {2, 4, 3, 2}, {2, 2, 2, 2}, attrs);
  RegisterConv<false>(ops, {"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"}, floats,
                      floats, {1, 3, 2, 3, 2}, {2, 1, 2, 2, 2},
                      {Attrs({1, 1, 1, 1, 1}, "SAME", {{"data_format", "NDHWC"}}),
                       Attrs({1, 1, 2, 1, 1}, "VALID", {{"data_format", "NDHWC"}}),
                       Attrs({1, 1, 1, 1, 1}, "VALID", {{"data_format", "NCDHW"}})});
}

}  // namespace tenon
