// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/cublas_lt.h"
#include "ops/cuda/element.cuh"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"
#include "ops/cuda/strided_index.h"
#include "ops/elements.h"
#include "ops/math/fusion.h"
#include "ops/math/matmul_shape.h"

namespace tenon {
namespace cuda {
namespace {

Status MatMulKernel(KernelContext& ctx, bool transpose_a, bool transpose_b) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const GemmShape gemm, MatMulSizes(a, b, transpose_a, transpose_b));
  TENON_ASSIGN_OR_RETURN(Tensor * c, ctx.CreateOutput(0, {gemm.m, gemm.n}));
  return Gemm(ctx, a.dtype(), {.shape = gemm}, a.raw_data(), b.raw_data(), c->raw_data());
}

/// The products along the innermost batch dimension are one call each.
Status Products(KernelContext& ctx, const BatchedProduct& product, const Tensor& x, const Tensor& y,
                Tensor* z) {
  const GemmShape& gemm = product.gemm;
  const int64_t a_size = gemm.m * gemm.k, b_size = gemm.k * gemm.n;
  const BroadcastPlan::Dim& inner = product.batch.inner();
  const BatchedGemm batch{gemm, inner.size, inner.strides[0] * a_size, inner.strides[1] * b_size};
  absl::InlinedVector<StridedDim<2>, 4> outer;
  int64_t calls = 1;
  for (size_t d = 0; d + 1 < product.batch.dims.size(); ++d) {
    const BroadcastPlan::Dim& dim = product.batch.dims[d];
    outer.push_back({dim.size, {dim.strides[0] * a_size, dim.strides[1] * b_size}});
    calls *= dim.size;
  }
  if (outer.empty()) outer.push_back({1, {0, 0}});
  TENON_RETURN_IF_ERROR(CheckIndexRank(outer.size()));
  const StridedIndex<2> index(outer, calls);
  for (int64_t i = 0; i < calls; ++i) {
    int64_t from[2];
    index.At(i, from);
    TENON_RETURN_IF_ERROR(Gemm(ctx, x.dtype(), batch, ElementAt(x, from[0]), ElementAt(y, from[1]),
                               ElementAt(*z, i * inner.size * gemm.m * gemm.n)));
  }
  return OkStatus();
}

template <bool kBroadcasts>
Status BatchMatMulKernel(KernelContext& ctx, bool adj_x, bool adj_y) {
  const Tensor &x = ctx.input(0), &y = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const BatchedProduct product,
                         BatchMatMulSizes(x.shape(), y.shape(), adj_x, adj_y, kBroadcasts));
  const GemmShape& gemm = product.gemm;
  TENON_ASSIGN_OR_RETURN(Tensor * z,
                         ctx.CreateOutput(0, Concat(product.batch.shape.dims(), {gemm.m, gemm.n})));
  // There may be any number of products of nothing, and their sizes need not fit.
  if (z->num_elements() == 0) return OkStatus();
  if (gemm.k == 0) {
    return QueueStatus(cudaMemsetAsync(z->raw_data(), 0, z->num_bytes(), StreamOf(ctx)));
  }
  return Products(ctx, product, x, y, z);
}

/// Adds the bias, which has an element for each of `columns`, and applies the activation.
template <typename T>
struct FinishProduct {
  T* product;
  const T* bias;
  Divisor columns;
  FusedActivation activation;
  float alpha;

  __device__ void operator()(int64_t i) const {
    const int64_t column = i - columns.Quotient(i) * columns.value();
    const float sum =
        static_cast<float>(Widen(product[i])) + static_cast<float>(Widen(bias[column]));
    product[i] = Narrow<T>(Activate(activation, sum, alpha));
  }
};

using FusedTypes = TypeList<float, Half, BFloat16>;

Status FusedMatMulKernel(KernelContext& ctx, const Tensor& a, const Tensor& b, const Tensor& bias,
                         const Fusion& fusion, bool transpose_a, bool transpose_b) {
  TENON_ASSIGN_OR_RETURN(const GemmShape gemm, MatMulSizes(a, b, transpose_a, transpose_b));
  TENON_RETURN_IF_ERROR(CheckBias(bias, gemm));
  TENON_ASSIGN_OR_RETURN(Tensor * c, ctx.CreateOutput(0, {gemm.m, gemm.n}));
  const int64_t elements = c->num_elements();
  if (elements == 0) return OkStatus();
  // The library's own activations do not let NaN through.
  if (fusion.activation == FusedActivation::kNone && gemm.k > 0 && IsBiasAligned(bias.raw_data())) {
    return GemmWithBias(ctx, a.dtype(), gemm, a.raw_data(), b.raw_data(), bias.raw_data(),
                        c->raw_data());
  }
  TENON_RETURN_IF_ERROR(
      Gemm(ctx, a.dtype(), {.shape = gemm}, a.raw_data(), b.raw_data(), c->raw_data()));
  return DispatchStatus(c->dtype(), FusedTypes(), [&]<typename T>(T) {
    return ForEach(ctx, elements,
                   FinishProduct<T>{c->data<T>(), bias.data<T>(), Divisor(gemm.n, elements),
                                    fusion.activation, fusion.alpha});
  });
}

}  // namespace
}  // namespace cuda

void RegisterCudaMatMul(OpRegistry& ops) {
  const auto options = [](DTypeVector types, std::vector<std::string> attrs) {
    return KernelOptions{.types = {{"T", std::move(types)}}, .attrs = std::move(attrs)};
  };
  const DTypeVector types = DTypesOf(cuda::GemmTypes());
  const std::vector<std::string> transposes = {"transpose_a", "transpose_b"};
  const std::vector<std::string> adjoints = {"adj_x", "adj_y"};
  cuda::AddKernel(ops, "MatMul", cuda::MatMulKernel, options(types, transposes));
  cuda::AddKernel(ops, "BatchMatMul", cuda::BatchMatMulKernel<false>, options(types, adjoints));
  cuda::AddKernel(ops, "BatchMatMulV2", cuda::BatchMatMulKernel<true>, options(types, adjoints));
  cuda::AddKernel(ops, "_FusedMatMul", cuda::FusedMatMulKernel,
                  options(DTypesOf(cuda::FusedTypes()), transposes));
}

}  // namespace tenon
