// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "runtime/device/thread_pool.h"
#include "runtime/execute/running_calls.h"

namespace tenon {

/// The devices of one task and what runs on them.
struct LocalRuntime {
  std::vector<Device*> devices;  // the first is the CPU on which constants are folded
  ThreadPool* pool = nullptr;
  /// To be closed before the devices and the pool go.
  std::shared_ptr<RunningCalls> running = std::make_shared<RunningCalls>();
  /// Whoever copies this keeps the devices where they belong to one session.
  std::shared_ptr<void> owner = nullptr;

  /// The device of that full name, or null.
  Device* Find(const std::string& name) const {
    for (Device* d : devices) {
      if (d->name() == name) return d;
    }
    return nullptr;
  }
};

}  // namespace tenon
