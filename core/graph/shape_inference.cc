// SPDX-License-Identifier: Apache-2.0
#include "core/op/shape_inference.h"

#include <algorithm>

#include "core/base/strings.h"
#include "core/graph/graph.h"

namespace tenon {
namespace {

/// How far back a shape is followed through the graph.
constexpr int kMaxValueDepth = 8;

const Tensor* ConstantOf(const Endpoint& from) {
  if (from.node == nullptr || !from.node->is_constant()) return nullptr;
  const Attribute* value = from.node->attrs().Find("value");
  return value == nullptr ? nullptr : value->get_if<Tensor>();
}

std::optional<int64_t> IntegerAt(const Tensor& t, int64_t i) {
  if (t.dtype() == DType::kInt32) return t.data<int32_t>()[i];
  if (t.dtype() == DType::kInt64) return t.data<int64_t>()[i];
  return std::nullopt;
}

StatusOr<PartialShape> ShapeValue(const Endpoint& from, int depth) {
  if (from.node == nullptr || depth > kMaxValueDepth) return PartialShape();
  if (const Tensor* t = ConstantOf(from)) {
    if (t->rank() != 1) {
      return InvalidArgument("a shape must be a vector, found ", t->shape().ToString());
    }
    DimVector dims;
    for (int64_t i = 0; i < t->num_elements(); ++i) {
      const auto value = IntegerAt(*t, i);
      if (!value) return InvalidArgument("a shape must be integers, found ", ToString(t->dtype()));
      dims.push_back(std::max<int64_t>(*value, -1));
    }
    return PartialShape::Create(dims);
  }
  const Node& node = *from.node;
  if (const ShapeValueFn value_of = node.registration().shape_value; value_of != nullptr) {
    return value_of(ShapeContext(node));
  }
  if (node.is_identity() && node.input_types()[0] != DType::kResource) {
    return ShapeValue(node.input(0), depth + 1);
  }
  const PartialShape& length = node.output_shape(from.index);
  if (length.rank() == 1 && length.dim(0) >= 0 && length.dim(0) <= Shape::kMaxRank) {
    return PartialShape::OfRank(static_cast<int>(length.dim(0)));
  }
  return PartialShape();
}

/// The error of a node whatever its inputs are. Kernels look at the shapes of their inputs, which
/// may be known to nobody before, and rely on attributes.
Status AttributeError(const Graph& graph, const Node& node) {
  Graph alone(graph.registry());
  alone.set_functions(graph.shared_functions());
  TENON_ASSIGN_OR_RETURN(Node * copy, alone.CopyNode(node));
  return alone.InferShapes(copy);
}

}  // namespace

Status Graph::InferShapes(Node* node) {
  if (node->registration().shape == nullptr) return OkStatus();
  ShapeContext context(*node);
  TENON_RETURN_IF_ERROR(node->registration().shape(context));
  TENON_ASSIGN_OR_RETURN(node->output_shapes_, context.TakeOutputs());
  return OkStatus();
}

Status Graph::InferShapes(int first_id) {
  TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, TopologicalOrder(first_id));
  for (Node* node : order) {
    if (InferShapes(node).ok()) continue;
    node->output_shapes_.assign(node->num_outputs(), PartialShape());
    if (const Status wrong = AttributeError(*this, *node); !wrong.ok()) {
      SetNodeError(*node, Annotate(wrong, StrCat("node '", node->name(), "' (", node->op(), ")")));
    }
  }
  return OkStatus();
}

ShapeContext::ShapeContext(const Node& node) : node_(node), outputs_(node.num_outputs()) {
  inputs_.reserve(node.num_inputs());
  for (const Endpoint& in : node.inputs()) {
    inputs_.push_back(in.node == nullptr ? PartialShape() : in.node->output_shape(in.index));
  }
}

const OpSchema& ShapeContext::schema() const { return node_.schema(); }

const AttributeMap& ShapeContext::attrs() const { return node_.attrs(); }

const Tensor* ShapeContext::constant(int i) const { return ConstantOf(node_.input(i)); }

int64_t ShapeContext::ConstantInteger(int i) const {
  const Tensor* const t = constant(i);
  const auto value = t != nullptr && t->rank() == 0 ? IntegerAt(*t, 0) : std::nullopt;
  return std::max<int64_t>(value.value_or(-1), -1);
}

StatusOr<PartialShape> ShapeContext::ConstantShape(int i) const {
  return ShapeValue(node_.input(i), 0);
}

PartialShape ShapeContext::HandleShape(int i) const {
  const Node* node = node_.input(i).node;
  for (int depth = 0; node != nullptr && depth < kMaxValueDepth; ++depth) {
    if (node->is_variable()) return node->attrs().GetOr("shape", PartialShape());
    const bool forwards =
        node->is_identity() || node->is_enter() || node->flow() == FlowKind::kSwitch;
    if (!forwards) break;
    node = node->input(0).node;
  }
  return PartialShape();
}

StatusOr<std::vector<PartialShape>> ShapeContext::TakeOutputs() {
  for (PartialShape& shape : outputs_) {
    if (!shape.rank_known()) continue;
    TENON_ASSIGN_OR_RETURN(shape, PartialShape::Create(shape.dims()));
  }
  return std::move(outputs_);
}

