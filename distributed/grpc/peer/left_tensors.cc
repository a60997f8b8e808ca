// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/left_tensors.h"

#include <atomic>
#include <utility>

#include "core/memory/memory_limit.h"

namespace tenon {
namespace {

std::atomic<int64_t> left_bytes{0};  // for all callers

int64_t BytesOf(const Tensor& tensor) { return static_cast<int64_t>(tensor.num_bytes()); }

}  // namespace

bool LeftTensors::Keep(uint64_t call, const Tensor& tensor) {
  const int64_t bytes = BytesOf(tensor);
  MutexLock lock(mu_);
  tensors_.reserve(tensors_.size() + 1);  // nothing is thrown once the bytes are counted
  const bool fits = left_bytes.fetch_add(bytes) + bytes <= CpuMemoryLimit() / 2;
  if ((fits || tensors_.empty()) && tensors_.emplace(call, tensor).second) return true;
  left_bytes -= bytes;
  return false;
}

void LeftTensors::Drop(uint64_t call) {
  Tensor dropped;  // may be freed, outside the lock
  MutexLock lock(mu_);
  const auto found = tensors_.find(call);
  if (found == tensors_.end()) return;
  dropped = std::move(found->second);
  tensors_.erase(found);
  left_bytes -= BytesOf(dropped);
}

void LeftTensors::Clear() {
  flat_hash_map<uint64_t, Tensor> dropped;
  {
    MutexLock lock(mu_);
    dropped.swap(tensors_);
  }
  for (const auto& [call, tensor] : dropped) left_bytes -= BytesOf(tensor);
}

}  // namespace tenon
