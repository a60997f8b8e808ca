// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "train/replica.h"

namespace tenon {

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

  /// --ps_hosts, --worker_hosts, --job_name, --task_index, --tls_cert, --tls_key, --tls_ca,
  /// --token_file and --insecure. They are read into this, which must stay where it is until `app`
  /// has parsed. `app` is a CLI::App, of the CLI11 that the program has: the library itself needs
  /// none.
  template <typename App>
  void AddTo(App& app) {
    app.add_option("--ps_hosts", ps_hosts, "host:port,...")->required();
    app.add_option("--worker_hosts", worker_hosts, "host:port,...")->required();
    app.add_option("--job_name", job_name, "ps or worker")->required();
    app.add_option("--task_index", task_index, "Number of this task in its job");
    app.add_option("--tls_cert", credentials.tls_cert, "PEM file; see docs/security.md");
    app.add_option("--tls_key", credentials.tls_key, "PEM file");
    app.add_option("--tls_ca", credentials.tls_ca, "PEM file");
    app.add_option("--token_file", credentials.token, "File with the job's secret");
    app.add_flag("--insecure", insecure, "Listen beyond loopback without either");
  }
  /// What starts the task's server. InvalidArgument for another job and for addresses that are
  /// none; see ReadCredentials for files.
  StatusOr<ServerOptions> Options() const;
};

/// RunReplica with the Options() of `flags`; `notice` gets lines for people (see ServerOptions).
Status RunReplica(const ReplicaFlags& flags, const OpRegistry& registry,
                  const std::function<Status(Server& server)>& train,
                  const std::function<void(const std::string& line)>& notice = {});

}  // namespace tenon
