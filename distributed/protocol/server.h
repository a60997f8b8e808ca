// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file_access.h"
#include "core/device/device.h"
#include "core/op/op_registry.h"
#include "distributed/protocol/cluster_spec.h"
#include "distributed/protocol/credentials.h"
#include "distributed/protocol/job_patience.h"
#include "distributed/protocol/limits.h"
#include "runtime/collectives/key_value_store.h"
#include "runtime/device/device_options.h"
#include "runtime/device/machine.h"
#include "runtime/session/session.h"

namespace tenon {

struct ServerOptions {
  /// Empty: a cluster of this one task, /job:localhost/replica:0/task:0.
  ClusterSpec cluster = {};
  std::string job = {};
  int task = 0;
  /// Listen here instead of at the cluster's address for this task; 0: any free port. -1: the
  /// cluster's.
  int port = -1;
  /// Threads that run kernels; 0: the process's thread budget.
  int threads = 0;
  /// The start fails when there are fewer GPUs than devices.gpus. Without that: those that there
  /// are, and for a task of the job "ps", which keeps variables, none.
  DeviceOptions devices = {};
  /// How long sessions wait for the tasks they need.
  std::chrono::milliseconds start_up_deadline{60000};
  /// Gets a line for people every few seconds while something is waited for, and when a task is
  /// gone or back; from any thread, and must not block. May be null.
  std::function<void(const std::string& line)> notice = {};
  ServerLimits limits = {};
  /// The clock by which it waits and measures limits; must outlive it. What gRPC waits for goes by
  /// the machine's clock whatever this is.
  Clock* clock = &MachineClock();
  /// The source of incarnations, handles of sessions and numbers of steps; must outlive it.
  Entropy* entropy = &MachineEntropy();
  /// Which files graphs may read and write. Nothing: all where the server listens at loopback only,
  /// none elsewhere.
  std::optional<FileAccess> files = {};
  /// What this task shows to others and asks of them.
  Credentials credentials = {};
  /// Listen beyond loopback though there are no credentials.
  bool insecure = false;
  /// Beside the address, listen at this port of loopback for clients of this machine that have no
  /// credentials, as TensorFlow's; 0: any free port, -1: do not.
  int loopback_port = -1;
};

/// A task of a cluster: master and worker in one process, over gRPC. It listens on the host of its
/// address in the cluster, and on no others but perhaps loopback. Beyond loopback it wants
/// credentials, or to be told that it needs none.
///
/// A job ends when all its workers have: each says so with ReportEnd to the tasks that wait in
/// WaitForJobEnd, as parameter servers do. Thread-safe.
///
/// A process with a server keeps up to 64 MiB of memory that it has freed (mallopt).
class Server {
 public:
  /// Listens when it returns. InvalidArgument for a task that the cluster lacks; FailedPrecondition
  /// when it would listen beyond loopback without credentials and is not `insecure`; Unavailable
  /// when the address cannot be had, naming it and the reason; as MakeTaskDevices for GPUs.
  /// `registry` must outlive the server.
  static StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                 const OpRegistry& registry);
  /// The same as the task that TF_CONFIG, Slurm or MPI says this process is (ResolveTask), with
  /// `num_ps` parameter servers among ranks; `options` has the rest. InvalidArgument where nothing
  /// is said, FailedPrecondition for an evaluator, which has no server.
  static StatusOr<std::unique_ptr<Server>> FromEnvironment(const OpRegistry& registry,
                                                           ServerOptions options = {},
                                                           int num_ps = 0);
  virtual ~Server() = default;

  /// "grpc://host:port", to open sessions with.
  virtual std::string target() const = 0;
  virtual int port() const = 0;
  /// Where clients without credentials find it; 0 when they do not.
  virtual int loopback_port() const = 0;
  /// "/job:J/replica:0/task:T".
  virtual std::string task() const = 0;
  /// T.
  virtual int task_index() const = 0;
  virtual const ClusterSpec& cluster() const = 0;
  /// The first of the task's devices with memory of its own, which the server has; null: it has
  /// none.
  virtual Device* gpu() const = 0;

  /// A session whose master is this server, without the network in between.
  virtual StatusOr<std::unique_ptr<Session>> MakeSession(const Graph& graph) = 0;

