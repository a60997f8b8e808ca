// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <new>
#include <vector>

// Host memory for what is no tensor's buffer but as large as the input wants: the temporaries of
// kernels, the text of strings. It counts against the limit of CpuAllocator, and where that is
// reached a container throws std::bad_alloc, as the standard library's own allocator does, which
// the executor turns into the node's ResourceExhausted (see exceptions.h).

namespace tenon {

/// `bytes` of memory aligned for any fundamental type, or null. Thread-safe. Small blocks are
/// counted in batches, so that CpuAllocator().bytes_in_use() may be off by some KiB a thread.
void* AllocateCounted(size_t bytes);
/// `bytes` as they were asked for.
void FreeCounted(void* memory, size_t bytes);

/// For containers of the standard library and absl::InlinedVector. Not for Abseil's hash tables,
/// which do not survive an allocator that throws.
template <typename T>
struct CountedAllocator {
  static_assert(alignof(T) <= alignof(std::max_align_t));
  using value_type = T;

  CountedAllocator() = default;
  template <typename U>
  CountedAllocator(const CountedAllocator<U>&) {}  // NOLINT: every container converts

  T* allocate(size_t n) {
    if (n > std::numeric_limits<size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    void* const memory = AllocateCounted(n * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t n) { FreeCounted(memory, n * sizeof(T)); }

  friend bool operator==(const CountedAllocator&, const CountedAllocator&) { return true; }
};

/// Memory counted as AllocateCounted does, but never refused: past the limit, later blocks are.
/// Throws std::bad_alloc only when the system has no memory left.
void* AllocateTallied(size_t bytes);
void FreeTallied(void* memory, size_t bytes);

/// For what is small by itself, but comes in any number, and is copied where nothing may throw.
template <typename T>
struct TalliedAllocator {
  static_assert(alignof(T) <= alignof(std::max_align_t));
  using value_type = T;

  TalliedAllocator() = default;
  template <typename U>
  TalliedAllocator(const TalliedAllocator<U>&) {}  // NOLINT: every container converts

  T* allocate(size_t n) {
    if (n > std::numeric_limits<size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(AllocateTallied(n * sizeof(T)));
  }
  void deallocate(T* memory, size_t n) { FreeTallied(memory, n * sizeof(T)); }

  friend bool operator==(const TalliedAllocator&, const TalliedAllocator&) { return true; }
};

/// For temporaries whose size comes from outside.
template <typename T>
using CountedVector = std::vector<T, CountedAllocator<T>>;

}  // namespace tenon
