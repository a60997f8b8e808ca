// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/math/math_ops.h"
#include "ops/maths.h"
#include "ops/spectral/spectral_ops.h"
#include "ops/spectral/transform.h"

namespace tenon {
namespace {

/// The longest line: the libraries count in int, and a line may be padded to four times its length.
constexpr int64_t kMaxLength = int64_t{1} << 28;

Status CheckInput(const Tensor& in, int rank) {
  if (in.rank() < rank) {
    return InvalidArgument("Input must have rank of at least ", rank, " but got: ", in.shape());
  }
  for (const int64_t n : in.shape().dims().last(rank)) {
    if (n > kMaxLength) return InvalidArgument("a line of ", n, " elements is too long");
  }
  return OkStatus();
}

/// Transforms data of shape [..., dims] along the first `count` of the last dims.size() dimensions.
template <typename T>
void TransformDims(std::complex<T>* data, int64_t batch, absl::Span<const int64_t> dims,
                   size_t count, bool inverse) {
  int64_t inner = Product(dims);
  int64_t outer = batch;
  for (size_t d = 0; d < count && batch * Product(dims) > 0; ++d) {
    inner /= dims[d];
    TransformLines(data, outer, dims[d], inner, inverse);
    outer *= dims[d];
  }
}

template <int kRank, bool kInverse>
Status ComplexKernel(KernelContext& ctx, const Tensor& in) {
  TENON_RETURN_IF_ERROR(CheckInput(in, kRank));
  const auto dims = in.shape().dims().last(kRank);
  const void* const from = in.raw_data();
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0, in.shape()));
  if (in.num_elements() == 0) return OkStatus();
  if (out->raw_data() != from) CopyElements(in, 0, out, 0, in.num_elements());
  return DispatchStatus(in.dtype(), ComplexTypes(), [&]<typename T>(T) {
    TransformDims(out->data<T>(), in.num_elements() / Product(dims), dims, kRank, kInverse);
  });
}

/// What an op from or to real numbers works on: of each line of the input the first `spectrum` or
/// `length` elements.
struct RealPlan {
  DimVector batch;     // the dimensions before those that are transformed
  DimVector length;    // of the real numbers, for each dimension that is transformed
  DimVector spectrum;  // the same, with length / 2 + 1 for the last one
  int64_t count = 1;   // of the batch
  int64_t lines = 1;   // along the last dimension
};

StatusOr<RealPlan> PlanReal(const KernelContext& ctx, int rank, bool inverse) {
  const Tensor& in = ctx.input(0);
  const DType real = inverse ? ctx.output_type(0) : in.dtype();
  const DType complex = inverse ? in.dtype() : ctx.output_type(0);
  if ((real == DType::kDouble) != (complex == DType::kComplex128)) {
    return InvalidArgument("Wrong types for a real FFT: ", real, " and ", complex);
  }
  TENON_RETURN_IF_ERROR(CheckInput(in, rank));
  RealPlan plan;
  TENON_ASSIGN_OR_RETURN(plan.length, ReadIntegerVector(ctx.input(1), "fft_length", rank));
  plan.spectrum = plan.length;
  for (const int64_t n : plan.length) {
    if (n < 0) return InvalidArgument("fft_length must >= 0, but got: ", n);
    if (n > kMaxLength) return NotInRange(n, kMaxLength + 1, "fft_length");
  }
  if (plan.length.back() > 0) plan.spectrum.back() = plan.length.back() / 2 + 1;
  const int batch = in.rank() - rank;
  const DimVector& needed = inverse ? plan.spectrum : plan.length;
  for (int d = 0; d < rank; ++d) {
    if (in.dim(batch + d) < needed[d]) {
      return InvalidArgument("Input dimension ", batch + d, " must have length of at least ",
                             needed[d], " but got: ", in.dim(batch + d));
    }
    if (d + 1 < rank) plan.lines *= plan.length[d];
  }
  for (const int64_t d : in.shape().dims().first(batch)) plan.batch.push_back(d);
  plan.count = Product(plan.batch);
  plan.lines *= plan.count;
  return plan;
}

