// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/feed_dependencies.h"

namespace tenon {

FeedDependencies::FeedDependencies(const Graph& step, size_t num_fetches)
    : inputs_(step.num_ids()), feed_of_node_(step.num_ids(), -1), node_of_fetch_(num_fetches, -1) {
  for (const Node* n : step.nodes()) {
    const auto index = static_cast<int>(n->attrs().GetOr<int64_t>("index", -1));
    if (n->is_arg()) feed_of_node_[n->id()] = index;
    if (n->is_retval()) node_of_fetch_[index] = n->id();
    std::vector<int>& inputs = inputs_[n->id()];
    for (const Endpoint& in : n->inputs()) inputs.push_back(in.node->id());
    for (const Node* c : n->control_inputs()) inputs.push_back(c->id());
  }
}

int FeedDependencies::MissingFeed(const std::vector<int>& fetches,
                                  const std::vector<bool>& fed) const {
  std::vector<bool> seen(inputs_.size(), false);
  std::vector<int> stack;
  const auto visit = [&](int node) {
    if (node < 0 || seen[node]) return;
    seen[node] = true;
    stack.push_back(node);
  };
  for (const int fetch : fetches) visit(node_of_fetch_[fetch]);
  while (!stack.empty()) {
    const int node = stack.back();
    stack.pop_back();
    const int feed = feed_of_node_[node];
    if (feed >= 0 && !fed[feed]) return feed;
    for (const int input : inputs_[node]) visit(input);
  }
  return -1;
}

}  // namespace tenon
