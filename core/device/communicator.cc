// SPDX-License-Identifier: Apache-2.0
#include "core/device/communicator.h"

#include <optional>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/strings.h"

namespace tenon {
namespace {

const char* NameOf(Collective::Kind kind) {
  switch (kind) {
    case Collective::Kind::kAllReduce:
      return "AllReduce";
    case Collective::Kind::kBroadcast:
      return "Broadcast";
    case Collective::Kind::kAllGather:
      return "AllGather";
    case Collective::Kind::kAllToAll:
      return "AllToAll";
    case Collective::Kind::kBarrier:
      return "Barrier";
  }
  return "?";
}

const char* NameOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "";
    case Reduction::kMin:
      return " (min)";
    case Reduction::kMax:
      return " (max)";
    case Reduction::kProduct:
      return " (product)";
    case Reduction::kMean:
      return " (mean)";
  }
  return "?";
}

}  // namespace

std::string Collective::ToString() const {
  std::string text = StrCat(NameOf(kind), NameOf(reduction), on_device ? " in a GPU's memory" : "",
                            " '", name, "'");
  if (data.valid())
    StrAppend(&text, " of ", tenon::ToString(data.dtype()), data.shape().ToString());
  if (kind == Kind::kBroadcast) StrAppend(&text, " from rank ", root);
  return text;
}

StatusOr<CollectiveResult> Communicator::Run(Collective what) {
  struct Waiting {
    Mutex mu;
    CondVar done;
    std::optional<StatusOr<CollectiveResult>> result ABSL_GUARDED_BY(mu);
  } waiting;
  Start(std::move(what), [&waiting](StatusOr<CollectiveResult> result) {
    MutexLock lock(waiting.mu);
    waiting.result = std::move(result);
    waiting.done.NotifyAll();
  });
  MutexLock lock(waiting.mu);
  while (!waiting.result) waiting.done.Wait(waiting.mu);
  return *std::move(waiting.result);
}

}  // namespace tenon
