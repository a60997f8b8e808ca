// SPDX-License-Identifier: Apache-2.0
#include "core/base/interruption.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/array/strided_copy.h"
#include "ops/composition.h"
#include "ops/elements.h"

// Ops that move blocks of pixels between the dimensions of space and the batch or the channels.

namespace tenon {
namespace {

/// The blocks that the dimensions after the batch are cut into, and what is added (in going to the
/// batch) or cut off (in coming from it) before and after each dimension.
struct Blocks {
  DimVector size;
  DimVector before, after;
  int64_t count = 1;  // elements of a block
};

StatusOr<Blocks> ReadBlocks(const Tensor& block_shape, const Tensor& margins,
                            std::string_view what) {
  Blocks blocks;
  TENON_ASSIGN_OR_RETURN(blocks.size, ReadIntegerVector(block_shape, "block_shape"));
  const auto n = static_cast<int64_t>(blocks.size.size());
  if (margins.shape() != Shape{n, 2}) {
    return InvalidArgument(what, " must have shape ", Shape{n, 2}, ", found ", margins.shape());
  }
  TENON_ASSIGN_OR_RETURN(const DimVector flat, ReadIntegers(margins, what));
  for (int64_t i = 0; i < n; ++i) {
    if (blocks.size[i] < 1) {
      return InvalidArgument("block_shape[", i, "] must be positive, found ", blocks.size[i]);
    }
    TENON_ASSIGN_OR_RETURN(blocks.count, MultiplySizes(blocks.count, blocks.size[i]));
    const int64_t before = flat[2 * i], after = flat[2 * i + 1];
    if (before < 0 || after < 0) {
      return InvalidArgument(what, "[", i, "] must not be negative, found ", before, " ", after);
    }
    blocks.before.push_back(before);
    blocks.after.push_back(after);
  }
  return blocks;
}

Status CheckBlockRank(const Blocks& blocks, absl::Span<const int64_t> dims) {
  if (dims.size() > blocks.size.size()) return OkStatus();
  return InvalidArgument("the input must have rank ", blocks.size.size() + 1,
                         " or more, found shape ", PartialShape(dims));
}

/// `value` / `by`, which must divide it; unknown (-1) as long as `value` is.
StatusOr<int64_t> Divide(int64_t value, int64_t by, std::string_view what) {
  if (value < 0) return value;
  if (value % by == 0) return value / by;
  return InvalidArgument(what, " is ", value, ", which is not divisible by ", by);
}

/// What SpaceToBatch makes of `dims`, of which some may be unknown (-1).
StatusOr<DimVector> ToBatchDims(absl::Span<const int64_t> dims, const Blocks& blocks) {
  TENON_RETURN_IF_ERROR(CheckBlockRank(blocks, dims));
  DimVector out(dims.begin(), dims.end());
  if (dims[0] >= 0) {
    TENON_ASSIGN_OR_RETURN(out[0], MultiplySizes(dims[0], blocks.count));
  }
  for (size_t i = 0; i < blocks.size.size(); ++i) {
    if (dims[i + 1] < 0) continue;
    TENON_ASSIGN_OR_RETURN(const int64_t margins, AddSizes(blocks.before[i], blocks.after[i]));
    TENON_ASSIGN_OR_RETURN(const int64_t padded, AddSizes(dims[i + 1], margins));
    TENON_ASSIGN_OR_RETURN(out[i + 1], Divide(padded, blocks.size[i], "a padded dimension"));
  }
  return out;
}

/// What BatchToSpace makes of `dims`, of which some may be unknown (-1).
StatusOr<DimVector> ToSpaceDims(absl::Span<const int64_t> dims, const Blocks& blocks) {
  TENON_RETURN_IF_ERROR(CheckBlockRank(blocks, dims));
  DimVector out(dims.begin(), dims.end());
  TENON_ASSIGN_OR_RETURN(out[0], Divide(dims[0], blocks.count, "the batch"));
  for (size_t i = 0; i < blocks.size.size(); ++i) {
    if (dims[i + 1] < 0) continue;
    TENON_ASSIGN_OR_RETURN(const int64_t whole, MultiplySizes(dims[i + 1], blocks.size[i]));
    TENON_ASSIGN_OR_RETURN(const int64_t crops, AddSizes(blocks.before[i], blocks.after[i]));
    if (crops > whole) {
      return InvalidArgument("crops[", i, "] take ", crops, " of ", whole, " elements");
    }
    out[i + 1] = whole - crops;
  }
  return out;
}

/// Copies the elements of `from` to where they are in `to`, one of which is the space and the other
/// the batch that `blocks` make of it.
void MoveBlocks(const Tensor& from, Tensor* to, bool to_batch, const Blocks& blocks) {
  if (from.num_elements() == 0 || to->num_elements() == 0) return;
  const auto space = (to_batch ? from : *to).shape().dims();
  const auto batch = (to_batch ? *to : from).shape().dims();
  for (int64_t k = 0; k < blocks.count && !Interrupted(); ++k) {
    // The elements at one place of every block: they are a box in both.
    StridedView sparse{0, StridesOf(space)}, dense{0, StridesOf(batch)};
    dense.offset = k * space[0] * dense.strides[0];
    DimVector box(batch.begin(), batch.end());
    box[0] = space[0];
    int64_t place = k;
    for (int i = static_cast<int>(blocks.size.size()); i-- > 0;) {
      const int64_t size = blocks.size[i], before = blocks.before[i];
      const int64_t shift = place % size - before;  // of block 0's element within the space
      place /= size;
      const int64_t first = shift >= 0 ? 0 : (-shift - 1) / size + 1;
      const int64_t end =
          std::max(shift < space[i + 1] ? (space[i + 1] - shift - 1) / size + 1 : 0, first);
      box[i + 1] = end - first;
      sparse.offset += (first * size + shift) * sparse.strides[i + 1];
      sparse.strides[i + 1] *= size;
      dense.offset += first * dense.strides[i + 1];
    }
    StridedCopy(from, to_batch ? sparse : dense, to, to_batch ? dense : sparse, box);
  }
}

/// The op to the batch (or from it), of the general kind or of four dimensions and one block_size.
template <bool kToBatch>
struct BatchOp {
  static constexpr std::string_view kMargins = kToBatch ? "paddings" : "crops";
  static constexpr auto Dims = kToBatch ? ToBatchDims : ToSpaceDims;

