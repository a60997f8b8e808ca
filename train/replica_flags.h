// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "train/replica.h"

namespace CLI {
class App;
}

namespace tenon {

/// The flags that tell a program of distributed TensorFlow which task of which job it is, and those of
/// docs/security.md.
///
///   ReplicaFlags flags;
///   CLI::App app("My program");
///   flags.AddTo(app);
struct ReplicaFlags {
  std::string ps_hosts, worker_hosts, job_name;
  int task_index = 0;
  CredentialFiles credentials;
  bool insecure = false;

  /// --ps_hosts, --worker_hosts, --job_name, --task_index, --tls_cert, --tls_key, --tls_ca, --token_file
  /// and --insecure. They are read into this, which must stay where it is until `app` has parsed.
  void AddTo(CLI::App& app);
  /// What starts the task's server. InvalidArgument for addresses that are none; see ReadCredentials
  /// for files.
  StatusOr<ServerOptions> Options() const;
};

/// RunReplica with the Options() of `flags`; `notice` gets lines for people (see ServerOptions).
Status RunReplica(const ReplicaFlags& flags, const OpRegistry& registry,
                  const std::function<Status(Server& server)>& train,
                  const std::function<void(const std::string& line)>& notice = {});

}  // namespace tenon
