// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <numbers>

#include "core/counted_memory.h"
#include "core/kernel.h"
#include "core/parallel.h"
#include "ops/math/gemm.h"
#include "ops/inline_kernel.h"
#include "ops/math/matmul_shape.h"
#include "ops/maths.h"
#include "ops/math/register.h"
#include "ops/math/vector_maths.h"

// Ops that no program writes: TensorFlow's graph optimiser puts them into the graphs that its
// masters send.

namespace tenon {
namespace {

/// What follows the bias, in place.
using Activation = void (*)(float* x, int64_t n, float alpha);

struct NamedActivation {
  std::string_view name;
  Activation apply;
};

template <typename Fn>
void Each(float* x, int64_t n, Fn fn) {
  TENON_SIMD
  for (int64_t i = 0; i < n; ++i) x[i] = fn(x[i]);
}

void GeluApproximate(float* x, int64_t n, float) {
  const float scale = std::sqrt(2.0f * std::numbers::inv_pi_v<float>);
  Each(x, n, [=](float v) {
    return 0.5f * v * (1.0f + std::tanh(scale * (v + 0.044715f * v * v * v)));
  });
}

constexpr NamedActivation kNamedActivations[] = {
    {"Relu", [](float* x, int64_t n, float) { Each(x, n, [](float v) { return v < 0 ? 0 : v; }); }},
    {"Relu6", [](float* x, int64_t n,
                 float) { Each(x, n, [](float v) { return v < 0 ? 0 : (v > 6 ? 6 : v); }); }},
    {"LeakyRelu",
     [](float* x, int64_t n, float alpha) {
       Each(x, n, [alpha](float v) { return v < 0 ? alpha * v : v; });
     }},
    {"Elu", [](float* x, int64_t n, float) { VectorElu(x, x, n, 1, 1); }},
    {"Sigmoid", [](float* x, int64_t n, float) { VectorSigmoid(x, x, n); }},
    {"Tanh", [](float* x, int64_t n, float) { VectorTanh(x, x, n); }},
    {"GeluApproximate", GeluApproximate},
    {"GeluExact",
     [](float* x, int64_t n, float) {
       Each(x, n, [](float v) {
         return 0.5f * v * (1.0f + std::erf(v * (std::numbers::sqrt2_v<float> / 2)));
       });
     }},
};

class FusedMatMulCpu final : public Kernel {
 public:
  explicit FusedMatMulCpu(KernelConstruction& c)
      : Kernel(c),
        transpose_a_(c.Attr<bool>("transpose_a")),
        transpose_b_(c.Attr<bool>("transpose_b")),
        alpha_(c.Attr<float>("leakyrelu_alpha")) {
    const auto fused = c.Attr<std::vector<std::string>>("fused_ops");
    if (fused.empty() || fused.size() > 2 || fused[0] != "BiasAdd") {
      c.Fail(Unimplemented("Fusion is not implemented: [", Join(fused, ","), "]"));
    } else if (c.input_types().size() != 3) {
      c.Fail(InvalidArgument("Fused MatMul with BiasAdd must have one extra argument: bias."));
    } else if (fused.size() == 2) {
      for (const NamedActivation& a : kNamedActivations) {
        if (a.name == fused[1]) activation_ = a.apply;
      }
      if (activation_ == nullptr) {
        c.Fail(Unimplemented("Fusion is not implemented: [", Join(fused, ","), "]"));
      }
    }
  }

  Status Compute(KernelContext& ctx) const override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1), &bias = ctx.input(2);
    TENON_ASSIGN_OR_RETURN(const GemmShape gemm,
                           MatMulSizes(a.shape(), b.shape(), transpose_a_, transpose_b_));
    if (bias.rank() != 1 || bias.dim(0) != gemm.n) {
      return InvalidArgument("the bias must be a vector of the ", gemm.n,
                             " columns of the product, found ", bias.shape().ToString());
    }
    TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create({{gemm.m, gemm.n}}));
    TENON_ASSIGN_OR_RETURN(Tensor * c, ctx.AllocateOutput(0, shape));
    TENON_RETURN_IF_ERROR(Gemm(a.dtype(), gemm, a.raw_data(), b.raw_data(), c->raw_data()));
    using Types = TypeList<float, Half, BFloat16>;
    Dispatch(c->dtype(), Types(), [&](auto zero) {
      using T = decltype(zero);
      Finish(c->data<T>(), bias.data<T>(), gemm.m, gemm.n);
    });
    return OkStatus();
  }

 private:
  template <typename T>
  void Finish(T* c, const T* bias, int64_t rows, int64_t n) const {
    const double cost = (activation_ == nullptr ? 0.3 : 1.0) * static_cast<double>(n);
    ParallelFor(rows, cost, [&](int64_t begin, int64_t end) {
      CountedVector<float> wide(std::is_same_v<T, float> ? 0 : n);
      for (int64_t r = begin; r < end; ++r) {
        T* row = c + r * n;
        if constexpr (std::is_same_v<T, float>) {
          TENON_SIMD
          for (int64_t i = 0; i < n; ++i) row[i] += bias[i];
          if (activation_ != nullptr) activation_(row, n, alpha_);
        } else {
          for (int64_t i = 0; i < n; ++i) {
            wide[i] = static_cast<float>(row[i]) + static_cast<float>(bias[i]);
          }
          if (activation_ != nullptr) activation_(wide.data(), n, alpha_);
          for (int64_t i = 0; i < n; ++i) row[i] = static_cast<T>(wide[i]);
        }
      }
    });
  }

  const bool transpose_a_, transpose_b_;
  const float alpha_;
  Activation activation_ = nullptr;
};

Status SnapshotCpu(KernelContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  return OkStatus();
}

}  // namespace

void RegisterFusedOps(OpRegistry& ops) {
  const std::vector<std::string> bias = {"BiasAdd"}, sigmoid = {"BiasAdd", "Sigmoid"};
  ops.Get("_FusedMatMul")
      .Shape(MatMulShape).Kernel<FusedMatMulCpu>(kCpu)
      .Example({Shape{2, 3}, Shape{3, 4}, Shape{4}}, {{"fused_ops", bias}})
      .Example({Shape{2, 3}, Shape{3, 4}, Shape{4}}, {{"fused_ops", sigmoid}});
  ops.Get("Snapshot")
      .Shape(UnchangedShape).Kernel<InlineKernel<SnapshotCpu>>(kCpu)
      .Example({Shape{2, 3}});
}

}  // namespace tenon
