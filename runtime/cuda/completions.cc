// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/completions.h"

#include <chrono>

#include "runtime/device/machine_clock.h"

namespace tenon::cuda {
namespace {

/// How long the thread asks again and again before it lets the system wake it, which takes about as
/// long. Between two steps of a training loop less time passes.
constexpr std::chrono::microseconds kSpin{50};

template <typename Condition>
bool SpinUntil(Condition condition) {
  const Clock::Time end = MachineClock().Now() + kSpin;
  while (!condition()) {
    if (MachineClock().Now() >= end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace

Completions::Completions(int ordinal, cudaStream_t stream, Failure& failure)
    : ordinal_(ordinal), stream_(stream), failure_(failure), thread_([this] { Run(); }) {}

Completions::~Completions() {
  {
    MutexLock lock(mu_);
    ending_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
  MutexLock lock(mu_);
  for (const cudaEvent_t event : free_events_) cudaEventDestroy(event);
}

void Completions::Add(std::function<void(const Status&)> done) {
  {
    MutexLock lock(mu_);
    if (outstanding_ > 0 || !StreamIsDone()) {
      pending_.push_back({RecordEvent(), std::move(done)});
      ++outstanding_;
      num_pending_.store(pending_.size(), std::memory_order_release);
      changed_.NotifyOne();
      return;
    }
  }
  done(failure_.status());
}

bool Completions::StreamIsDone() {
  if (failure_.failed()) return true;
  const cudaError_t state = cudaStreamQuery(stream_);
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // which it is for CUDA, though it is none
    return false;
  }
  failure_.Check(state, "asking for what is queued");
  return true;
}

cudaEvent_t Completions::RecordEvent() {
  cudaEvent_t event = nullptr;
  if (!free_events_.empty()) {
    event = free_events_.back();
    free_events_.pop_back();
  } else if (!failure_.Check(
                 cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
                 "making an event")) {
    return nullptr;
  }
  if (failure_.Check(cudaEventRecord(event, stream_), "recording an event")) return event;
  free_events_.push_back(event);
  return nullptr;
}

bool Completions::Next(Pending* next) {
  SpinUntil([this] { return num_pending_.load(std::memory_order_acquire) > 0; });
  MutexLock lock(mu_);
  while (pending_.empty() && !ending_) changed_.Wait(mu_);
  if (pending_.empty()) return false;
  *next = std::move(pending_.front());
  pending_.pop_front();
  num_pending_.store(pending_.size(), std::memory_order_release);
  return true;
}

void Completions::WaitFor(cudaEvent_t event) {
  cudaError_t state = cudaErrorNotReady;
  if (!SpinUntil([&] { return (state = cudaEventQuery(event)) != cudaErrorNotReady; })) {
    state = cudaEventSynchronize(event);
  }
  // CUDA keeps cudaErrorNotReady as the thread's last error, and a call that succeeds does not
  // clear it: a kernel that is then launched from here would take it for its own.
  cudaGetLastError();
  failure_.Check(state, "running what is queued");
}

void Completions::Run() {
  failure_.Check(cudaSetDevice(ordinal_), "choosing it");
  Pending next;
  while (Next(&next)) {
    if (next.event != nullptr) WaitFor(next.event);
    next.done(failure_.status());
    next.done = nullptr;  // what it held goes before the next waits
    MutexLock lock(mu_);
    if (next.event != nullptr) free_events_.push_back(next.event);
    --outstanding_;
  }
}

}  // namespace tenon::cuda
