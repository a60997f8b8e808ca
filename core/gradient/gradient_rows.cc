// SPDX-License-Identifier: Apache-2.0
#include "core/gradient/gradient_rows.h"

#include <algorithm>

#include "core/gradient/gradient_flow.h"
#include "core/graph/graph.h"

namespace tenon {
namespace {

Output WithDtype(const Output& x, DType dtype) {
  return x.dtype() == dtype ? x : NodeBuilder("Cast").Input(x).Attr("DstT", dtype).Output();
}

/// The same rows, with `change` made to each tensor that says which they are.
template <typename Change>
IndexedSlices ForEachTensor(const IndexedSlices& rows, const Change& change) {
  return {change(rows.values), change(rows.indices), change(rows.dense_shape)};
}

/// The rows that came: `parts` are those of branches, of which one is taken.
IndexedSlices MergeRows(const std::vector<IndexedSlices>& parts) {
  const DType index_dtype = parts[0].indices.dtype();
  const auto merged = [&](Output IndexedSlices::*tensor, DType dtype) {
    std::vector<Output> tensors;
    for (const IndexedSlices& part : parts) tensors.push_back(WithDtype(part.*tensor, dtype));
    return Output(NodeBuilder("Merge").Inputs(tensors).Finish(), 0);
  };
  return {merged(&IndexedSlices::values, parts[0].values.dtype()),
          merged(&IndexedSlices::indices, index_dtype),
          merged(&IndexedSlices::dense_shape, index_dtype)};
}

}  // namespace

IndexedSlices NoRows(const Output& whole, DType dtype, DType index_dtype) {
  const ColocateWith beside(whole);
  const bool is_handle = whole.dtype() == DType::kResource;
  const Output shape = NodeBuilder(is_handle ? "VariableShape" : "Shape")
                           .Input(whole)
                           .Attr("out_type", index_dtype)
                           .Output();
  const auto part = [&](int32_t begin, int32_t size) {
    return NodeBuilder("Slice")
        .Input(shape)
        .Input(Tensor::Vector<int32_t>({begin}))
        .Input(Tensor::Vector<int32_t>({size}))
        .Output();
  };
  const Output none = NodeBuilder("ConcatV2")
                          .Inputs({Tensor::Zeros(index_dtype, Shape({1})), part(1, -1)})
                          .Input(0)
                          .Output();
  const Output values = NodeBuilder("Fill").Input(none).Input(Tensor::Zeros(dtype, {})).Output();
  return {WithKnownShape(values, whole), part(0, 0), shape};
}

Output WithKnownShape(const Output& rows, const Output& whole) {
  if (whole.dtype() == DType::kResource || !whole.shape().rank_known()) return rows;
  PartialShape shape = whole.shape();
  if (shape.rank() == 0) return rows;
  return NodeBuilder("EnsureShape").Input(rows).Attr("shape", shape.WithDim(0, -1)).Output();
}

IndexedSlices JoinRows(const std::vector<Gradient>& parts) {
  const IndexedSlices& first = parts[0].slices;
  const ColocateWith beside(first.values);
  std::vector<Output> values, indices;
  for (const Gradient& part : parts) {
    values.push_back(part.slices.values);
    indices.push_back(WithDtype(part.slices.indices, first.indices.dtype()));
  }
  const auto joined = [](const std::vector<Output>& tensors) {
    return NodeBuilder("ConcatV2").Inputs(tensors).Input(0).Output();
  };
  return {joined(values), joined(indices), first.dense_shape};
}

bool GradientFlow::PassRows(Node* node) {
  const FlowKind kind = node->flow();
  if (!node->is_identity() && kind != FlowKind::kSwitch && kind != FlowKind::kMerge) return false;
  std::vector<Gradient> dys;
  for (int i = 0; i < node->num_outputs(); ++i) dys.push_back(SumOfParts(Output(node, i)));
  const auto rows = std::find_if(dys.begin(), dys.end(), [](const auto& d) { return d.exists(); });
  if (rows == dys.end() ||
      std::any_of(rows, dys.end(), [](const auto& d) { return d.exists() && !d.is_sparse(); })) {
    return false;
  }
  const auto add = [&](int input, const Gradient& dx) {
    if (Between(node->input(input).node)) Add(node->input(input), dx);
  };
  if (kind == FlowKind::kSwitch && !Between(node->input(0).node)) return true;
  if (node->is_identity()) {
    add(0, dys[0]);
    return true;
  }
  const NameScope in(StrCat(node->name(), "_grad"));
  const ColocateWith beside(node);
  const IndexedSlices& some = rows->slices;
  if (kind == FlowKind::kMerge) {
    // To the input that came.
    const Output which = value_of_(Output(node, 1));
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Output came = NodeBuilder("Equal").Input(which).Input(i).Output();
      add(i, ForEachTensor(some, [&](const Output& x) {
            return Output(NodeBuilder("Switch").Input(x).Input(came).Finish(), 1);
          }));
    }
    return true;
  }
  std::vector<IndexedSlices> sides;
  for (int i = 0; i < node->num_outputs(); ++i) {
    sides.push_back(dys[i].exists() ? dys[i].slices
                                    : NoRows(value_of_(Output(node, i)), some.values.dtype(),
                                             some.indices.dtype()));
  }
  add(0, MergeRows(sides));
  return true;
}

}  // namespace tenon
