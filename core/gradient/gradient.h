// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/build/building.h"

// Gradients of tensors, and the context of the functions with which ops make them.

namespace tenon {

/// The gradient of a tensor of which only some rows were used (tf.IndexedSlices): values[i] belongs
/// to row indices[i], and a row that comes several times gets the sum.
struct IndexedSlices {
  Output values;
  Output indices;      // int32 or int64, of rank 1
  Output dense_shape;  // of the whole tensor, of the dtype of the indices

  bool exists() const { return values.exists(); }
  /// The whole tensor's gradient, zeros in the rows that were not used.
  Output ToDense() const;
};

/// A gradient: of a whole tensor, of some of its rows, or none.
struct Gradient {
  Output dense;
  IndexedSlices slices;

  Gradient() = default;
  Gradient(Output d) : dense(d) {}                     // NOLINT
  Gradient(IndexedSlices s) : slices(std::move(s)) {}  // NOLINT
  bool exists() const { return dense.exists() || slices.exists(); }
  bool is_sparse() const { return slices.exists(); }
  DType dtype() const { return is_sparse() ? slices.values.dtype() : dense.dtype(); }
  /// The gradient of the whole tensor; without a node when there is none.
  Output ToDense() const { return is_sparse() ? slices.ToDense() : dense; }
  /// The tensor that has its numbers: of the rows alone when it is sparse.
  const Output& values() const { return is_sparse() ? slices.values : dense; }
  /// The same rows with other numbers, of the same shape.
  Gradient WithValues(const Output& values) const;
};

/// The context of an op's gradient function: a node, and the gradients of its outputs, of which the
/// function makes those of its inputs.
///
///   void SquareGrad(GradContext& g) { g.dx(0) = 2 * g.in(0) * g.dy(0); }
///
class GradContext {
 public:
  /// A value of the graph where its gradient is computed.
  using ValueOf = std::function<Output(const Output& value)>;

  GradContext(Node& node, const std::vector<Output>& dys, const ValueOf& value_of)
      : node_(node), dys_(dys), value_of_(value_of), dxs_(node.num_inputs()) {}

  /// The node whose gradient is built. Its edges may lie in a loop, which the gradient is outside
  /// of: values are what in() and out() give.
  const Node& node() const { return node_; }
  /// Input and output `i` of the node.
  Output in(int i) const { return value_of_(node_.input(i)); }
  Output out(int i) const { return value_of_(Output(&node_, i)); }
  int num_inputs() const { return node_.num_inputs(); }
  /// The gradient of output `i`; without a node when none flows.
  const Output& dy(int i) const { return dys_[i]; }
  /// To be set to the gradient of input `i`; left as it is when none flows.
  Output& dx(int i) { return dxs_[i].dense; }
  /// The same for an input of which few rows were used; instead of dx.
  IndexedSlices& dx_slices(int i) { return dxs_[i].slices; }
  const std::vector<Output>& dys() const { return dys_; }
  const std::vector<Gradient>& dxs() const { return dxs_; }
  /// The node's attribute, or `fallback` when it has none of that type.
  template <typename T>
  T Attr(std::string_view name, T fallback = T()) const {
    return node_.attrs().GetOr<T>(name, std::move(fallback));
  }
  /// The gradient cannot be built.
  void Fail(const Status& error) { status_.Update(error); }
  const Status& status() const { return status_; }

 private:
  Node& node_;
  const std::vector<Output>& dys_;
  const ValueOf& value_of_;
  std::vector<Gradient> dxs_;
  Status status_;
};

/// Zeros of the shape and dtype of `value`; where it is the handle of a variable, of the variable's
/// shape and `dtype`. A gradient where none flows.
Output ZerosOf(const Output& value, DType dtype);

}  // namespace tenon
