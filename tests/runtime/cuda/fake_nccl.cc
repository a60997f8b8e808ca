// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/cuda/fake_nccl.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace tenon::fake {
namespace {

using cuda::NcclId;
using cuda::NcclReduction;
using cuda::NcclResult;
using cuda::NcclType;

std::atomic<NcclResult> connections{NcclResult::kSuccess}, joining{NcclResult::kSuccess};
std::atomic<int> open_communicators{0}, aborted_communicators{0};

/// One call of one rank.
struct Call {
  enum class Kind : uint8_t { kAllReduce, kBroadcast, kSend, kRecv } kind;
  const void* in = nullptr;
  void* out = nullptr;
  size_t count = 0;
  NcclType type = NcclType::kUInt8;
  NcclReduction reduction = NcclReduction::kSum;
  int peer = 0;  // or the root
};
using Calls = std::vector<Call>;

size_t BytesOf(const Call& call) {
  switch (call.type) {
    case NcclType::kInt8:
    case NcclType::kUInt8:
      return call.count;
    case NcclType::kHalf:
    case NcclType::kBFloat16:
      return 2 * call.count;
    case NcclType::kInt64:
    case NcclType::kUInt64:
    case NcclType::kDouble:
      return 8 * call.count;
    default:
      return 4 * call.count;
  }
}

template <typename T>
void Reduce(const std::vector<Call>& of_ranks) {
  std::vector<T> result(of_ranks[0].count);
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const auto* const values = static_cast<const T*>(of_ranks[rank].in);
    for (size_t i = 0; i < result.size(); ++i) {
      const T a = result[i], b = values[i];
      if (rank == 0) {
        result[i] = b;
        continue;
      }
      switch (of_ranks[0].reduction) {
        case NcclReduction::kSum:
        case NcclReduction::kAverage:
          result[i] = static_cast<T>(a + b);
          break;
        case NcclReduction::kProduct:
          result[i] = static_cast<T>(a * b);
          break;
        case NcclReduction::kMax:
          result[i] = std::max(a, b);
          break;
        case NcclReduction::kMin:
          result[i] = std::min(a, b);
          break;
      }
    }
  }
  if (of_ranks[0].reduction == NcclReduction::kAverage) {
    for (T& value : result) value = static_cast<T>(value / static_cast<T>(of_ranks.size()));
  }
  for (const Call& call : of_ranks)
    std::copy(result.begin(), result.end(), static_cast<T*>(call.out));
}

void ReduceAny(const std::vector<Call>& of_ranks) {
  switch (of_ranks[0].type) {
    case NcclType::kInt8:
      return Reduce<int8_t>(of_ranks);
    case NcclType::kUInt8:
      return Reduce<uint8_t>(of_ranks);
    case NcclType::kInt32:
      return Reduce<int32_t>(of_ranks);
    case NcclType::kUInt32:
      return Reduce<uint32_t>(of_ranks);
    case NcclType::kInt64:
      return Reduce<int64_t>(of_ranks);
    case NcclType::kUInt64:
      return Reduce<uint64_t>(of_ranks);
    case NcclType::kDouble:
      return Reduce<double>(of_ranks);
    case NcclType::kFloat:
      return Reduce<float>(of_ranks);
    default:
      std::abort();  // no test adds up halves
  }
}

/// Where the ranks of a communicator meet, each with the calls that it has queued at once.
struct Meeting {
  explicit Meeting(int ranks) : size(static_cast<size_t>(ranks)) {}

  const size_t size;
  std::mutex mu;
  std::condition_variable changed;
  size_t joined = 0, finalized = 0;
  std::map<int, Calls> waiting;  // by rank
  int64_t round = 0;
  std::set<int> aborted;  // ranks

