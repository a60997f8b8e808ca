// SPDX-License-Identifier: Apache-2.0
#include "core/gradient/gradients.h"

#include <algorithm>
#include <limits>

#include "core/build/loop_frame.h"
#include "core/gradient/gradient_flow.h"
#include "core/gradient/loop_branches.h"
#include "core/graph/graph.h"

namespace tenon {
namespace {

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
             std::vector<Gradient>* grads) {
    TENON_RETURN_IF_ERROR(CheckArguments(grad_ys));
    // Also of a function in a loop's body, which is put there when a session is opened.
    const std::string frame = LoopFrameOf(graph_, *ys_[0].node);
    const bool is_within = CurrentBuilding().flow != nullptr ||
                           (!xs_.empty() && LoopFrameOf(graph_, *xs_[0].node) == frame);
    if (is_within) within_ = frame;
    GradientFlow flow(graph_, NodesBetween());
    if (const FlowContext* const inside = CurrentBuilding().flow; inside != nullptr) {
      TENON_ASSIGN_OR_RETURN(std::vector<Output> entered, PredicatesAround(inside->pivot()));
      flow.set_entered(std::move(entered));
    }
    for (size_t i = 0; i < ys_.size(); ++i) {
      flow.Add(ys_[i], grad_ys.empty() ? OnesLike(ys_[i]) : grad_ys[i]);
    }
    TENON_RETURN_IF_ERROR(graph_.error());
    TENON_RETURN_IF_ERROR(PassAll(&flow));
    return Collect(&flow, allow_unconnected, grads);
  }

