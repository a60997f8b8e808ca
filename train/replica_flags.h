// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

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
  app.add_option("--token_file,--token-file", files->token,
                 "File whose first line is the job's secret, which every call carries");
}

/// The flags that tell a program of distributed TensorFlow which task of which job it is, and those
/// of docs/security.md.
///
///   ReplicaFlags flags;
///   CLI::App app("My program");
///   flags.AddTo(app);
struct ReplicaFlags {
  std::string ps_hosts, worker_hosts, job_name;
  int task_index = 0;
  CredentialFiles credentials;
  bool insecure = false;
  /// The folder that graphs may read and write; empty: everything on loopback, nothing beyond.
  std::string root;

  /// --ps_hosts, --worker_hosts, --job_name, --task_index, --insecure, --root and
  /// AddCredentialFlags.
  template <typename App>
  void AddTo(App& app) {
    app.add_option("--ps_hosts,--ps-hosts", ps_hosts, "host:port,...")->required();
    app.add_option("--worker_hosts,--worker-hosts", worker_hosts, "host:port,...")->required();
    app.add_option("--job_name,--job-name", job_name, "ps or worker")->required();
    app.add_option("--task_index,--task-index", task_index, "Number of this task in its job");
    AddCredentialFlags(app, &credentials);
    app.add_flag("--insecure", insecure, "Listen beyond loopback without either");
    app.add_option(
        "--root", root,
        "The folder that graphs may read and write, checkpoints too; default: everything on "
        "loopback, nothing beyond");
  }
  /// What starts the task's server. InvalidArgument for another job, for addresses that are none
  /// and for a root that is no folder; see ReadCredentials for files.
  StatusOr<ServerOptions> Options() const;
};

/// InvalidArgument when the environment has a TF_CONFIG, which says what cluster this process is of
/// and which Tenon does not read: for programs that were given no cluster by flags.
Status CheckNoTfConfig();

/// RunReplica with the Options() of `flags`; `notice` gets lines for people (see ServerOptions).
Status RunReplica(const ReplicaFlags& flags, const OpRegistry& registry,
                  const std::function<Status(Server& server)>& train,
                  const std::function<void(const std::string& line)>& notice = {});

}  // namespace tenon
