// SPDX-License-Identifier: Apache-2.0
#include "core/base/interruption.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/array/moving_kernels.h"
#include "ops/composition.h"

namespace tenon {
namespace {

Status DiagShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape diagonal, c.WithRankAtLeast(0, 1));
  return c.Return(diagonal.ConcatWith(diagonal));
}

Status DiagPartShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.rank_known()) return OkStatus();
  const int half = in.rank() / 2;
  if (in.rank() == 0 || in.rank() % 2 != 0) {
    return InvalidArgument("the input must be of an even rank, 2 or more, found ", in);
  }
  return c.Return(in.Part(0, half).MergeWith(in.Part(half)));
}

/// The diagonals `lower` to `upper` of matrices, and how they lie in rows of `length` elements, the
/// upper one first.
struct Diagonals {
  int64_t lower = 0, upper = 0;
  int64_t rows = 0, columns = 0;
  bool left_super = true, left_sub = true;  // whether a shorter one begins where its row does

  int64_t count() const { return upper - lower + 1; }
  int64_t length(int64_t d) const {
    return std::min(rows + std::min(d, int64_t{0}), columns - std::max(d, int64_t{0}));
  }
  /// The length of the longest diagonal.
  int64_t length() const {
    return std::min(rows + std::min(upper, int64_t{0}), columns - std::max(lower, int64_t{0}));
  }
  /// What takes the place of a matrix's two dimensions.
  DimVector dims() const {
    return count() == 1 ? DimVector{length()} : DimVector{count(), length()};
  }
};

/// `k` and `align` of an op; those of the oldest version, which have no k, are of the main
/// diagonal.
StatusOr<Diagonals> ReadDiagonals(const Tensor* k, std::string_view align) {
  Diagonals d;
  d.left_super = align.empty() || align.substr(0, 4) == "LEFT";
  d.left_sub = align.empty() || align.substr(align.size() - 4) == "LEFT";
  if (k == nullptr) return d;
  TENON_ASSIGN_OR_RETURN(const DimVector range, ReadIntegers(*k, "k"));
  if (k->rank() > 1 || range.empty() || range.size() > 2) {
    return InvalidArgument("diag_index must have only one or two elements, received ",
                           k->num_elements(), " elements: k has shape ", k->shape());
  }
  d.lower = range.front();
  d.upper = range.back();
  if (d.lower > d.upper) {
    return InvalidArgument("lower_diag_index must not be larger than upper_diag_index: ", d.lower,
                           " > ", d.upper);
  }
  return d;
}

/// Sets what matrices the diagonals are of, and checks that these have them. Unknown sizes are -1.
Status SetMatrix(int64_t rows, int64_t columns, Diagonals* d) {
  d->rows = rows;
  d->columns = columns;
  for (const auto& [k, what] : {std::pair(d->lower, "lower"), std::pair(d->upper, "upper")}) {
    if (k == 0 || ((rows < 0 || k > -rows) && (columns < 0 || k < columns))) continue;
    return InvalidArgument(what, "_diag_index is out of bound: ", k,
                           ". It must be between -rows and columns of a matrix of shape ",
                           PartialShape{rows, columns});
  }
  return OkStatus();
}

/// Sets the size of the matrices that have diagonals of shape `dims`, of which the given `rows` and
/// `columns` say what is not -1.
Status SetMatrixOf(absl::Span<const int64_t> dims, int64_t rows, int64_t columns, Diagonals* d) {
  const bool several = d->count() > 1;
  if (dims.empty()) return InvalidArgument("diagonal must be at least 1-dim, received shape: []");
  if (dims.size() < (several ? 2 : 1) || (several && dims[dims.size() - 2] != d->count())) {
    return InvalidArgument("The number of diagonals provided in the input does not match the ",
                           d->count(), " of k: the diagonal has shape ", PartialShape(dims));
  }
  const int64_t length = dims.back();
  TENON_ASSIGN_OR_RETURN(const int64_t min_rows, AddSizes(length, std::max(-d->upper, int64_t{0})));
  TENON_ASSIGN_OR_RETURN(const int64_t min_columns,
                         AddSizes(length, std::max(d->lower, int64_t{0})));
  const bool square = rows == -1 && columns == -1;
  if (rows == -1) rows = square ? std::max(min_rows, min_columns) : min_rows;
  if (columns == -1) columns = square ? rows : min_columns;
  if (rows < min_rows || columns < min_columns || (rows != min_rows && columns != min_columns)) {
    return InvalidArgument(rows < min_rows         ? "The number of rows is too small"
                           : columns < min_columns ? "The number of columns is too small"
                                                   : "The number of rows or columns is not "
                                                     "consistent with k and the diagonal",
                           ": no matrix of shape ", PartialShape{rows, columns},
                           " has diagonals of length ", length, ", the longest of ", d->lower,
                           " to ", d->upper);
  }
  d->rows = rows;
  d->columns = columns;
  return OkStatus();
}

