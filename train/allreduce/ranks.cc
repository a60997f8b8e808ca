// SPDX-License-Identifier: Apache-2.0
#include "train/allreduce/ranks.h"

#include <utility>

#include "distributed/protocol/task_role.h"
#include "runtime/collectives/collective_queue.h"
#include "train/allreduce/collective_library.h"
#include "train/allreduce/device_ranks.h"

namespace tenon {
namespace {

std::string HostOfAddress(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return host;
}

/// Joins by what serves the host's memory, and by that of GPUs.
StatusOr<CollectiveBackends> JoinByAll(const std::string& library, const RankOptions& own,
                                       DeviceWish wish,
                                       const std::function<void(const std::string&)>& notice) {
  CollectiveBackends joined;
  TENON_ASSIGN_OR_RETURN(joined.host, JoinBy(library, own));
  TENON_ASSIGN_OR_RETURN(joined.device, JoinByDevices(*joined.host, own, wish, notice));
  return joined;
}

}  // namespace

StatusOr<std::unique_ptr<Communicator>> JoinRanks(Server& server, const JoinRanksOptions& options) {
  const ClusterSpec& cluster = server.cluster();
  const int size = cluster.NumTasks(kWorkerJob), rank = server.task_index();
  if (server.task() != TaskName(kWorkerJob, rank)) {
    return InvalidArgument("ranks are workers, and this task is ", server.task());
  }
  if (server.credentials().has_tls()) {
    return FailedPrecondition(
        "connections between ranks are not encrypted, as --tls_cert and the others ask for: a job "
        "by allreduce runs without them, in a network of its own");
  }
  CollectiveQueueOptions queue;
  queue.rank = rank;
  queue.size = size;
  queue.local_size = 0;
  queue.limit = options.limit;
  queue.notice = options.notice;
  queue.clock = options.clock;
  RankOptions own;
  for (int task = 0; task < size; ++task) {
    TENON_ASSIGN_OR_RETURN(const std::string own_address, cluster.Address(kWorkerJob, rank));
    TENON_ASSIGN_OR_RETURN(const std::string address, cluster.Address(kWorkerJob, task));
    own.host = HostOfAddress(own_address);
    if (HostOfAddress(address) != own.host) continue;
    if (task < rank) ++queue.local_rank;
    ++queue.local_size;
  }
  if (size == 1) return OnlyRank(options);
  TENON_ASSIGN_OR_RETURN(queue.store, server.OpenStore(kWorkerJob));
  own.rank = rank;
  own.size = size;
  own.store = queue.store.get();
  own.start_limit = options.start_up_deadline;
  if (Device* const gpu = server.gpu(); gpu != nullptr) {
    own.device = gpu->queue();
    queue.device_memory = &gpu->allocator();
  }
  const DeviceWish wish = options.library == "nccl"   ? DeviceWish::kNeeded
                          : options.library == "auto" ? DeviceWish::kIfAble
                                                      : DeviceWish::kNone;
  const StatusOr<std::string> agreed =
      AgreeOnLibrary(wish == DeviceWish::kNeeded ? "auto" : options.library, own, options.notice);
  if (!agreed.ok()) {
    return Annotate(agreed.status(),
                    StrCat("rank ", rank, " of ", size, " cannot join the others from ", own.host));
  }
  const std::string library = *agreed;
  queue.join = [own, library, wish, notice = options.notice,
                limit = options.limit](int64_t generation) {
    RankOptions again = own;
    again.generation = generation;
    again.start_limit = limit;  // the others may be in a step
    return JoinByAll(library, again, wish, notice);
  };
  TENON_ASSIGN_OR_RETURN(CollectiveBackends backends,
                         JoinByAll(library, own, wish, options.notice));
  return std::make_unique<CollectiveQueue>(std::move(backends), std::move(queue));
}

std::unique_ptr<Communicator> OnlyRank(const JoinRanksOptions& options) {
  return std::make_unique<CollectiveQueue>(
      CollectiveBackends{},
      CollectiveQueueOptions{
          .limit = options.limit, .notice = options.notice, .clock = options.clock});
}

}  // namespace tenon
