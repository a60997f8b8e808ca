// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "core/memory/allocator.h"

namespace tenon::testing {

/// Host memory that tells how much has been asked of it.
class CountingAllocator final : public Allocator {
 public:
  std::string_view name() const override { return "counting"; }
  void* Allocate(size_t bytes) override {
    ++blocks;
    in_use_ += static_cast<int64_t>(bytes);
    return CpuAllocator().Allocate(bytes);
  }
  void Free(void* memory, size_t bytes) override {
    in_use_ -= static_cast<int64_t>(bytes);
    CpuAllocator().Free(memory, bytes);
  }
  bool IsHostMemory() const override { return true; }
  int64_t bytes_in_use() const override { return in_use_; }

  std::atomic<int> blocks{0};

 private:
  std::atomic<int64_t> in_use_{0};
};

}  // namespace tenon::testing
