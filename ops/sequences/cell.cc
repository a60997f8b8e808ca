// SPDX-License-Identifier: Apache-2.0
#include "ops/sequences/cell.h"

#include "core/base/parallel.h"
#include "ops/elements.h"
#include "ops/math/gemm.h"

namespace tenon {

StatusOr<Tensor> Floats(absl::Span<const int64_t> dims) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  return Tensor::Allocate(CpuAllocator(), DType::kFloat, shape);
}

StatusOr<std::vector<Tensor>> FloatInputs(KernelContext& ctx, int first) {
  std::vector<Tensor> inputs;
  for (int i = first; i < ctx.num_inputs(); ++i) {
    const Tensor& in = ctx.input(i);
    if (in.dtype() == DType::kFloat) {
      inputs.push_back(in);
      continue;
    }
    TENON_ASSIGN_OR_RETURN(Tensor wide, Floats(in.shape().dims()));
    std::copy_n(in.data<Half>(), in.num_elements(), wide.data<float>());
    inputs.push_back(std::move(wide));
  }
  return inputs;
}

Status SetOutputs(KernelContext& ctx, std::vector<Tensor> values) {
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    if (ctx.output_type(i) == DType::kFloat) {
      ctx.set_output(i, std::move(values[i]));
      continue;
    }
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(i, values[i].shape()));
    const float* const from = values[i].data<float>();
    for (int64_t k = 0; k < out->num_elements(); ++k) out->data<Half>()[k] = Half(from[k]);
  }
  return OkStatus();
}

Status CheckShape(const Tensor& t, std::string_view what, const Shape& wanted) {
  if (t.shape() == wanted) return OkStatus();
  return InvalidArgument(what, " must have shape ", wanted, ", found ", t.shape());
}

Status Multiply(const Tensor& a, const Tensor& b, Tensor* c, bool transpose_a, bool transpose_b) {
  return Gemm(DType::kFloat,
              {.m = c->dim(0),
               .n = c->dim(1),
               .k = a.dim(transpose_a ? 0 : 1),
               .transpose_a = transpose_a,
               .transpose_b = transpose_b},
              a.data<float>(), b.data<float>(), c->data<float>());
}

Status JoinColumns(const Tensor& a, const Tensor& b, Tensor* joined) {
  const int64_t n = a.dim(1), m = b.dim(1);
  for (int64_t row = 0; row < a.dim(0) && !Interrupted(); ++row) {
    CopyElements(a, row * n, joined, row * (n + m), n);
    CopyElements(b, row * m, joined, row * (n + m) + n, m);
  }
  return OkStatus();
}

}  // namespace tenon
