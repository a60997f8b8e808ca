// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/kernel.h"

namespace tenon {

/// A kernel that is one function, needs nothing of the node, and costs less than handing it to
/// another thread.
template <Status (*kCompute)(KernelContext&)>
class InlineKernel final : public Kernel {
 public:
  using Kernel::Kernel;
  explicit InlineKernel(KernelConstruction& c) : Kernel(c) {}
  Status Compute(KernelContext& ctx) const override { return kCompute(ctx); }
  bool is_expensive() const override { return false; }
};

}  // namespace tenon
