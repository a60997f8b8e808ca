// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/math/channels.h"
#include "ops/math/math_ops.h"
#include "ops/maths.h"

namespace tenon {
namespace {

using Types = TypeList<float, double>;

/// What the node says of quantisation.
struct Quantisation : KernelState {
  explicit Quantisation(KernelConstruction& c)
      : is_signed(c.Attr<bool>("signed_input")),
        range_given(c.Attr<bool>("range_given")),
        narrow(c.attrs().GetOr("narrow_range", false)),
        half_up(c.attrs().GetOr("round_mode", std::string()) == "HALF_UP"),
        axis(c.attrs().GetOr("axis", int64_t{-1})),
        bits(c.attrs().GetOr("num_bits", int64_t{0})),
        min(c.attrs().GetOr("input_min", 0.0f)),
        max(c.attrs().GetOr("input_max", 0.0f)) {
    if (axis < -1) c.Fail(InvalidArgument("Axis must be at least -1. Found ", axis));
  }

  Status CheckBits(int64_t n) const {
    if (n > 0 && n < (is_signed ? 62 : 63)) return OkStatus();
    return InvalidArgument("num_bits is out of range: ", n, " with signed_input ", is_signed);
  }

  const bool is_signed, range_given, narrow, half_up;
  const int64_t axis, bits;
  const float min, max;
};

/// How values of [min, max] become integers, with 0 unchanged: the side that needs the smaller
/// scale decides it, and the other end of the range follows.
template <typename T>
struct Scale {
  Scale(T low, T high, T first, T last) : min(low), max(high) {
    constexpr T kLargest = std::numeric_limits<T>::max();
    const T of_min = first * min > 0 ? first / min : kLargest;
    const T of_max = last * max > 0 ? last / max : kLargest;
    if (of_min < of_max) {
      scale = of_min;
      inverse = min / first;
      max = last * inverse;
    } else {
      scale = of_max;
      inverse = max / last;
      min = first * inverse;
    }
  }
  T min, max, scale, inverse;
};

Status CheckRange(const Tensor& t, std::string_view what, const Shape& wanted) {
  if (t.shape() == wanted) return OkStatus();
  return InvalidArgument(what, " must have shape ", wanted, ", found ", t.shape());
}

Status QuantizeAndDequantizeKernel(KernelContext& ctx, const Tensor& x, const Quantisation& q) {
  int64_t bits = q.bits;
  if (ctx.num_inputs() > 3) {
    TENON_ASSIGN_OR_RETURN(bits, ReadOnlyInteger(ctx.input(3), "num_bits"));
  }
  TENON_RETURN_IF_ERROR(q.CheckBits(bits));
  TENON_ASSIGN_OR_RETURN(const Channels channels, ChannelsOf(x, q.axis));
  const bool has_inputs = ctx.num_inputs() > 1;
  if (q.range_given && has_inputs) {
    const Shape wanted = q.axis == -1 ? Shape{} : Shape{channels.count};
    TENON_RETURN_IF_ERROR(CheckRange(ctx.input(1), "input_min", wanted));
    TENON_RETURN_IF_ERROR(CheckRange(ctx.input(2), "input_max", wanted));
  }
  const int64_t one = 1;
  const int64_t first = q.is_signed ? -(one << (bits - 1)) + (q.narrow ? 1 : 0) : 0;
  const int64_t last = q.is_signed ? (one << (bits - 1)) - 1 : (one << bits) - 1;
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
  return DispatchStatus(x.dtype(), Types(), [&]<typename T>(T) -> Status {
    const T* const in = x.data<T>();
    T* const out = y->data<T>();
    // Without elements there may be more channels than anyone can count.
    const int64_t count = x.num_elements() == 0 && !q.range_given ? 0 : channels.count;
    for (int64_t c = 0; c < count && !Interrupted(); ++c) {
      T low = std::numeric_limits<T>::infinity(), high = -low;
      if (!q.range_given) {
        ForEachOf(channels, c, [&](int64_t i) {
          low = std::min(low, in[i]);
          high = std::max(high, in[i]);
        });
      } else {
        low = has_inputs ? ctx.input(1).data<T>()[c] : static_cast<T>(q.min);
        high = has_inputs ? ctx.input(2).data<T>()[c] : static_cast<T>(q.max);
        if (low > high) {
          return InvalidArgument("Invalid range: input_min ", low, " > input_max ", high);
        }
      }
      const Scale<T> s(low, high, static_cast<T>(first), static_cast<T>(last));
      ForEachOf(channels, c, [&](int64_t i) {
        const T value = q.range_given ? std::max(std::min(in[i], s.max), s.min) : in[i];
        const T steps = value * s.scale;
        out[i] = (q.half_up ? std::floor(steps + T(0.5)) : std::rint(steps)) * s.inverse;
      });
    }
    return OkStatus();
  });
}

/// Passes the gradient on where the input was in the range.
Status GradKernel(KernelContext& ctx, int64_t axis) {
  const Tensor dy = ctx.input(0), x = ctx.input(1), min = ctx.input(2), max = ctx.input(3);
  if (dy.shape() != x.shape()) {
    return InvalidArgument("gradients and input must have one shape, found ", dy.shape(), " and ",
                           x.shape());
  }
  TENON_ASSIGN_OR_RETURN(const Channels channels, ChannelsOf(x, axis));
  const Shape wanted = axis == -1 ? Shape{} : Shape{channels.count};
  TENON_RETURN_IF_ERROR(CheckRange(min, "input_min", wanted));
  TENON_RETURN_IF_ERROR(CheckRange(max, "input_max", wanted));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.shape()));
  for (const int i : {1, 2}) {
    TENON_ASSIGN_OR_RETURN(Tensor * none, ctx.AllocateOutput(i, wanted));
    ZeroElements(none);
  }
  return DispatchStatus(x.dtype(), Types(), [&]<typename T>(T) {
    for (int64_t c = 0; c < channels.count; ++c) {
      const T low = min.data<T>()[c], high = max.data<T>()[c];
      ForEachOf(channels, c, [&](int64_t i) {
        const T value = x.data<T>()[i];
        dx->data<T>()[i] = dy.data<T>()[i] * T(value >= low && value <= high ? 1 : 0);
      });
    }
  });
}

