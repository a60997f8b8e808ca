// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/graph.h"
#include "core/hash_map.h"
#include "core/kernel.h"
#include "core/mutex.h"

namespace tenon {

/// The kernels of a session's stateful nodes, by node name: a random op's generator, a variable, a
/// queue goes on from step to step whatever the signature of the step. Thread-safe.
class KernelCache {
 public:
  /// The kernel of `node` on `device`: for a stateful op the session's one, else a new one. Errors
  /// name the node.
  StatusOr<std::shared_ptr<const Kernel>> Get(const Node& node, Device& device);

 private:
  Mutex mu_;
  StringMap<std::shared_ptr<const Kernel>> stateful_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
