// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/kernel.h"
#include "runtime/groups/group_plan.h"
#include "runtime/groups/group_recordings.h"

namespace tenon {

/// Kernels of a device with a queue that follow each other without the host in between, as one
/// kernel. It runs one after another; but when the same comes in for the second time (shapes,
/// values in host memory, places of variables), what they queue is recorded (QueueRecording), and
/// repeated from then on without running them. What differs, or finds the recording or a variable
/// in use by another step, runs as ever.
///
/// As CUDA graphs in PyTorch, with the checks that make it safe to do unasked.
class KernelGroup final : public Kernel {
 public:
  KernelGroup(const KernelConstruction& c, GroupPlan plan) : Kernel(c), plan_(std::move(plan)) {}

  Status Compute(KernelContext& ctx) const override;

 private:
  const GroupPlan plan_;
  mutable GroupRecordings recordings_;
};

}  // namespace tenon
