// SPDX-License-Identifier: Apache-2.0
#include "tools/train_mnist.h"

#include <chrono>
#include <memory>

#include "core/base/plural.h"
#include "distributed/protocol/task_role.h"
#include "tools/commands.h"
#include "tools/mnist_training.h"
#include "tools/training_task.h"
#include "train/allreduce/ranks.h"
#include "train/evaluation/train_and_evaluate.h"
#include "train/replica.h"

namespace tenon::tools {
namespace {

/// What the flags mean for so many workers.
Status CheckMnistFlags(const TrainMnistFlags& flags, int workers) {
  if (flags.backup >= workers) {
    return WrongUsage(StrCat("--backup ", flags.backup, " leaves no worker of the ", workers));
  }
  if (flags.shards > 0 && flags.shards % workers != 0) {
    return WrongUsage(StrCat("--shards ", flags.shards, " must be a multiple of the ",
                             Plural(workers, "worker")));
  }
  return OkStatus();
}

Status Evaluate(const TrainMnistFlags& flags, const ResolvedTask& task, const OpRegistry& ops) {
  if (flags.checkpoint_dir.empty()) {
    return WrongUsage("an evaluator wants --checkpoint_dir, whose checkpoints it follows");
  }
  ServerOptions options;
  TENON_RETURN_IF_ERROR(flags.access.ApplyTo(&options));
  TENON_ASSIGN_OR_RETURN(
      const TrainingGoesOn goes_on,
      LifeOfTraining(task, options.credentials, StartUpDeadline(flags.cluster), PrintNotice));
  return EvaluateMnistTraining(flags, ops, goes_on);
}

}  // namespace

Status TrainMnist(const TrainMnistFlags& flags, const OpRegistry& ops) {
  const bool allreduce = flags.allreduce || (!flags.sync && WantsAllreduce(flags.cluster));
  const int num_ps = allreduce ? 0 : 1;
  TENON_ASSIGN_OR_RETURN(ResolvedTask task,
                         ResolveTrainingTask(flags.cluster, num_ps, Evaluator::kWelcome));
  if (PrintTask(task, flags.cluster)) return OkStatus();
  if (task.role == TaskRole::kEvaluator) return Evaluate(flags, task, ops);
  JoinRanksOptions joining;
  if (flags.rank_limit && !allreduce) return WrongUsage("--rank_limit is one of --allreduce");
  if (flags.rank_limit) {
    joining.limit = std::chrono::milliseconds(static_cast<int64_t>(*flags.rank_limit * 1000));
  }
  if (!flags.collectives.empty()) {
    if (!allreduce)
      return WrongUsage(
          "--collectives is one of --allreduce, or of ranks that an mpirun has started");
    joining.library = flags.collectives;
  }
  joining.notice = PrintNotice;
  joining.start_up_deadline = StartUpDeadline(flags.cluster);
  if (task.is_alone()) {
    TENON_RETURN_IF_ERROR(CheckMnistFlags(flags, 1));
    const auto ranks = allreduce ? OnlyRank(joining) : nullptr;
    return RunMnistTraining(flags, ops, nullptr, ranks.get());
  }
  // Between-graph replication: as a worker of a cluster, or as one of its parameter servers.
  ServerOptions options;
  options.notice = PrintNotice;
  options.start_up_deadline = joining.start_up_deadline;
  TENON_RETURN_IF_ERROR(flags.access.ApplyTo(&options));
  TENON_RETURN_IF_ERROR(TakeTask(&task, &options));
  const int servers = options.cluster.NumTasks(kParameterServerJob);
  if (servers == 0 && !allreduce) {
    return WrongUsage(
        "the cluster has no parameter server: give --ps_hosts, or --num_ps, or --allreduce");
  }
  if (servers > 0 && allreduce) {
    return WrongUsage(
        StrCat("--allreduce trains without parameter servers, and the cluster has ", servers));
  }
  if (const Status s = CheckMnistFlags(flags, options.cluster.NumTasks(kWorkerJob)); !s.ok()) {
    if (RoleOfJob(options.job) == TaskRole::kWorker) {
      ReportFailedStart(options, kParameterServerJob, s, std::chrono::milliseconds(0));
    }
    return s;
  }
  return RunReplica(options, ops, [&](Server& server) -> Status {
    if (!allreduce) return RunMnistTraining(flags, ops, &server, nullptr);
    TENON_ASSIGN_OR_RETURN(const auto ranks, JoinRanks(server, joining));
    return RunMnistTraining(flags, ops, nullptr, ranks.get());
  });
}

}  // namespace tenon::tools
