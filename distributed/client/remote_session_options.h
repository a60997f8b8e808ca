// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "distributed/protocol/credentials.h"
#include "runtime/device/machine_clock.h"

namespace tenon {

struct RemoteSessionOptions {
  /// How long to wait for the server to answer for the first time.
  std::chrono::milliseconds connect_deadline{60000};
  bool allow_soft_placement = false;
  /// Whether the master optimises the graph.
  bool optimize = true;
  /// What the server asks of its clients.
  Credentials credentials = {};
  /// Gets a line for people each 5 s while nobody answers; may be null.
  std::function<void(const std::string& line)> notice = {};
  /// The clock by which it waits; must outlive the call.
  Clock* clock = &MachineClock();
};

}  // namespace tenon
