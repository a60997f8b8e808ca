// SPDX-License-Identifier: Apache-2.0
#include "train/replica_flags.h"

#include <CLI/CLI.hpp>

namespace tenon {

void ReplicaFlags::AddTo(CLI::App& app) {
  app.add_option("--ps_hosts", ps_hosts, "host:port,...")->required();
  app.add_option("--worker_hosts", worker_hosts, "host:port,...")->required();
  app.add_option("--job_name", job_name, "ps or worker")
      ->required()
      ->check(CLI::IsMember({"ps", "worker"}));
  app.add_option("--task_index", task_index, "Number of this task in its job")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--tls_cert", credentials.tls_cert, "PEM file; see docs/security.md");
  app.add_option("--tls_key", credentials.tls_key, "PEM file");
  app.add_option("--tls_ca", credentials.tls_ca, "PEM file");
  app.add_option("--token_file", credentials.token, "File with the job's secret");
  app.add_flag("--insecure", insecure, "Listen beyond loopback without either");
}

StatusOr<ServerOptions> ReplicaFlags::Options() const {
  ServerOptions options;
  options.job = job_name;
  options.task = task_index;
  TENON_RETURN_IF_ERROR(options.cluster.AddJob("ps", ps_hosts));
  TENON_RETURN_IF_ERROR(options.cluster.AddJob("worker", worker_hosts));
  TENON_ASSIGN_OR_RETURN(options.credentials, ReadCredentials(credentials));
  options.insecure = insecure;
  return options;
}

Status RunReplica(const ReplicaFlags& flags, const OpRegistry& registry,
                  const std::function<Status(Server& server)>& train,
                  const std::function<void(const std::string& line)>& notice) {
  TENON_ASSIGN_OR_RETURN(ServerOptions options, flags.Options());
  options.notice = notice;
  return RunReplica(options, registry, train);
}

}  // namespace tenon
