// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/maths.h"
#include "ops/sparse/sparse_ops.h"
#include "ops/sparse/sparse_tensor.h"

namespace tenon {
namespace {

/// Inputs 0 to 2 and 3 to 5: sparse tensors of one shape, in row-major order.
struct Operands {
  SparseTensor a, b;
};

StatusOr<Operands> ReadOperands(const KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(SparseTensor a, SparseTensor::Read(ctx, 0));
  TENON_ASSIGN_OR_RETURN(SparseTensor b, SparseTensor::Read(ctx, 3));
  if (a.rank() != b.rank()) {
    return InvalidArgument("Operands do not have the same ranks: got [", Join(a.dims, ","),
                           "] and [", Join(b.dims, ","), "]");
  }
  if (a.dims != b.dims) {
    return InvalidArgument("Operands' shapes do not match: got [", Join(a.dims, ","), "] and [",
                           Join(b.dims, ","), "]");
  }
  return Operands{std::move(a), std::move(b)};
}

/// Walks both in row-major order; `combine(i, j)` gets the numbers of the entries of a and of b
/// that have the same index, or -1 where there is none, and gives the value, or nothing to leave it
/// out. Writes indices and values as outputs 0 and 1.
template <typename T, typename Combine>
Status MergeEntries(KernelContext& ctx, const Operands& in, Combine combine) {
  const SparseTensor &a = in.a, &b = in.b;
  SparseEntries entries(a.rank());
  CountedVector<T> values;
  for (int64_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if ((i + j) % kStepsBetweenLooks == 0 && Interrupted()) return OkStatus();
    const auto order = i == a.size()   ? std::strong_ordering::greater
                       : j == b.size() ? std::strong_ordering::less
                                       : CompareIndices(a.index(i), b.index(j));
    const std::optional<T> value = combine(order <= 0 ? i : -1, order >= 0 ? j : -1);
    if (value) {
      entries.Add(order <= 0 ? a.index(i) : b.index(j));
      values.push_back(*value);
    }
    i += order <= 0;
    j += order >= 0;
  }
  TENON_RETURN_IF_ERROR(entries.WriteIndices(ctx, 0));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(1, {entries.size()}));
  std::copy(values.begin(), values.end(), out->data<T>());
  return OkStatus();
}

// --- SparseAdd ---

using AddTypes = TypeList<float, double, int8_t, int16_t, int32_t, int64_t, std::complex<float>,
                          std::complex<double>>;

Status AddKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const Operands in, ReadOperands(ctx));
  const Tensor& threshold = ctx.input(6);
  TENON_RETURN_IF_ERROR(CheckRank(threshold, 0, "thresh"));
  TENON_RETURN_IF_ERROR(WriteVector(ctx, 2, in.a.dims));
  long double least = 0;  // holds every int64 and double
  TENON_RETURN_IF_ERROR(DispatchStatus(threshold.dtype(), RealTypes(), [&]<typename T>(T) {
    least = static_cast<ComputeType<T>>(threshold.scalar<T>());
  }));
  return DispatchStatus(in.a.values.dtype(), AddTypes(), [&]<typename T>(T) {
    const T *a = in.a.values.data<T>(), *b = in.b.values.data<T>();
    return MergeEntries<T>(ctx, in, [=](int64_t i, int64_t j) -> std::optional<T> {
      if (i < 0) return b[j];
      if (j < 0) return a[i];
      const T sum = Plus(a[i], b[j]);
      if (least <= static_cast<long double>(std::abs(sum))) return sum;
      return std::nullopt;
    });
  });
}

Status OperandShape(ShapeContext& c, PartialShape* shape) {
  TENON_ASSIGN_OR_RETURN(const PartialShape a, SparseInputShape(c, 0));
  TENON_ASSIGN_OR_RETURN(const PartialShape b, SparseInputShape(c, 3));
  // Shapes that differ are an error of the kernel.
  if (!a.IsCompatibleWith(b)) return OkStatus();
  TENON_ASSIGN_OR_RETURN(*shape, a.MergeWith(b));
  return OkStatus();
}

Status AddShape(ShapeContext& c) {
  PartialShape shape;
  TENON_RETURN_IF_ERROR(OperandShape(c, &shape));
  TENON_RETURN_IF_ERROR(c.WithRank(6, 0));
  SetSparseOutputs(c, 0, PartialShape::kUnknownDim, shape.rank());
  return OkStatus();
}

void AddGrad(GradContext& g) {
  const auto grads = SparseAddGrad(g.dy(1), g.in(0), g.in(3), g.out(0));
  g.dx(1) = grads.a_val_grad;
  g.dx(4) = grads.b_val_grad;
}

// --- SparseSparseMaximum and SparseSparseMinimum ---

/// `choose(x, y)` of the values at each index, 0 where there is none.
template <typename Choose>
Status ChooseEntries(KernelContext& ctx, Choose choose) {
  TENON_ASSIGN_OR_RETURN(const Operands in, ReadOperands(ctx));
  if (in.a.rank() == 0) return InvalidArgument("Tensors must not be empty, found scalars");
  TENON_RETURN_IF_ERROR(in.a.CheckBounds());
  TENON_RETURN_IF_ERROR(in.b.CheckBounds());
  return DispatchStatus(in.a.values.dtype(), RealTypes(), [&]<typename T>(T) {
    const T *a = in.a.values.data<T>(), *b = in.b.values.data<T>();
    return MergeEntries<T>(ctx, in, [=](int64_t i, int64_t j) -> std::optional<T> {
      return choose(i < 0 ? T(0) : a[i], j < 0 ? T(0) : b[j]);
    });
  });
}

Status MaximumKernel(KernelContext& ctx) {
  return ChooseEntries(ctx, [](auto x, auto y) { return y > x ? y : x; });
}

Status MinimumKernel(KernelContext& ctx) {
  return ChooseEntries(ctx, [](auto x, auto y) { return y < x ? y : x; });
}

Status ChooseShape(ShapeContext& c) {
  PartialShape shape;
  TENON_RETURN_IF_ERROR(OperandShape(c, &shape));
  c.set_output(0, PartialShape{PartialShape::kUnknownDim, shape.rank()});
  c.set_output(1, PartialShape::OfRank(1));
  return OkStatus();
}

}  // namespace

void RegisterSparseAddOps(OpRegistry& ops) {
  const Tensor a = Tensor::Of<int64_t>({3, 2}, {0, 1, 1, 0, 1, 2});
  const Tensor b = Tensor::Of<int64_t>({2, 2}, {1, 0, 1, 1});
  const Tensor shape = Tensor::Vector<int64_t>({2, 3});
  ops.Add("SparseAdd", AddShape, AddKernel, {.types = {{"T", DTypesOf(AddTypes())}}})
      .Grad(AddGrad)
      .Example({a, Shape{3}, shape, b, Shape{2}, shape, Tensor::Scalar<float>(0)});
  const auto choose = [&](const std::string& name, auto kernel) {
    ops.Add(name, ChooseShape, kernel, {.types = {{"T", DTypesOf(RealTypes())}}})
        .Grad(
            [=](GradContext&) { return Unimplemented("the gradient of ", name, " is not known"); })
        .Example({a, Tensor::Vector<float>({1, -2, 3}), shape, b, Shape{2}, shape});
  };
  choose("SparseSparseMaximum", MaximumKernel);
  choose("SparseSparseMinimum", MinimumKernel);
}

}  // namespace tenon