 private:
  Status CheckArguments(const std::vector<Output>& grad_ys) const {
    if (ys_.empty()) return InvalidArgument("there is no y to take the gradient of");
    if (!grad_ys.empty() && grad_ys.size() != ys_.size()) {
      return InvalidArgument("found ", grad_ys.size(), " grad_ys for ", ys_.size(), " ys");
    }
    for (const Output& y : ys_) {
      if (!HasGradients(y.dtype())) {
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
      return NodeBuilder("Const", name)
          .Attr("value", std::move(value))
          .Attr("dtype", dtype)
          .Output();
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

  /// Whether it gives the initial value of a loop's variable, whose value in the iteration that the
  /// gradients are of does not come from there.
  bool BeginsIterations(const Node& node) const {
    return !within_.empty() && node.attrs().GetOr<std::string>("frame_name", "") == within_ &&
           !node.attrs().GetOr("is_constant", false);
  }

  /// The predicates of the branches that a value lies in, through the loops that it lies in.
  StatusOr<std::vector<Output>> PredicatesAround(Output value) const {
    TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    const LoopBranches branches(graph_, order);
    std::vector<Output> predicates;
    while (true) {
      for (int b = branches.Of(value); b != LoopBranches::kNone; b = branches[b].around) {
        predicates.push_back(branches[b].predicate);
      }
      const std::string frame = LoopFrameOf(graph_, *value.node);
      if (frame.empty()) return predicates;
      // Where the loop is: what enters it from the innermost branch tells.
      Output around;
      int depth = -1;
      for (Node* node : order) {
        if (!node->is_enter() || LoopFrameOf(graph_, *node) != frame) continue;
        const int branch = branches.Of(node->input(0));
        const int found = branch == LoopBranches::kNone ? 0 : branches[branch].depth;
        if (found > depth) {
          depth = found;
          around = node->input(0);
        }
      }
      value = around;
    }
  }

  /// By id: the nodes that lie on a path from some x to some y.
  std::vector<bool> NodesBetween() const {
    const int n = graph_.num_ids();
    std::vector<bool> from_x(n, false), to_y(n, false);
    std::vector<Node*> stack;
    for (const Output& x : xs_) stack.push_back(x.node);
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      if (from_x[node->id()]) continue;
      from_x[node->id()] = true;
      if (BeginsIterations(*node)) continue;
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
    for (int i = 0; i < n; ++i) from_x[i] = from_x[i] && to_y[i];
    return from_x;
  }

  Status PassAll(GradientFlow* flow) const {
    TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    std::vector<Node*> between;
    for (Node* node : order) {
      if (flow->Between(node)) between.push_back(node);
    }
    return flow->PassAll(order, between, within_, [&](const auto& loop, const auto& nodes) {
      return PassWhileLoop(loop, nodes, flow);
    });
  }

  Status Collect(GradientFlow* flow, bool allow_unconnected, std::vector<Gradient>* grads) const {
    grads->clear();
    for (const Output& x : xs_) {
      const Gradient dx = flow->SumOfParts(x);
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
  /// The frame of the loop in whose body the gradients are built; empty outside loops.
  std::string within_;
};

}  // namespace

std::vector<Gradient> SparseGradients(const Inputs& ys, const Inputs& xs,
                                      const GradientsOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  std::vector<Gradient> grads;
  const auto build = [&]() -> Status {
    TENON_ASSIGN_OR_RETURN(const std::vector<Output> of,
                           OutputsOf(context, ys, "a y of the gradient"));
    TENON_ASSIGN_OR_RETURN(const std::vector<Output> by,
                           OutputsOf(context, xs, "an x of the gradient"));
    for (const Output& dy : options.grad_ys) {
      TENON_RETURN_IF_ERROR(context.CheckValue(dy, "one of the grad_ys"));
    }
    const NameScope scope(UnusedScope("gradients"));
    return GradientBuilder(*context.graph, of, by)
        .Run(options.grad_ys, options.allow_unconnected, &grads);
  };
  if (context.graph->error().ok()) {
    if (const Status s = build(); !s.ok()) context.Fail(s, options.location);
  }
  grads.resize(xs.values().size());
  return grads;
}

std::vector<Output> Gradients(const Inputs& ys, const Inputs& xs, const GradientsOptions& options) {
  const CalledFrom caller(options.location);
  std::vector<Output> dense;
  for (const Gradient& g : SparseGradients(ys, xs, options)) dense.push_back(g.ToDense());
  return dense;
}

std::vector<Output> WithGradient(
    const std::vector<Output>& inputs, const std::vector<Output>& outputs,
    const std::function<std::vector<Output>(const std::vector<Output>& dys)>& gradient,
    const OpOptions& options) {
  const CalledFrom caller(options.location);
  Graph& graph = *CurrentBuilding().graph;
  // The inputs go through the node too, so that their gradients have where to go; those of the
  // outputs end here.
  std::vector<Output> all = outputs;
  all.insert(all.end(), inputs.begin(), inputs.end());
  const std::string name = StrCat("CustomGradient-", graph.custom_gradients().size());
  const size_t count = outputs.size();
  graph.custom_gradients()[name] = [count, gradient](GradContext& g) {
    std::vector<Output> dys;
    for (size_t i = 0; i < count; ++i) {
      const int at = static_cast<int>(i);
      dys.push_back(g.dy(at).exists() ? g.dy(at) : ZerosOf(g.out(at), g.out(at).dtype()));
    }
    const std::vector<Output> dxs = gradient(dys);
    const size_t wanted = static_cast<size_t>(g.num_inputs()) - count;
    if (dxs.size() != wanted) {
      return g.Fail(InvalidArgument("the program's own gradient gave ", dxs.size(),
                                    " gradients for ", wanted, " inputs"));
    }
    for (size_t i = 0; i < wanted; ++i) g.dx(static_cast<int>(count + i)) = dxs[i];
  };
  std::vector<Output> results =
      NodeBuilder("IdentityN", options.name).Inputs(all).Attr("_gradient_op_type", name).Outputs();
  results.resize(count);
  return results;
}

void OpBuilder::FailGradient(GradContext& g, const Status& status) { g.Fail(status); }

}  // namespace tenon
