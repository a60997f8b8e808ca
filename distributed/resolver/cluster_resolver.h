// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "distributed/protocol/cluster_spec.h"
#include "distributed/protocol/server.h"
#include "distributed/protocol/task_role.h"
#include "distributed/resolver/environment.h"

namespace tenon {

/// The words of a program's user about its cluster. The environment says what is empty here.
struct ClusterFlags {
  std::string ps_hosts = {}, worker_hosts = {};  // "host:port,..."
  std::string cluster = {};                      // as ClusterSpec::Parse, instead of these two
  std::string job_name = {};
  std::optional<int> task_index = {};
  /// How many of the ranks of a launcher are parameter servers: the first ones; or of the tasks
  /// that register. Nothing: the program's own number.
  std::optional<int> num_ps = {};
  /// "host:port", where tasks register that have no list of addresses, instead of all these; and
  /// how many of them are workers, which ranks say, too.
  std::string rendezvous = {};
  std::optional<int> num_workers = {};
  /// The port of a host's first rank, where a launcher says hosts alone; 0: by the launcher's job.
  int first_port = 0;
  /// Seconds that a task waits for the others of its job, to come and to come back
  /// (ServerOptions::start_up_deadline).
  double start_up_deadline = 20;
  /// The program prints which task it is, and stops.
  bool check_config = false;
};

/// How a program wants its tasks.
struct TaskWishes {
  /// Parameter servers among ranks, when no flag says.
  int num_ps = 0;
  /// Jobs are ps and worker: a chief is the first worker, those called workers come after it.
  bool chief_is_worker = false;
};

/// ClusterFlags::start_up_deadline, which ResolveTask has checked.
std::chrono::milliseconds StartUpDeadline(const ClusterFlags& flags);

/// A job whose tasks find each other by registering at one address.
struct Registration {
  std::string address;  // "host:port": a task of that host serves there
  int num_ps = 0, num_workers = 1;
  /// The task that this process is to be: of an empty job any one that is free, and without a
  /// number any one of the job.
  std::string job;
  std::optional<int> task;
};

/// Which task of which cluster a process is.
struct ResolvedTask {
  /// A value and where it came from: "task", "/job:worker/replica:0/task:1",
  /// "OMPI_COMM_WORLD_RANK".
  struct Setting {
    std::string name, value, source;
  };

  ClusterSpec cluster;  // empty: the process is alone
  std::string job;
  int task = 0;
  TaskRole role = TaskRole::kWorker;
  bool is_by_environment = false;  // at least in part
  std::vector<Setting> settings;
  /// The members above are known when it has registered (TakeTask); until then there is no cluster.
  std::optional<Registration> registration;

  bool is_alone() const { return cluster.empty() && role != TaskRole::kEvaluator && !registration; }
  /// A line for each setting, without an end of the last one: "task: /job:ps/replica:0/task:0
  /// (--job_name, --task_index)".
  std::string Describe() const;
};

/// Has a server be that task. `options` has all else: credentials, the clock, who gets notices.
///
/// A task that is to register (ResolvedTask::registration) does so first, with a free port of the
/// interface by which it reaches the address; the process of that host which is there first serves
/// the others. Blocks until all tasks have registered, options->start_up_deadline at most, and says
/// then who is who. DeadlineExceeded with how many have come, or why nobody answers;
/// FailedPrecondition beyond loopback without credentials, when another program answers there, and
/// for a task too many; InvalidArgument where tasks contradict each other, AlreadyExists for a task
/// that is there already. `task` then has cluster, job, number and role.
Status TakeTask(ResolvedTask* task, ServerOptions* options);

/// The variable by which `tenon launch --allreduce` asks tasks to train by allreduce.
inline constexpr std::string_view kAllreduceVariable = "TENON_ALLREDUCE";

/// Whether the processes of a job are to be equal ranks that train by allreduce, where no flag
/// chooses parameter servers: the variable asks for it, or mpirun has started them.
bool WantsAllreduce(const ClusterFlags& flags,
                    const Environment& environment = Environment::OfProcess());

/// Finds out who this process is: by flags; else, for what these leave open, by TF_CONFIG; else by
/// the ranks of a launcher (FindRankedTasks). Flags may give the cluster alone, and the environment
/// the task. With flags.rendezvous it is to register, as its rank where it has one. A process of
/// which nothing is said is alone. InvalidArgument with every mistake that was found, a line each
/// after the first one where there are several.
StatusOr<ResolvedTask> ResolveTask(const ClusterFlags& flags, const TaskWishes& wishes,
                                   const Environment& environment = Environment::OfProcess());

}  // namespace tenon