/// Copies the diagonals into (or out of) the matrices.
Status CopyDiagonals(KernelContext& ctx, const Mover& mover, const Tensor& from, Tensor* to,
                     bool into_matrix, const Diagonals& d) {
  const int64_t size = d.rows * d.columns, length = d.length();
  if (size == 0 || length <= 0) return OkStatus();
  const int64_t batch = (into_matrix ? *to : from).num_elements() / size;
  for (int64_t k = d.upper; k >= d.lower && !Interrupted(); --k) {
    const int64_t n = d.length(k);
    const bool left = (k >= 0 && d.left_super) || (k <= 0 && d.left_sub);
    const StridedView matrix{k >= 0 ? k : -k * d.columns, {size, d.columns + 1}};
    const StridedView row{(d.upper - k) * length + (left ? 0 : length - n),
                          {d.count() * length, 1}};
    if (n <= 0) continue;
    TENON_RETURN_IF_ERROR(mover.copy(ctx, from, into_matrix ? row : matrix, to,
                                     into_matrix ? matrix : row, {batch, n}));
  }
  return OkStatus();
}

Status CheckMatrices(const Tensor& t) {
  if (t.rank() >= 2) return OkStatus();
  return InvalidArgument("input must be at least 2-dim, received shape: ", t.shape());
}

/// The padding_value that input `i` is, zeros without one.
Status FillWith(KernelContext& ctx, const Mover& mover, int i, Tensor* out) {
  if (i >= ctx.num_inputs()) return mover.zero(ctx, out);
  if (ctx.input(i).num_elements() != 1) {
    return InvalidArgument("padding_value must be a scalar, found ", ctx.input(i).shape());
  }
  return mover.fill(ctx, ctx.input(i), out);
}

Status DiagonalPartShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape in, c.WithRankAtLeast(0, 2));
  const bool has_k = c.num_inputs() > 1;
  if (!in.rank_known() || (has_k && c.constant(1) == nullptr)) return OkStatus();
  TENON_ASSIGN_OR_RETURN(Diagonals d, ReadDiagonals(has_k ? c.constant(1) : nullptr, ""));
  const int batch = in.rank() - 2;
  TENON_RETURN_IF_ERROR(SetMatrix(in.dim(batch), in.dim(batch + 1), &d));
  DimVector dims = d.dims();
  if (d.rows < 0 || d.columns < 0) dims.back() = PartialShape::kUnknownDim;
  return c.Return(in.Part(0, batch).ConcatWith(PartialShape(dims)));
}

Status MatrixDiagShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape in, c.WithRankAtLeast(0, 1));
  const bool has_k = c.num_inputs() > 1;
  if (!in.rank_known() || (has_k && c.constant(1) == nullptr)) return OkStatus();
  TENON_ASSIGN_OR_RETURN(Diagonals d, ReadDiagonals(has_k ? c.constant(1) : nullptr, ""));
  const int batch = in.rank() - (d.count() > 1 ? 2 : 1);
  if (batch < 0) return InvalidArgument("the diagonals must be of rank 2 or more, found ", in);
  PartialShape matrix = PartialShape::OfRank(2);
  if (in.dim(in.rank() - 1) >= 0 &&
      (!has_k || (c.constant(2) != nullptr && c.constant(3) != nullptr))) {
    int64_t rows = -1, columns = -1;
    if (has_k) {
      TENON_ASSIGN_OR_RETURN(rows, ReadInteger(*c.constant(2), "num_rows"));
      TENON_ASSIGN_OR_RETURN(columns, ReadInteger(*c.constant(3), "num_cols"));
    }
    TENON_RETURN_IF_ERROR(SetMatrixOf(in.dims(), rows, columns, &d));
    matrix = {d.rows, d.columns};
  }
  return c.Return(in.Part(0, batch).ConcatWith(matrix));
}

