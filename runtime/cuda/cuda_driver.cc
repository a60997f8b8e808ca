// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_driver.h"

#include "runtime/cuda/graph_capture.h"

namespace tenon::cuda {
namespace {

/// Whether the driver knows nothing of it: it must not be copied from or to without staging.
bool IsPageable(const void* memory) {
  cudaPointerAttributes attributes = {};
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
    cudaGetLastError();
    return true;
  }
  return attributes.type == cudaMemoryTypeUnregistered;
}

}  // namespace

StatusOr<std::unique_ptr<CudaDriver>> CudaDriver::Make(int ordinal, std::string gpu,
                                                       const GpuOptions& options) {
  std::unique_ptr<CudaDriver> driver(new CudaDriver(ordinal, std::move(gpu)));
  TENON_RETURN_IF_ERROR(driver->Start(options));
  return driver;
}

Status CudaDriver::Start(const GpuOptions& options) {
  const auto check = [this](cudaError_t error, std::string_view what) {
    if (error == cudaSuccess) return OkStatus();
    cudaGetLastError();
    return Unavailable("the GPU ", failure_.gpu(), " cannot be used: ", what, ": ",
                       cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
  };
  TENON_RETURN_IF_ERROR(check(cudaSetDevice(ordinal_), "making its context"));
  for (Queue& queue : queues_) {
    TENON_RETURN_IF_ERROR(
        check(cudaStreamCreateWithFlags(&queue.stream, cudaStreamNonBlocking), "making a stream"));
    {
      MutexLock lock(queue.mu);
      TENON_RETURN_IF_ERROR(check(cudaEventCreateWithFlags(&queue.reached, cudaEventDisableTiming),
                                  "making an event"));
    }
    queue.completions = std::make_unique<Completions>(ordinal_, queue.stream, failure_);
    queue.staging = std::make_unique<Staging>(queue.stream, failure_);
  }
  TENON_ASSIGN_OR_RETURN(
      pool_, MemoryPool::Make(ordinal_, options, At(Stream::kCompute).stream, failure_));
  return OkStatus();
}

CudaDriver::~CudaDriver() {
  Enter();
  for (Queue& queue : queues_) {
    queue.completions.reset();
    if (queue.stream != nullptr) failure_.Check(cudaStreamSynchronize(queue.stream), "ending");
    queue.staging.reset();
    MutexLock lock(queue.mu);
    if (queue.reached != nullptr) cudaEventDestroy(queue.reached);
  }
  pool_.reset();
  for (Queue& queue : queues_) {
    if (queue.stream != nullptr) cudaStreamDestroy(queue.stream);
  }
}

void CudaDriver::Enter() {
  // Only an earlier failure can be the error, which what follows will meet.
  if (cudaSetDevice(ordinal_) != cudaSuccess) cudaGetLastError();
}

void* CudaDriver::Allocate(Stream stream, size_t bytes) {
  Enter();
  return pool_->Allocate(bytes, At(stream).stream);
}

void CudaDriver::Free(void* memory, size_t bytes) {
  Enter();
  pool_->Free(memory, bytes, At(Stream::kCompute).stream);
}

void* CudaDriver::AllocatePinned(size_t bytes) {
  Enter();
  void* memory = nullptr;
  const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
  if (error == cudaSuccess) return memory;
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
  } else {
    failure_.Check(error, "allocating pinned memory");
  }
  return nullptr;
}

void CudaDriver::FreePinned(void* memory, size_t) {
  Enter();
  failure_.Check(cudaFreeHost(memory), "freeing pinned memory");
}

void CudaDriver::Copy(Stream stream, void* to, const void* from, size_t bytes) {
  if (bytes == 0 || failure_.failed()) return;
  Enter();
  Queue& queue = At(stream);
  if (IsPageable(from)) return queue.staging->ToDevice(to, from, bytes);
  if (IsPageable(to)) return queue.staging->ToHost(to, from, bytes);
  failure_.Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue.stream), "copying");
}

void CudaDriver::CopyToPeer(Stream stream, StreamDriver& peer, Stream other, void* to,
                            const void* from, size_t bytes) {
  auto& target = static_cast<CudaDriver&>(peer);
  if (failure_.failed() || target.failure_.failed()) return;
  target.Enter();
  target.pool_->Admit(ordinal_);
  WaitForQueue(stream, target, target.At(other));
  if (bytes == 0) return;
  // cudaMemcpyAsync wants a pool's memory to be the current GPU's.
  failure_.Check(cudaMemcpyPeerAsync(to, target.ordinal_, from, ordinal_, bytes, At(stream).stream),
                 "copying to another GPU");
}

void CudaDriver::WaitFor(Stream stream, Stream other) {
  if (!failure_.failed()) WaitForQueue(stream, *this, At(other));
}

void CudaDriver::WaitForQueue(Stream stream, CudaDriver& driver, Queue& queue) {
  driver.Enter();
  // A wait is for the event's last record at that time, so that one event does for all.
  MutexLock lock(queue.mu);
  const bool recorded =
      driver.failure_.Check(cudaEventRecord(queue.reached, queue.stream), "recording an event");
  Enter();
  if (recorded) {
    failure_.Check(cudaStreamWaitEvent(At(stream).stream, queue.reached, 0),
                   "waiting for another stream");
  }
}

void CudaDriver::CallWhenDone(Stream stream, std::function<void(const Status&)> done) {
  Enter();
  At(stream).completions->Add(std::move(done));
}

StatusOr<std::unique_ptr<DriverCapture>> CudaDriver::Capture() {
  return GraphCapture::Begin(ordinal_, At(Stream::kCompute).stream, failure_);
}

void* CudaDriver::Native(Stream stream) {
  Enter();
  return At(stream).stream;
}

std::string CudaDriver::DescribeMemory() {
  Enter();
  return pool_->Describe();
}

}  // namespace tenon::cuda
