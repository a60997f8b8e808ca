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
  explicit ObjectBuffer(int64_t count) : ObjectBuffer(new T[count](), count) {}

 private:
  ObjectBuffer(T* elements, int64_t count)
      : Buffer(elements, count * sizeof(T), true), elements_(elements) {}
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

}  // namespace

BufferRef AllocateBuffer(Allocator& allocator, DType type, int64_t count) {
  switch (type) {
    case DType::kString:
      return BufferRef(new ObjectBuffer<std::string>(count));
    case DType::kResource:
      return BufferRef(new ObjectBuffer<ResourceHandle>(count));
    case DType::kVariant:
      return BufferRef(new ObjectBuffer<Variant>(count));
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
