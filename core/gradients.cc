// SPDX-License-Identifier: Apache-2.0
#include "core/gradients.h"

#include <algorithm>
#include <limits>

namespace tenon {
namespace {

/// Ops that only exist together with the state of a loop; their gradients are a loop themselves.
bool IsLoopOp(const Node& node) {
  return node.registration().is_loop_back || node.op() == "Enter" || node.op() == "Exit";
}

bool Differentiable(DType t) { return IsFloating(t) || IsComplex(t); }

/// `values`, which must be of the graph.
StatusOr<std::vector<Output>> OutputsOf(const BuildContext& context, const Inputs& values,
                                        std::string_view what) {
  std::vector<Output> outputs;
  for (const Input& value : values.values()) {
    outputs.push_back(value.output() == nullptr ? Output() : *value.output());
    TENON_RETURN_IF_ERROR(context.CheckValue(outputs.back(), what));
  }
  return outputs;
}

class GradientBuilder {
 public:
  GradientBuilder(Graph& graph, const std::vector<Output>& ys, const std::vector<Output>& xs)
      : graph_(graph), ys_(ys), xs_(xs) {}

  Status Run(const std::vector<Output>& grad_ys, bool allow_unconnected,
             std::vector<Output>* grads) {
    TENON_RETURN_IF_ERROR(CheckArguments(grad_ys));
    MarkBetween();
    for (size_t i = 0; i < ys_.size(); ++i) {
      Output dy = grad_ys.empty() ? OnesLike(ys_[i]) : grad_ys[i];
      AddTo(ys_[i], dy);
    }
    TENON_RETURN_IF_ERROR(graph_.error());
    TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, ReverseOrder());
    for (Node* node : order) TENON_RETURN_IF_ERROR(Propagate(node));
    return Collect(allow_unconnected, grads);
  }

 private:
  Status CheckArguments(const std::vector<Output>& grad_ys) const {
    if (ys_.empty()) return InvalidArgument("there is no y to take the gradient of");
    if (!grad_ys.empty() && grad_ys.size() != ys_.size()) {
      return InvalidArgument("found ", grad_ys.size(), " grad_ys for ", ys_.size(), " ys");
    }
    for (const Output& y : ys_) {
      if (!Differentiable(y.dtype())) {
        return InvalidArgument("gradients need a floating point loss; '", y.name(), "' is ",
                               ToString(y.dtype()));
      }
      if (grad_ys.empty() && IsComplex(y.dtype())) {
        return InvalidArgument("gradients of the complex '", y.name(), "' need grad_ys");
      }
    }
    for (size_t i = 0; i < grad_ys.size(); ++i) {
      const Output &y = ys_[i], &dy = grad_ys[i];
      if (y.dtype() != dy.dtype() || !y.shape().IsCompatibleWith(dy.shape())) {
        return InvalidArgument("'", dy.name(), "' is ", ToString(dy.dtype()), dy.shape().ToString(),
                               ", no gradient of '", y.name(), "', which is ", ToString(y.dtype()),
                               y.shape().ToString());
      }
    }
    return OkStatus();
  }

  static Output OnesLike(const Output& y) {
    const ColocateWith beside(y);
    const auto constant = [](Tensor value, std::string_view name) {
      const DType dtype = value.dtype();
      return NodeBuilder("Const", name).Attr("value", std::move(value)).Attr("dtype", dtype).Output();
    };
    const Output one = constant(OneOf(y.dtype()), "grad_ys_one");
    if (y.shape().IsFullyKnown() && y.shape().rank() == 0) return one;
    const Output shape = y.shape().IsFullyKnown()
                             ? constant(ShapeTensor(y.shape().dims()), "grad_ys_shape")
                             : NodeBuilder("Shape", "grad_ys_shape").Input(y).Output();
    return NodeBuilder("Fill", "grad_ys").Input(shape).Input(one).Output();
  }

  /// As int32, as TensorFlow has it, unless a dimension does not fit.
  static Tensor ShapeTensor(absl::Span<const int64_t> dims) {
    const bool small = std::all_of(dims.begin(), dims.end(), [](int64_t d) {
      return d <= std::numeric_limits<int32_t>::max();
    });
    if (!small) return Tensor::Vector(std::vector<int64_t>(dims.begin(), dims.end()));
    return Tensor::Vector(std::vector<int32_t>(dims.begin(), dims.end()));
  }

  static Tensor OneOf(DType type) {
    Tensor one(type, Shape());
    Dispatch(type, NumericTypes(), [&](auto zero) {
      using T = decltype(zero);
      *one.data<T>() = T(1);
    });
    return one;
  }

