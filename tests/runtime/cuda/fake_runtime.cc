// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/cuda/fake_runtime.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

struct CUstream_st {
  CUstream_st() : thread([this] { Run(); }) {}
  ~CUstream_st() {
    Queue(nullptr);
    thread.join();
  }
  void Queue(std::function<void()> work) {
    const std::lock_guard lock(mu);
    if (captured != nullptr) return captured->push_back(std::move(work));
    works.push_back(std::move(work));
    changed.notify_all();
  }
  bool IsDone() {
    const std::lock_guard lock(mu);
    return works.empty();
  }
  void Wait() {
    std::unique_lock lock(mu);
    changed.wait(lock, [this] { return works.empty(); });
  }
  void Run() {
    std::unique_lock lock(mu);
    while (true) {
      changed.wait(lock, [this] { return !works.empty(); });
      const std::function<void()> work = works.front();
      if (work == nullptr) return;
      lock.unlock();
      work();
      lock.lock();
      works.pop_front();
      changed.notify_all();
    }
  }

  std::mutex mu;
  std::condition_variable changed;
  std::deque<std::function<void()>> works;                       // the first is being done
  std::shared_ptr<std::vector<std::function<void()>>> captured;  // instead of being done
  std::thread thread;
};

struct CUgraph_st {
  std::shared_ptr<std::vector<std::function<void()>>> works;
};
struct CUgraphExec_st {
  std::shared_ptr<std::vector<std::function<void()>>> works;
};

/// Counts its records, so that a wait is for one of them.
struct CUevent_st {
  std::mutex mu;
  std::condition_variable changed;
  int64_t queued = 0;
  int64_t reached = 0;

  int64_t Last() {
    const std::lock_guard lock(mu);
    return queued;
  }
  void Reach() {
    const std::lock_guard lock(mu);
    ++reached;
    changed.notify_all();
  }
  bool HasReached(int64_t record) {
    const std::lock_guard lock(mu);
    return reached >= record;
  }
  void WaitFor(int64_t record) {
    std::unique_lock lock(mu);
    changed.wait(lock, [&] { return reached >= record; });
  }
};

/// The memory pool of one GPU.
struct CUmemPoolHandle_st {
  int gpu;
  std::set<int> let_in;
};

namespace tenon::fake {
namespace {

std::atomic<cudaError_t> failure{cudaSuccess};
std::atomic<cudaError_t> capture_failure{cudaSuccess};
std::atomic<bool> pinned_memory_fails{false};
std::atomic<int64_t> pageable_copies{0};
std::atomic<int64_t> right_peer_copies{0}, wrong_peer_copies{0};
thread_local cudaError_t last_error = cudaSuccess;

std::mutex blocks_mu;
struct Block {
  size_t bytes;
  cudaMemoryType type;
  cudaMemPool_t pool;  // of the GPU's memory
};
std::map<const char*, Block>& Blocks() {
  static auto* const blocks = new std::map<const char*, Block>;
  return *blocks;
}

int64_t InUse(cudaMemoryType type) {
  const std::lock_guard lock(blocks_mu);
  int64_t bytes = 0;
  for (const auto& [memory, block] : Blocks()) bytes += block.type == type ? block.bytes : 0;
  return bytes;
}

/// The most bytes of a block that are set: all of a large one would take the memory that it only
/// counts.
constexpr size_t kMostSet = 1 << 20;

void* NewBlock(size_t bytes, cudaMemoryType type, cudaMemPool_t pool = nullptr) {
  void* const memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);  // NOLINT
  std::memset(memory, 0xcd, std::min(bytes, kMostSet));
  const std::lock_guard lock(blocks_mu);
  Blocks()[static_cast<char*>(memory)] = {bytes, type, pool};
  return memory;
}

void Forget(void* memory) {
  const std::lock_guard lock(blocks_mu);
  Blocks().erase(static_cast<char*>(memory));
}

Block BlockOf(const void* memory) {
  const std::lock_guard lock(blocks_mu);
  const auto* const at = static_cast<const char*>(memory);
  const Block none = {0, cudaMemoryTypeUnregistered, nullptr};
  auto after = Blocks().upper_bound(at);
  if (after == Blocks().begin()) return none;
  --after;
  return at < after->first + after->second.bytes ? after->second : none;
}
cudaMemoryType TypeOf(const void* memory) { return BlockOf(memory).type; }

cudaError_t Result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}
/// What every call gives when the GPU has failed.
cudaError_t Now() { return Result(failure.load()); }

}  // namespace

struct Gate::State {
  std::mutex mu;
  std::condition_variable changed;
  bool open = false;
};

Gate::Gate(cudaStream_t stream) : state_(std::make_shared<State>()) {
  stream->Queue([state = state_] {
    std::unique_lock lock(state->mu);
    state->changed.wait(lock, [&] { return state->open; });
  });
}

void Gate::Open() {
  const std::lock_guard lock(state_->mu);
  state_->open = true;
  state_->changed.notify_all();
}

