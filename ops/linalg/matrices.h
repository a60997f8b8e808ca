// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/functional/function_ref.h"
#include "core/build/building.h"
#include "core/op/bound_arguments.h"
#include "core/op/kernel.h"
#include "core/op/shape_inference.h"

// What the ops on matrices share. The matrices lie in the last two dimensions of a tensor, the
// others are a batch of them.

namespace tenon {

/// The element types of most of the kernels.
using MatrixTypes = TypeList<float, double, std::complex<float>, std::complex<double>>;

struct Matrices {
  int64_t rows = 0, columns = 0;
  DimVector batch;    // the dimensions before the matrices
  int64_t count = 0;  // of matrices

  int64_t size() const { return rows * columns; }
  int64_t smaller() const { return std::min(rows, columns); }
  /// The cost of n^3 operations on each, in ns.
  double cubic_cost() const;
  /// The shape of a result with these dimensions for each matrix.
  DimVector With(absl::Span<const int64_t> dims) const { return Concat(batch, dims); }
};

/// The matrices of input `i`; InvalidArgument when it has fewer than two dimensions.
StatusOr<Matrices> MatricesOf(const KernelContext& ctx, int i = 0);
template <>
struct InputReader<Matrices> : ReadsInputs<MatricesOf> {};
/// The same, which must be square.
StatusOr<Matrices> SquareMatricesOf(const KernelContext& ctx, int i = 0);
/// Input 1, the right sides of equations, as many as the matrices and with as many rows.
StatusOr<Matrices> RightSidesOf(const KernelContext& ctx, const Matrices& matrices);

/// Calls `fn(i)` for i in [0, count), perhaps from several threads, until one fails: the Status
/// given.
Status ForEachMatrix(int64_t count, double cost_ns, absl::FunctionRef<Status(int64_t i)> fn);

/// Input `i` of a shape function, with its rank checked, and its batch dimensions.
StatusOr<PartialShape> MatrixShape(const ShapeContext& c, int i = 0);
StatusOr<PartialShape> SquareMatrixShape(const ShapeContext& c, int i = 0);
PartialShape BatchOf(const PartialShape& matrices);
/// Output 0 = input 0, of square matrices.
Status SquareShape(ShapeContext& c);

/// For gradients: products of matrices, each of the adjoint if so wished; the adjoint; the sum of x
/// and its adjoint.
Output Product(const Output& x, const Output& y, bool adjoint_x = false, bool adjoint_y = false);
Output AdjointOf(const Output& x);
Output PlusAdjoint(const Output& x);
/// The matrices with zeros above (below) their diagonal.
Output LowerPart(const Output& x);
Output UpperPart(const Output& x);
/// The numbers as matrices of one element, for products with matrices.
Output AsMatrices(const Output& x);
/// Rows and columns [begin, end) of each matrix; end 0: to the last.
Output RowsOf(const Output& x, int begin, int end);
Output ColumnsOf(const Output& x, int begin, int end);

}  // namespace tenon
