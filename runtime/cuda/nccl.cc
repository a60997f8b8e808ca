// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/nccl.h"

#include <algorithm>

#include "core/base/strings.h"

namespace tenon::cuda {
namespace {

/// The number of NCCL 2.14.0, from which on joining need not block.
constexpr int kOldestVersion = 21400;

}  // namespace

StatusOr<Nccl> LoadNccl(const std::function<StatusOr<void*>(const char* symbol)>& library) {
  Nccl nccl = {};
  Status status;
  const auto find = [&](auto* function, const char* symbol) {
    const StatusOr<void*> found = library(symbol);
    status.Update(found.status());
    if (found.ok()) {
      *function = reinterpret_cast<std::remove_reference_t<decltype(*function)>>(*found);
    }
  };
  find(&nccl.GetVersion, "ncclGetVersion");
  if (!status.ok()) return status;
  int version = 0;
  if (nccl.GetVersion(&version) != NcclResult::kSuccess || version < kOldestVersion) {
    return FailedPrecondition("found NCCL ", version / 10000, ".", version / 100 % 100,
                              ", wanted 2.14 or newer");
  }
  find(&nccl.GetUniqueId, "ncclGetUniqueId");
  find(&nccl.GetErrorString, "ncclGetErrorString");
  find(&nccl.GetLastError, "ncclGetLastError");
  find(&nccl.CommInitRankConfig, "ncclCommInitRankConfig");
  find(&nccl.CommGetAsyncError, "ncclCommGetAsyncError");
  find(&nccl.CommAbort, "ncclCommAbort");
  find(&nccl.CommFinalize, "ncclCommFinalize");
  find(&nccl.CommDestroy, "ncclCommDestroy");
  find(&nccl.AllReduce, "ncclAllReduce");
  find(&nccl.Broadcast, "ncclBroadcast");
  find(&nccl.Send, "ncclSend");
  find(&nccl.Recv, "ncclRecv");
  find(&nccl.GroupStart, "ncclGroupStart");
  find(&nccl.GroupEnd, "ncclGroupEnd");
  if (!status.ok()) return status;
  return nccl;
}

}  // namespace tenon::cuda
