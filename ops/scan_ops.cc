// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"
#include "ops/array_ops.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "ops/register.h"

namespace tenon {
namespace {

class CumsumKernel final : public Kernel {
 public:
  explicit CumsumKernel(KernelConstruction& c)
      : Kernel(c), exclusive_(c.Attr<bool>("exclusive")), reverse_(c.Attr<bool>("reverse")) {}
  Status Compute(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    TENON_ASSIGN_OR_RETURN(const int axis, ReadAxis(ctx.input(1), x.rank(), "axis"));
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, x.shape()));
    if (x.num_elements() == 0) return OkStatus();
    const int64_t n = x.dim(axis);
    const int64_t inner = Product(x.shape().dims(), axis + 1, x.rank());
    const int64_t lines = x.num_elements() / n;
    const bool known = Dispatch(x.dtype(), NumericTypes(), [&](auto zero) {
      using T = decltype(zero);
      SerialFor(lines, 2.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
        for (int64_t l = begin; l < end; ++l) {
          const int64_t first = l / inner * n * inner + l % inner;
          AddUp(x.data<T>() + first, out->data<T>() + first, n, inner);
        }
      });
    });
    return known ? OkStatus() : Unimplemented("no Cumsum of ", ToString(x.dtype()));
  }

 private:
  template <typename T>
  void AddUp(const T* x, T* out, int64_t n, int64_t stride) const {
    using C = ComputeType<T>;
    C sum(0);
    SerialFor(n, 2, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t at = (reverse_ ? n - 1 - k : k) * stride;
        const C before = sum;
        sum = Plus(sum, C(x[at]));
        out[at] = T(exclusive_ ? before : sum);
      }
    });
  }

  const bool exclusive_;
  const bool reverse_;
};

Status CumsumShape(ShapeContext& c) {
  if (c.input(0).rank_known() && c.constant(1) != nullptr) {
    TENON_RETURN_IF_ERROR(ReadAxis(*c.constant(1), c.input(0).rank(), "axis"));
  }
  return UnchangedShape(c);
}

Status CumsumGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                  std::vector<Output>* dxs) {
  (*dxs)[0] = Cumsum(s, dys[0], node.input(1), node.attrs().GetOr("exclusive", false),
                     !node.attrs().GetOr("reverse", false));
  return OkStatus();
}

/// The shape after a Bitcast: a last dimension more or less when the element sizes differ.
StatusOr<DimVector> BitcastDims(absl::Span<const int64_t> dims, DType from, DType to) {
  DimVector out(dims.begin(), dims.end());
  const int64_t a = static_cast<int64_t>(SizeOf(from)), b = static_cast<int64_t>(SizeOf(to));
  if (a == 0 || b == 0) {
    return InvalidArgument("cannot bitcast ", ToString(from), " to ", ToString(to));
  }
  if (a > b) {
    if (static_cast<int>(out.size()) == Shape::kMaxRank) {
      return InvalidArgument("a tensor has at most ", Shape::kMaxRank, " dimensions");
    }
    out.push_back(a / b);
  } else if (a < b) {
    if (out.empty() || (out.back() != PartialShape::kUnknownDim && out.back() != b / a)) {
      return InvalidArgument("Cannot bitcast from ", ToString(from), " to ", ToString(to),
                             " unless the last dimension is ", b / a, "; found shape ",
                             PartialShape(dims).ToString());
    }
    out.pop_back();
  }
  return out;
}

Status BitcastKernel(KernelContext& ctx) {
  const Tensor in = ctx.TakeInput(0);
  TENON_ASSIGN_OR_RETURN(const DimVector dims,
                         BitcastDims(in.shape().dims(), in.dtype(), ctx.output_type(0)));
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  // A view of the buffer begins at its start; a slice of it is copied.
  if (in.num_elements() > 0 && in.raw_data() == in.buffer()->data()) {
    ctx.set_output(0, Tensor(ctx.output_type(0), shape, in.buffer()));
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (in.num_elements() > 0) std::memcpy(out->raw_data(), in.raw_data(), in.num_bytes());
  return OkStatus();
}

Status BitcastShape(ShapeContext& c) {
  if (!c.input(0).rank_known()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const DType from, c.Attr<DType>("T"));
  TENON_ASSIGN_OR_RETURN(const DType to, c.Attr<DType>("type"));
  TENON_ASSIGN_OR_RETURN(const DimVector dims, BitcastDims(c.input(0).dims(), from, to));
  TENON_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Create(dims));
  c.set_output(0, std::move(out));
  return OkStatus();
}

}  // namespace

void RegisterScanOps(OpRegistry& ops) {
  ops.Get("Cumsum")
      .Shape(CumsumShape)
      .Kernel<CumsumKernel>(kCpu,
                            {.types = {{"T", DTypesOf(NumericTypes())}}, .host_args = {"axis"}})
      .Grad(CumsumGrad)
      .Example({Shape{2, 3}, Tensor::Scalar<int32_t>(-1)})
      .Example({Shape{2, 3}, Tensor::Scalar<int64_t>(0)}, {{"exclusive", true}, {"reverse", true}});
  ops.Get("Bitcast")
      .Shape(BitcastShape)
      .Kernel(kCpu, BitcastKernel)
      .Example({Tensor::Vector<float>({1, -2})}, {{"type", DType::kUInt8}});
}

Output Cumsum(const Scope& s, Output x, Output axis, bool exclusive, bool reverse) {
  return s.Op("Cumsum")
      .Input(x)
      .Input(axis)
      .Attr("exclusive", exclusive)
      .Attr("reverse", reverse)
      .Output();
}
Output Bitcast(const Scope& s, Output input, DType type) {
  return s.Op("Bitcast").Input(input).Attr("type", type).Output();
}

}  // namespace tenon