/// Where line `i` of what is transformed begins in `in`, whose lines and planes may be longer.
int64_t LineOffset(const Tensor& in, const RealPlan& plan, int64_t i) {
  const int rank = static_cast<int>(plan.length.size());
  const int batch = in.rank() - rank;
  int64_t offset = 0, stride = in.dim(in.rank() - 1);
  for (int d = rank - 2; d >= 0; --d) {
    offset += i % plan.length[d] * stride;
    i /= plan.length[d];
    stride *= in.dim(batch + d);
  }
  return offset + i * stride;
}

template <int kRank>
Status RealKernel(KernelContext& ctx, const Tensor& in) {
  TENON_ASSIGN_OR_RETURN(const RealPlan plan, PlanReal(ctx, kRank, false));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, Concat(plan.batch, plan.spectrum)));
  if (out->num_elements() == 0) return OkStatus();
  return DispatchStatus(in.dtype(), TypeList<float, double>(), [&]<typename T>(T) {
    auto* const spectrum = out->data<std::complex<T>>();
    TransformRealLines<T>([&](int64_t i) { return in.data<T>() + LineOffset(in, plan, i); },
                          plan.lines, plan.length.back(), spectrum);
    TransformDims(spectrum, plan.count, plan.spectrum, kRank - 1, false);
  });
}

template <int kRank>
Status InverseRealKernel(KernelContext& ctx, const Tensor& in) {
  TENON_ASSIGN_OR_RETURN(const RealPlan plan, PlanReal(ctx, kRank, true));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, Concat(plan.batch, plan.length)));
  if (out->num_elements() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(Concat(plan.batch, plan.spectrum)));
  TENON_ASSIGN_OR_RETURN(Tensor spectrum, ctx.AllocateTemp(in.dtype(), shape));
  for (int64_t i = 0; i < plan.lines; ++i) {
    CopyElements(in, LineOffset(in, plan, i), &spectrum, i * plan.spectrum.back(),
                 plan.spectrum.back());
  }
  return DispatchStatus(out->dtype(), TypeList<float, double>(), [&]<typename T>(T) {
    auto* const lines = spectrum.data<std::complex<T>>();
    TransformDims(lines, plan.count, plan.spectrum, kRank - 1, true);
    InvertRealLines(lines, plan.lines, plan.length.back(), out->data<T>());
  });
}

template <int kRank>
Status ComplexShape(ShapeContext& c) {
  return c.Return(c.WithRankAtLeast(0, kRank));
}

template <int kRank, bool kInverse>
Status RealShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape in, c.WithRankAtLeast(0, kRank));
  if (!in.rank_known()) return OkStatus();
  PartialShape last = PartialShape::OfRank(kRank);
  if (c.constant(1) != nullptr) {
    TENON_ASSIGN_OR_RETURN(DimVector length,
                           ReadIntegerVector(*c.constant(1), "fft_length", kRank));
    for (const int64_t n : length) {
      if (n < 0) return InvalidArgument("fft_length must >= 0, but got: ", n);
    }
    if (!kInverse && length.back() > 0) length.back() = length.back() / 2 + 1;
    last = PartialShape(length);
  }
  return c.Return(in.Part(0, in.rank() - kRank).ConcatWith(last));
}

/// The last `rank` sizes of x.
Output LastSizes(const Output& x, int rank) {
  const Output shape = ShapeVector(x);
  return Slice(shape, Reshape(Size(shape) - rank, {1}), Const({-1}));
}

/// The number of elements that are transformed together into one of `x`.
Output SizeOf(const Output& sizes, DType type) { return Cast(Prod(sizes, {0}), type); }

using ComplexOp = Output (*)(const Input& input, const OpOptions& options);
using RealOp = Output (*)(const Input& input, const Input& fft_length, DType type);

/// x with zeros at the end of its dimensions, in the shape of `like`.
Output PadTo(const Output& x, const Output& like_shape) {
  const Output missing = like_shape - ShapeOf(x);
  return Pad(x, Pack({ZerosLike(missing), missing}, {.axis = 1}));
}

