// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/buffer.h"

#include <memory>
#include <new>
#include <string>

#include "core/memory/memory_account.h"
#include "core/tensor/resource.h"
#include "core/tensor/tstring.h"
#include "core/tensor/variant_element.h"

namespace tenon {
namespace {

/// Space before the elements of a host block; keeps them at the allocator's alignment.
constexpr size_t kHeaderBytes = Allocator::kAlignment;

/// A block of host memory for a header and elements, and whom it is charged to. Null memory when
/// there is none.
struct HostBlock {
  HostBlock(Allocator& allocator, size_t element_bytes) {
    const size_t total = kHeaderBytes + element_bytes;
    account = total >= MemoryAccount::kLeastCharged ? CurrentMemoryAccount() : nullptr;
    if (account != nullptr && !account->Take(total)) return;
    memory = static_cast<char*>(allocator.Allocate(total));
    if (memory == nullptr && account != nullptr) account->GiveBack(total);
  }
  static void Free(Allocator& allocator, void* memory, size_t element_bytes,
                   MemoryAccount* account) {
    const size_t total = kHeaderBytes + element_bytes;
    allocator.Free(memory, total);
    if (account != nullptr) account->GiveBack(total);
  }
  char* elements() const { return memory + kHeaderBytes; }

  char* memory = nullptr;
  MemoryAccount* account = nullptr;
};

/// Header and plain elements in one block of host memory.
class HostBuffer final : public Buffer {
 public:
  HostBuffer(Allocator& allocator, const HostBlock& block, size_t bytes)
      : Buffer(allocator, block.elements(), bytes), account_(block.account) {}

 private:
  void Destroy() override {
    const Leaving leaving(*this);
    Allocator& allocator = this->allocator();
    MemoryAccount* const account = account_;
    const size_t size = bytes();
    this->~HostBuffer();
    HostBlock::Free(allocator, this, size, account);
  }
  MemoryAccount* const account_;
};
static_assert(sizeof(HostBuffer) <= kHeaderBytes);

/// Plain elements in memory that the CPU cannot reach.
class DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(Allocator& allocator, void* data, size_t bytes) : Buffer(allocator, data, bytes) {}

 private:
  void Destroy() override {
    const Leaving leaving(*this);
    allocator().Free(data(), bytes());
    delete this;
  }
};

/// Header and elements that are C++ objects in one block of host memory.
template <typename T>
class ObjectBuffer final : public Buffer {
 public:
  ObjectBuffer(const HostBlock& block, int64_t count)
      : Buffer(CpuAllocator(), block.elements(), count * sizeof(T)),
        count_(count),
        account_(block.account) {
    std::uninitialized_value_construct_n(static_cast<T*>(data()), count);
  }

 private:
  void Destroy() override {
    const Leaving leaving(*this);
    std::destroy_n(static_cast<T*>(data()), count_);
    MemoryAccount* const account = account_;
    const size_t size = bytes();
    this->~ObjectBuffer();
    HostBlock::Free(CpuAllocator(), this, size, account);
  }
  const int64_t count_;
  MemoryAccount* const account_;
};

class WrappedBuffer final : public Buffer {
 public:
  WrappedBuffer(void* data, size_t bytes, void (*release)(void*), void* context)
      : Buffer(CpuAllocator(), data, bytes), release_(release), context_(context) {}

 private:
  void Destroy() override {
    const Leaving leaving(*this);
    release_(context_);
    delete this;
  }
  void (*release_)(void*);
  void* context_;
};

/// Bytes of a block for `count` elements; false when no allocator could give so many.
bool BlockBytes(int64_t count, size_t element, size_t* bytes) {
  return !__builtin_mul_overflow(static_cast<size_t>(count), element, bytes) &&
         *bytes <= SIZE_MAX / 4;
}

template <typename T>
BufferRef NewObjects(int64_t count) {
  static_assert(sizeof(ObjectBuffer<T>) <= kHeaderBytes &&
                std::is_nothrow_default_constructible_v<T>);
  size_t bytes;
  if (!BlockBytes(count, sizeof(T), &bytes)) return BufferRef();
  const HostBlock block(CpuAllocator(), bytes);
  if (block.memory == nullptr) return BufferRef();
  return BufferRef(new (block.memory) ObjectBuffer<T>(block, count));
}

}  // namespace

BufferRef AllocateBuffer(Allocator& allocator, DType type, int64_t count) {
  switch (type) {
    case DType::kString:
      return NewObjects<TString>(count);
    case DType::kResource:
      return NewObjects<ResourceHandle>(count);
    case DType::kVariant:
      return NewObjects<Variant>(count);
    default:
      break;
  }
  size_t bytes;
  if (!BlockBytes(count, SizeOf(type), &bytes)) return BufferRef();
  if (!allocator.IsHostMemory()) {
    void* data = allocator.Allocate(bytes);
    return data == nullptr ? BufferRef() : AdoptMemory(allocator, data, bytes);
  }
  const HostBlock block(allocator, bytes);
  if (block.memory == nullptr) return BufferRef();
  return BufferRef(new (block.memory) HostBuffer(allocator, block, bytes));
}

BufferRef AdoptMemory(Allocator& allocator, void* data, size_t bytes) {
  return BufferRef(new DeviceBuffer(allocator, data, bytes));
}

BufferRef WrapBuffer(void* data, size_t bytes, void (*release)(void* context), void* context) {
  return BufferRef(new WrappedBuffer(data, bytes, release, context));
}

}  // namespace tenon
