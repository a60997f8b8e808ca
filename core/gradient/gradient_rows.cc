// SPDX-License-Identifier: Apache-2.0
#include "core/gradient/gradient_rows.h"

#include "core/graph/graph.h"

namespace tenon {
namespace {

Output WithDtype(const Output& x, DType dtype) {
  return x.dtype() == dtype ? x : NodeBuilder("Cast").Input(x).Attr("DstT", dtype).Output();
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
  const PartialShape& shape = whole.shape();
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

}  // namespace tenon