Status SetDiagShape(ShapeContext& c) {
  TENON_RETURN_IF_ERROR(c.WithRankAtLeast(1, 1).status());
  return c.Return(c.WithRankAtLeast(0, 2));
}

std::string AlignOf(const GradContext& g) { return g.Attr<std::string>("align", "LEFT_LEFT"); }

/// The diagonals `k` of `matrices`, as g's node has them.
Output DiagonalsOf(const GradContext& g, const Output& matrices, const Output& k) {
  return MatrixDiagPartV3(matrices, k, Const(0, {.dtype = matrices.dtype()}),
                          {.align = AlignOf(g)});
}

/// Where the diagonals were set the gradient goes to them.
void SetDiagGrad(GradContext& g) {
  const Output dy = g.dy(0), k = g.num_inputs() > 2 ? g.in(2) : Output(Const(0));
  g.dx(1) = DiagonalsOf(g, dy, k);
  g.dx(0) = MatrixSetDiagV3(dy, ZerosLike(g.dx(1)), k, {.align = AlignOf(g)});
}

void DiagonalPartGrad(GradContext& g) {
  const Output k = g.num_inputs() > 1 ? g.in(1) : Output(Const(0));
  g.dx(0) = MatrixSetDiagV3(ZerosLike(g.in(0)), g.dy(0), k, {.align = AlignOf(g)});
}

void MatrixDiagGrad(GradContext& g) {
  g.dx(0) = DiagonalsOf(g, g.dy(0), g.num_inputs() > 1 ? g.in(1) : Output(Const(0)));
}

}  // namespace

Status DiagKernel(KernelContext& ctx, const Mover& mover) {
  const Tensor& diagonal = ctx.input(0);
  if (diagonal.rank() < 1) return InvalidArgument("Input must be at least rank 1, got 0");
  const auto dims = diagonal.shape().dims();
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, Concat(dims, dims)));
  TENON_RETURN_IF_ERROR(mover.zero(ctx, out));
  const int64_t n = diagonal.num_elements();
  return mover.copy(ctx, diagonal, {0, {1}}, out, {0, {n + 1}}, {n});
}

Status DiagPartKernel(KernelContext& ctx, const Mover& mover) {
  const Tensor& in = ctx.input(0);
  const auto dims = in.shape().dims();
  const size_t half = dims.size() / 2;
  if (dims.empty() || dims.size() % 2 != 0 || dims.first(half) != dims.subspan(half)) {
    return InvalidArgument("the input's shape must be one of rank 1 or more twice, found ",
                           in.shape());
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims.first(half)));
  const int64_t n = out->num_elements();
  return mover.copy(ctx, in, {0, {n + 1}}, out, {0, {1}}, {n});
}

Status DiagonalPartKernel(KernelContext& ctx, const Mover& mover, const Alignment& align) {
  const Tensor& in = ctx.input(0);
  TENON_RETURN_IF_ERROR(CheckMatrices(in));
  const int batch = in.rank() - 2;
  TENON_ASSIGN_OR_RETURN(
      Diagonals d, ReadDiagonals(ctx.num_inputs() > 1 ? &ctx.input(1) : nullptr, align.value));
  TENON_RETURN_IF_ERROR(SetMatrix(in.dim(batch), in.dim(batch + 1), &d));
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, Concat(in.shape().dims().first(batch), d.dims())));
  TENON_RETURN_IF_ERROR(FillWith(ctx, mover, 2, out));
  return CopyDiagonals(ctx, mover, in, out, /*into_matrix=*/false, d);
}

Status MatrixDiagKernel(KernelContext& ctx, const Mover& mover, const Alignment& align) {
  const Tensor& diagonal = ctx.input(0);
  const auto dims = diagonal.shape().dims();
  const bool has_k = ctx.num_inputs() > 1;
  TENON_ASSIGN_OR_RETURN(Diagonals d, ReadDiagonals(has_k ? &ctx.input(1) : nullptr, align.value));
  int64_t rows = -1, columns = -1;
  if (has_k) {
    TENON_ASSIGN_OR_RETURN(rows, ReadInteger(ctx.input(2), "num_rows"));
    TENON_ASSIGN_OR_RETURN(columns, ReadInteger(ctx.input(3), "num_cols"));
  }
  TENON_RETURN_IF_ERROR(SetMatrixOf(dims, rows, columns, &d));
  const size_t batch = dims.size() - (d.count() > 1 ? 2 : 1);
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, Concat(dims.first(batch), {d.rows, d.columns})));
  TENON_RETURN_IF_ERROR(FillWith(ctx, mover, 4, out));
  return CopyDiagonals(ctx, mover, diagonal, out, /*into_matrix=*/true, d);
}

