// SPDX-License-Identifier: Apache-2.0
#include "ops/array/constants.h"

namespace tenon {
namespace {

Output ConstantOf(StatusOr<Tensor> value, const ConstOptions& options) {
  if (value.ok() && !value->valid()) value = value->mistake();
  if (!value.ok()) {
    CurrentBuilding(options.location).Fail(value.status(), options.location);
    return Output();
  }
  NodeBuilder node("Const", options.name, options.location);
  node.Attr("dtype", value->dtype());
  return node.Attr("value", *std::move(value)).Output();
}

Output Filled(const Shape& shape, int element, const ConstOptions& options) {
  for (const int64_t d : shape.dims()) {
    if (d < 0) return ConstantOf(InvalidArgument("a tensor has no dimension of ", d), options);
  }
  const DType dtype = options.dtype == DType::kInvalid ? DType::kFloat : options.dtype;
  StatusOr<Tensor> value = Tensor::Allocate(CpuAllocator(), dtype, shape);
  if (!value.ok()) {
    const Status hint = ResourceExhausted(Message(value.status()), "; Fill makes it in the step");
    return ConstantOf(hint, options);
  }
  const bool numeric = Dispatch(dtype, NumericTypes(), [&]<typename T>(T) {
    for (T& e : value->flat<T>()) e = T(element);
  });
  if (numeric) return ConstantOf(std::move(value), options);
  return ConstantOf(InvalidArgument("no number has dtype ", dtype), options);
}

}  // namespace

Output Const(const Input& value, const ConstOptions& options) {
  const DType wanted = options.dtype;
  if (const Literal* literal = value.literal()) {
    const DType dtype = wanted == DType::kInvalid ? literal->NaturalType() : wanted;
    return ConstantOf(literal->ToTensor(dtype), options);
  }
  const Output* const output = value.output();
  const DType dtype = output != nullptr ? output->dtype() : value.tensor()->dtype();
  if (wanted != DType::kInvalid && dtype != DType::kInvalid && dtype != wanted) {
    return ConstantOf(InvalidArgument("the value is ", dtype, ", wanted ", wanted), options);
  }
  return output != nullptr ? *output : ConstantOf(*value.tensor(), options);
}

Output Zeros(const Shape& shape, const ConstOptions& options) { return Filled(shape, 0, options); }
Output Ones(const Shape& shape, const ConstOptions& options) { return Filled(shape, 1, options); }

}  // namespace tenon
