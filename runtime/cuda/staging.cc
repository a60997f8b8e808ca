// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/staging.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

namespace tenon::cuda {
namespace {

/// memcpy by several threads: one has a fifth of the rate at which a GPU is copied to.
void CopyOnHost(char* to, const char* from, size_t bytes) {
  constexpr size_t kLeast = 1 << 20;  // bytes a thread
  static const size_t most = std::clamp(std::thread::hardware_concurrency() / 2, 1u, 4u);
  const size_t parts = std::clamp(bytes / kLeast, size_t{1}, most);
  const size_t each = bytes / parts;
  std::vector<std::jthread> others;
  others.reserve(parts);
  size_t done = each;
  try {
    for (size_t part = 1; part < parts; ++part, done += each) {
      others.emplace_back([=] { std::memcpy(to + done, from + done, each); });
    }
  } catch (const std::system_error&) {
    // There are no threads: this one copies what is left.
  }
  std::memcpy(to, from, each);
  std::memcpy(to + done, from + done, bytes - done);
}

struct HostCopy {
  void* to;
  const void* from;
  size_t bytes;

  static void CUDART_CB Run(void* argument) {
    const std::unique_ptr<HostCopy> copy(static_cast<HostCopy*>(argument));
    CopyOnHost(static_cast<char*>(copy->to), static_cast<const char*>(copy->from), copy->bytes);
  }
};

constexpr std::string_view kCopying = "copying from or to memory that is not pinned";

}  // namespace

Staging::~Staging() {
  MutexLock lock(mu_);
  for (const cudaEvent_t event : used_) {
    if (event != nullptr) cudaEventDestroy(event);
  }
  for (const Lane& lane : lanes_) {
    if (lane.done != nullptr) cudaEventDestroy(lane.done);
    if (lane.stream != nullptr) cudaStreamDestroy(lane.stream);
  }
  if (begin_ != nullptr) cudaEventDestroy(begin_);
  if (pinned_ != nullptr) cudaFreeHost(pinned_);
}

bool Staging::Prepare() {
  if (failure_.failed()) return false;
  if (pinned_ != nullptr) return true;
  void* memory = nullptr;
  if (!failure_.Check(cudaHostAlloc(&memory, kSlots * kSlotBytes + lanes_.size() * kPieceBytes,
                                    cudaHostAllocPortable),
                      kCopying)) {
    return false;
  }
  pinned_ = static_cast<char*>(memory);
  return true;
}

bool Staging::PrepareLanes() {
  if (begin_ != nullptr) return !failure_.failed();
  char* piece = pinned_ + kSlots * kSlotBytes;
  for (Lane& lane : lanes_) {
    lane.piece = piece;
    piece += kPieceBytes;
    if (!failure_.Check(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking), kCopying) ||
        !failure_.Check(cudaEventCreateWithFlags(&lane.done, cudaEventDisableTiming), kCopying)) {
      return false;
    }
  }
  return failure_.Check(cudaEventCreateWithFlags(&begin_, cudaEventDisableTiming), kCopying);
}

template <typename Copy>
void Staging::ForEachPiece(size_t bytes, Copy copy) {
  if (!PrepareLanes() || !failure_.Check(cudaEventRecord(begin_, stream_), kCopying)) return;
  for (const Lane& lane : lanes_) {
    if (!failure_.Check(cudaStreamWaitEvent(lane.stream, begin_, 0), kCopying)) return;
  }
  size_t next = 0;
  for (size_t at = 0; at < bytes; at += kPieceBytes, next = (next + 1) % lanes_.size()) {
    if (!copy(lanes_[next], at, std::min(bytes - at, kPieceBytes))) return;
  }
  for (const Lane& lane : lanes_) {
    if (!failure_.Check(cudaEventRecord(lane.done, lane.stream), kCopying) ||
        !failure_.Check(cudaStreamWaitEvent(stream_, lane.done, 0), kCopying)) {
      return;
    }
  }
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

bool Staging::QueueHostCopy(cudaStream_t stream, void* to, const void* from, size_t bytes) {
  auto copy = std::make_unique<HostCopy>(HostCopy{to, from, bytes});
  if (!failure_.Check(cudaLaunchHostFunc(stream, HostCopy::Run, copy.get()), kCopying)) {
    return false;
  }
  copy.release();  // its own when it runs
  return true;
}

void Staging::ToDevice(void* device, const void* host, size_t bytes) {
  // Pieces are used in the order of their lanes: what is queued of two copies must not mix.
  MutexLock lock(mu_);
  if (!Prepare()) return;
  if (bytes <= kSlotBytes && UseSlot(device, host, bytes)) return;
  ForEachPiece(bytes, [&](const Lane& lane, size_t at, size_t size) {
    return QueueHostCopy(lane.stream, lane.piece, static_cast<const char*>(host) + at, size) &&
           failure_.Check(cudaMemcpyAsync(static_cast<char*>(device) + at, lane.piece, size,
                                          cudaMemcpyHostToDevice, lane.stream),
                          kCopying);
  });
}

void Staging::ToHost(void* host, const void* device, size_t bytes) {
  MutexLock lock(mu_);
  if (!Prepare()) return;
  ForEachPiece(bytes, [&](const Lane& lane, size_t at, size_t size) {
    return failure_.Check(cudaMemcpyAsync(lane.piece, static_cast<const char*>(device) + at, size,
                                          cudaMemcpyDeviceToHost, lane.stream),
                          kCopying) &&
           QueueHostCopy(lane.stream, static_cast<char*>(host) + at, lane.piece, size);
  });
}

}  // namespace tenon::cuda
