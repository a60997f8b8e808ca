// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

/// How much the tensors of the process, their text and temporaries of kernels may take together;
/// beyond it CpuAllocator gives null. Unless set it is DefaultCpuMemoryLimit(). Thread-safe.
void SetCpuMemoryLimit(int64_t bytes);
int64_t CpuMemoryLimit();

/// Fifteen sixteenths of what the process may take before the system ends it: of the machine's
/// physical memory or its control group's limit, whichever is less. The rest is not counted.
int64_t DefaultCpuMemoryLimit();

/// The lowest memory limit among the control groups that `membership`, the text of
/// /proc/<pid>/cgroup, names, and those above them, of either version; `mount` is where the groups
/// are mounted, /sys/fs/cgroup. INT64_MAX when there is none.
int64_t CgroupMemoryLimit(std::string_view membership, const std::string& mount);

}  // namespace tenon
