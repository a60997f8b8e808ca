// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/math/fusion.h"
#include "ops/math/matmul_shape.h"
#include "ops/math/vector_maths.h"
#include "ops/maths.h"

// Ops that no program writes: TensorFlow's graph optimiser puts them into the graphs that its
// masters send.

namespace tenon {
namespace {

/// What follows the bias, in place.
using Activation = void (*)(float* x, int64_t n, float alpha);

template <FusedActivation kActivation>
void Each(float* x, int64_t n, float alpha) {
  TENON_SIMD
  for (int64_t i = 0; i < n; ++i) x[i] = Activate(kActivation, x[i], alpha);
}

/// In the order of the enumeration.
constexpr Activation kActivations[] = {
    nullptr,
    Each<FusedActivation::kRelu>,
    Each<FusedActivation::kRelu6>,
    Each<FusedActivation::kLeakyRelu>,
    [](float* x, int64_t n, float) { VectorElu(x, x, n, 1, 1); },
    [](float* x, int64_t n, float) { VectorSigmoid(x, x, n); },
    [](float* x, int64_t n, float) { VectorTanh(x, x, n); },
    Each<FusedActivation::kGeluApproximate>,
    Each<FusedActivation::kGeluExact>,
};

constexpr std::string_view kActivationNames[] = {
    "", "Relu", "Relu6", "LeakyRelu", "Elu", "Sigmoid", "Tanh", "GeluApproximate", "GeluExact"};

template <typename T>
void Finish(const Fusion& fusion, T* c, const T* bias, int64_t rows, int64_t n) {
  const Activation activation = kActivations[static_cast<int>(fusion.activation)];
  const double cost = (activation == nullptr ? 0.3 : 1.0) * static_cast<double>(n);
  ParallelFor(rows, cost, [&](int64_t begin, int64_t end) {
    CountedVector<float> wide(std::is_same_v<T, float> ? 0 : n);
    for (int64_t r = begin; r < end; ++r) {
      T* row = c + r * n;
      float* x = wide.data();
      if constexpr (std::is_same_v<T, float>) x = row;
      TENON_SIMD
      for (int64_t i = 0; i < n; ++i) x[i] = float(row[i]) + float(bias[i]);
      if (activation != nullptr) activation(x, n, fusion.alpha);
      if constexpr (!std::is_same_v<T, float>) {
        for (int64_t i = 0; i < n; ++i) row[i] = T(x[i]);
      }
    }
  });
}

Status FusedMatMulKernel(KernelContext& ctx, const Tensor& a, const Tensor& b, const Tensor& bias,
                         const Fusion& fusion, bool transpose_a, bool transpose_b) {
  TENON_ASSIGN_OR_RETURN(const GemmShape gemm, MatMulSizes(a, b, transpose_a, transpose_b));
  TENON_RETURN_IF_ERROR(CheckBias(bias, gemm));
  TENON_ASSIGN_OR_RETURN(Tensor * c, ctx.CreateOutput(0, {gemm.m, gemm.n}));
  TENON_RETURN_IF_ERROR(Gemm(a.dtype(), gemm, a.raw_data(), b.raw_data(), c->raw_data()));
  return DispatchStatus(c->dtype(), TypeList<float, Half, BFloat16>(), [&]<typename T>(T) {
    Finish(fusion, c->data<T>(), bias.data<T>(), gemm.m, gemm.n);
  });
}

/// A copy in effect: nobody writes what is shared.
Status SnapshotKernel(KernelContext& ctx) {
  Tensor value = ctx.TakeInput(0);
  value.Settle();
  return ctx.Return(std::move(value));
}

}  // namespace

Fusion::Fusion(KernelConstruction& c) : alpha(c.Attr<float>("leakyrelu_alpha")) {
  const auto fused = c.Attr<std::vector<std::string>>("fused_ops");
  for (size_t i = 1; i < std::size(kActivationNames); ++i) {
    if (fused.size() == 2 && fused[1] == kActivationNames[i]) {
      activation = static_cast<FusedActivation>(i);
    }
  }
  const size_t known = activation == FusedActivation::kNone ? 1 : 2;
  if (fused.size() != known || fused[0] != "BiasAdd") {
    c.Fail(Unimplemented("Fusion is not implemented: [", Join(fused, ","), "]"));
  } else if (c.input_types().size() != 3) {
    c.Fail(InvalidArgument("Fused MatMul with BiasAdd must have one extra argument: bias."));
  }
}

Status CheckBias(const Tensor& bias, const GemmShape& gemm) {
  if (bias.shape() == Shape{gemm.n}) return OkStatus();
  return InvalidArgument("the bias must be a vector of the ", gemm.n,
                         " columns of the product, found ", bias.shape());
}

void RegisterFusedOps(OpRegistry& ops) {
  const std::vector<std::string> bias = {"BiasAdd"}, sigmoid = {"BiasAdd", "Sigmoid"};
  ops.Add("_FusedMatMul", MatMulShape, FusedMatMulKernel, {.attrs = {"transpose_a", "transpose_b"}})
      .Example({Shape{2, 3}, Shape{3, 4}, Shape{4}}, {{"fused_ops", bias}})
      .Example({Shape{2, 3}, Shape{3, 4}, Shape{4}}, {{"fused_ops", sigmoid}});
  ops.Add("Snapshot", UnchangedShape, SnapshotKernel, {.cheap = true, .memory = kAnyMemory})
      .Example({Shape{2, 3}});
}

}  // namespace tenon