void FailWith(cudaError_t error) { failure = error; }
void FailPinnedMemory(bool fails) { pinned_memory_fails = fails; }
void FailNextCapture(cudaError_t error) { capture_failure = error; }
int64_t PageableCopies() { return pageable_copies; }
PeerCopies CountPeerCopies() { return {right_peer_copies, wrong_peer_copies}; }
int64_t BytesInUse() { return InUse(cudaMemoryTypeDevice); }

}  // namespace tenon::fake

using namespace tenon::fake;  // NOLINT: the functions below are CUDA's

extern "C" {

cudaError_t cudaSetDevice(int device) {
  return device < kGpus ? Now() : Result(cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = kGpus;
  return Now();
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "an error";
}
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress" : "cudaErrorOther";
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "Fake GPU");  // NOLINT
  properties->totalGlobalMem = kTotalMemory;
  properties->major = 9;
  return Now();
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  std::snprintf(id, length, "0000:0%d:00.0", device);
  return Now();
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 1;
  return Now();
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = kTotalMemory;
  *free = *total - BytesInUse();
  return Now();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return Now();
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t error = Now(); error != cudaSuccess) return error;
  return stream->IsDone() ? cudaSuccess : Result(cudaErrorNotReady);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  stream->Wait();
  return Now();
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  if (const cudaError_t error = Now(); error != cudaSuccess) return error;
  stream->Queue([=] { function(argument); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return Now();
}
// An event may be destroyed while what was recorded is on its way.
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  event->WaitFor(event->Last());
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t error = Now(); error != cudaSuccess) return error;
  {
    const std::lock_guard lock(event->mu);
    ++event->queued;
  }
  stream->Queue([event] { event->Reach(); });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = Now(); error != cudaSuccess) return error;
  return event->HasReached(event->Last()) ? cudaSuccess : Result(cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  event->WaitFor(event->Last());
  return Now();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t error = Now(); error != cudaSuccess) return error;
  stream->Queue([event, record = event->Last()] { event->WaitFor(record); });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (const cudaError_t error = Now(); error != cudaSuccess) return error;
  for (const void* end : {static_cast<const void*>(to), from}) {
    if (TypeOf(end) == cudaMemoryTypeUnregistered) ++pageable_copies;
  }
  stream->Queue([=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (const cudaError_t error = Now(); error != cudaSuccess) return error;
  const std::lock_guard lock(stream->mu);
  stream->captured = std::make_shared<std::vector<std::function<void()>>>();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(stream->mu);
  auto works = std::exchange(stream->captured, nullptr);
  if (const cudaError_t error = capture_failure.exchange(cudaSuccess); error != cudaSuccess) {
    return Result(error);
  }
  *graph = new CUgraph_st{std::move(works)};
  return Now();
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new CUgraphExec_st{graph->works};
  return Now();
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (const cudaError_t error = Now(); error != cudaSuccess) return error;
  stream->Queue([works = exec->works] {
    for (const auto& work : *works) work();
  });
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_gpu, const void* from, int from_gpu, size_t bytes,
                                cudaStream_t stream) {
  if (const cudaError_t error = Now(); error != cudaSuccess) return error;
  const cudaMemPool_t target = BlockOf(to).pool, source = BlockOf(from).pool;
  const bool right = target != nullptr && target->gpu == to_gpu && source != nullptr &&
                     source->gpu == from_gpu && target->let_in.contains(from_gpu);
  ++(right ? right_peer_copies : wrong_peer_copies);
  stream->Queue([=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return Now();
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  *attributes = {};
  attributes->type = TypeOf(memory);
  return Now();
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  if (const cudaError_t error = Now(); error != cudaSuccess) return error;
  if (pinned_memory_fails) return Result(cudaErrorMemoryAllocation);
  *memory = NewBlock(bytes, cudaMemoryTypeHost);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  Forget(memory);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  *pool = new CUmemPoolHandle_st{properties->location.id, {}};
  return Now();
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  delete pool;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access, size_t) {
  pool->let_in.insert(access->location.id);
  return Now();
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return Now(); }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value) {
  *static_cast<uint64_t*>(value) = BytesInUse();
  return Now();
}
cudaError_t cudaMallocFromPoolAsync(void** memory, size_t bytes, cudaMemPool_t pool, cudaStream_t) {
  if (const cudaError_t error = Now(); error != cudaSuccess) return error;
  if (static_cast<int64_t>(bytes) > kTotalMemory - BytesInUse()) {
    return Result(cudaErrorMemoryAllocation);
  }
  *memory = NewBlock(bytes, cudaMemoryTypeDevice, pool);
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  if (const cudaError_t error = Now(); error != cudaSuccess) return error;
  size_t bytes = 0;
  {
    const std::lock_guard lock(blocks_mu);
    bytes = Blocks()[static_cast<char*>(memory)].bytes;
  }
  Forget(memory);
  stream->Queue([=] {
    std::memset(memory, 0xdd, std::min(bytes, kMostSet));
    std::free(memory);
  });
  return cudaSuccess;
}

}  // extern "C"
