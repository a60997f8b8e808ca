// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "distributed/protocol/credentials.h"
#include "distributed/protocol/server.h"

// The flags that say who may use a server, and how much of its machine: docs/security.md.

namespace tenon::tools {

/// What a server asks of others and lets them do.
struct ServerAccessFlags {
  CredentialFiles credentials;
  bool insecure = false;
  int loopback_port = -1;
  std::string root;
  int64_t memory_mebibytes = 0;
  int64_t session_mebibytes = 0;
  ServerLimits limits;
  double session_timeout = 24 * 3600;

  void AddTo(CLI::App& app);
  /// Fills what `options` has of these, and sets the process's memory limit.
  Status ApplyTo(ServerOptions* options) const;
};

}  // namespace tenon::tools
