// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "core/graph/graph.h"
#include "ops/cuda/failure.cuh"
#include "ops/cuda/index_check.h"
#include "ops/cuda/kernel_types.h"

namespace tenon::cuda {

/// Where a kernel of the running step notes that it found an error (NoteFailure): `describe(value)`
/// is the step's error then, which names the node.
inline RunCheck AddCheck(const KernelContext& ctx, const NodeIdentity& node,
                         std::function<Status(uint64_t)> describe) {
  return ctx.device().queue()->AddCheck(
      ctx.device_run().id, [node, describe = std::move(describe)](uint64_t value) {
        return AnnotateWithNode(describe(value), node.name, node.op, node.device);
      });
}

/// Notes an index that cannot be used; of several it is any.
__device__ inline void NoteIndex(RunCheck check, int64_t place, int64_t value) {
  NoteFailure(check, WordOf({place, value}));
}

}  // namespace tenon::cuda
