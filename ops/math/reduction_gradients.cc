// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "ops/composition.h"
#include "ops/math/math_ops.h"
#include "ops/math/reduction.h"

namespace tenon {
namespace {

/// Which axes are reduced, when the graph tells.
std::optional<std::vector<bool>> StaticAxes(const Node& node) {
  const Output x = node.input(0), axes = node.input(1);
  if (!x.shape().rank_known() || axes.node->op() != "Const") return std::nullopt;
  const auto value = axes.node->attrs().Get<Tensor>("value");
  if (!value.ok()) return std::nullopt;
  const auto reduced = ReducedAxes(*value, x.shape().rank());
  return reduced.ok() ? std::optional(*reduced) : std::nullopt;
}

/// The shape of the node's input with 1 for each reduced axis, computed at run time.
Output KeptShape(const Node& node) {
  const Output x_shape = ShapeOf(node.input(0));
  const Output rank = Size(x_shape);
  const Output all = Range(0, rank, 1);
  Output axes = Cast(node.input(1), DType::kInt32);
  axes = Reshape((axes + rank) % rank, {-1});
  return DynamicStitch({all, axes}, {x_shape, OnesLike(axes)});
}

/// `y`, of the shape of the node's output, under a shape that broadcasts against the input's.
Output Broadcastable(const Node& node, Output y) {
  if (node.attrs().GetOr("keep_dims", false)) return y;
  const auto reduced = StaticAxes(node);
  if (!reduced) return Reshape(y, KeptShape(node));
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
  g.dx(0) = BroadcastTo(Broadcastable(g.node(), g.dy(0)), ShapeVector(g.in(0)));
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
  g.dx(0) = BroadcastTo(Broadcastable(g.node(), dy), ShapeVector(x));
}

void NormGrad(GradContext& g) {
  g.dx(0) = RealDiv(g.in(0),
                    RealDiv(Broadcastable(g.node(), g.out(0)), Broadcastable(g.node(), g.dy(0))));
}

void MinOrMaxGrad(GradContext& g) {
  const Output x = g.in(0);
  const Output y = Broadcastable(g.node(), g.out(0));
  const Output chosen = Cast(Equal(y, x), x.dtype());
  const Output count = Sum(chosen, g.in(1), {.keep_dims = true});
  g.dx(0) = RealDiv(chosen, count) * Broadcastable(g.node(), g.dy(0));
}

void ProdGrad(GradContext& g) {
  // The product of the others is p / x, p being the product of all that are not 0; beside one 0 it
  // is 0 for all but that one, for which it is p; beside two it is 0 for all.
  const Output x = g.in(0), axes = g.in(1);
  const Output zero = Const(0, {.dtype = x.dtype()}), one = Const(1, {.dtype = x.dtype()});
  const Output is_zero = Equal(x, zero);
  const Output nonzero = SelectV2(is_zero, one, x);
  const Output p = Prod(nonzero, axes, {.keep_dims = true});
  const Output zeros = Sum(Cast(is_zero, DType::kInt32), axes, {.keep_dims = true});
  const Output none = Equal(zeros, 0);
  const Output single = Equal(zeros, 1);
  const Output others =
      SelectV2(is_zero, SelectV2(single, p, zero), SelectV2(none, RealDiv(p, nonzero), zero));
  g.dx(0) = ConjugateOf(others) * Broadcastable(g.node(), g.dy(0));
}

}  // namespace tenon
