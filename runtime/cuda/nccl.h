// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

#include "core/base/status.h"

// NVIDIA's library of collectives (NCCL), as far as Tenon calls it, by its documented interface of
// version 2.14: later ones keep it. It is loaded where a GPU joins others, and no header of it is
// needed to build.

namespace tenon::cuda {

struct NcclCommunicator;  // ncclComm

/// ncclResult_t.
enum class NcclResult : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

/// ncclDataType_t.
enum class NcclType : int {
  kInt8 = 0,
  kUInt8 = 1,
  kInt32 = 2,
  kUInt32 = 3,
  kInt64 = 4,
  kUInt64 = 5,
  kHalf = 6,
  kFloat = 7,
  kDouble = 8,
  kBFloat16 = 9,
};

/// ncclRedOp_t.
enum class NcclReduction : int { kSum = 0, kProduct = 1, kMax = 2, kMin = 3, kAverage = 4 };

/// ncclUniqueId: by which the ranks of a communicator find its first one.
struct NcclId {
  char bytes[128];
};

/// The first members of ncclConfig_t; the library takes its own values for those behind `size`.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 1;
};

/// The functions of the library, under their names without "nccl".
struct Nccl {
  NcclResult (*GetVersion)(int* version);
  NcclResult (*GetUniqueId)(NcclId* id);
  const char* (*GetErrorString)(NcclResult result);
  const char* (*GetLastError)(NcclCommunicator* ranks);
  NcclResult (*CommInitRankConfig)(NcclCommunicator** ranks, int size, NcclId id, int rank,
                                   NcclConfig* config);
  NcclResult (*CommGetAsyncError)(NcclCommunicator* ranks, NcclResult* result);
  NcclResult (*CommAbort)(NcclCommunicator* ranks);
  NcclResult (*CommFinalize)(NcclCommunicator* ranks);
  NcclResult (*CommDestroy)(NcclCommunicator* ranks);
  NcclResult (*AllReduce)(const void* in, void* out, size_t count, NcclType type,
                          NcclReduction reduction, NcclCommunicator* ranks, cudaStream_t stream);
  NcclResult (*Broadcast)(const void* in, void* out, size_t count, NcclType type, int root,
                          NcclCommunicator* ranks, cudaStream_t stream);
  NcclResult (*Send)(const void* in, size_t count, NcclType type, int peer, NcclCommunicator* ranks,
                     cudaStream_t stream);
  NcclResult (*Recv)(void* out, size_t count, NcclType type, int peer, NcclCommunicator* ranks,
                     cudaStream_t stream);
  NcclResult (*GroupStart)();
  NcclResult (*GroupEnd)();
};

/// The functions, from where `library` finds symbols. Its error; FailedPrecondition when NCCL is
/// older than 2.14.
StatusOr<Nccl> LoadNccl(const std::function<StatusOr<void*>(const char* symbol)>& library);

}  // namespace tenon::cuda
