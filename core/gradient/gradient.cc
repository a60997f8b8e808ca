// SPDX-License-Identifier: Apache-2.0
#include "core/gradient/gradient.h"

namespace tenon {

Output ZerosOf(const Output& value, DType dtype) {
  if (value.dtype() != DType::kResource) return NodeBuilder("ZerosLike").Input(value).Output();
  const Output shape = NodeBuilder("VariableShape").Input(value).Output();
  return NodeBuilder("Fill").Input(shape).Input(Tensor::Zeros(dtype, {})).Output();
}

Output IndexedSlices::ToDense() const {
  const ColocateWith beside(values);
  const Output rows = NodeBuilder("GatherV2").Input(dense_shape).Input(0).Input(0).Output();
  return NodeBuilder("UnsortedSegmentSum").Input(values).Input(indices).Input(rows).Output();
}

Gradient Gradient::WithValues(const Output& values) const {
  if (!is_sparse()) return values;
  return IndexedSlices{values, slices.indices, slices.dense_shape};
}

}  // namespace tenon
