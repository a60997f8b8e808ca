// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "core/build/building.h"

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

/// What a gradient function works on: a node, and the gradients of its outputs, of which it makes
/// those of its inputs.
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

struct GradientsOptions {
  /// The gradients of the ys; ones when empty.
  std::vector<Output> grad_ys = {};
  /// Gives an x that the ys do not depend on an Output without a node, instead of an error.
  bool allow_unconnected = false;
  std::source_location location = std::source_location::current();
};

/// Adds to the graph being built the gradients of sum(ys) with regard to each of `xs`, by reverse
/// mode: each has the shape of its x. A tensor that is used several times gets the sum (AddN).
/// Gradients of what a variable is read from reach the variable itself when it is in `xs`.
///
/// The gradient of a while loop is a loop that goes back through its iterations: what a gradient
/// needs of one, the loop puts on a stack. Loops may lie within loops and branches, and branches
/// within loops.
///
/// The mistake is InvalidArgument when some x has no differentiable path from it to the ys (naming
/// both), when a y is not floating point, or when an op on the path has no gradient function
/// (naming the op).
std::vector<Output> Gradients(const Inputs& ys, const Inputs& xs,
                              const GradientsOptions& options = {});
/// The same, where the gradient of an x that is only gathered from has the rows that were gathered,
/// also in branches and loops, there those of all iterations, and never those of the whole x.
std::vector<Gradient> SparseGradients(const Inputs& ys, const Inputs& xs,
                                      const GradientsOptions& options = {});

/// The `outputs`, which were computed from `inputs` alone, with a gradient of the program's own in
/// the place of that of the ops between (tf.custom_gradient): `gradient` builds the gradients of
/// the inputs of those of the outputs, with which it is called each time that they are wanted. An
/// output whose gradient is not known has zeros; an Output without a node among the results is no
/// gradient.
///
///   Output x = ..., y = Log(1 + Exp(x));
///   y = WithGradient({x}, {y}, [=](const std::vector<Output>& dys) {
///     return std::vector<Output>{dys[0] * Sigmoid(x)};
///   })[0];
std::vector<Output> WithGradient(
    const std::vector<Output>& inputs, const std::vector<Output>& outputs,
    const std::function<std::vector<Output>(const std::vector<Output>& dys)>& gradient,
    const OpOptions& options = {});

}  // namespace tenon