  /// Whether a task of the cluster lives: OK when it has answered, Unavailable when there is no
  /// connection to it, another error when it does not answer in time. Blocks for some seconds at
  /// most.
  virtual Status AskIfAlive(const std::string& job, int task) = 0;
  /// Waits until every task of `job` has reported its end. OK when all ended well; Aborted naming
  /// the task and its message when one failed; Cancelled after Shutdown. With patience.silence, the
  /// tasks are asked for signs of life, every five seconds at least, and DeadlineExceeded names
  /// those that have given none for that long, have not come, or are gone and did not return
  /// (JobPatience). One that has never been heard of is late only when all others of its job have
  /// been silent, or have ended, for so long. One that has reported its end and opens a session
  /// here again, in another process, has not ended.
  virtual Status WaitForJobEnd(const std::string& job, const JobPatience& patience) = 0;
  /// This task is to end with the tasks of `job`, and expects none of them back that a signal has
  /// ended. Whether one of them has given a sign of life in the last 10 s.
  virtual bool ExpectEnd(const std::string& job) = 0;
  /// Tells every task of `to_job` that this task has ended, well when `status` is OK; Cancelled
  /// when a signal has ended it, so that it may be started again: for 30 s the others wait for
  /// that, unless signals have ended all. One that has never answered may still be starting: it is
  /// waited for, until the start-up deadline has passed since this server's start, 10 s at most
  /// when this task has failed, and not when its server ends. One that has, and is gone, has ended.
  /// Blocks.
  virtual void ReportEnd(const std::string& to_job, const Status& status) = 0;
  /// The job is over, with an error: ends the servers of those tasks of `job` that have not
  /// reported their end, so that their sessions fail with `why` instead of waiting. A task that has
  /// never been heard of may be starting: it is waited for, 5 s, until the start-up deadline has
  /// passed since this server's start. Blocks.
  virtual void EndTasks(const std::string& job, const Status& why) = 0;

  /// The short texts that tasks leave for each other, which task 0 of `job` keeps as long as its
  /// server runs. It may be used as long as this server's clock is there.
  virtual StatusOr<std::unique_ptr<KeyValueStore>> OpenStore(const std::string& job) = 0;
  /// The credentials that this task shows to others and asks of them.
  virtual const Credentials& credentials() const = 0;

  /// How long no step has run in this task, and no session with it begun or ended; nothing while a
  /// step runs, and before the first session.
  virtual std::optional<std::chrono::milliseconds> IdleTime() = 0;

  /// What DescribeServer gives.
  virtual std::string Describe() = 0;

  /// Blocks until Shutdown, from here or by RPC.
  virtual void WaitForShutdown() = 0;
  /// The reason that the RPC which has ended it gave; empty when none has.
  virtual std::string why_it_ended() const = 0;
  /// Cancels the steps, those of sessions in this process too, and stops listening.
  virtual void Shutdown() = 0;
};

/// Tells those tasks of `to_job` that listen that the task of `options` has failed, for one that
/// has no server to ReportEnd with: its address was taken, say. Does nothing when that task answers
/// at its address, from a process that was started before, or something there hangs. Those that do
/// not listen yet are waited for so long as `wait` says. Blocks, for some seconds more at most.
void ReportFailedStart(const ServerOptions& options, const std::string& to_job, const Status& why,
                       std::chrono::milliseconds wait);

/// Asks the server at `target` ("grpc://host:port") to end. Unavailable when nobody answers.
Status StopServer(const std::string& target, const std::string& reason,
                  const Credentials& credentials = {});

/// The task that the server at `target` is: "/job:J/replica:0/task:T". Unavailable when nobody
/// listens there, DeadlineExceeded when there is no answer within `limit`.
StatusOr<std::string> TaskAt(const std::string& target, const Credentials& credentials,
                             std::chrono::milliseconds limit);

/// The tasks that the server at `target` waits for (WaitForJobEnd) and has never heard of, each
/// with its address and why it does not answer. Unavailable when nobody listens there,
/// DeadlineExceeded when there is no answer within `limit`.
StatusOr<std::vector<std::string>> TasksAwaitedBy(const std::string& target,
                                                  const Credentials& credentials,
                                                  std::chrono::milliseconds limit);

/// What the server at `target` is doing, for people to read: sessions, steps, what waits for what,
/// memory.
StatusOr<std::string> DescribeServer(const std::string& target,
                                     const Credentials& credentials = {});

}  // namespace tenon
