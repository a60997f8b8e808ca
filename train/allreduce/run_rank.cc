// SPDX-License-Identifier: Apache-2.0
#include "train/allreduce/run_rank.h"

#include <memory>

#include "core/base/strings.h"
#include "distributed/protocol/task_role.h"
#include "distributed/resolver/cluster_resolver.h"
#include "train/allreduce/rank_values.h"
#include "train/one_line.h"
#include "train/replica.h"

namespace tenon {
namespace {

/// Tells the error that all ranks end with, and waits until all have told it: the first one that
/// ends has a launcher kill the others at once.
void EndTogether(Communicator& ranks, const Status& error, const JoinRanksOptions& options) {
  if (options.notice) {
    options.notice(StrCat("all ranks end: ", absl::StatusCodeToString(error.code()), ": ",
                          OneLine(Message(error))));
  }
  // Where this fails a rank has gone already.
  ranks.Run({.kind = Collective::Kind::kBarrier, .name = "end"}).status().IgnoreError();
}

}  // namespace

Status RunRank(const ReplicaFlags& flags, const OpRegistry& registry,
               const std::function<Status(Communicator& ranks)>& train,
               const JoinRanksOptions& options) {
  TENON_ASSIGN_OR_RETURN(const ResolvedTask task, ResolveReplica(flags.cluster, /*num_ps=*/0));
  JoinRanksOptions joining = options;
  joining.start_up_deadline = StartUpDeadline(flags.cluster);
  if (joining.notice && (flags.cluster.check_config || task.is_by_environment)) {
    joining.notice(task.Describe());
  }
  if (flags.cluster.check_config) return OkStatus();
  if (task.is_alone()) return train(*OnlyRank(joining));
  TENON_ASSIGN_OR_RETURN(const ServerOptions options_of_server,
                         flags.Options(task, joining.notice));
  const int servers = options_of_server.cluster.NumTasks(kParameterServerJob);
  if (servers > 0) {
    return InvalidArgument("ranks train without parameter servers, and the cluster has ", servers);
  }
  return RunReplica(options_of_server, registry, [&](Server& server) -> Status {
    TENON_ASSIGN_OR_RETURN(const auto ranks, JoinRanks(server, joining));
    const Status trained = train(*ranks);
    if (IsOfAllRanks(trained)) EndTogether(*ranks, trained, joining);
    return trained;
  });
}

}  // namespace tenon
