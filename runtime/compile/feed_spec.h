// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "runtime/execute/signature.h"

namespace tenon {

/// The dtypes and shapes that the feeds of a signature must have.
class FeedSpec {
 public:
  /// REQUIRES: the signature has passed MakeStepGraph.
  FeedSpec(const Graph& graph, const Signature& signature);
  /// InvalidArgument naming the feed, what it is and what it must be.
  Status Check(const std::vector<Tensor>& feeds) const;
  /// The same of feed `i` alone.
  Status CheckOne(size_t i, const Tensor& feed) const;

 private:
  struct Feed {
    std::string name;
    DType dtype;
    PartialShape shape;
  };
  std::vector<Feed> feeds_;
};

}  // namespace tenon
