// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace tenon {

/// The time that gRPC calls `limit` from now. gRPC waits by the machine's clock, whatever the clock
/// of its caller is.
inline std::chrono::system_clock::time_point GrpcDeadline(std::chrono::milliseconds limit) {
  return std::chrono::system_clock::now() + limit;
}

}  // namespace tenon