  /// Marks the nodes that lie on a path from some x to some y.
  void MarkBetween() {
    const int n = graph_.num_ids();
    std::vector<bool> from_x(n, false), to_y(n, false);
    std::vector<Node*> stack;
    for (const Output& x : xs_) stack.push_back(x.node);
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      if (from_x[node->id()]) continue;
      from_x[node->id()] = true;
      for (const OutEdge& e : node->out_edges()) {
        if (e.output != kControlSlot) stack.push_back(e.dst);
      }
    }
    for (const Output& y : ys_) stack.push_back(y.node);
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      if (to_y[node->id()]) continue;
      to_y[node->id()] = true;
      for (const Endpoint& in : node->inputs()) stack.push_back(in.node);
    }
    between_.resize(n);
    for (int i = 0; i < n; ++i) between_[i] = from_x[i] && to_y[i];
  }

  bool Between(const Node* node) const {
    return node->id() < static_cast<int>(between_.size()) && between_[node->id()];
  }

  StatusOr<std::vector<Node*>> ReverseOrder() const {
    TENON_ASSIGN_OR_RETURN(std::vector<Node*> order, graph_.TopologicalOrder());
    std::erase_if(order, [&](Node* n) { return !Between(n); });
    std::reverse(order.begin(), order.end());
    return order;
  }

  Status Propagate(Node* node) {
    std::vector<Output> dys(node->num_outputs());
    bool any = false;
    for (int i = 0; i < node->num_outputs(); ++i) {
      dys[i] = Sum(Output(node, i));
      any |= dys[i].exists();
    }
    TENON_RETURN_IF_ERROR(graph_.error());
    const OpRegistration& op = node->registration();
    if (!any || !op.schema.is_differentiable || node->num_inputs() == 0) return OkStatus();
    const bool wanted = std::any_of(node->inputs().begin(), node->inputs().end(),
                                    [&](const Endpoint& in) { return Between(in.node); });
    if (!wanted) return OkStatus();
    if (IsLoopOp(*node)) {
      return Unimplemented("node '", node->name(), "' (", node->op(),
                           "): gradients through a while loop cannot be built");
    }
    if (!op.gradient) {
      return InvalidArgument("node '", node->name(), "' (", node->op(),
                             "): the op has no gradient function");
    }
    GradContext g(*node, dys);
    {
      const NameScope in(StrCat(node->name(), "_grad"));
      const ColocateWith beside(node);
      op.gradient(g);
    }
    TENON_RETURN_IF_ERROR(Annotate(g.status(), StrCat("gradient of node '", node->name(), "'")));
    TENON_RETURN_IF_ERROR(graph_.error());
    for (int i = 0; i < node->num_inputs(); ++i) {
      if (g.dx(i).exists() && Between(node->input(i).node)) AddTo(node->input(i), g.dx(i));
    }
    return OkStatus();
  }

  void AddTo(const Output& x, const Output& dx) {
    if (dx.exists()) parts_[{x.node, x.index}].push_back(dx);
  }

  /// The gradients that reached `x`, added up; an empty Output when none did.
  Output Sum(const Output& x) {
    const auto found = parts_.find({x.node, x.index});
    if (found == parts_.end()) return Output();
    std::vector<Output>& parts = found->second;
    if (parts.size() > 1) {
      const ColocateWith beside(parts[0]);
      parts.assign(1, NodeBuilder("AddN").Inputs(parts).Output());
    }
    return parts[0];
  }

  Status Collect(bool allow_unconnected, std::vector<Output>* grads) {
    grads->clear();
    for (const Output& x : xs_) {
      Output dx = Sum(x);
      if (!dx.exists() && !allow_unconnected) {
        return InvalidArgument("'", ys_[0].name(), "' does not depend on '", x.name(),
                               "' through differentiable ops, so it has no gradient");
      }
      grads->push_back(dx);
    }
    return graph_.error();
  }

  Graph& graph_;
  const std::vector<Output>& ys_;
  const std::vector<Output>& xs_;
  std::vector<bool> between_;
  flat_hash_map<std::pair<Node*, int>, std::vector<Output>> parts_;
};

}  // namespace

std::vector<Output> Gradients(const Inputs& ys, const Inputs& xs, const GradientsOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  std::vector<Output> grads;
  const auto build = [&]() -> Status {
    TENON_ASSIGN_OR_RETURN(const std::vector<Output> of, OutputsOf(context, ys, "a y of the gradient"));
    TENON_ASSIGN_OR_RETURN(const std::vector<Output> by,
                           OutputsOf(context, xs, "an x of the gradient"));
    for (const Output& dy : options.grad_ys) {
      TENON_RETURN_IF_ERROR(context.CheckValue(dy, "one of the grad_ys"));
    }
    const NameScope scope("gradients");
    return GradientBuilder(*context.graph, of, by)
        .Run(options.grad_ys, options.allow_unconnected, &grads);
  };
  if (context.graph->error().ok()) {
    if (const Status s = build(); !s.ok()) context.Fail(s, options.location);
  }
  grads.resize(xs.values().size());
  return grads;
}

}  // namespace tenon
