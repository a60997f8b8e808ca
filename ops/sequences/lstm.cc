// SPDX-License-Identifier: Apache-2.0
//
// Long short-term memory: a cell, and a block of steps of it. The columns of gates are input, cell
// input, forget and output gate, in the second version of the block input, forget, cell, output.
#include <algorithm>

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/math/vector_maths.h"
#include "ops/maths.h"
#include "ops/sequences/cell.h"
#include "ops/sequences/sequences_ops.h"

namespace tenon {
namespace {

struct CellAttrs : KernelState {
  explicit CellAttrs(KernelConstruction& c)
      : forget_bias(c.attrs().GetOr("forget_bias", 0.0f)),
        clip(c.attrs().GetOr("cell_clip", 0.0f)),
        peephole(c.Attr<bool>("use_peephole")),
        cell_gate(c.op() == "BlockLSTMV2" || c.op() == "BlockLSTMGradV2" ? 2 : 1) {}
  const float forget_bias, clip;
  const bool peephole;
  const int
      cell_gate;  // which columns of gates are the cell input's; the forget gate has the other
};

struct Sizes {
  int64_t batch, input, cell;
};

/// The sizes of x, [batch, input] or in a block [time, batch, input], and of the tensors behind it:
/// cs_prev, h_prev, w, wci, wcf, wco, b. Their shapes are checked.
StatusOr<Sizes> CheckInputs(const std::vector<Tensor>& in, int x_rank) {
  const Tensor &x = in[0], &cs_prev = in[1];
  if (x.rank() != x_rank) {
    return InvalidArgument("x must be of rank ", x_rank, ", found shape ", x.shape());
  }
  TENON_RETURN_IF_ERROR(CheckRank(cs_prev, 2, "cs_prev"));
  const Sizes s{x.dim(x_rank - 2), x.dim(x_rank - 1), cs_prev.dim(1)};
  TENON_RETURN_IF_ERROR(CheckShape(cs_prev, "cs_prev", {s.batch, s.cell}));
  TENON_RETURN_IF_ERROR(CheckShape(in[2], "h_prev", {s.batch, s.cell}));
  TENON_ASSIGN_OR_RETURN(const int64_t rows, AddSizes(s.input, s.cell));
  TENON_ASSIGN_OR_RETURN(const int64_t gates, MultiplySizes(4, s.cell));
  TENON_RETURN_IF_ERROR(CheckShape(in[3], "w", {rows, gates}));
  constexpr const char* kPeepholes[] = {"wci", "wcf", "wco"};
  for (int i = 0; i < 3; ++i) {
    TENON_RETURN_IF_ERROR(CheckShape(in[4 + i], kPeepholes[i], {s.cell}));
  }
  TENON_RETURN_IF_ERROR(CheckShape(in[7], "b", {gates}));
  return s;
}

/// The tensors that a cell makes of a step, in the order of the ops' outputs.
enum Made { kI, kCs, kF, kO, kCi, kCo, kH, kNumMade };

/// Where the columns of each gate begin in a row of gates.
struct Columns {
  Columns(const CellAttrs& a, int64_t cell)
      : i(0), ci(a.cell_gate * cell), f((3 - a.cell_gate) * cell), o(3 * cell) {}
  const int64_t i, ci, f, o;
};

/// One step. `xh` and `gates` are room for [batch, input + cell] and [batch, 4 * cell].
Status Step(const CellAttrs& a, const Sizes& s, const std::vector<Tensor>& in, const Tensor& x,
            const float* cs_prev, const Tensor& h_prev, Tensor* xh, Tensor* gates,
            float* const (&made)[kNumMade]) {
  TENON_RETURN_IF_ERROR(JoinColumns(x, h_prev, xh));
  TENON_RETURN_IF_ERROR(Multiply(*xh, in[3], gates));
  const float *wci = in[4].data<float>(), *wcf = in[5].data<float>(), *wco = in[6].data<float>();
  const float* const b = in[7].data<float>();
  const Columns at(a, s.cell);
  const int64_t n = s.cell;
  ParallelFor(s.batch, 12.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* const g = gates->data<float>() + row * 4 * n;
      const float* const before = cs_prev + row * n;
      const auto of = [&](Made m) { return made[m] + row * n; };
      float *const i = of(kI), *const ci = of(kCi), *const f = of(kF), *const o = of(kO);
      float *const cs = of(kCs), *const co = of(kCo), *const h = of(kH);
      TENON_SIMD
      for (int64_t k = 0; k < n; ++k) {
        i[k] = g[at.i + k] + b[at.i + k] + (a.peephole ? before[k] * wci[k] : 0);
        ci[k] = g[at.ci + k] + b[at.ci + k];
        f[k] = g[at.f + k] + b[at.f + k] + a.forget_bias + (a.peephole ? before[k] * wcf[k] : 0);
      }
      VectorSigmoid(i, i, n);
      VectorTanh(ci, ci, n);
      VectorSigmoid(f, f, n);
      TENON_SIMD
      for (int64_t k = 0; k < n; ++k) {
        const float next = i[k] * ci[k] + f[k] * before[k];
        cs[k] = a.clip > 0 ? std::min(std::max(next, -a.clip), a.clip) : next;
        o[k] = g[at.o + k] + b[at.o + k] + (a.peephole ? cs[k] * wco[k] : 0);
      }
      VectorTanh(cs, co, n);
      VectorSigmoid(o, o, n);
      TENON_SIMD
      for (int64_t k = 0; k < n; ++k) h[k] = o[k] * co[k];
    }
  });
  return OkStatus();
}