Status ShapeContext::Return(StatusOr<PartialShape> shape) {
  if (!shape.ok()) return shape.status();
  outputs_[0] = *std::move(shape);
  return OkStatus();
}

Status ShapeContext::ReturnForEach(StatusOr<PartialShape> shape) {
  if (!shape.ok()) return shape.status();
  std::fill(outputs_.begin(), outputs_.end(), *shape);
  return OkStatus();
}

StatusOr<PartialShape> ShapeContext::Merged(int first) const {
  PartialShape merged;
  for (int i = first; i < num_inputs(); ++i) {
    TENON_ASSIGN_OR_RETURN(merged, merged.MergeWith(input(i)));
  }
  return merged;
}

StatusOr<PartialShape> ShapeContext::WithRank(int i, int rank) const {
  const PartialShape& in = input(i);
  if (!in.rank_known()) return PartialShape::OfRank(rank);
  if (in.rank() != rank) {
    return InvalidArgument("Shape must be rank ", rank, " but is rank ", in.rank(), ": input ", i,
                           " has shape ", in.ToString());
  }
  return in;
}

StatusOr<PartialShape> ShapeContext::WithRankAtLeast(int i, int rank) const {
  const PartialShape& in = input(i);
  if (in.rank_known() && in.rank() < rank) {
    return InvalidArgument("Shape must be at least rank ", rank, " but is rank ", in.rank(),
                           ": input ", i, " has shape ", in.ToString());
  }
  return in;
}

Status DeclaredShape(ShapeContext& c) {
  const OpSchema& schema = c.schema();
  DimNames names;
  std::vector<int> first;  // of the tensors of each input argument
  int tensor = 0;
  for (const ArgSchema& arg : schema.inputs) {
    TENON_ASSIGN_OR_RETURN(const int64_t length, ArgLength(arg, c.attrs()));
    first.push_back(tensor);
    if (!arg.shape) {
      tensor += static_cast<int>(length);
      continue;
    }
    const ShapePattern pattern = arg.shape->Resolved(c.attrs());
    for (int64_t i = 0; i < length; ++i) {
      const PartialShape& in = c.input(tensor++);
      const std::string name = length == 1 ? arg.name : StrCat(arg.name, "[", i, "]");
      if (in.rank_known()) TENON_RETURN_IF_ERROR(names.Match(pattern, in.dims(), name));
    }
  }
  tensor = 0;
  for (const ArgSchema& arg : schema.outputs) {
    TENON_ASSIGN_OR_RETURN(const int64_t length, ArgLength(arg, c.attrs()));
    PartialShape shape;
    if (arg.shape) {
      ShapePattern pattern = arg.shape->Resolved(c.attrs());
      for (DimPattern& dim : pattern.dims) {
        if (dim.kind != DimPattern::Kind::kInput) continue;
        int64_t value = -1;
        if (dim.element < 0) {
          value = c.ConstantInteger(first[dim.index]);
        } else if (c.input(first[dim.index]).rank() == 1) {
          TENON_ASSIGN_OR_RETURN(const PartialShape sizes, c.ConstantShape(first[dim.index]));
          if (dim.element < sizes.rank()) value = sizes.dim(dim.element);
        }
        dim.kind = value < 0 ? DimPattern::Kind::kAny : DimPattern::Kind::kNumber;
        if (value >= 0) {
          TENON_ASSIGN_OR_RETURN(dim.number, AddSizes(value, std::max<int64_t>(dim.number, 0)));
        }
      }
      DimVector dims;
      TENON_ASSIGN_OR_RETURN(const bool known, names.Dims(pattern, &dims));
      if (known) shape = PartialShape(dims);
    }
    for (int64_t i = 0; i < length; ++i) c.set_output(tensor++, shape);
  }
  return OkStatus();
}

Status UnchangedShape(ShapeContext& c) { return c.Return(c.input(0)); }

Status ScalarShape(ShapeContext& c) { return c.ReturnForEach(Shape()); }

Status UnknownShape(ShapeContext&) { return OkStatus(); }

Status NoOutputShape(ShapeContext&) { return OkStatus(); }

Status BroadcastShape(ShapeContext& c) { return c.Return(BroadcastShapes(c.input(0), c.input(1))); }

Status MergedShape(ShapeContext& c) { return c.Return(c.Merged()); }

StatusOr<PartialShape> BroadcastShapes(const PartialShape& a, const PartialShape& b) {
  if (!a.rank_known() || !b.rank_known()) return PartialShape();
  const int rank = std::max(a.rank(), b.rank());
  DimVector dims(rank);
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const int64_t x = ia < 0 ? 1 : a.dim(ia), y = ib < 0 ? 1 : b.dim(ib);
    if (x == y) {
      dims[i] = x;
    } else if (x == 1) {
      dims[i] = y;
    } else if (y == 1) {
      dims[i] = x;
    } else if (x < 0 || y < 0) {
      dims[i] = std::max(x, y);
    } else {
      return InvalidArgument("Incompatible shapes: ", a.ToString(), " vs. ", b.ToString());
    }
  }
  return PartialShape::Create(dims);
}

}  // namespace tenon
