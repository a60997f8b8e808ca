// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/array/band.h"
#include "ops/composition.h"
#include "ops/elements.h"

namespace tenon {
namespace {

/// A limit of MatrixBandPart: how many of `size` diagonals stay.
StatusOr<int64_t> ReadBandLimit(const Tensor& t, int64_t size, std::string_view what) {
  TENON_ASSIGN_OR_RETURN(const int64_t limit, ReadInteger(t, what));
  if (limit > size) return InvalidArgument(what, " = ", limit, " is more than ", size);
  return limit < 0 ? size : limit;
}

Status BandPartKernel(KernelContext& ctx) {
  const Tensor in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const Band band, ReadBand(ctx));
  if (band.lower == band.rows && band.upper == band.columns) return ctx.Return(in);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return OkStatus();
  const int64_t n = band.columns;
  DispatchElement(in.dtype(), [&]<typename T>(T) {
    const T* from = static_cast<const T*>(in.raw_data());
    T* to = static_cast<T*>(out->raw_data());
    ParallelFor(in.num_elements() / n, 0.5 * static_cast<double>(n), [&](int64_t b, int64_t e) {
      for (int64_t row = b; row < e; ++row) {
        const int64_t first = band.First(row % band.rows), end = band.End(row % band.rows);
        std::fill_n(to + row * n, first, T());
        if (end > first) std::copy_n(from + row * n + first, end - first, to + row * n + first);
        std::fill(to + row * n + std::max(first, end), to + (row + 1) * n, T());
      }
    });
  });
  return OkStatus();
}

}  // namespace

StatusOr<Band> ReadBand(const KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (in.rank() < 2) {
    return InvalidArgument("input must be at least 2-dim, received shape: ", in.shape());
  }
  Band band{.rows = in.dim(in.rank() - 2), .columns = in.dim(in.rank() - 1)};
  TENON_ASSIGN_OR_RETURN(band.lower, ReadBandLimit(ctx.input(1), band.rows, "num_lower"));
  TENON_ASSIGN_OR_RETURN(band.upper, ReadBandLimit(ctx.input(2), band.columns, "num_upper"));
  return band;
}

void RegisterBandOps(OpRegistry& ops) {
  // The other types have no zero to fill with.
  const KernelOptions plain = {.types = {{"T", DTypesOf(PlainTypes())}}};
  for (const char* name : {"MatrixBandPart", "BatchMatrixBandPart"}) {
    ops.Add(name, UnchangedShape, BandPartKernel, plain)
        .Grad([](GradContext& g) { g.dx(0) = MatrixBandPart(g.dy(0), g.in(1), g.in(2)); })
        .Example({Shape{2, 3, 4}, Tensor::Scalar<int64_t>(1), Tensor::Scalar<int64_t>(-1)});
  }
}

}  // namespace tenon
