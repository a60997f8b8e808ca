// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/entropy.h"
#include "core/base/thread_starter.h"
#include "runtime/device/machine_clock.h"

namespace tenon {

/// The system's random numbers. Lives until the process ends.
Entropy& MachineEntropy();

/// A thread of the process for each work. Lives until the process ends.
ThreadStarter& MachineThreads();

}  // namespace tenon
