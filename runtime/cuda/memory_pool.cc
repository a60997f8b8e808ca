// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/memory_pool.h"

#include <algorithm>
#include <cmath>

namespace tenon::cuda {
namespace {

/// CUDA's answer to 0 bytes is no memory, which looks like having none.
constexpr size_t kLeastBytes = 1;

/// What is left to the driver and to libraries when all memory is taken at once.
int64_t Spare(int64_t total) { return std::max<int64_t>(int64_t{300} << 20, total / 20); }

std::string GiB(int64_t bytes) {
  const int64_t tenths = (bytes * 10 + (int64_t{1} << 29)) >> 30;
  if (tenths < 10) return StrCat(bytes >> 20, " MiB");
  return StrCat(tenths / 10, ".", tenths % 10, " GiB");
}

Status Explain(cudaError_t error, const Failure& failure, std::string_view what) {
  cudaGetLastError();
  return Unavailable("the GPU ", failure.gpu(), " cannot be used: ", what, ": ",
                     cudaGetErrorString(error));
}

}  // namespace

StatusOr<std::unique_ptr<MemoryPool>> MemoryPool::Make(int ordinal, const GpuOptions& options,
                                                       cudaStream_t stream, Failure& failure) {
  int has_pools = 0;
  const cudaError_t asked =
      cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, ordinal);
  if (asked != cudaSuccess) return Explain(asked, failure, "asking for memory pools");
  if (has_pools == 0) {
    return Unimplemented("the GPU ", failure.gpu(), " has no memory pools (cudaMallocAsync)");
  }
  size_t free = 0, total = 0;
  if (const cudaError_t error = cudaMemGetInfo(&free, &total); error != cudaSuccess) {
    return Explain(error, failure, "asking for its memory");
  }
  const double share = options.memory_fraction == 0 ? 1 : options.memory_fraction;
  const auto limit = static_cast<int64_t>(std::floor(static_cast<double>(total) * share));
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.handleTypes = cudaMemHandleTypeNone;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = ordinal;
  cudaMemPool_t handle = nullptr;
  if (const cudaError_t error = cudaMemPoolCreate(&handle, &props); error != cudaSuccess) {
    return Explain(error, failure, "making a memory pool");
  }
  std::unique_ptr<MemoryPool> pool(new MemoryPool(ordinal, handle, limit, failure));
  // What is freed is kept up to the limit; what fragments have taken beyond goes back.
  auto threshold = static_cast<uint64_t>(limit);
  failure.Check(cudaMemPoolSetAttribute(handle, cudaMemPoolAttrReleaseThreshold, &threshold),
                "setting up its memory pool");
  // Copies must not wait for kernels only because a kernel's memory would do for them.
  int wait = 0;
  failure.Check(cudaMemPoolSetAttribute(handle, cudaMemPoolReuseAllowInternalDependencies, &wait),
                "setting up its memory pool");
  TENON_RETURN_IF_ERROR(failure.status());
  if (!options.allow_growth) {
    const int64_t spare = Spare(static_cast<int64_t>(total));
    const int64_t all = std::min(limit, static_cast<int64_t>(free) - spare);
    void* const memory = all > 0 ? pool->Allocate(static_cast<size_t>(all), stream) : nullptr;
    if (memory == nullptr) {
      return ResourceExhausted("cannot take ", GiB(std::max<int64_t>(all, 0)), " of the GPU ",
                               failure.gpu(), " at once: ", pool->Describe());
    }
    pool->Free(memory, static_cast<size_t>(all), stream);
  }
  return pool;
}

MemoryPool::~MemoryPool() { cudaMemPoolDestroy(pool_); }

cudaError_t MemoryPool::AllocateNow(void** memory, size_t bytes, cudaStream_t stream) {
  cudaError_t error = cudaMallocFromPoolAsync(memory, bytes, pool_, stream);
  if (error != cudaErrorMemoryAllocation) return error;
  cudaGetLastError();
  // Memory that another stream frees later is better than none.
  MutexLock lock(waiting_mu_);
  int wait = 1;
  cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowInternalDependencies, &wait);
  error = cudaMallocFromPoolAsync(memory, bytes, pool_, stream);
  wait = 0;
  cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowInternalDependencies, &wait);
  return error;
}

void* MemoryPool::Allocate(size_t bytes, cudaStream_t stream) {
  bytes = std::max(bytes, kLeastBytes);
  const auto size = static_cast<int64_t>(bytes);
  if (failure_.failed() || size > limit_) return nullptr;
  if (used_.fetch_add(size, std::memory_order_relaxed) <= limit_ - size) {
    void* memory = nullptr;
    const cudaError_t error = AllocateNow(&memory, bytes, stream);
    if (error == cudaSuccess) return memory;
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // or the next kernel would take it for its own
    } else {
      failure_.Check(error, "allocating memory");
    }
  }
  used_.fetch_sub(size, std::memory_order_relaxed);
  return nullptr;
}

void MemoryPool::Free(void* memory, size_t bytes, cudaStream_t stream) {
  used_.fetch_sub(static_cast<int64_t>(std::max(bytes, kLeastBytes)), std::memory_order_relaxed);
  failure_.Check(cudaFreeAsync(memory, stream), "freeing memory");
}

void MemoryPool::Admit(int ordinal) {
  MutexLock lock(admitted_mu_);
  if (!admitted_.insert(ordinal).second) return;
  int can = 0;
  if (cudaDeviceCanAccessPeer(&can, ordinal, ordinal_) == cudaSuccess && can != 0) {
    cudaMemAccessDesc access = {};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = ordinal;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    if (cudaMemPoolSetAccess(pool_, &access, 1) == cudaSuccess) return;
  }
  cudaGetLastError();
}

int64_t MemoryPool::Attribute(cudaMemPoolAttr attribute) const {
  uint64_t value = 0;
  if (cudaMemPoolGetAttribute(pool_, attribute, &value) != cudaSuccess) cudaGetLastError();
  return static_cast<int64_t>(value);
}

std::string MemoryPool::Describe() const {
  if (failure_.failed()) return std::string(Message(failure_.status()));
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) cudaGetLastError();
  const int64_t used = used_.load(std::memory_order_relaxed);
  const int64_t reserved = std::max(Attribute(cudaMemPoolAttrReservedMemCurrent), used);
  const int64_t others =
      std::max<int64_t>(static_cast<int64_t>(total) - static_cast<int64_t>(free) - reserved, 0);
  return StrCat("of the ", GiB(static_cast<int64_t>(total)), " of the GPU ", failure_.gpu(),
                ", this process's tensors hold ", GiB(used), " and may hold ", GiB(limit_), ", ",
                GiB(reserved - used), " are kept for reuse, libraries and other processes hold ",
                GiB(others), ", ", GiB(static_cast<int64_t>(free)), " are free");
}

}  // namespace tenon::cuda