  static Status Run(KernelContext& ctx, const Blocks& blocks) {
    const Tensor& in = ctx.input(0);
    TENON_ASSIGN_OR_RETURN(const DimVector dims, Dims(in.shape().dims(), blocks));
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
    if (kToBatch && out->num_elements() != in.num_elements()) ZeroElements(out);
    MoveBlocks(in, out, kToBatch, blocks);
    return OkStatus();
  }
  static Status Kernel(KernelContext& ctx) {
    TENON_ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(ctx.input(1), ctx.input(2), kMargins));
    return Run(ctx, blocks);
  }
  static Status SquareKernel(KernelContext& ctx, int64_t block_size) {
    const Tensor block = Tensor::Vector({block_size, block_size});
    TENON_ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(block, ctx.input(1), kMargins));
    return Run(ctx, blocks);
  }
  static Status InferShape(ShapeContext& c, const PartialShape& in, const Tensor* block_shape,
                           const Tensor* margins) {
    if (!in.rank_known() || block_shape == nullptr || margins == nullptr) {
      return c.Return(PartialShape::OfRank(in.rank()));
    }
    TENON_ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(*block_shape, *margins, kMargins));
    TENON_ASSIGN_OR_RETURN(const DimVector dims, Dims(in.dims(), blocks));
    return c.Return(PartialShape(dims));
  }
  static Status InferShape(ShapeContext& c) {
    return InferShape(c, c.input(0), c.constant(1), c.constant(2));
  }
  static Status SquareShape(ShapeContext& c) {
    TENON_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 4));
    TENON_ASSIGN_OR_RETURN(const int64_t block_size, c.Attr<int64_t>("block_size"));
    const Tensor block = Tensor::Vector({block_size, block_size});
    return InferShape(c, in, &block, c.constant(1));
  }
};

/// TensorFlow too registers kernels for the CPU for this format alone.
struct ChannelsLast : KernelState {
  explicit ChannelsLast(KernelConstruction& c) {
    const std::string format = c.Attr<std::string>("data_format");
    if (format == "NHWC") return;
    c.Fail(InvalidArgument("No OpKernel was registered to support Op '", c.op(),
                           "' on CPU with data_format ", format, ": there it must be NHWC"));
  }
};