StatusOr<Tensor> StepOf(const Tensor& t, int64_t step) {
  return t.Slice(step, step + 1).Reshaped(t.shape().WithoutDim(0));
}

/// A block of steps, or the one step of a cell, as if it were a block of one.
Status Forward(KernelContext& ctx, const CellAttrs& a, std::vector<Tensor> in, int64_t steps,
               bool is_cell) {
  if (is_cell) {
    if (in[0].rank() != 2) return InvalidArgument("x must be a matrix, found ", in[0].shape());
    TENON_ASSIGN_OR_RETURN(in[0], in[0].Reshaped(in[0].shape().WithInsertedDim(0, 1)));
  }
  TENON_ASSIGN_OR_RETURN(const Sizes s, CheckInputs(in, 3));
  const int64_t time = in[0].dim(0);
  if (steps < 0 || steps > time) {
    return InvalidArgument("seq_len_max must be between 0 and ", time, ", found ", steps);
  }
  std::vector<Tensor> made;
  for (int m = 0; m < kNumMade; ++m) {
    TENON_ASSIGN_OR_RETURN(Tensor t, Floats({time, s.batch, s.cell}));
    ZeroElements(&t);
    made.push_back(std::move(t));
  }
  TENON_ASSIGN_OR_RETURN(Tensor xh, Floats({s.batch, s.input + s.cell}));
  TENON_ASSIGN_OR_RETURN(Tensor gates, Floats({s.batch, 4 * s.cell}));
  Tensor h_prev = in[2];
  const int64_t n = s.batch * s.cell;
  for (int64_t t = 0; t < steps && !Interrupted(); ++t) {
    float* outs[kNumMade];
    for (int m = 0; m < kNumMade; ++m) outs[m] = made[m].data<float>() + t * n;
    const float* cs_prev = t == 0 ? in[1].data<float>() : made[kCs].data<float>() + (t - 1) * n;
    TENON_ASSIGN_OR_RETURN(const Tensor x, StepOf(in[0], t));
    TENON_RETURN_IF_ERROR(Step(a, s, in, x, cs_prev, h_prev, &xh, &gates, outs));
    TENON_ASSIGN_OR_RETURN(h_prev, StepOf(made[kH], t));
  }
  if (is_cell) {
    for (Tensor& t : made) {
      TENON_ASSIGN_OR_RETURN(t, t.Reshaped({s.batch, s.cell}));
    }
  }
  return SetOutputs(ctx, std::move(made));
}

Status CellKernel(KernelContext& ctx, const CellAttrs& attrs) {
  TENON_ASSIGN_OR_RETURN(std::vector<Tensor> in, FloatInputs(ctx, 0));
  return Forward(ctx, attrs, std::move(in), 1, true);
}

Status BlockKernel(KernelContext& ctx, Integer steps, const CellAttrs& attrs) {
  TENON_ASSIGN_OR_RETURN(std::vector<Tensor> in, FloatInputs(ctx, 1));
  return Forward(ctx, attrs, std::move(in), steps, false);
}

/// The gradients of a step: of the gates, of cs_prev, and added to those of the peepholes.
/// `made` is what the step made; `cs_grad` and `h_grad` are the gradients of its cs and h.
void StepGrad(const CellAttrs& a, const Sizes& s, const std::vector<Tensor>& in,
              const float* cs_prev, const float* const (&made)[kNumMade], const float* cs_grad,
              const float* h_grad, float* gates_grad, float* cs_prev_grad,
              float* const (&peephole_grads)[3]) {
  const float *wci = in[4].data<float>(), *wcf = in[5].data<float>(), *wco = in[6].data<float>();
  const Columns at(a, s.cell);
  for (int64_t row = 0; row < s.batch && !Interrupted(); ++row) {
    float* const g = gates_grad + row * 4 * s.cell;
    for (int64_t k = 0; k < s.cell; ++k) {
      const int64_t e = row * s.cell + k;
      const float i = made[kI][e], f = made[kF][e], o = made[kO][e];
      const float ci = made[kCi][e], co = made[kCo][e];
      const float d_o = o * (1 - o) * h_grad[e] * co;
      float dcs = (1 - co * co) * h_grad[e] * o + cs_grad[e];
      if (a.peephole) dcs += d_o * wco[k];
      const float di = i * (1 - i) * dcs * ci, df = f * (1 - f) * dcs * cs_prev[e];
      g[at.i + k] = di;
      g[at.ci + k] = (1 - ci * ci) * dcs * i;
      g[at.f + k] = df;
      g[at.o + k] = d_o;
      cs_prev_grad[e] = dcs * f;
      if (!a.peephole) continue;
      cs_prev_grad[e] += di * wci[k] + df * wcf[k];
      peephole_grads[0][k] += di * cs_prev[e];
      peephole_grads[1][k] += df * cs_prev[e];
      peephole_grads[2][k] += d_o * made[kCs][e];
    }
  }
}

