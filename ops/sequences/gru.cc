// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/elements.h"
#include "ops/math/vector_maths.h"
#include "ops/maths.h"
#include "ops/sequences/cell.h"

namespace tenon {
namespace {

struct GruSizes {
  int64_t batch, input, cell;
};

/// The sizes of x, h_prev, w_ru, w_c, b_ru and b_c, whose shapes are checked.
StatusOr<GruSizes> CheckGruInputs(const KernelContext& ctx) {
  const Tensor &x = ctx.input(0), &h_prev = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckRank(x, 2, "x"));
  TENON_RETURN_IF_ERROR(CheckRank(h_prev, 2, "h_prev"));
  const GruSizes s{x.dim(0), x.dim(1), h_prev.dim(1)};
  TENON_RETURN_IF_ERROR(CheckShape(h_prev, "h_prev", {s.batch, s.cell}));
  TENON_ASSIGN_OR_RETURN(const int64_t rows, AddSizes(s.input, s.cell));
  TENON_ASSIGN_OR_RETURN(const int64_t gates, MultiplySizes(2, s.cell));
  TENON_RETURN_IF_ERROR(CheckShape(ctx.input(2), "w_ru", {rows, gates}));
  TENON_RETURN_IF_ERROR(CheckShape(ctx.input(3), "w_c", {rows, s.cell}));
  TENON_RETURN_IF_ERROR(CheckShape(ctx.input(4), "b_ru", {gates}));
  TENON_RETURN_IF_ERROR(CheckShape(ctx.input(5), "b_c", {s.cell}));
  return s;
}

Status GruKernel(KernelContext& ctx, const Tensor& x, const Tensor& h_prev) {
  TENON_ASSIGN_OR_RETURN(const GruSizes s, CheckGruInputs(ctx));
  Tensor* outs[4];
  for (int i = 0; i < 4; ++i) {
    TENON_ASSIGN_OR_RETURN(outs[i], ctx.AllocateOutput(i, h_prev.shape()));
  }
  TENON_ASSIGN_OR_RETURN(Tensor xh, Floats({s.batch, s.input + s.cell}));
  TENON_ASSIGN_OR_RETURN(Tensor gates, Floats({s.batch, 2 * s.cell}));
  TENON_ASSIGN_OR_RETURN(Tensor h_reset, Floats({s.batch, s.cell}));
  TENON_RETURN_IF_ERROR(JoinColumns(x, h_prev, &xh));
  TENON_RETURN_IF_ERROR(Multiply(xh, ctx.input(2), &gates));
  const float *h = h_prev.data<float>(), *b_ru = ctx.input(4).data<float>();
  float *r = outs[0]->data<float>(), *u = outs[1]->data<float>(), *c = outs[2]->data<float>();
  const int64_t n = s.cell;
  const auto for_each_row = [&](auto fn) {
    ParallelFor(s.batch, 6.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) fn(row, row * n);
    });
  };
  for_each_row([&](int64_t row, int64_t e) {
    const float* const g = gates.data<float>() + row * 2 * n;
    TENON_SIMD
    for (int64_t k = 0; k < n; ++k) {
      r[e + k] = g[k] + b_ru[k];
      u[e + k] = g[n + k] + b_ru[n + k];
    }
    VectorSigmoid(r + e, r + e, n);
    VectorSigmoid(u + e, u + e, n);
    float* const kept = h_reset.data<float>() + e;
    TENON_SIMD
    for (int64_t k = 0; k < n; ++k) kept[k] = h[e + k] * r[e + k];
  });
  TENON_RETURN_IF_ERROR(JoinColumns(x, h_reset, &xh));
  TENON_RETURN_IF_ERROR(Multiply(xh, ctx.input(3), outs[2]));
  const float* const b_c = ctx.input(5).data<float>();
  float* const next = outs[3]->data<float>();
  for_each_row([&](int64_t, int64_t e) {
    TENON_SIMD
    for (int64_t k = 0; k < n; ++k) c[e + k] += b_c[k];
    VectorTanh(c + e, c + e, n);
    TENON_SIMD
    for (int64_t k = 0; k < n; ++k) next[e + k] = u[e + k] * (h[e + k] - c[e + k]) + c[e + k];
  });
  return OkStatus();
}

