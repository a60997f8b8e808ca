// SPDX-License-Identifier: Apache-2.0
#include "core/op/kernel.h"

#include <memory>
#include <new>

namespace tenon {

StatusOr<Tensor*> KernelContext::AllocateOutput(int i, const Shape& shape) {
  TENON_ASSIGN_OR_RETURN(outputs_[i].tensor, AllocateTemp(output_type(i), shape));
  return &outputs_[i].tensor;
}

StatusOr<Tensor*> KernelContext::CreateOutput(int i, absl::Span<const int64_t> dims) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  return AllocateOutput(i, shape);
}

StatusOr<Tensor*> KernelContext::ForwardOrAllocate(int from, int i, const Shape& shape) {
  Tensor& in = inputs_[from].tensor;
  if (in.dtype() != output_type(i) || !in.OwnsBuffer() ||
      in.num_elements() != shape.num_elements() || !IsPlain(in.dtype())) {
    return AllocateOutput(i, shape);
  }
  Tensor* const out = &outputs_[i].tensor;
  // A tensor that is made elsewhere and assigned is read in other pieces than it has just been
  // written in, for which processors wait.
  std::destroy_at(out);
  try {
    return new (out) Tensor(in.HandOver(shape));
  } catch (...) {
    std::construct_at(out);
    throw;
  }
}

}  // namespace tenon
