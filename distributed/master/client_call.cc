// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/client_call.h"

#include "distributed/protocol/run_settings.h"

namespace tenon {

Signature ClientCall::signature() const {
  Signature signature{{}, fetches, targets, connections};
  for (const auto& [name, value] : feeds) signature.feeds.push_back(name);
  return signature;
}

Status ClientCall::SetOptions(const RunOptions& options) {
  for (const DebugTensorWatch& watch : options.debug_options().debug_tensor_watch_opts()) {
    // One that writes nowhere does nothing.
    if (watch.debug_urls().empty()) continue;
    return Unimplemented("debug_tensor_watch_opts: watches on tensors, found one on '",
                         watch.node_name(), "'; fetch them instead");
  }
  timeout_ms = options.timeout_in_ms();
  settings = RunSettingsFrom(options);
  output_partition_graphs = options.output_partition_graphs();
  return OkStatus();
}

}  // namespace tenon