/// Inputs: those of the cell, its r, u and c, and the gradient of h.
Status GruGradKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const GruSizes s, CheckGruInputs(ctx));
  constexpr const char* kNames[] = {"r", "u", "c", "d_h"};
  for (int i = 0; i < 4; ++i) {
    TENON_RETURN_IF_ERROR(CheckShape(ctx.input(6 + i), kNames[i], {s.batch, s.cell}));
  }
  const Tensor h_prev = ctx.input(1);
  const float* const h = h_prev.data<float>();
  const auto in = [&](int i) { return ctx.input(i).data<float>(); };
  const float *r = in(6), *u = in(7), *c = in(8), *d_h = in(9);
  TENON_ASSIGN_OR_RETURN(Tensor * d_x, ctx.AllocateOutput(0, ctx.input(0).shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * d_h_prev, ctx.AllocateOutput(1, h_prev.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * d_c_bar, ctx.AllocateOutput(2, h_prev.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * d_gates, ctx.CreateOutput(3, {s.batch, 2 * s.cell}));
  const int64_t n = s.batch * s.cell, width = s.input + s.cell;
  for (int64_t e = 0; e < n; ++e) {
    d_c_bar->data<float>()[e] = d_h[e] * (1 - u[e]) * (1 - c[e] * c[e]);
  }
  TENON_ASSIGN_OR_RETURN(Tensor of_c, Floats({s.batch, width}));
  TENON_ASSIGN_OR_RETURN(Tensor of_gates, Floats({s.batch, width}));
  TENON_RETURN_IF_ERROR(Multiply(*d_c_bar, ctx.input(3), &of_c, false, true));
  const auto for_each = [&](auto fn) {
    for (int64_t row = 0; row < s.batch && !Interrupted(); ++row) {
      for (int64_t k = 0; k < s.cell; ++k) fn(row, k, row * s.cell + k);
    }
  };
  const auto d_reset = [&](int64_t row, int64_t k) {
    return of_c.data<float>()[row * width + s.input + k];
  };
  for_each([&](int64_t row, int64_t k, int64_t e) {
    float* const gates = d_gates->data<float>() + row * 2 * s.cell;
    gates[k] = d_reset(row, k) * h[e] * r[e] * (1 - r[e]);
    gates[s.cell + k] = d_h[e] * (h[e] - c[e]) * u[e] * (1 - u[e]);
  });
  TENON_RETURN_IF_ERROR(Multiply(*d_gates, ctx.input(2), &of_gates, false, true));
  for_each([&](int64_t row, int64_t k, int64_t e) {
    d_h_prev->data<float>()[e] =
        of_gates.data<float>()[row * width + s.input + k] + d_reset(row, k) * r[e] + d_h[e] * u[e];
  });
  for (int64_t row = 0; row < s.batch && !Interrupted(); ++row) {
    for (int64_t k = 0; k < s.input; ++k) {
      const int64_t e = row * width + k;
      d_x->data<float>()[row * s.input + k] = of_gates.data<float>()[e] + of_c.data<float>()[e];
    }
  }
  return OkStatus();
}

Status GruShape(ShapeContext& c) { return c.ReturnForEach(c.WithRank(1, 2)); }

Status GruGradShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape h, c.WithRank(1, 2));
  const int64_t cell = h.dim(1);
  TENON_ASSIGN_OR_RETURN(const int64_t gates, cell < 0 ? cell : MultiplySizes(2, cell));
  c.set_output(0, c.input(0));
  c.set_output(1, h);
  c.set_output(2, h);
  c.set_output(3, PartialShape{h.dim(0), gates});
  return OkStatus();
}

}  // namespace

void RegisterGru(OpRegistry& ops) {
  std::vector<ExampleInput> cell = {Shape{2, 3}, Shape{2, 2}, Shape{5, 4},
                                    Shape{5, 2}, Shape{4},    Shape{2}};
  ops.Add("GRUBlockCell", GruShape, GruKernel).Example(cell);
  cell.insert(cell.end(), 4, Shape{2, 2});
  ops.Add("GRUBlockCellGrad", GruGradShape, GruGradKernel).Example(cell);
}

}  // namespace tenon
