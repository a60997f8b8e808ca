// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/hash_map.h"
#include "core/gradient/gradient.h"

namespace tenon {

/// Whether gradients pass tensors of this dtype.
inline bool HasGradients(DType t) { return IsFloating(t) || IsComplex(t); }

/// The gradients that have reached the tensors of a graph on the way back from the ys, and how they
/// pass its nodes.
class GradientFlow {
 public:
  /// `between` has for each id whether gradients are wanted at the node. `value_of` gives the
  /// values that gradient functions ask for.
  GradientFlow(
      Graph& graph, std::vector<bool> between,
      GradContext::ValueOf value_of = [](const Output& value) { return value; })
      : graph_(graph), between_(std::move(between)), value_of_(std::move(value_of)) {}

  /// Gradients are built within the branches of these predicates: what came into them by a Switch
  /// is the value before, and so is the gradient.
  void set_entered(std::vector<Output> predicates) { entered_ = std::move(predicates); }

  Graph& graph() const { return graph_; }
  const std::vector<bool>& between() const { return between_; }
  bool Between(const Node* node) const {
    return node->id() < static_cast<int>(between_.size()) && between_[node->id()];
  }

  /// One more gradient of `x`; nothing when it has no node.
  void Add(const Output& x, const Gradient& dx) {
    if (dx.exists()) parts_[{x.node, x.index}].push_back(dx);
  }
  /// The gradients that have reached `x`, added up; an Output without a node when none has.
  Output Sum(const Output& x);
  /// The same, of rows when all parts are.
  Gradient SumOfParts(const Output& x);
  /// Makes the gradients of the node's inputs of those of its outputs.
  Status Pass(Node* node);
  /// Passes a while loop: the name of its frame, and its nodes and those of the loops within it.
  using PassLoop = std::function<Status(const std::string& loop, const std::vector<Node*>& nodes)>;
  /// Passes those of `nodes`, which have none of a loop around `within`, each after all that it
  /// feeds, and the loops right within `within`, a loop's name or empty, each as a whole. `order`
  /// has the graph's nodes in topological order, `nodes` some of them.
  Status PassAll(const std::vector<Node*>& order, const std::vector<Node*>& nodes,
                 const std::string& within, const PassLoop& pass_loop);

 private:
  /// Passes nodes through which rows go as they are: what reads a variable, Switch and Merge.
  /// False when the node is another, or its gradients are no rows.
  bool PassRows(Node* node);
  /// The update of a ref variable waits for its gradient alone, and shows in all that was read from
  /// the variable. So the `dxs` of those inputs of `node` that were read from ref variables wait
  /// for the others, which nodes from id `first_new` on compute, where these nodes read such
  /// variables; as with gate_gradients=GATE_OP in TensorFlow's optimizers.
  void HoldBack(const Node& node, int first_new, std::vector<Gradient>* dxs);

  Graph& graph_;
  const std::vector<bool> between_;
  const GradContext::ValueOf value_of_;
  std::vector<Output> entered_;
  flat_hash_map<std::pair<Node*, int>, std::vector<Gradient>> parts_;
};

/// The while loop that `node` is part of, by the name of its frame; Exit nodes are. Empty outside.
std::string LoopOf(Graph& graph, const Node& node);

/// Passes the while loop `loop`, of which, and of those within it, `nodes` are those between: makes
/// the gradients of what enters it of those of what leaves it.
Status PassWhileLoop(const std::string& loop, const std::vector<Node*>& nodes, GradientFlow* flow);

}  // namespace tenon
