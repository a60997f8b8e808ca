// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "core/device/device_plugin.h"
#include "distributed/protocol/device_config.h"

namespace tenon::tools {

/// The flags that say which devices a process uses: docs/gpu.md.
struct DeviceFlags {
  int gpus = -1;
  double memory_fraction = 0;
  std::string visible;
  bool take_memory = false;
  std::string config;

  void AddTo(CLI::App& app);
  /// What they mean together: a flag goes before what --config says. WrongUsage for a text
  /// that is no ConfigProto.
  StatusOr<DeviceOptions> Resolve() const;
};

}  // namespace tenon::tools