Status SetDiagKernel(KernelContext& ctx, const Mover& mover, const Alignment& align) {
  const Tensor in = ctx.input(0);
  const Tensor& diagonal = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckMatrices(in));
  const int batch = in.rank() - 2;
  TENON_ASSIGN_OR_RETURN(
      Diagonals d, ReadDiagonals(ctx.num_inputs() > 2 ? &ctx.input(2) : nullptr, align.value));
  TENON_RETURN_IF_ERROR(SetMatrix(in.dim(batch), in.dim(batch + 1), &d));
  const DimVector wanted = Concat(in.shape().dims().first(batch), d.dims());
  if (diagonal.rank() == 0) {
    return InvalidArgument("diagonal must be at least 1-dim, received shape: []");
  }
  if (diagonal.shape().dims() != absl::Span<const int64_t>(wanted)) {
    return InvalidArgument(
        "Either first dimensions of diagonal don't match input.shape[:-2], or the diagonals do not "
        "fit. Input shape: ",
        in.shape(), ", Diagonal shape: ", diagonal.shape(),
        ", Expected diagonal shape: ", PartialShape(wanted));
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  TENON_RETURN_IF_ERROR(mover.copy_run(ctx, in, 0, out, 0, in.num_elements()));
  return CopyDiagonals(ctx, mover, diagonal, out, /*into_matrix=*/true, d);
}

void RegisterDiagonalOps(OpRegistry& ops) {
  ops.Add("Diag", DiagShape, With<kHostMover, DiagKernel>::Run)
      .Grad([](GradContext& g) { g.dx(0) = DiagPart(g.dy(0)); })
      .Example({Shape{3}})
      .Example({Shape{2, 2}});
  ops.Add("DiagPart", DiagPartShape, With<kHostMover, DiagPartKernel>::Run)
      .Grad([](GradContext& g) { g.dx(0) = Diag(g.dy(0)); })
      .Example({Shape{2, 3, 2, 3}});
  // The other types have no zero to fill with.
  const KernelOptions plain = {.types = {{"T", DTypesOf(PlainTypes())}}};
  const Tensor ks = Tensor::Vector({-1, 2}), k = Tensor::Scalar(1), unknown = Tensor::Scalar(-1);
  using Name = std::pair<std::string, std::string>;
  for (const auto& [batch, version] :
       {Name("", ""), Name("Batch", ""), Name("", "V2"), Name("", "V3")}) {
    const std::string name = batch + "Matrix";
    OpBuilder diag = ops.Add(name + "Diag" + version, MatrixDiagShape,
                             With<kHostMover, MatrixDiagKernel>::Run, plain);
    OpBuilder part = ops.Add(name + "DiagPart" + version, DiagonalPartShape,
                             With<kHostMover, DiagonalPartKernel>::Run, plain);
    OpBuilder set = ops.Add(name + "SetDiag" + version, SetDiagShape,
                            With<kHostMover, SetDiagKernel>::Run, plain);
    if (version.empty()) {
      diag.Grad(MatrixDiagGrad).Example({Shape{2, 3}});
      part.Grad(DiagonalPartGrad).Example({Shape{2, 3, 4}});
      set.Grad(SetDiagGrad).Example({Shape{2, 3, 4}, Shape{2, 3}});
    } else {
      diag.Grad(MatrixDiagGrad)
          .Example({Shape{2, 4, 3}, ks, unknown, unknown, Shape{}})
          .Example({Shape{2, 3}, k, Tensor::Scalar(3), unknown, Shape{}});
      part.Grad(DiagonalPartGrad)
          .Example({Shape{2, 3, 4}, ks, Shape{}})
          .Example({Shape{3, 3}, k, Shape{}});
      set.Grad(SetDiagGrad)
          .Example({Shape{2, 3, 4}, Shape{2, 4, 3}, ks})
          .Example({Shape{3, 3}, Shape{2}, k});
    }
  }
}

}  // namespace tenon
