// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/hash_map.h"
#include "core/graph/graph.h"
#include "core/graph/output.h"

namespace tenon {

/// Which tensors of a graph exist in one branch of a tf.cond only: what comes out of a Switch, and
/// what depends on that, up to the Merge. Branches within a while loop are those of one iteration.
class LoopBranches {
 public:
  struct Branch {
    Output predicate;  // of the Switch
    bool taken;        // the predicate's value for which the branch runs
    int around;        // the branch that the Switch is in, or kNone
    int depth;         // how many branches one is in
  };
  static constexpr int kNone = -1;

  /// `order` has the graph's nodes in topological order.
  LoopBranches(Graph& graph, const std::vector<Node*>& order);

  /// The innermost branch that a tensor is in, or kNone. Also kNone for nodes made since.
  int Of(const Output& value) const;
  const Branch& operator[](int branch) const { return branches_[branch]; }
  /// Says that a node made since is in `branch`.
  void Put(const Node& node, int branch) { branch_of_node_[node.id()] = branch; }

 private:
  int OfInputs(const Node& node) const;
  int Deeper(int a, int b) const;

  std::vector<Branch> branches_;
  flat_hash_map<int, int> branch_of_node_;      // by id; of a Switch, that around it
  flat_hash_map<int, int> branches_of_switch_;  // by id: that of output 0, before that of output 1
};

}  // namespace tenon
