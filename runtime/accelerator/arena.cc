// SPDX-License-Identifier: Apache-2.0
#include "runtime/accelerator/arena.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tenon {
namespace {

constexpr size_t kUnit = 512;

/// Blocks have sizes that differ by an eighth at least, so that they fit again.
size_t BlockSize(size_t bytes) {
  const size_t unit = std::max(kUnit, std::bit_floor(bytes) / 8);
  return (std::max<size_t>(bytes, 1) + unit - 1) / unit * unit;
}

}  // namespace

Arena::Arena(StreamDriver& driver, DriverCapture& capture) : driver_(driver), capture_(&capture) {
  driver_.memory().Open(this);
}

void Arena::Close() {
  driver_.memory().Close();
  MutexLock lock(mu_);
  state_ = State::kResting;
  capture_ = nullptr;
}

void Arena::Abandon() {
  StreamDriver& driver = driver_;
  driver.memory().Remove(this);
  std::multimap<size_t, void*> free;
  bool done;
  {
    MutexLock lock(mu_);
    state_ = State::kAbandoned;
    free = std::exchange(free_, {});
    done = Done();
  }
  for (const auto& [size, memory] : free) driver.memory().Free(memory, size);
  if (done) delete this;
}

bool Arena::Use() {
  MutexLock lock(mu_);
  if (state_ != State::kResting) return false;
  state_ = State::kInUse;
  return true;
}

void Arena::Rest() {
  MutexLock lock(mu_);
  state_ = State::kResting;
}

std::multimap<size_t, void*> Arena::GiveBack() {
  MutexLock lock(mu_);
  if (state_ != State::kResting) return {};
  state_ = State::kGivenBack;
  return std::exchange(free_, {});
}

void* Arena::TakeFree(size_t size) {
  MutexLock lock(mu_);
  const auto found = free_.find(size);
  if (found == free_.end()) return nullptr;
  void* const memory = found->second;
  free_.erase(found);
  used_[memory] = size;
  return memory;
}

void* Arena::Allocate(size_t bytes) {
  bool open;
  {
    MutexLock lock(mu_);
    if (state_ != State::kOpen) ++passed_on_;
    open = state_ == State::kOpen;
  }
  if (!open) {
    void* const memory = driver_.memory().Allocate(bytes);
    if (memory == nullptr) ForgetPassedOn();
    return memory;
  }
  const size_t size = BlockSize(bytes);
  if (void* const memory = TakeFree(size)) return memory;
  // Without the lock: other arenas may be asked to give memory back.
  void* const memory = driver_.memory().Allocate(Stream::kCompute, size);
  if (memory == nullptr) return nullptr;
  MutexLock lock(mu_);
  used_[memory] = size;
  return memory;
}

void Arena::Free(void* memory, size_t bytes) {
  StreamDriver& driver = driver_;
  bool kept = false, done;
  {
    MutexLock lock(mu_);
    const auto found = used_.find(memory);
    if (found == used_.end()) {
      --passed_on_;
    } else {
      bytes = found->second;
      used_.erase(found);
      kept = state_ != State::kAbandoned && state_ != State::kGivenBack;
      if (kept) free_.emplace(bytes, memory);
    }
    done = Done();
  }
  // Without the lock, which the memory takes when it asks arenas to give something back.
  if (!kept) driver.memory().Free(memory, bytes);
  if (done) delete this;
}

void Arena::ForgetPassedOn() {
  bool done;
  {
    MutexLock lock(mu_);
    --passed_on_;
    done = Done();
  }
  if (done) delete this;
}

int64_t Arena::bytes_in_use() const {
  MutexLock lock(mu_);
  int64_t bytes = 0;
  for (const auto& [memory, size] : used_) bytes += static_cast<int64_t>(size);
  return bytes;
}

void Arena::Copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  if (capture_ != nullptr) return capture_->Copy(to, from, bytes);
  driver_.memory().Copy(to, from, bytes);
}

std::string Arena::DescribeMemory() const { return driver_.memory().DescribeMemory(); }

}  // namespace tenon
