// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace tenon {

/// Counts memory that is about to be taken outside of tensors, for the bytes of a file, against the
/// process's limit: what a file's size promises must not end the process. Given back at the end of
/// its life. Used by one thread at a time.
class MemoryClaim {
 public:
  MemoryClaim() = default;
  ~MemoryClaim();
  MemoryClaim(const MemoryClaim&) = delete;
  MemoryClaim& operator=(const MemoryClaim&) = delete;

  /// Makes the claim at least `bytes` large. ResourceExhausted when there is not so much.
  Status GrowTo(uint64_t bytes);

 private:
  /// Blocks of the allocator that nobody writes to, so that they take no memory themselves.
  std::vector<std::pair<void*, uint64_t>> blocks_;
  uint64_t claimed_ = 0;
};

}  // namespace tenon
