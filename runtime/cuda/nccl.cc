// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/nccl.h"

#include <algorithm>

#include "core/base/strings.h"
#include "runtime/cuda/libraries.h"

namespace tenon::cuda {
namespace {

/// As NCCL counts: 21400 is 2.14.0, from which on joining need not block.
constexpr int kOldestVersion = 21400;

StatusOr<Nccl> Load() {
  Library library("libnccl.so", 2);
  Nccl nccl = {};
  Status status;
  const auto find = [&](auto* function, const char* symbol) {
    auto found = library.Get<std::remove_reference_t<decltype(*function)>>(symbol);
    if (found.ok()) {
      *function = *found;
    } else {
      status.Update(found.status());
    }
  };
  find(&nccl.GetVersion, "ncclGetVersion");
  if (!status.ok()) return status;
  int version = 0;
  if (nccl.GetVersion(&version) != NcclResult::kSuccess || version < kOldestVersion) {
    return FailedPrecondition("found NCCL ", version / 10000, ".", version / 100 % 100,
                              ", wanted 2.14 or newer: ", library.file_name());
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

}  // namespace

StatusOr<const Nccl*> LoadNccl() {
  static const auto* const nccl = new StatusOr<Nccl>(Load());
  if (!nccl->ok()) return nccl->status();
  return &**nccl;
}

}  // namespace tenon::cuda
