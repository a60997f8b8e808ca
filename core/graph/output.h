// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <type_traits>

#include "core/graph/graph.h"

namespace tenon {

class SliceIndices;

/// A tensor in a graph under construction: an output of a node. Small; copy it freely. Valid while
/// the graph lives. After a mistake it has no node; what is asked of it then is harmless.
struct Output {
  Node* node = nullptr;
  int index = 0;

  Output() = default;
  /// A node stands for its output 0.
  template <typename T>
  requires std::is_same_v<T, Node>  // not for 0: x == 0 is no comparison with a node
  Output(T* n, int i = 0) : node(n == FailedNode() ? nullptr : n), index(i) {}  // NOLINT
  Output(Endpoint e) : Output(e.node, e.index) {}                               // NOLINT
  operator Endpoint() const { return {node, index}; }                           // NOLINT

  /// A part of the tensor, with Python's meaning of indices; see slicing.h.
  Output operator[](const SliceIndices& indices) const;

  /// Whether there is such a tensor: a node that has this output. An Output is no truth value: what
  /// a comparison of tensors gives is known in the step only.
  bool exists() const { return node != nullptr && index >= 0 && index < node->num_outputs(); }
  /// kInvalid when there is no such tensor.
  DType dtype() const { return exists() ? BaseType(node->output_type(index)) : DType::kInvalid; }
  /// As far as shape inference knows it; unknown when there is no such tensor.
  const PartialShape& shape() const;
  /// "name" or "name:index", as feeds and fetches name it; empty without a node.
  std::string name() const { return node == nullptr ? "" : ToString(Endpoint(*this)); }
  /// Whether both are the same tensor of the graph; Equal() compares elements.
  friend bool operator==(const Output& a, const Output& b) = default;
};

}  // namespace tenon
