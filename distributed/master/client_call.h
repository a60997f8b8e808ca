// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/op/run.h"
#include "core/tensor/tensor.h"
#include "proto/run_options.pb.h"
#include "runtime/execute/signature.h"

namespace tenon {

/// One step as a client asks for it (RunStep). Tensors stay tensors; the transport converts.
struct ClientCall {
  std::string session_handle;
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::vector<std::pair<std::string, std::string>> connections;  // see Signature
  std::string partial_run_handle;                                // empty: a whole step
  int64_t timeout_ms = 0;                                        // 0: no limit
  RunSettings settings;
  bool output_partition_graphs = false;
  bool costs = false;      // of the nodes
  int64_t request_id = 0;  // 0: not checked for repetition

  Signature signature() const;

  /// Takes over what RunOptions ask for; what has no meaning here is ignored. Unimplemented for
  /// watches on tensors, which would write nothing.
  Status SetOptions(const RunOptions& options);

  /// Filled by the master: one tensor per fetch, in order.
  std::vector<Tensor> fetched;
  RunMetadata metadata;
};

}  // namespace tenon
