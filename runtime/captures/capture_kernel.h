// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/op/kernel.h"
#include "runtime/captures/capture_cache.h"
#include "runtime/captures/capture_plan.h"

namespace tenon {

/// Kernels of a device with a queue that follow each other without the host in between, as one
/// kernel. It runs one after another; but when the same comes in for the second time (shapes,
/// values in host memory, places of variables), what they queue is captured (QueueCapture), and
/// repeated from then on without running them. What differs, or finds the capture or a variable
/// in use by another step, runs as ever.
///
/// PyTorch offers the same as CUDA graphs; the checks here make it safe to do unasked.
class CaptureKernel final : public Kernel {
 public:
  CaptureKernel(const KernelConstruction& c, CapturePlan plan)
      : Kernel(c), plan_(std::move(plan)) {}

  Status Compute(KernelContext& ctx) const override;

 private:
  const CapturePlan plan_;
  mutable CaptureCache captures_;
};

}  // namespace tenon
