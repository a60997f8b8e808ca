// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

// Who has made how much of the memory that tensors take, so that one session can be kept from
// taking all of it. The executor says of each thread for whom it runs kernels; a tensor that is
// allocated there is charged to that account until its buffer is freed, whoever holds it by then: a
// variable's value to the session that has computed it. Blocks of less than a page are not charged,
// nor are the text of strings, temporaries of kernels and what arrives from other tasks, which
// CpuAllocator counts for the process as a whole.

namespace tenon {

/// Thread-safe.
class MemoryAccount {
 public:
  /// What has been charged may outlive the owner of the account.
  struct Close {
    void operator()(MemoryAccount* account) const { account->Subtract(kOpen); }
  };
  using Ptr = std::unique_ptr<MemoryAccount, Close>;

  static constexpr int64_t kUnlimited = int64_t{1} << 56;
  static constexpr size_t kLeastCharged = 4096;

  /// For at most `limit` bytes.
  static Ptr Open(int64_t limit) { return Ptr(new MemoryAccount(std::min(limit, kUnlimited))); }

  /// Charges `bytes`, unless that would pass the limit. REQUIRES: the owner has not closed it.
  bool Take(size_t bytes) {
    const auto size = static_cast<int64_t>(bytes);
    if (size < 0 || size > limit_) return false;
    const int64_t before = total_.fetch_add(size, std::memory_order_relaxed) - kOpen;
    if (before <= limit_ - size) return true;
    Subtract(size);
    return false;
  }
  /// What was charged; the account may be gone after that.
  void GiveBack(size_t bytes) { Subtract(static_cast<int64_t>(bytes)); }

  int64_t limit() const { return limit_; }
  int64_t bytes_in_use() const { return total_.load(std::memory_order_relaxed) % kOpen; }

 private:
  static constexpr int64_t kOpen = int64_t{1} << 60;

  explicit MemoryAccount(int64_t limit) : limit_(limit) {}
  void Subtract(int64_t amount) {
    if (total_.fetch_sub(amount, std::memory_order_acq_rel) == amount) delete this;
  }

  const int64_t limit_;
  /// The bytes in use, and kOpen while there is an owner.
  std::atomic<int64_t> total_{kOpen};
};

namespace memory_account_internal {
inline constinit thread_local MemoryAccount* current = nullptr;
}  // namespace memory_account_internal

/// Whom the tensors are charged to that the calling thread allocates, or null.
inline MemoryAccount* CurrentMemoryAccount() { return memory_account_internal::current; }

/// While it lives, `account` is CurrentMemoryAccount of the calling thread.
class ChargedTo {
 public:
  explicit ChargedTo(MemoryAccount* account)
      : before_(std::exchange(memory_account_internal::current, account)) {}
  ~ChargedTo() { memory_account_internal::current = before_; }
  ChargedTo(const ChargedTo&) = delete;
  ChargedTo& operator=(const ChargedTo&) = delete;

 private:
  MemoryAccount* const before_;
};

}  // namespace tenon
