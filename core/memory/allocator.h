// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tenon {

/// Gives and takes back memory of one device. Thread-safe.
class Allocator {
 public:
  static constexpr size_t kAlignment = 64;

  virtual ~Allocator() = default;
  virtual std::string_view name() const = 0;

  /// `bytes` of memory aligned to kAlignment, or null when there is none.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* memory, size_t bytes) = 0;

  /// Whether the CPU can read and write what Allocate returns.
  virtual bool IsHostMemory() const = 0;
  /// Bytes allocated and not yet freed.
  virtual int64_t bytes_in_use() const = 0;

  /// Copies within this memory. On a device with a queue, in the order of its kernels: `from` is
  /// read after those queued before, `to` is written before those queued later run.
  virtual void Copy(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }
};

/// The process's host memory. Lives until the process ends.
Allocator& CpuAllocator();

}  // namespace tenon
