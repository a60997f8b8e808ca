// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/staging.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace tenon::cuda {
namespace {

struct HostCopy {
  void* to;
  const void* from;
  size_t bytes;

  static void CUDART_CB Run(void* argument) {
    const std::unique_ptr<HostCopy> copy(static_cast<HostCopy*>(argument));
    std::memcpy(copy->to, copy->from, copy->bytes);
  }
};

constexpr std::string_view kCopying = "copying from or to memory that is not pinned";

}  // namespace

Staging::~Staging() {
  MutexLock lock(mu_);
  for (const cudaEvent_t event : used_) {
    if (event != nullptr) cudaEventDestroy(event);
  }
  if (pinned_ != nullptr) cudaFreeHost(pinned_);
}

bool Staging::Prepare() {
  if (failure_.failed()) return false;
  if (pinned_ != nullptr) return true;
  void* memory = nullptr;
  if (!failure_.Check(
          cudaHostAlloc(&memory, kSlots * kSlotBytes + kPieceBytes, cudaHostAllocPortable),
          kCopying)) {
    return false;
  }
  pinned_ = static_cast<char*>(memory);
  return true;
}

bool Staging::UseSlot(void* device, const void* host, size_t bytes) {
  cudaEvent_t& event = used_[next_];
  if (event != nullptr) {
    const cudaError_t state = cudaEventQuery(event);
    if (state == cudaErrorNotReady) {  // all are on their way
      cudaGetLastError();
      return false;
    }
    if (!failure_.Check(state, kCopying)) return true;
  } else if (!failure_.Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), kCopying)) {
    return true;
  }
  char* const slot = pinned_ + next_ * kSlotBytes;
  next_ = (next_ + 1) % kSlots;
  std::memcpy(slot, host, bytes);
  failure_.Check(cudaMemcpyAsync(device, slot, bytes, cudaMemcpyHostToDevice, stream_), kCopying);
  failure_.Check(cudaEventRecord(event, stream_), kCopying);
  return true;
}

bool Staging::QueueHostCopy(void* to, const void* from, size_t bytes) {
  auto copy = std::make_unique<HostCopy>(HostCopy{to, from, bytes});
  if (!failure_.Check(cudaLaunchHostFunc(stream_, HostCopy::Run, copy.get()), kCopying)) {
    return false;
  }
  copy.release();  // its own when it runs
  return true;
}

void Staging::ToDevice(void* device, const void* host, size_t bytes) {
  // The one piece is used in the order of the stream: what is queued of two copies must not mix.
  MutexLock lock(mu_);
  if (!Prepare()) return;
  if (bytes <= kSlotBytes && UseSlot(device, host, bytes)) return;
  char* const piece = pinned_ + kSlots * kSlotBytes;
  for (size_t at = 0; at < bytes; at += kPieceBytes) {
    const size_t size = std::min(bytes - at, kPieceBytes);
    if (!QueueHostCopy(piece, static_cast<const char*>(host) + at, size) ||
        !failure_.Check(cudaMemcpyAsync(static_cast<char*>(device) + at, piece, size,
                                        cudaMemcpyHostToDevice, stream_),
                        kCopying)) {
      return;
    }
  }
}

void Staging::ToHost(void* host, const void* device, size_t bytes) {
  MutexLock lock(mu_);
  if (!Prepare()) return;
  char* const piece = pinned_ + kSlots * kSlotBytes;
  for (size_t at = 0; at < bytes; at += kPieceBytes) {
    const size_t size = std::min(bytes - at, kPieceBytes);
    if (!failure_.Check(cudaMemcpyAsync(piece, static_cast<const char*>(device) + at, size,
                                        cudaMemcpyDeviceToHost, stream_),
                        kCopying) ||
        !QueueHostCopy(static_cast<char*>(host) + at, piece, size)) {
      return;
    }
  }
}

}  // namespace tenon::cuda
