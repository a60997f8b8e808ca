// SPDX-License-Identifier: Apache-2.0
#include "data/files/memory_claim.h"

#include <algorithm>

#include "core/memory/allocator.h"

namespace tenon {
namespace {

/// Smaller steps would only make more blocks.
constexpr uint64_t kStepBytes = 16 << 20;

}  // namespace

MemoryClaim::~MemoryClaim() {
  for (const auto& [memory, bytes] : blocks_) CpuAllocator().Free(memory, bytes);
}

Status MemoryClaim::GrowTo(uint64_t bytes) {
  if (bytes <= claimed_) return OkStatus();
  const uint64_t more = blocks_.empty() ? bytes : std::max(bytes - claimed_, kStepBytes);
  void* const memory = CpuAllocator().Allocate(more);
  if (memory == nullptr) {
    return ResourceExhausted("out of memory: ", bytes, " bytes are more than the limit leaves");
  }
  blocks_.emplace_back(memory, more);
  claimed_ += more;
  return OkStatus();
}

}  // namespace tenon