Output ComplexOf(int rank, bool inverse, const Output& x) {
  switch (rank) {
    case 1:
      return inverse ? IFFT(x) : FFT(x);
    case 2:
      return inverse ? IFFT2D(x) : FFT2D(x);
    default:
      return inverse ? IFFT3D(x) : FFT3D(x);
  }
}

template <int kRank, bool kInverse>
void ComplexGrad(GradContext& g) {
  const Output dy = g.dy(0), size = SizeOf(LastSizes(dy, kRank), dy.dtype());
  const Output dx = ComplexOf(kRank, !kInverse, dy);
  g.dx(0) = kInverse ? dx / size : dx * size;
}

/// What was left out of the spectrum, and of the input, has the gradient 0.
template <int kRank>
void RealGrad(GradContext& g) {
  const Output x = g.in(0), dy = g.dy(0), length = g.in(1);
  const Output missing = length - LastSizes(dy, kRank);
  const Output none = ZerosLike(Slice(ShapeOf(dy), {0}, Reshape(Size(ShapeOf(dy)) - kRank, {1})));
  const Output after = ConcatV2({none, missing}, 0);
  const Output full = Pad(dy, Pack({ZerosLike(after), after}, {.axis = 1}));
  const Output dx = Real(ComplexOf(kRank, true, full), {.Tout = x.dtype()});
  g.dx(0) = PadTo(dx * SizeOf(length, x.dtype()), ShapeOf(x));
}

/// Elements of the spectrum that stand for two count twice.
template <int kRank>
void InverseRealGrad(GradContext& g) {
  const Output x = g.in(0), dy = g.dy(0), length = g.in(1);
  const DType complex = x.dtype();
  const Output last = Reshape(Slice(length, {kRank - 1}, {1}), Const(Tensor(DType::kInt32, {0})));
  const Output spectrum = kRank == 1   ? RFFT(dy, length, {.Tcomplex = complex})
                          : kRank == 2 ? RFFT2D(dy, length, {.Tcomplex = complex})
                                       : RFFT3D(dy, length, {.Tcomplex = complex});
  const Output k = Range(0, last / 2 + 1, 1);
  const Output twice = LogicalAnd(k > 0, NotEqual(2 * k, last));
  const Output weight = (1.0 + Cast(twice, dy.dtype())) / SizeOf(length, dy.dtype());
  g.dx(0) = PadTo(spectrum * Cast(weight, complex), ShapeOf(x));
}

template <int kRank>
void RegisterRank(OpRegistry& ops, const std::string& suffix) {
  const Shape shape = kRank == 1 ? Shape{2, 3} : kRank == 2 ? Shape{2, 3, 4} : Shape{2, 3, 2};
  const Tensor length = Tensor::Vector<int32_t>(kRank == 1   ? std::vector{3}
                                                : kRank == 2 ? std::vector{3, 4}
                                                             : std::vector{2, 3, 2});
  const Tensor short_length = Tensor::Vector(std::vector<int32_t>(kRank, 2));
  ops.Add("FFT" + suffix, ComplexShape<kRank>, ComplexKernel<kRank, false>)
      .Grad(ComplexGrad<kRank, false>)
      .Example({shape});
  ops.Add("IFFT" + suffix, ComplexShape<kRank>, ComplexKernel<kRank, true>)
      .Grad(ComplexGrad<kRank, true>)
      .Example({shape});
  ops.Add("RFFT" + suffix, RealShape<kRank, false>, RealKernel<kRank>)
      .Grad(RealGrad<kRank>)
      .Example({shape, length}, {{"Treal", DType::kFloat}, {"Tcomplex", DType::kComplex64}});
  ops.Add("IRFFT" + suffix, RealShape<kRank, true>, InverseRealKernel<kRank>)
      .Grad(InverseRealGrad<kRank>)
      .Example({shape, short_length}, {{"Treal", DType::kFloat}, {"Tcomplex", DType::kComplex64}});
}

}  // namespace

void RegisterFft(OpRegistry& ops) {
  RegisterRank<1>(ops, "");
  RegisterRank<2>(ops, "2D");
  RegisterRank<3>(ops, "3D");
}

}  // namespace tenon
