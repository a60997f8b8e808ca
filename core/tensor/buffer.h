// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/memory/allocator.h"
#include "core/tensor/dtype.h"

namespace tenon {

class BufferVersions;

/// The refcounted memory behind tensors. The count is inside the block (one allocation a tensor, a
/// pointer a handle), and tells whether a kernel may write in place: a buffer with one reference
/// has no other reader. The bytes may be written only by the sole owner; see Variable for shared
/// state. Reference counting is thread-safe.
class Buffer {
 public:
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  bool IsHostMemory() const { return host_; }
  /// Where memory of the same kind comes from.
  Allocator& allocator() const { return allocator_; }
  bool HasOneReference() const { return refs_.load(std::memory_order_acquire) == 1; }

  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    // A sole owner need not pay for the atomic decrement.
    if (HasOneReference() || refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) Destroy();
  }

  /// The memory of the ref variable that the buffer is, or was, a version of; null for others.
  BufferVersions* versions() const { return versions_; }
  /// Whether a newer version has taken its place.
  bool superseded() const { return superseded_.load(std::memory_order_acquire); }

 protected:
  Buffer(Allocator& allocator, void* data, size_t bytes)
      : host_(allocator.IsHostMemory()), allocator_(allocator), data_(data), bytes_(bytes) {}
  virtual ~Buffer() = default;
  /// Frees the elements and the buffer itself.
  virtual void Destroy() = 0;

  /// Lives while Destroy runs, and tells the versions afterwards that the buffer is no more.
  class Leaving {
   public:
    explicit Leaving(const Buffer& buffer)
        : versions_(buffer.versions_), was_superseded_(buffer.superseded()) {}
    ~Leaving() {
      if (versions_ != nullptr) [[unlikely]]
        Leave();
    }
    Leaving(const Leaving&) = delete;
    Leaving& operator=(const Leaving&) = delete;

   private:
    void Leave();  // in buffer_versions.cc
    BufferVersions* const versions_;
    const bool was_superseded_;
  };

 private:
  friend class BufferVersions;
  std::atomic<int32_t> refs_{1};
  const bool host_;
  std::atomic<bool> superseded_{false};
  BufferVersions* versions_ = nullptr;
  Allocator& allocator_;
  void* const data_;
  const size_t bytes_;

 public:
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
};

/// A counted reference to a Buffer, or null.
class BufferRef {
 public:
  BufferRef() = default;
  /// Takes over the caller's reference.
  explicit BufferRef(Buffer* adopted) : buffer_(adopted) {}
  BufferRef(const BufferRef& other) : buffer_(other.buffer_) {
    if (buffer_ != nullptr) buffer_->Ref();
  }
  BufferRef(BufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferRef() {
    if (buffer_ != nullptr) buffer_->Unref();
  }
  Buffer* get() const { return buffer_; }
  Buffer* operator->() const { return buffer_; }
  explicit operator bool() const { return buffer_ != nullptr; }

 private:
  Buffer* buffer_ = nullptr;
};

/// A buffer for `count` elements of `type` from `allocator`: plain elements are uninitialised,
/// strings and other objects default-constructed. Null when memory is out.
BufferRef AllocateBuffer(Allocator& allocator, DType type, int64_t count);

/// A buffer over memory of a device, to which the last reference gives it back.
BufferRef AdoptMemory(Allocator& allocator, void* data, size_t bytes);

/// A buffer over host memory that belongs to something else: `release` is called with `context`
/// when the last reference goes. Used to receive tensors without a copy.
BufferRef WrapBuffer(void* data, size_t bytes, void (*release)(void* context), void* context);

}  // namespace tenon
