// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/interruption.h"
#include "core/op/kernel.h"

namespace tenon {

/// Makes output 0 of input 0, element by element: `fn(const From&) -> To`.
template <typename From, typename To, typename Fn>
Status MapElements(KernelContext& ctx, Fn&& fn) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  for (int64_t i = 0; i < in.num_elements() && !Interrupted(); ++i) {
    out->data<To>()[i] = fn(in.data<From>()[i]);
  }
  return OkStatus();
}

}  // namespace tenon
