// SPDX-License-Identifier: Apache-2.0
#include "ops/reduction_gradients.h"

#include <optional>

#include "ops/composition.h"
#include "ops/math_ops.h"
#include "ops/reduction.h"

namespace tenon {
namespace {

/// Which axes are reduced, when the graph tells.
std::optional<std::vector<bool>> StaticAxes(const Node& node) {
  const Output x = node.input(0), axes = node.input(1);
  if (!x.shape().rank_known() || axes.node->op() != "Const") return std::nullopt;
  const Attribute* value = axes.node->attrs().Find("value");
  const Tensor* tensor = value == nullptr ? nullptr : value->get_if<Tensor>();
  if (tensor == nullptr) return std::nullopt;
  StatusOr<std::vector<bool>> reduced = ReducedAxes(*tensor, x.shape().rank());
  if (!reduced.ok()) return std::nullopt;
  return *std::move(reduced);
}

/// The shape of the node's input with 1 for each reduced axis, computed at run time.
Output KeptShape(const Scope& s, const Node& node) {
  const Output x_shape = s.Op("Shape").Input(node.input(0)).Output();
  const Output rank = s.Op("Size").Input(x_shape).Output();
  const Output zero = ScalarOf(s, DType::kInt32, 0), one = ScalarOf(s, DType::kInt32, 1);
  const Output all = s.Op("Range").Input(zero).Input(rank).Input(one).Output();
  Output axes = Cast(s, node.input(1), DType::kInt32);
  axes = ReshapeTo(s, FloorMod(s, AddV2(s, axes, rank), rank), IntVector(s, {-1}));
  const Output ones = OnesLike(s, axes);
  return s.Op("DynamicStitch")
      .Input(std::vector<Output>{all, axes})
      .Input(std::vector<Output>{x_shape, ones})
      .Output();
}

/// `y`, of the shape of the node's output, under a shape that broadcasts against the input's.
Output Broadcastable(const Scope& s, const Node& node, Output y) {
  if (!s.ok() || node.attrs().GetOr<bool>("keep_dims", false)) return y;
  const auto reduced = StaticAxes(node);
  if (!reduced) return ReshapeTo(s, y, KeptShape(s, node));
  // Leading axes that are missing broadcast by themselves.
  size_t first_kept = 0;
  while (first_kept < reduced->size() && (*reduced)[first_kept]) ++first_kept;
  if (first_kept == reduced->size()) return y;
  for (size_t i = first_kept, position = 0; i < reduced->size(); ++i, ++position) {
    if (!(*reduced)[i]) continue;
    y = s.Op("ExpandDims")
            .Input(y)
            .Input(ScalarOf(s, DType::kInt32, static_cast<double>(position)))
            .Output();
  }
  return y;
}

/// How many elements each output element is made of: a number when it is known now.
std::optional<int64_t> StaticCount(const Node& node) {
  const auto reduced = StaticAxes(node);
  if (!reduced) return std::nullopt;
  const PartialShape& shape = Output(node.input(0)).shape();
  int64_t count = 1;
  for (size_t i = 0; i < reduced->size(); ++i) {
    if (!(*reduced)[i]) continue;
    if (shape.dim(static_cast<int>(i)) < 0) return std::nullopt;
    count *= shape.dim(static_cast<int>(i));
  }
  return count;
}

}  // namespace

Status SumGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
               std::vector<Output>* dxs) {
  const Output x = node.input(0);
  (*dxs)[0] = BroadcastTo(s, Broadcastable(s, node, dys[0]), ShapeVector(s, x));
  return OkStatus();
}

Status MeanGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                std::vector<Output>* dxs) {
  const Output x = node.input(0);
  Output count;
  if (const auto known = StaticCount(node)) {
    count = ScalarOf(s, x.dtype(), static_cast<double>(*known));
  } else {
    const Output x_size = s.Op("Size").Input(x).Output();
    const Output y_size = s.Op("Size").Input(Output(&node)).Output();
    const Output at_least_one = Maximum(s, y_size, ScalarOf(s, DType::kInt32, 1));
    count = Cast(s, FloorDiv(s, x_size, at_least_one), x.dtype());
  }
  // Dividing the small gradient is cheaper than dividing the repeated one.
  const Output dy = RealDiv(s, dys[0], count);
  (*dxs)[0] = BroadcastTo(s, Broadcastable(s, node, dy), ShapeVector(s, x));
  return OkStatus();
}

Status MinOrMaxGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                    std::vector<Output>* dxs) {
  const Output x = node.input(0);
  const Output y = Broadcastable(s, node, Output(&node));
  const Output chosen = Cast(s, Equal(s, y, x), x.dtype());
  const Output count = Sum(s, chosen, node.input(1), true);
  (*dxs)[0] = Mul(s, RealDiv(s, chosen, count), Broadcastable(s, node, dys[0]));
  return OkStatus();
}

Status ProdGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                std::vector<Output>* dxs) {
  // The product of the others is p / x, p being the product of all that are not 0; beside one 0 it
  // is 0 for all but that one, for which it is p; beside two it is 0 for all.
  const Output x = node.input(0), axes = node.input(1);
  const Output zero = ScalarOf(s, x.dtype(), 0), one = ScalarOf(s, x.dtype(), 1);
  const Output is_zero = Equal(s, x, zero);
  const Output nonzero = SelectV2(s, is_zero, one, x);
  const Output p = Prod(s, nonzero, axes, true);
  const Output zeros = Sum(s, Cast(s, is_zero, DType::kInt32), axes, true);
  const Output none = Equal(s, zeros, ScalarOf(s, DType::kInt32, 0));
  const Output single = Equal(s, zeros, ScalarOf(s, DType::kInt32, 1));
  const Output others = SelectV2(s, is_zero, SelectV2(s, single, p, zero),
                                 SelectV2(s, none, RealDiv(s, p, nonzero), zero));
  (*dxs)[0] = Mul(s, ConjugateOf(s, others), Broadcastable(s, node, dys[0]));
  return OkStatus();
}

}  // namespace tenon