StatusOr<Tensor> ZeroFloats(absl::Span<const int64_t> dims) {
  TENON_ASSIGN_OR_RETURN(Tensor t, Floats(dims));
  ZeroElements(&t);
  return t;
}

/// Inputs: those of the cell, its outputs but h, and the gradients of cs and h.
Status CellGradKernel(KernelContext& ctx, const CellAttrs& a) {
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> in, FloatInputs(ctx, 0));
  TENON_ASSIGN_OR_RETURN(const Sizes s, CheckInputs(in, 2));
  constexpr int kFirstMade = 8;
  for (int i = kFirstMade; i < kFirstMade + 8; ++i) {
    TENON_RETURN_IF_ERROR(CheckShape(in[i], StrCat("input ", i), {s.batch, s.cell}));
  }
  const float* made[kNumMade] = {};
  for (int m = 0; m < kH; ++m) made[m] = in[kFirstMade + m].data<float>();
  TENON_ASSIGN_OR_RETURN(Tensor cs_prev_grad, Floats({s.batch, s.cell}));
  TENON_ASSIGN_OR_RETURN(Tensor gates_grad, Floats({s.batch, 4 * s.cell}));
  std::vector<Tensor> outputs = {cs_prev_grad, gates_grad};
  float* peepholes[3];
  for (float*& p : peepholes) {
    TENON_ASSIGN_OR_RETURN(Tensor t, ZeroFloats({s.cell}));
    p = t.data<float>();
    outputs.push_back(std::move(t));
  }
  StepGrad(a, s, in, in[1].data<float>(), made, in[14].data<float>(), in[15].data<float>(),
           gates_grad.data<float>(), cs_prev_grad.data<float>(), peepholes);
  return SetOutputs(ctx, std::move(outputs));
}

void Add(const float* from, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

/// Inputs: those of the block, its outputs, and the gradients of cs and h. From the last step back.
Status BlockGradKernel(KernelContext& ctx, Integer steps, const CellAttrs& a) {
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> in, FloatInputs(ctx, 1));
  TENON_ASSIGN_OR_RETURN(const Sizes s, CheckInputs(in, 3));
  const int64_t time = in[0].dim(0), n = s.batch * s.cell;
  if (steps < 0 || steps > time) {
    return InvalidArgument("seq_len_max must be between 0 and ", time, ", found ", steps.value);
  }
  constexpr int kFirstMade = 8, kCsGrad = kFirstMade + kNumMade, kHGrad = kCsGrad + 1;
  for (int i = kFirstMade; i <= kHGrad; ++i) {
    TENON_RETURN_IF_ERROR(CheckShape(in[i], StrCat("input ", i + 1), {time, s.batch, s.cell}));
  }
  // The outputs have the shapes of inputs x to b.
  std::vector<Tensor> grads;
  for (int i = 0; i < kFirstMade; ++i) {
    TENON_ASSIGN_OR_RETURN(Tensor t, ZeroFloats(in[i].shape().dims()));
    grads.push_back(std::move(t));
  }
  float *cs_prev_grad = grads[1].data<float>(), *h_prev_grad = grads[2].data<float>();
  float* const peepholes[3] = {grads[4].data<float>(), grads[5].data<float>(),
                               grads[6].data<float>()};
  TENON_ASSIGN_OR_RETURN(Tensor xh, Floats({s.batch, s.input + s.cell}));
  TENON_ASSIGN_OR_RETURN(Tensor xh_grad, Floats({s.batch, s.input + s.cell}));
  TENON_ASSIGN_OR_RETURN(Tensor gates_grad, Floats({s.batch, 4 * s.cell}));
  TENON_ASSIGN_OR_RETURN(Tensor w_part, Floats(in[3].shape().dims()));
  for (int64_t t = steps - 1; t >= 0 && !Interrupted(); --t) {
    const float* made[kNumMade];
    for (int m = 0; m < kNumMade; ++m) made[m] = in[kFirstMade + m].data<float>() + t * n;
    const float* const cs_prev = t == 0 ? in[1].data<float>() : made[kCs] - n;
    // What comes from the step behind is in the gradients of its cs_prev and h_prev.
    Add(in[kCsGrad].data<float>() + t * n, n, cs_prev_grad);
    Add(in[kHGrad].data<float>() + t * n, n, h_prev_grad);
    StepGrad(a, s, in, cs_prev, made, cs_prev_grad, h_prev_grad, gates_grad.data<float>(),
             cs_prev_grad, peepholes);
    TENON_ASSIGN_OR_RETURN(const Tensor x, StepOf(in[0], t));
    Tensor h_prev = in[2];
    if (t > 0) {
      TENON_ASSIGN_OR_RETURN(h_prev, StepOf(in[kFirstMade + kH], t - 1));
    }
    TENON_RETURN_IF_ERROR(JoinColumns(x, h_prev, &xh));
    TENON_RETURN_IF_ERROR(Multiply(gates_grad, in[3], &xh_grad, false, true));
    TENON_RETURN_IF_ERROR(Multiply(xh, gates_grad, &w_part, true));
    Add(w_part.data<float>(), w_part.num_elements(), grads[3].data<float>());
    for (int64_t row = 0; row < s.batch; ++row) {
      const int64_t from = row * (s.input + s.cell);
      CopyElements(xh_grad, from, &grads[0], (t * s.batch + row) * s.input, s.input);
      CopyElements(xh_grad, from + s.input, &grads[2], row * s.cell, s.cell);
      Add(gates_grad.data<float>() + row * 4 * s.cell, 4 * s.cell, grads[7].data<float>());
    }
  }
  return SetOutputs(ctx, std::move(grads));
}

