// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/graph/graph.h"
#include "core/op/kernel.h"

namespace tenon {

/// Gives the kernel of a node.
using KernelOf = std::function<StatusOr<std::shared_ptr<const Kernel>>(const Node&)>;

/// The kernels of a session's stateful nodes: a random op's generator, a variable, a queue goes on
/// from step to step whatever the signature of the step. A node is known by its name together with
/// its op, attributes and device: graphs that give one name to different nodes get different
/// kernels. Thread-safe.
class KernelCache {
 public:
  KernelCache() = default;
  /// For at most so many stateful nodes: whoever registers graphs could make up new ones for ever.
  explicit KernelCache(int64_t max_stateful) : max_stateful_(max_stateful) {}

  /// The kernel of `node` on `device`: for a stateful op the session's one, else a new one. Errors
  /// name the node; ResourceExhausted when there would be too many.
  /// `functions` and `task_devices` as KernelConstruction's.
  StatusOr<std::shared_ptr<const Kernel>> Get(
      const Node& node, Device& device, const std::shared_ptr<FunctionRuntime>& functions = nullptr,
      absl::Span<Device* const> task_devices = {});
  /// Get for the nodes of one device. `task_devices` must live as long as what is given.
  KernelOf On(Device& device, std::shared_ptr<FunctionRuntime> functions = nullptr,
              absl::Span<Device* const> task_devices = {}) {
    return [this, &device, functions = std::move(functions), task_devices](const Node& node) {
      return Get(node, device, functions, task_devices);
    };
  }

 private:
  struct Entry {
    AttributeMap attrs;
    std::shared_ptr<const Kernel> kernel;
  };
  const int64_t max_stateful_ = std::numeric_limits<int64_t>::max();
  Mutex mu_;
  int64_t num_stateful_ ABSL_GUARDED_BY(mu_) = 0;
  /// By name and digest.
  StringMap<std::vector<Entry>> stateful_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
