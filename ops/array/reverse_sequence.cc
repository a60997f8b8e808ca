// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/parallel.h"
#include "core/gradient/gradients.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/elements.h"

namespace tenon {
namespace {

Status CheckDims(int64_t seq_dim, int64_t batch_dim, int rank) {
  for (const auto& [what, dim] :
       {std::pair("seq_dim", seq_dim), std::pair("batch_dim", batch_dim)}) {
    if (dim >= rank) {
      return InvalidArgument(what, " must be < input rank (", dim, " vs. ", rank, ")");
    }
    if (dim < 0) return NotInRange(dim, rank, what);
  }
  if (seq_dim != batch_dim) return OkStatus();
  return InvalidArgument("batch_dim == seq_dim == ", seq_dim, ", wanted different ones");
}

Status ReverseSequenceKernel(KernelContext& ctx, const Tensor& in, const Tensor& seq_lengths,
                             int64_t seq_dim, int64_t batch_dim) {
  TENON_RETURN_IF_ERROR(CheckDims(seq_dim, batch_dim, in.rank()));
  const int seq = static_cast<int>(seq_dim), batch = static_cast<int>(batch_dim);
  const int64_t seq_size = in.dim(seq), batch_size = in.dim(batch);
  if (seq_lengths.dim(0) != batch_size) {
    return InvalidArgument("Length of seq_lengths != input.dims(", batch, "), (",
                           seq_lengths.dim(0), " vs. ", batch_size, ")");
  }
  TENON_ASSIGN_OR_RETURN(const IndexVector lengths, ReadIndices(seq_lengths, "seq_lengths"));
  for (int64_t i = 0; i < batch_size; ++i) {
    if (lengths[i] >= 0 && lengths[i] <= seq_size) continue;
    return InvalidArgument("seq_lengths[", i, "] = ", lengths[i], " is not in [0, ", seq_size, "]");
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return OkStatus();

  // Rows are what lies behind the later of both dimensions; they move as wholes.
  const int row_begin = std::max(seq, batch) + 1;
  const int64_t row_size = Product(in.shape().dims(), row_begin, in.rank());
  const int64_t seq_stride = Product(in.shape().dims(), seq + 1, row_begin);
  const int64_t batch_stride = Product(in.shape().dims(), batch + 1, row_begin);
  const double cost_ns = 5 + 0.1 * static_cast<double>(row_size * StrideOf(in.dtype()));
  ParallelFor(in.num_elements() / row_size, cost_ns, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row / seq_stride % seq_size;
      const int64_t length = lengths[row / batch_stride % batch_size];
      const int64_t from = at < length ? row + (length - 1 - 2 * at) * seq_stride : row;
      CopyElements(in, from * row_size, out, row * row_size, row_size);
    }
  });
  return OkStatus();
}

Status ReverseSequenceShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  TENON_ASSIGN_OR_RETURN(const PartialShape lengths, c.WithRank(1, 1));
  if (!in.rank_known()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const int64_t seq_dim, c.Attr<int64_t>("seq_dim"));
  TENON_ASSIGN_OR_RETURN(const int64_t batch_dim, c.Attr<int64_t>("batch_dim"));
  TENON_RETURN_IF_ERROR(CheckDims(seq_dim, batch_dim, in.rank()));
  // The batch's size is that of either.
  const int batch = static_cast<int>(batch_dim);
  return c.Return(in.MergeWith(PartialShape::OfRank(in.rank()).WithDim(batch, lengths.dim(0))));
}

void ReverseSequenceGrad(GradContext& g) {
  g.dx(0) = ReverseSequence(g.dy(0), g.in(1), g.Attr<int64_t>("seq_dim"),
                            {.batch_dim = g.Attr<int64_t>("batch_dim")});
}

}  // namespace

void RegisterReverseSequence(OpRegistry& ops) {
  ops.Add("ReverseSequence", ReverseSequenceShape, ReverseSequenceKernel,
          {.attrs = {"seq_dim", "batch_dim"}})
      .Grad(ReverseSequenceGrad)
      .Example({Shape{2, 4}, Tensor::Vector<int64_t>({3, 0})}, {{"seq_dim", 1}})
      .Example({Shape{3, 2, 2, 2}, Tensor::Vector<int32_t>({3, 2})},
               {{"seq_dim", 0}, {"batch_dim", 2}});
}

}  // namespace tenon