Status CellGradShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape cs, c.WithRank(1, 2));
  const int64_t cell = cs.dim(1);
  TENON_ASSIGN_OR_RETURN(const int64_t gates, cell < 0 ? cell : MultiplySizes(4, cell));
  c.set_output(0, cs);
  c.set_output(1, PartialShape{cs.dim(0), gates});
  for (int i = 2; i < 5; ++i) c.set_output(i, PartialShape{cs.dim(1)});
  return OkStatus();
}

Status BlockGradShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i + 1));
  return OkStatus();
}

/// With `build` as BlockLSTMGrad or its second version.
void BlockGrad(GradContext& g, auto build) {
  const std::vector<Output> dys = DysOrZeros(g);
  const auto grads = std::apply(
      build, std::tuple{g.in(0), g.in(1), g.in(2), g.in(3), g.in(4), g.in(5), g.in(6), g.in(7),
                        g.in(8), g.out(0), g.out(1), g.out(2), g.out(3), g.out(4), g.out(5),
                        g.out(6), dys[kCs], dys[kH], g.Attr<bool>("use_peephole")});
  const Output all[] = {grads.x_grad,   grads.cs_prev_grad, grads.h_prev_grad, grads.w_grad,
                        grads.wci_grad, grads.wcf_grad,     grads.wco_grad,    grads.b_grad};
  for (int i = 0; i < 8; ++i) g.dx(i + 1) = all[i];
}

}  // namespace

void RegisterLstm(OpRegistry& ops) {
  const std::vector<ExampleInput> cell = {Shape{2, 3}, Shape{2, 2}, Shape{2, 2}, Shape{5, 8},
                                          Shape{2},    Shape{2},    Shape{2},    Shape{8}};
  ops.Add("LSTMBlockCell", CellKernel).Example(cell, {{"use_peephole", true}});
  std::vector<ExampleInput> cell_grad = cell;
  cell_grad.insert(cell_grad.end(), 8, Shape{2, 2});
  ops.Add("LSTMBlockCellGrad", CellGradShape, CellGradKernel)
      .Example(cell_grad, {{"use_peephole", true}});
  std::vector<ExampleInput> block = cell;
  block[0] = Shape{3, 2, 3};
  block.insert(block.begin(), Tensor::Scalar<int64_t>(2));
  std::vector<ExampleInput> block_grad = block;
  block_grad.insert(block_grad.end(), kNumMade + 2, Shape{3, 2, 2});
  ops.Add("BlockLSTM", BlockKernel)
      .Grad([](GradContext& g) { BlockGrad(g, [](auto... in) { return BlockLSTMGrad(in...); }); })
      .Example(block);
  ops.Add("BlockLSTMV2", BlockKernel)
      .Grad([](GradContext& g) { BlockGrad(g, [](auto... in) { return BlockLSTMGradV2(in...); }); })
      .Example(block);
  for (const char* name : {"BlockLSTMGrad", "BlockLSTMGradV2"}) {
    ops.Add(name, BlockGradShape, BlockGradKernel).Example(block_grad, {{"use_peephole", true}});
  }
}

}  // namespace tenon
