// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/array/register.h"

namespace tenon {
namespace {

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

void RegisterBitcast(OpRegistry& ops) {
  ops.Get("Bitcast")
      .Shape(BitcastShape)
      .Kernel(kCpu, BitcastKernel)
      .Example({Tensor::Vector<float>({1, -2})}, {{"type", DType::kUInt8}});
}

}  // namespace tenon