/// What a block of pixels has to do with their channels, for images whose channels come last.
template <bool kToDepth>
struct DepthOp {
  /// What the op makes of `dims`, of which some may be unknown (-1).
  static StatusOr<DimVector> Dims(absl::Span<const int64_t> dims, int64_t block) {
    if (block < 2) return InvalidArgument("block_size must be at least 2, found ", block);
    TENON_ASSIGN_OR_RETURN(const int64_t square, MultiplySizes(block, block));
    DimVector out(dims.begin(), dims.end());
    for (const int i : {1, 2}) {
      if (kToDepth) {
        TENON_ASSIGN_OR_RETURN(out[i], Divide(dims[i], block, "height or width"));
      } else if (dims[i] >= 0) {
        TENON_ASSIGN_OR_RETURN(out[i], MultiplySizes(dims[i], block));
      }
    }
    if (!kToDepth) {
      TENON_ASSIGN_OR_RETURN(out[3], Divide(dims[3], square, "the number of channels"));
    } else if (dims[3] >= 0) {
      TENON_ASSIGN_OR_RETURN(out[3], MultiplySizes(dims[3], square));
    }
    return out;
  }
  static Status Kernel(KernelContext& ctx, int64_t block, const ChannelsLast&) {
    const Tensor& in = ctx.input(0);
    if (in.rank() != 4) return InvalidArgument("input must have rank 4, found ", in.shape());
    TENON_ASSIGN_OR_RETURN(const DimVector dims, Dims(in.shape().dims(), block));
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
    if (out->num_elements() == 0) return OkStatus();
    const DimVector& deep =
        kToDepth ? dims : DimVector(in.shape().dims().begin(), in.shape().dims().end());
    // Pixels as [batch, y, i, x, j, channel]: where they are in the flat and in the deep image.
    const int64_t channels = deep[3] / (block * block);
    const DimVector box = {deep[0], deep[1], block, deep[2], block, channels};
    const DimVector flat = StridesOf(box), s = StridesOf(deep);
    const DimVector stacked = {s[0], s[1], block * channels, s[2], channels, 1};
    StridedCopy(in, {0, kToDepth ? flat : stacked}, out, {0, kToDepth ? stacked : flat}, box);
    return OkStatus();
  }
  static Status InferShape(ShapeContext& c) {
    TENON_ASSIGN_OR_RETURN(const std::string data_format, c.Attr<std::string>("data_format"));
    if (data_format != "NHWC") return c.Return(PartialShape::OfRank(c.input(0).rank()));
    TENON_ASSIGN_OR_RETURN(PartialShape in, c.WithRank(0, 4));
    if (!in.rank_known()) in = PartialShape::OfRank(4);
    TENON_ASSIGN_OR_RETURN(const int64_t block, c.Attr<int64_t>("block_size"));
    TENON_ASSIGN_OR_RETURN(const DimVector dims, Dims(in.dims(), block));
    return c.Return(PartialShape(dims));
  }
};

}  // namespace

void RegisterSpaceOps(OpRegistry& ops) {
  using ToBatch = BatchOp<true>;
  using ToSpace = BatchOp<false>;
  const Tensor block = Tensor::Vector({2, 3});
  ops.Add("SpaceToBatchND", ToBatch::InferShape, ToBatch::Kernel)
      .Grad([](GradContext& g) { g.dx(0) = BatchToSpaceND(g.dy(0), g.in(1), g.in(2)); })
      .Example({Shape{2, 3, 5, 2}, block, Tensor::Of({2, 2}, {0, 1, 3, 1})});
  ops.Add("BatchToSpaceND", ToSpace::InferShape, ToSpace::Kernel)
      .Grad([](GradContext& g) { g.dx(0) = SpaceToBatchND(g.dy(0), g.in(1), g.in(2)); })
      .Example({Shape{6, 2, 2}, block, Tensor::Of({2, 2}, {0, 1, 3, 1})});
  ops.Add("SpaceToBatch", ToBatch::SquareShape, ToBatch::SquareKernel, {.attrs = {"block_size"}})
      .Grad([](GradContext& g) {
        g.dx(0) = BatchToSpace(g.dy(0), g.in(1), g.Attr<int64_t>("block_size"));
      })
      .Example({Shape{1, 3, 4, 2}, Tensor::Of({2, 2}, {0, 1, 1, 1})}, {{"block_size", 2}});
  ops.Add("BatchToSpace", ToSpace::SquareShape, ToSpace::SquareKernel, {.attrs = {"block_size"}})
      .Grad([](GradContext& g) {
        g.dx(0) = SpaceToBatch(g.dy(0), g.in(1), g.Attr<int64_t>("block_size"));
      })
      .Example({Shape{4, 2, 2, 1}, Tensor::Of({2, 2}, {0, 1, 1, 1})}, {{"block_size", 2}});
  const KernelOptions depth = {.attrs = {"block_size"}};
  ops.Add("SpaceToDepth", DepthOp<true>::InferShape, DepthOp<true>::Kernel, depth)
      .Grad([](GradContext& g) {
        g.dx(0) = DepthToSpace(g.dy(0), g.Attr<int64_t>("block_size"),
                               {.data_format = g.Attr<std::string>("data_format")});
      })
      .Example({Shape{1, 4, 2, 2}}, {{"block_size", 2}});
  ops.Add("DepthToSpace", DepthOp<false>::InferShape, DepthOp<false>::Kernel, depth)
      .Grad([](GradContext& g) {
        g.dx(0) = SpaceToDepth(g.dy(0), g.Attr<int64_t>("block_size"),
                               {.data_format = g.Attr<std::string>("data_format")});
      })
      .Example({Shape{1, 2, 1, 8}}, {{"block_size", 2}});
}

}  // namespace tenon
