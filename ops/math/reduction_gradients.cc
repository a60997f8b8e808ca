// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/math/math_ops.h"
#include "ops/math/reduction.h"

namespace tenon {
namespace {

/// Which axes are reduced, when the graph tells.
std::optional<AxisFlags> StaticAxes(const Node& node) {
  const Output x = node.input(0), axes = node.input(1);
  if (!x.shape().rank_known() || axes.node->op() != "Const") return std::nullopt;
  const auto value = axes.node->attrs().Get<Tensor>("value");
  if (!value.ok()) return std::nullopt;
  const auto reduced = ReducedAxes(*value, x.shape().rank());
  return reduced.ok() ? std::optional(*reduced) : std::nullopt;
}

/// The reduced axes as a vector, counted from the front, at run time.
Output Axes(const GradContext& g) {
  const Output rank = Rank(g.in(0));
  return Reshape((Cast(g.in(1), DType::kInt32) + rank) % rank, {-1});
}

/// The shape of the node's input with 1 for each reduced axis, computed at run time.
Output KeptShape(const GradContext& g) {
  const Output x_shape = ShapeOf(g.in(0)), axes = Axes(g);
  return DynamicStitch({Range(0, Size(x_shape), 1), axes}, {x_shape, OnesLike(axes)});
}

/// `y`, of the shape of the node's output, under a shape that broadcasts against the input's.
Output Broadcastable(const GradContext& g, Output y) {
  if (g.Attr<bool>("keep_dims")) return y;
  const auto reduced = StaticAxes(g.node());
  if (!reduced) return Reshape(y, KeptShape(g));
  // Leading axes that are missing broadcast by themselves.
  size_t first_kept = 0;
  while (first_kept < reduced->size() && (*reduced)[first_kept]) ++first_kept;
  if (first_kept == reduced->size()) return y;
  for (size_t i = first_kept, position = 0; i < reduced->size(); ++i, ++position) {
    if ((*reduced)[i]) y = ExpandDims(y, position);
  }
  return y;
}

/// How many elements each output element is made of: a number when it is known now.
std::optional<int64_t> StaticCount(const Node& node) {
  const auto reduced = StaticAxes(node);
  if (!reduced) return std::nullopt;
  const PartialShape& shape = Output(node.input(0)).shape();
  int64_t count = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!(*reduced)[i]) continue;
    if (shape.dim(i) < 0) return std::nullopt;
    count *= shape.dim(i);
  }
  return count;
}

}  // namespace

void SumGrad(GradContext& g) {
  g.dx(0) = BroadcastTo(Broadcastable(g, g.dy(0)), ShapeVector(g.in(0)));
}

void MeanGrad(GradContext& g) {
  const Output x = g.in(0);
  Output count;
  if (const auto known = StaticCount(g.node())) {
    count = Const(*known, {.dtype = x.dtype()});
  } else {
    const Output x_size = Size(x);
    count = Cast(FloorDiv(x_size, Maximum(Size(g.out(0)), 1)), x.dtype());
  }
  // Dividing the small gradient is cheaper than dividing the repeated one.
  const Output dy = RealDiv(g.dy(0), count);
  g.dx(0) = BroadcastTo(Broadcastable(g, dy), ShapeVector(x));
}

void NormGrad(GradContext& g) {
  g.dx(0) = RealDiv(g.in(0), RealDiv(Broadcastable(g, g.out(0)), Broadcastable(g, g.dy(0))));
}

void MinOrMaxGrad(GradContext& g) {
  const Output x = g.in(0);
  const Output y = Broadcastable(g, g.out(0));
  const Output chosen = Cast(Equal(y, x), x.dtype());
  const Output count = Sum(chosen, g.in(1), {.keep_dims = true});
  g.dx(0) = RealDiv(chosen, count) * Broadcastable(g, g.dy(0));
}

/// The product of the other elements that go into the same product: of those before it and of those
/// after it, so that zeros and products that are no number of the dtype do no harm.
void ProdGrad(GradContext& g) {
  const Output x = g.in(0), shape = ShapeOf(x), all = Range(0, Size(shape), 1);
  const Output axes = Axes(g);
  const Output kept = ListDiff(all, axes).out;
  const Output first_reduced = ConcatV2({axes, kept}, 0);
  const Output rows = Reshape(Transpose(x, first_reduced),
                              Pack({Prod(Gather(shape, axes), 0), Prod(Gather(shape, kept), 0)}));
  const Output before = Cumprod(rows, 0, {.exclusive = true});
  const Output after = Cumprod(rows, 0, {.exclusive = true, .reverse = true});
  const Output others = Reshape(before * after, Gather(shape, first_reduced));
  g.dx(0) =
      Broadcastable(g, g.dy(0)) * ConjugateOf(Transpose(others, InvertPermutation(first_reduced)));
}

}  // namespace tenon
