// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon {

/// How much the tensors of the process may take together; beyond it CpuAllocator gives null. Unless
/// set it is the machine's physical memory: the system would promise more, and end the process when
/// that is written to. Thread-safe.
void SetCpuMemoryLimit(int64_t bytes);

}  // namespace tenon
