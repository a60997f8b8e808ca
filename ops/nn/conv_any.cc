// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/maths.h"
#include "ops/nn/conv.h"

namespace tenon {
namespace {

/// The attributes of Conv: those of Conv2D or Conv3D in other words, which of them the strides
/// tell.
struct AnyConv : KernelState {
  explicit AnyConv(KernelConstruction& c) {
    StatusOr<AnyConv> made = Create(c.attrs());
    if (made.ok()) {
      *this = *std::move(made);
      const Status batch = windows->CheckBatch();
      if (!batch.ok()) c.Fail(InvalidArgument(batch.message()));  // TensorFlow's code for this op
    } else {
      c.Fail(made.status());
    }
  }
  static StatusOr<AnyConv> Create(AttributeMap attrs) {
    AnyConv conv;
    TENON_ASSIGN_OR_RETURN(const auto strides, attrs.Get<std::vector<int64_t>>("strides"));
    TENON_ASSIGN_OR_RETURN(const auto format, attrs.Get<std::string>("data_format"));
    TENON_ASSIGN_OR_RETURN(conv.batch_dims, attrs.Get<int64_t>("batch_dims"));
    TENON_ASSIGN_OR_RETURN(conv.groups, attrs.Get<int64_t>("groups"));
    if (conv.batch_dims < 1 || conv.groups < 1) {
      return InvalidArgument("batch_dims and groups must be positive, found ", conv.batch_dims,
                             " and ", conv.groups);
    }
    if (strides.size() != 4 && strides.size() != 5) {
      return InvalidArgument("Sliding window strides field must specify 4 or 5 dimensions, found ",
                             strides.size());
    }
    const bool first = format == "CHANNELS_FIRST", flat = strides.size() == 4;
    attrs.Set("data_format", flat ? (first ? "NCHW" : "NHWC") : (first ? "NCDHW" : "NDHWC"));
    TENON_ASSIGN_OR_RETURN(conv.windows, Windows::Create(attrs));
    return conv;
  }

  /// InvalidArgument unless an image of this rank is a batch of those that the windows lie on.
  Status CheckRank(int rank) const {
    const int64_t spatial = rank - 1 - batch_dims;
    if (spatial == windows->num_spatial()) return OkStatus();
    return InvalidArgument("The input must have ", windows->num_spatial(),
                           " spatial dimensions but got ", spatial);
  }

  std::optional<Windows> windows;
  int64_t batch_dims = 1, groups = 1;

 private:
  AnyConv() = default;
};

StatusOr<ConvShape> ShapeOf(const AnyConv& conv, const Shape& images, const Shape& filter) {
  TENON_ASSIGN_OR_RETURN(const ConvShape s, MakeConvShape(*conv.windows, false, images, filter));
  if (s.groups == conv.groups) return s;
  return InvalidArgument("Input depth must be ", conv.groups,
                         " times the filter's: ", s.in_channels, " vs ", s.group_inputs());
}

Status AnyConvKernel(KernelContext& ctx, const AnyConv& conv) {
  const Tensor &x = ctx.input(0), &filter = ctx.input(1);
  TENON_RETURN_IF_ERROR(conv.CheckRank(x.rank()));
  if (filter.num_elements() == 0) {
    return InvalidArgument("filter must not have zero elements, found shape ", filter.shape());
  }
  const auto batch_dims = static_cast<size_t>(conv.batch_dims);
  const auto batch = x.shape().dims().first(batch_dims);
  TENON_ASSIGN_OR_RETURN(const Shape all, Shape::Create(batch));
  TENON_ASSIGN_OR_RETURN(
      const Shape flat,
      Shape::Create(Concat({all.num_elements()}, x.shape().dims().subspan(batch_dims))));
  TENON_ASSIGN_OR_RETURN(const Tensor images, x.Reshaped(flat));
  TENON_ASSIGN_OR_RETURN(const ConvShape s, ShapeOf(conv, flat, filter.shape()));
  const DimVector out = OutputDims(*conv.windows, s);
  TENON_ASSIGN_OR_RETURN(const Tensor* y,
                         ctx.CreateOutput(0, Concat(batch, absl::MakeSpan(out).subspan(1))));
  TENON_ASSIGN_OR_RETURN(const Shape flat_out, Shape::Create(out));
  TENON_ASSIGN_OR_RETURN(const Tensor results, y->Reshaped(flat_out));
  return Convolve(ConvPass::kOutput, s, images, filter, results);
}

Status AnyConvShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const AnyConv conv, AnyConv::Create(c.attrs()));
  const PartialShape &x = c.input(0), &filter = c.input(1);
  const Windows& w = *conv.windows;
  TENON_RETURN_IF_ERROR(c.WithRank(1, w.rank).status());
  if (!x.rank_known()) return OkStatus();
  TENON_RETURN_IF_ERROR(conv.CheckRank(x.rank()));
  const int batch_dims = static_cast<int>(conv.batch_dims);
  if (!filter.rank_known()) return c.Return(PartialShape::OfRank(x.rank()));
  const PartialShape image = PartialShape{-1}.ConcatWith(x.Part(batch_dims));
  TENON_ASSIGN_OR_RETURN(const PartialShape y, w.Output(image, filter.dims().first(w.num_spatial()),
                                                        filter.dim(w.rank - 1)));
  return c.Return(x.Part(0, batch_dims).ConcatWith(y.Part(1)));
}

}  // namespace

void RegisterAnyConv(OpRegistry& ops) {
  const auto attrs = [](std::vector<int64_t> strides, std::string_view padding, AttributeMap more) {
    more.Set("strides", std::move(strides));
    more.Set("padding", padding);
    return more;
  };
  ops.Add("Conv", AnyConvShape, AnyConvKernel,
          {.types = {{"T", DTypesOf(decltype(ConcatTypes(FloatTypes(), TypeList<int32_t>()))())}}})
      .Example({Shape{2, 4, 3, 4}, Shape{2, 2, 4, 2}}, attrs({1, 2, 1, 1}, "SAME", {}))
      .Example({Shape{2, 3, 4, 3, 4}, Shape{2, 2, 2, 2}},
               attrs({1, 1, 1, 1}, "VALID", {{"batch_dims", 2}, {"groups", 2}}))
      .Example({Shape{1, 2, 3, 2, 3}, Shape{2, 1, 2, 2, 2}},
               attrs({1, 1, 1, 1, 1}, "VALID", {{"data_format", "CHANNELS_FIRST"}}));
}

}  // namespace tenon
