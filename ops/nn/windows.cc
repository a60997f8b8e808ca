// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/windows.h"

#include "ops/arguments.h"

namespace tenon {
namespace {

DimVector List(const AttributeMap& attrs, std::string_view name) {
  const auto list = attrs.GetOr<std::vector<int64_t>>(name, {});
  return DimVector(list.begin(), list.end());
}

Status CheckList(std::string_view what, absl::Span<const int64_t> list, size_t wanted) {
  if (list.size() == wanted) return OkStatus();
  return InvalidArgument(what, " has ", list.size(), " entries, wanted ", wanted);
}

}  // namespace

StatusOr<Windows> Windows::Create(const AttributeMap& attrs) {
  Windows w;
  w.padding = attrs.GetOr<std::string>("padding", "VALID");
  w.explicit_paddings = List(attrs, "explicit_paddings");
  w.strides = List(attrs, "strides");
  w.dilations = List(attrs, attrs.Find("rates") != nullptr ? "rates" : "dilations");
  w.ksize = List(attrs, attrs.Find("ksizes") != nullptr ? "ksizes" : "ksize");
  w.pools = attrs.Find("ksize") != nullptr;
  w.extracts = attrs.Find("ksizes") != nullptr;
  const auto format =
      attrs.GetOr<std::string>("data_format", w.ksize.size() == 5 ? "NDHWC" : "NHWC");
  w.rank = static_cast<int>(format.size());
  w.channels_first = format[1] == 'C';
  if (w.dilations.empty()) w.dilations.assign(w.rank, 1);
  const DimVector ones(w.rank, 1);
  if (w.strides.empty() && attrs.Find("strides") == nullptr) w.strides = ones;
  if (w.ksize.empty() && attrs.Find("ksize") == nullptr) w.ksize = ones;
  TENON_RETURN_IF_ERROR(w.Check());
  return w;
}

Windows::Windows(KernelConstruction& c) {
  StatusOr<Windows> made = Create(c.attrs());
  if (made.ok()) {
    *this = *std::move(made);
    c.Fail(CheckBatch());
  } else {
    c.Fail(made.status());
  }
}

StatusOr<Windows> Windows::With(const Tensor& new_ksize, const Tensor& new_strides) const {
  Windows w = *this;
  w.pools = true;
  TENON_ASSIGN_OR_RETURN(w.ksize, ReadIntegerVector(new_ksize, "ksize"));
  TENON_ASSIGN_OR_RETURN(w.strides, ReadIntegerVector(new_strides, "strides"));
  TENON_RETURN_IF_ERROR(w.Check());
  return w;
}

Status Windows::CheckBatch() const {
  for (const auto& [what, list] : {std::pair("strides", strides), std::pair("dilations", dilations),
                                   std::pair("ksize", ksize)}) {
    const int64_t depth = list[channel_axis()];
    const bool in_depth = !pools && !extracts && depth != 1;
    if (list[0] == 1 && !in_depth) continue;
    if (pools) {
      return Unimplemented("Pooling is not yet supported on the batch dimension: ", what, " is ",
                           list[0], " along it, wanted 1");
    }
    return Unimplemented("Current implementation does not yet support ", what,
                         " in the batch and depth dimensions: found ", list[0], " and ", depth,
                         " along them, wanted 1");
  }
  return OkStatus();
}

Status Windows::Check() const {
  TENON_RETURN_IF_ERROR(CheckList("strides", strides, rank));
  TENON_RETURN_IF_ERROR(CheckList("dilations", dilations, rank));
  TENON_RETURN_IF_ERROR(CheckList("ksize", ksize, rank));
  for (const auto& [what, list] : {std::pair("strides", strides), std::pair("dilations", dilations),
                                   std::pair("ksize", ksize)}) {
    for (const int64_t v : list) {
      if (v < 1) return InvalidArgument(what, " holds ", v, ", wanted at least 1");
    }
  }
  if (padding != "EXPLICIT") {
    if (explicit_paddings.empty()) return OkStatus();
    return InvalidArgument("explicit_paddings are given and padding is ", padding);
  }
  TENON_RETURN_IF_ERROR(CheckList("explicit_paddings", explicit_paddings, 2 * rank));
  for (int i = 0; i < 2 * rank; ++i) {
    const int64_t v = explicit_paddings[i];
    if (v < 0)
      return InvalidArgument("All elements of explicit_paddings must be nonnegative, found ", v);
    if (v > 0 && (i / 2 == 0 || i / 2 == channel_axis())) {
      return InvalidArgument(
          "Nonzero explicit padding in the batch or depth dimensions is not supported, found ", v,
          " along dimension ", i / 2);
    }
  }
  return OkStatus();
}

StatusOr<WindowAxis> Windows::Axis(int axis, int64_t in, int64_t window) const {
  WindowAxis a = {.in = in, .window = window, .stride = strides[axis], .dilation = dilations[axis]};
  if (window == 0)
    return InvalidArgument(
        "filter must not have zero elements: the window is empty along dimension ", axis);
  a.out = PartialShape::kUnknownDim;
  if (in < 0 || window < 0) return a;
  TENON_ASSIGN_OR_RETURN(int64_t extent, MultiplySizes(window - 1, a.dilation));
  TENON_ASSIGN_OR_RETURN(extent, AddSizes(extent, 1));
  if (padding == "SAME") {
    a.out = in / a.stride + (in % a.stride != 0);
    // What the last window lacks.
    const int64_t last = std::max<int64_t>(0, a.out - 1) * a.stride;
    TENON_RETURN_IF_ERROR(AddSizes(last, extent));
    const int64_t missing = a.out == 0 ? 0 : std::max<int64_t>(0, last + extent - in);
    a.before = missing / 2;
    a.after = missing - a.before;
    return a;
  }
  if (padding == "EXPLICIT") {
    a.before = explicit_paddings[2 * axis];
    a.after = explicit_paddings[2 * axis + 1];
  }
  TENON_ASSIGN_OR_RETURN(int64_t padded, AddSizes(in, a.before));
  TENON_ASSIGN_OR_RETURN(padded, AddSizes(padded, a.after));
  if (padded >= extent) {
    a.out = (padded - extent) / a.stride + 1;
  } else if ((extent - padded) / 2 < a.stride) {
    a.out = 0;  // the quotient rounded towards zero, as TensorFlow has it
  } else {
    return InvalidArgument("Computed output size would be negative along dimension ", axis,
                           ": Negative dimension size caused by subtracting ", extent, " from ",
                           padded);
  }
  return a;
}

StatusOr<WindowAxes> Windows::Axes(const Shape& image, absl::Span<const int64_t> sizes) const {
  if (image.rank() != rank) {
    return InvalidArgument("the image must be ", rank, "-dimensional, found ", image);
  }
  WindowAxes axes;
  for (int i = 0; i < num_spatial(); ++i) {
    const int axis = spatial_axis(i);
    TENON_ASSIGN_OR_RETURN(axes[i + 3 - num_spatial()], Axis(axis, image.dim(axis), sizes[i]));
  }
  return axes;
}

StatusOr<PartialShape> Windows::Output(const PartialShape& image, absl::Span<const int64_t> sizes,
                                       int64_t channels) const {
  DimVector dims(rank, channels);
  dims[0] = image.dim(0);
  for (int i = 0; i < num_spatial(); ++i) {
    const int axis = spatial_axis(i);
    dims[axis] = PartialShape::kUnknownDim;
    if (sizes[i] == 0) continue;  // the kernel refuses it: a graph may hold such
    TENON_ASSIGN_OR_RETURN(const WindowAxis a, Axis(axis, image.dim(axis), sizes[i]));
    if (a.out >= 0 && padding != "SAME" && !extracts) {
      // Kernels, like TensorFlow's and its patches of images, take a window that is larger by less
      // than a stride.
      const int64_t extent = (a.window - 1) * a.dilation + 1, padded = a.in + a.before + a.after;
      if (padded < extent) {
        return InvalidArgument("Negative dimension size caused by subtracting ", extent, " from ",
                               padded, ": the window is larger than the image along dimension ",
                               axis);
      }
    }
    dims[axis] = a.out;
  }
  return PartialShape::Create(dims);
}

Output WithWindowsOf(const GradContext& g, std::string_view op,
                     std::initializer_list<Input> inputs) {
  NodeBuilder builder(op);
  for (const Input& input : inputs) builder.Input(input);
  for (const char* const name : {"ksize", "ksizes", "strides", "padding", "data_format",
                                 "dilations", "rates", "include_batch_in_index"}) {
    const Attribute* const value = g.node().attrs().Find(name);
    if (value != nullptr) builder.Attr(name, *value);
  }
  // Some pooling ops that have no explicit paddings are gradients of others that may have them.
  const auto paddings = g.Attr<std::vector<int64_t>>("explicit_paddings");
  if (!paddings.empty()) builder.Attr("explicit_paddings", paddings);
  return builder.Output();
}

}  // namespace tenon