Status GradShapes(ShapeContext& c) {
  c.set_output(0, c.input(1));
  c.set_output(1, c.input(2));
  c.set_output(2, c.input(3));
  return OkStatus();
}

}  // namespace

void RegisterQuantizeAndDequantize(OpRegistry& ops) {
  const Tensor min = Tensor::Scalar(-1.0f), max = Tensor::Scalar(1.5f);
  const KernelOptions types = {.types = {{"T", DTypesOf(Types())}}};
  const auto add = [&](std::string_view name, std::vector<ExampleInput> example) {
    return ops.Add(name, UnchangedShape, QuantizeAndDequantizeKernel, types)
        .Example(example, {{"T", DType::kFloat}});
  };
  const auto straight_through = [](GradContext& g) { g.dx(0) = g.dy(0); };
  add("QuantizeAndDequantize", {Shape{2, 3}}).Grad(straight_through);
  add("QuantizeAndDequantizeV2", {Shape{2, 3}, min, max}).Grad(straight_through);
  add("QuantizeAndDequantizeV3", {Shape{2, 3}, min, max, Tensor::Scalar(6)}).Grad(straight_through);
  add("QuantizeAndDequantizeV4", {Shape{2, 3}, min, max}).Grad([](GradContext& g) {
    const auto gradients = QuantizeAndDequantizeV4Grad(g.dy(0), g.in(0), g.in(1), g.in(2),
                                                       {.axis = g.Attr<int64_t>("axis")});
    g.dx(0) = gradients.input_backprop;
    g.dx(1) = gradients.input_min_backprop;
    g.dx(2) = gradients.input_max_backprop;
  });
  ops.Add("QuantizeAndDequantizeV4Grad", GradShapes, GradKernel,
          {.types = {{"T", DTypesOf(Types())}}, .attrs = {"axis"}})
      .Example({Shape{2, 3}, Shape{2, 3}, min, max});
}

}  // namespace tenon