  /// Blocks the stream until all have come, or this rank gives up: that others have done so it only
  /// hears, as with the library itself.
  void Meet(int rank, const Calls& calls) {
    std::unique_lock lock(mu);
    const int64_t own = round;
    waiting[rank] = calls;
    if (waiting.size() == size && connections == NcclResult::kSuccess) {
      DoAll();
      waiting.clear();
      ++round;
      changed.notify_all();
    }
    changed.wait(lock, [&] { return round > own || aborted.count(rank) > 0; });
  }
  void DoAll() {
    std::map<std::pair<int, int>, std::vector<Call>> sent, received;  // from, to
    for (size_t i = 0; i < waiting[0].size(); ++i) {
      const Call& first = waiting[0][i];
      if (first.kind == Call::Kind::kAllReduce) {
        std::vector<Call> all;
        for (const auto& [rank, calls] : waiting) all.push_back(calls.at(i));
        ReduceAny(all);
      } else if (first.kind == Call::Kind::kBroadcast) {
        const void* const source = waiting[first.peer].at(i).in;
        for (const auto& [rank, calls] : waiting) {
          std::memmove(calls.at(i).out, source, BytesOf(calls.at(i)));
        }
      }
    }
    for (const auto& [rank, calls] : waiting) {
      for (const Call& call : calls) {
        if (call.kind == Call::Kind::kSend) sent[{rank, call.peer}].push_back(call);
        if (call.kind == Call::Kind::kRecv) received[{call.peer, rank}].push_back(call);
      }
    }
    for (const auto& [ends, calls] : sent) {
      for (size_t i = 0; i < calls.size(); ++i) {
        const Call& to = received[ends].at(i);
        if (BytesOf(to) != BytesOf(calls[i])) std::abort();
        std::memcpy(to.out, calls[i].in, BytesOf(to));
      }
    }
  }
};

std::mutex meetings_mu;
std::map<std::string, std::shared_ptr<Meeting>>& Meetings() {
  static auto* const meetings = new std::map<std::string, std::shared_ptr<Meeting>>;
  return *meetings;
}

struct Communicator {
  std::shared_ptr<Meeting> meeting;
  int rank;
  bool finalizes = false;
};
Communicator& Of(cuda::NcclCommunicator* ranks) { return *reinterpret_cast<Communicator*>(ranks); }

struct Queued {
  std::shared_ptr<Meeting> meeting;
  int rank;
  Calls calls;
};
thread_local bool is_grouping = false;
thread_local std::shared_ptr<Queued> group;
thread_local cudaStream_t group_stream;

NcclResult Queue(const Queued& queued, cudaStream_t stream) {
  const cudaError_t error = cudaLaunchHostFunc(
      stream,
      [](void* argument) {
        const std::unique_ptr<Queued> work(static_cast<Queued*>(argument));
        work->meeting->Meet(work->rank, work->calls);
      },
      new Queued(queued));
  return error == cudaSuccess ? NcclResult::kInProgress : NcclResult::kUnhandledCudaError;
}

NcclResult Add(const Call& call, cuda::NcclCommunicator* ranks, cudaStream_t stream) {
  const Communicator& own = Of(ranks);
  if (!is_grouping) return Queue({own.meeting, own.rank, {call}}, stream);
  if (group == nullptr) group = std::make_shared<Queued>(Queued{own.meeting, own.rank, {}});
  group->calls.push_back(call);
  group_stream = stream;
  return NcclResult::kSuccess;
}

NcclResult GetVersion(int* version) {
  *version = 21400;
  return NcclResult::kSuccess;
}
NcclResult GetUniqueId(NcclId* id) {
  static std::atomic<int> next{1};
  *id = {};
  const int number = next++;
  std::memcpy(id->bytes + sizeof(id->bytes) - sizeof(number), &number, sizeof(number));
  return joining;
}
const char* GetErrorString(NcclResult result) {
  return result == NcclResult::kInvalidUsage ? "invalid usage" : "remote process exited";
}
const char* GetLastError(cuda::NcclCommunicator*) { return "the last words"; }

