// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/attribute.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace tenon {

class Node;
struct OpSchema;

/// What a shape function sees: the shapes of a node's inputs as far as they are known, the values
/// of inputs that are constants, and the attributes. Outputs not set are of unknown shape.
class ShapeContext {
 public:
  explicit ShapeContext(const Node& node);

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const PartialShape& input(int i) const { return inputs_[i]; }
  /// The value of input `i` when it is a constant of the graph, else null.
  const Tensor* constant(int i) const;
  /// Input `i`, a scalar, as a dimension: -1 when it is no constant or below 0.
  int64_t ConstantInteger(int i) const;
  /// Input `i`, a vector of integers that is used as a shape, as far as it can be told: from a
  /// constant, or an op that has a ShapeValueFn. Negative entries are unknown
  /// dimensions. Unknown rank when nothing can be told.
  StatusOr<PartialShape> ConstantShape(int i) const;
  /// The declared shape of the variable whose handle is input `i`, as far as it can be told.
  PartialShape HandleShape(int i) const;
  const OpSchema& schema() const;
  const AttributeMap& attrs() const;
  template <typename T>
  StatusOr<T> Attr(std::string_view name) const {
    return attrs().Get<T>(name);
  }

  void set_output(int i, PartialShape shape) { outputs_[i] = std::move(shape); }
  /// Output 0, unless there is an error, which is then given back: how most shape functions end.
  Status Return(StatusOr<PartialShape> shape);
  /// The same of every output.
  Status ReturnForEach(StatusOr<PartialShape> shape);
  /// What the shape function set; InvalidArgument when one has too many dimensions or elements, so
  /// that shape functions need not look.
  StatusOr<std::vector<PartialShape>> TakeOutputs();

  /// Input `i` with its rank checked; InvalidArgument naming found and wanted.
  StatusOr<PartialShape> WithRank(int i, int rank) const;
  StatusOr<PartialShape> WithRankAtLeast(int i, int rank) const;
  /// All inputs from `first` on merged, which must be equal.
  StatusOr<PartialShape> Merged(int first = 0) const;

 private:
  const Node& node_;
  std::vector<PartialShape> inputs_;
  std::vector<PartialShape> outputs_;
};

using ShapeFn = Status (*)(ShapeContext&);
/// The shape that output 0, a vector of integers, stands for, as far as it can be told; see
/// ShapeContext::ConstantShape.
using ShapeValueFn = StatusOr<PartialShape> (*)(const ShapeContext&);

/// The shapes that the op's declaration has: those of the inputs must fit, and those of the outputs
/// are known as far as they follow. What is not declared is unknown.
Status DeclaredShape(ShapeContext& c);

/// Shape functions that many ops share.
Status UnchangedShape(ShapeContext& c);  // output 0 = input 0
Status ScalarShape(ShapeContext& c);     // every output is a scalar
Status UnknownShape(ShapeContext& c);    // nothing is known
Status BroadcastShape(ShapeContext& c);  // output 0 = inputs 0 and 1 broadcast
Status NoOutputShape(ShapeContext& c);   // for ops without outputs
/// Output 0 = all inputs merged, which must be equal.
Status MergedShape(ShapeContext& c);

/// The broadcast of two shapes as numpy and TensorFlow define it; InvalidArgument
/// "Incompatible shapes: [2] vs. [3]".
StatusOr<PartialShape> BroadcastShapes(const PartialShape& a, const PartialShape& b);

}  // namespace tenon
