// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/cancellation.h"
#include "core/device/device.h"
#include "core/device/rendezvous.h"
#include "core/tensor/resource_store.h"

namespace tenon {

class Communicator;
class DeviceGroups;
class MemoryAccount;
class RunTrace;

/// What a client asks of a run, beside its values. It travels with the run from the client's call
/// to every task and kernel.
struct RunSettings {
  /// Every node that runs leaves a record.
  bool trace = false;
};

/// One execution of a program: made once, where a call or an RPC begins it, and handed down to the
/// kernels by reference. What it points to outlives it.
struct ProgramRun {
  RunSettings settings = {};
  /// Ends the run early. Null only where a kernel is run by itself.
  Cancellation* cancellation = nullptr;
  /// Where its partitions meet. Null when nothing is sent or received.
  Rendezvous* rendezvous = nullptr;
  /// State that dies with the run: gradient stacks, tensor arrays.
  ResourceStore* resources = nullptr;
  /// The account that the tensors which kernels make are charged to; may be null.
  MemoryAccount* memory = nullptr;
  /// Gets the records of nodes when settings.trace is set.
  RunTrace* trace = nullptr;
  /// The ranks that collective ops speak to. Null where a process is no rank.
  Communicator* communicator = nullptr;
  /// Where its devices meet that do something together; null where they cannot.
  DeviceGroups* groups = nullptr;
};

/// The part of a run that one device does, with the number by which the device's queue knows it. No
/// other one of the process has that number while the queue keeps something of it.
struct DeviceRun {
  const ProgramRun& run;
  Device& device;
  int64_t id = 0;
};

}  // namespace tenon
