// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "distributed/resolver/cluster_resolver.h"
#include "train/replica.h"

namespace tenon {

/// --tls_cert, --tls_key, --tls_ca and --token_file, read into `files`, which must stay where it is
/// until `app` has parsed. `app` is a CLI::App, of the CLI11 that the program has: the library
/// itself needs none.
template <typename App>
void AddCredentialFlags(App& app, CredentialFiles* files) {
  app.add_option("--tls_cert,--tls-cert", files->tls_cert,
                 "PEM file: this side's certificate; with --tls_key and --tls_ca, connections are "
                 "encrypted and both sides show one");
  app.add_option("--tls_key,--tls-key", files->tls_key, "PEM file: its private key");
  app.add_option("--tls_ca,--tls-ca", files->tls_ca,
                 "PEM file: the authority that has signed the certificates of this job");
  app.add_option(
      "--token_file,--token-file", files->token,
      "File whose first line is the job's secret, which every call carries; default: the "
      "variable TENON_TOKEN, if none of these files is given");
}

/// --ps_hosts, --worker_hosts, --job_name, --task_index, --num_ps, --first_port, --check_config,
/// --rendezvous, --num_workers and --start_up_deadline, as above. The environment says what they
/// leave open (ResolveTask).
template <typename App>
void AddClusterFlags(App& app, ClusterFlags* flags) {
  app.add_option("--ps_hosts,--ps-hosts", flags->ps_hosts,
                 "host:port,... of job ps; default: what TF_CONFIG, Slurm or mpirun says");
  app.add_option("--worker_hosts,--worker-hosts", flags->worker_hosts,
                 "host:port,... of job worker; default: the same");
  app.add_option("--job_name,--job-name", flags->job_name,
                 "This task's job: ps or worker; default: the same");
  app.add_option("--task_index,--task-index", flags->task_index,
                 "Number of this task in its job; default: 0");
  app.add_option(
      "--num_ps,--num-ps", flags->num_ps,
      "Under Slurm or mpirun: the first so many processes are parameter servers; default: 1, "
      "of linear models and by allreduce 0");
  app.add_option("--first_port,--first-port", flags->first_port,
                 "There: the port of a host's first process, others have those that follow; "
                 "default: one from 10000 on by the job's number");
  app.add_flag("--check_config,--check-config", flags->check_config,
               "Print which task this is, and what has said so, and stop");
  app.add_option(
      "--rendezvous", flags->rendezvous,
      "host:port, a free port of a machine of the job, where tasks register that have no "
      "list of addresses");
  app.add_option(
      "--num_workers,--num-workers", flags->num_workers,
      "With it: how many of them are workers; default: under Slurm or mpirun, all others "
      "than --num_ps");
  app.add_option("--start_up_deadline,--start-up-deadline", flags->start_up_deadline,
                 "Seconds that a task waits for the others it needs, to come and to come back");
}

/// The flags that tell a program of distributed TensorFlow which task of which job it is, and those
/// of docs/security.md.
///
///   ReplicaFlags flags;
///   CLI::App app("My program");
///   flags.AddTo(app);
struct ReplicaFlags {
  ClusterFlags cluster;
  CredentialFiles credentials;
  bool insecure = false;
  /// The places that graphs may read and write (FileAccess::root); empty: everything on loopback,
  /// else nothing.
  std::string root;

  /// AddClusterFlags, --insecure, --root and AddCredentialFlags.
  template <typename App>
  void AddTo(App& app) {
    AddClusterFlags(app, &cluster);
    AddCredentialFlags(app, &credentials);
    app.add_flag("--insecure", insecure, "Listen beyond loopback without either");
    app.add_option(
        "--root", root,
        "What graphs may read and write, checkpoints too: a folder, such as /data, or one at s3:// "
        "or hdfs://, or several joined by commas; default: everything on loopback, nothing "
        "beyond");
  }
  /// What starts the server of a task that is not alone; one that is to register does so
  /// (TakeTask). `notice` as ServerOptions have it. InvalidArgument for a root that is no folder;
  /// see FindCredentials for files.
  StatusOr<ServerOptions> Options(
      ResolvedTask task, const std::function<void(const std::string& line)>& notice = {}) const;
};

/// Whether a program has work for an evaluator.
enum class Evaluator : uint8_t { kRefused, kWelcome };

/// Which task this process is in a job of replicas, whose jobs are ps and worker: a chief is worker
/// 0. As ResolveTask; FailedPrecondition for an evaluator, unless it is welcome, and for a job of
/// another name.
StatusOr<ResolvedTask> ResolveReplica(const ClusterFlags& flags, int num_ps,
                                      Evaluator evaluator = Evaluator::kRefused);

/// RunReplica as the task that `flags` and the environment say; one parameter server among ranks
/// where no flag says more. `notice` gets lines for people (see ServerOptions), with the cluster
/// where it is not by flags. InvalidArgument for a process that is alone.
Status RunReplica(const ReplicaFlags& flags, const OpRegistry& registry,
                  const std::function<Status(Server& server)>& train,
                  const std::function<void(const std::string& line)>& notice = {});

}  // namespace tenon
