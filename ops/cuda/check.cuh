// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "core/device_queue.h"
#include "core/graph.h"
#include "ops/cuda/index_check.h"
#include "ops/cuda/kernel_types.h"

namespace tenon::cuda {

/// A word of the running step in which a kernel notes that it found an error, 0 before: when it has
/// another value later, `describe(value)` is the step's error, which names the node.
inline uint64_t* AddCheck(const KernelContext& ctx, const NodeIdentity& node,
                          std::function<Status(uint64_t)> describe) {
  return ctx.device().queue()->AddCheck(
      ctx.step().step_id, [node, describe = std::move(describe)](uint64_t value) {
        return AnnotateWithNode(describe(value), node.name, node.op, node.device);
      });
}

/// Notes an index that cannot be used; of several it is any.
__device__ inline void NoteIndex(uint64_t* check, int64_t place, int64_t value) {
  atomicExch(reinterpret_cast<unsigned long long*>(check),
             static_cast<unsigned long long>(WordOf({place, value})));
}

}  // namespace tenon::cuda
