// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace tenon {

/// Which feeds the fetches of a step depend on, for steps that are fed in several calls. Immutable.
class FeedDependencies {
 public:
  /// `step` is what MakeStepGraph gives for a signature with so many fetches.
  FeedDependencies(const Graph& step, size_t num_fetches);

  /// A feed without which one of `fetches` cannot be computed, among those that `fed` says are not
  /// there; -1 when there is none. Feeds and fetches by their numbers in the signature.
  int MissingFeed(const std::vector<int>& fetches, const std::vector<bool>& fed) const;

 private:
  std::vector<std::vector<int>> inputs_;  // by node: the nodes that it waits for
  std::vector<int> feed_of_node_;         // -1: it is none
  std::vector<int> node_of_fetch_;        // -1: nothing gives it
};

}  // namespace tenon
