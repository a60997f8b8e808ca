// SPDX-License-Identifier: Apache-2.0
#include "train/replica_device_setter.h"

#include <algorithm>
#include <memory>

namespace tenon {
namespace {

/// Bytes of a variable's value; of unknown dimensions, one each.
int64_t VariableBytes(const Node& node) {
  int64_t bytes = static_cast<int64_t>(SizeOf(node.attrs().GetOr("dtype", DType::kFloat)));
  const PartialShape shape = node.attrs().GetOr("shape", PartialShape());
  for (int i = 0; i < shape.rank(); ++i) bytes *= std::max<int64_t>(shape.dim(i), 1);
  return bytes;
}

}  // namespace

DeviceFunction ReplicaDeviceSetter(const ReplicaDeviceSetterOptions& options) {
  struct State {
    int next = 0;
    std::vector<int64_t> bytes;
  };
  auto state = std::make_shared<State>();
  state->bytes.resize(std::max(options.ps_tasks, 0));
  return [options, state](const Node& node) -> std::string {
    if (options.ps_tasks <= 0 || !node.is_variable()) return options.worker_device;
    int task = 0;
    if (options.strategy == ReplicaDeviceSetterOptions::Strategy::kRoundRobin) {
      task = state->next++ % options.ps_tasks;
    } else {
      const auto least = std::min_element(state->bytes.begin(), state->bytes.end());
      task = static_cast<int>(least - state->bytes.begin());
      *least += VariableBytes(node);
    }
    return StrCat(options.ps_device, "/task:", task);
  };
}

}  // namespace tenon