NcclResult CommInitRankConfig(cuda::NcclCommunicator** ranks, int size, NcclId id, int rank,
                              cuda::NcclConfig* config) {
  if (joining != NcclResult::kSuccess) return joining;
  if (config->size != 24 || config->magic != 0xcafebeef || config->blocking != 0) std::abort();
  const std::lock_guard lock(meetings_mu);
  std::shared_ptr<Meeting>& meeting = Meetings()[std::string(id.bytes, sizeof(id.bytes))];
  if (meeting == nullptr) meeting = std::make_shared<Meeting>(size);
  const std::lock_guard meeting_lock(meeting->mu);
  ++meeting->joined;
  ++open_communicators;
  *ranks = reinterpret_cast<cuda::NcclCommunicator*>(new Communicator{meeting, rank});
  return NcclResult::kInProgress;
}
NcclResult CommGetAsyncError(cuda::NcclCommunicator* ranks, NcclResult* result) {
  const Communicator& own = Of(ranks);
  const std::lock_guard lock(own.meeting->mu);
  *result = connections;
  if (!own.meeting->aborted.empty()) *result = NcclResult::kRemoteError;
  const size_t come = own.finalizes ? own.meeting->finalized : own.meeting->joined;
  if (come < own.meeting->size) *result = NcclResult::kInProgress;
  return NcclResult::kSuccess;
}
NcclResult CommAbort(cuda::NcclCommunicator* ranks) {
  {
    const std::lock_guard lock(Of(ranks).meeting->mu);
    Of(ranks).meeting->aborted.insert(Of(ranks).rank);
    Of(ranks).meeting->changed.notify_all();
  }
  delete &Of(ranks);
  --open_communicators;
  ++aborted_communicators;
  return NcclResult::kSuccess;
}
NcclResult CommFinalize(cuda::NcclCommunicator* ranks) {
  const std::lock_guard lock(Of(ranks).meeting->mu);
  Of(ranks).finalizes = true;
  ++Of(ranks).meeting->finalized;
  return NcclResult::kInProgress;
}
NcclResult CommDestroy(cuda::NcclCommunicator* ranks) {
  delete &Of(ranks);
  --open_communicators;
  return NcclResult::kSuccess;
}

NcclResult AllReduce(const void* in, void* out, size_t count, NcclType type,
                     NcclReduction reduction, cuda::NcclCommunicator* ranks, cudaStream_t stream) {
  return Add({Call::Kind::kAllReduce, in, out, count, type, reduction}, ranks, stream);
}
NcclResult Broadcast(const void* in, void* out, size_t count, NcclType type, int root,
                     cuda::NcclCommunicator* ranks, cudaStream_t stream) {
  return Add({Call::Kind::kBroadcast, in, out, count, type, {}, root}, ranks, stream);
}
NcclResult Send(const void* in, size_t count, NcclType type, int peer,
                cuda::NcclCommunicator* ranks, cudaStream_t stream) {
  return Add({Call::Kind::kSend, in, nullptr, count, type, {}, peer}, ranks, stream);
}
NcclResult Recv(void* out, size_t count, NcclType type, int peer, cuda::NcclCommunicator* ranks,
                cudaStream_t stream) {
  return Add({Call::Kind::kRecv, nullptr, out, count, type, {}, peer}, ranks, stream);
}
NcclResult GroupStart() {
  is_grouping = true;
  return NcclResult::kSuccess;
}
NcclResult GroupEnd() {
  is_grouping = false;
  if (group == nullptr) return NcclResult::kSuccess;
  const NcclResult result = Queue(*group, group_stream);
  group.reset();
  return result;
}

}  // namespace

const cuda::Nccl& FakeNccl() {
  static const cuda::Nccl nccl = {.GetVersion = GetVersion,
                                  .GetUniqueId = GetUniqueId,
                                  .GetErrorString = GetErrorString,
                                  .GetLastError = GetLastError,
                                  .CommInitRankConfig = CommInitRankConfig,
                                  .CommGetAsyncError = CommGetAsyncError,
                                  .CommAbort = CommAbort,
                                  .CommFinalize = CommFinalize,
                                  .CommDestroy = CommDestroy,
                                  .AllReduce = AllReduce,
                                  .Broadcast = Broadcast,
                                  .Send = Send,
                                  .Recv = Recv,
                                  .GroupStart = GroupStart,
                                  .GroupEnd = GroupEnd};
  return nccl;
}

void FailConnections(NcclResult result) { connections = result; }
void FailJoining(NcclResult result) { joining = result; }
int OpenCommunicators() { return open_communicators; }
int AbortedCommunicators() { return aborted_communicators; }

}  // namespace tenon::fake
