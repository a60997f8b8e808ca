// SPDX-License-Identifier: Apache-2.0
#include "core/buffer.h"

#include <memory>
#include <new>
#include <string>

#include "core/resource.h"
#include "core/variant.h"

namespace tenon {
namespace {

/// Space before the elements of a host block; keeps them at the allocator's alignment.
constexpr size_t kHeaderBytes = Allocator::kAlignment;

/// Header and plain elements in one block of host memory.
class HostBuffer final : public Buffer {
 public:
  HostBuffer(Allocator& allocator, void* data, size_t bytes)
      : Buffer(data, bytes, true), allocator_(allocator) {}

 private:
  void Destroy() override {
    Allocator& allocator = allocator_;
    const size_t total = kHeaderBytes + bytes();
    this->~HostBuffer();
    allocator.Free(this, total);
  }
  Allocator& allocator_;
};
static_assert(sizeof(HostBuffer) <= kHeaderBytes);

/// Plain elements in memory that the CPU cannot reach.
class DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(Allocator& allocator, void* data, size_t bytes)
      : Buffer(data, bytes, false), allocator_(allocator) {}

 private:
  void Destroy() override {
    allocator_.Free(data(), bytes());
    delete this;
  }
  Allocator& allocator_;
};

/// Elements that are C++ objects.
template <typename T>
class ObjectBuffer final : public Buffer {
 public:
  ObjectBuffer(T* elements, int64_t count)
      : Buffer(elements, count * sizeof(T), true), elements_(elements) {}

 private:
  void Destroy() override { delete this; }
  std::unique_ptr<T[]> elements_;
};

class WrappedBuffer final : public Buffer {
 public:
  WrappedBuffer(void* data, size_t bytes, void (*release)(void*), void* context)
      : Buffer(data, bytes, true), release_(release), context_(context) {}

 private:
  void Destroy() override {
    release_(context_);
    delete this;
  }
  void (*release_)(void*);
  void* context_;
};

/// More than this at once is a mistake or an attack: the system would promise the memory and then
/// end the process.
constexpr int64_t kMaxObjectBytes = int64_t{16} << 30;

template <typename T>
BufferRef NewObjects(int64_t count) {
  if (count > kMaxObjectBytes / static_cast<int64_t>(sizeof(T))) return BufferRef();
  T* elements = new (std::nothrow) T[count]();
  return elements == nullptr ? BufferRef() : BufferRef(new ObjectBuffer<T>(elements, count));
}

}  // namespace

BufferRef AllocateBuffer(Allocator& allocator, DType type, int64_t count) {
  switch (type) {
    case DType::kString:
      return NewObjects<std::string>(count);
    case DType::kResource:
      return NewObjects<ResourceHandle>(count);
    case DType::kVariant:
      return NewObjects<Variant>(count);
    default:
      break;
  }
  size_t bytes;
  if (__builtin_mul_overflow(static_cast<size_t>(count), SizeOf(type), &bytes) ||
      bytes > SIZE_MAX / 4) {
    return BufferRef();
  }
  if (!allocator.IsHostMemory()) {
    void* data = allocator.Allocate(bytes);
    return data == nullptr ? BufferRef() : BufferRef(new DeviceBuffer(allocator, data, bytes));
  }
  auto* block = static_cast<char*>(allocator.Allocate(kHeaderBytes + bytes));
  if (block == nullptr) return BufferRef();
  return BufferRef(new (block) HostBuffer(allocator, block + kHeaderBytes, bytes));
}

BufferRef WrapBuffer(void* data, size_t bytes, void (*release)(void* context), void* context) {
  return BufferRef(new WrappedBuffer(data, bytes, release, context));
}

}  // namespace tenon
