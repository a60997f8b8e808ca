// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include "distributed/protocol/task_role.h"
#include "tools/flag_checks.h"
#include "train/replica_flags.h"

namespace tenon::tools {

/// --ps_hosts, --worker_hosts, --job_name and --task_index, for a command that also runs without a
/// cluster.
inline void AddReplicaFlags(CLI::App& command, ReplicaFlags* flags) {
  auto* ps = command.add_option("--ps_hosts", flags->ps_hosts, "host:port,...");
  auto* workers = command.add_option("--worker_hosts", flags->worker_hosts, "host:port,...");
  auto* job = command.add_option("--job_name", flags->job_name, "ps or worker")
                  ->check(CLI::IsMember({kParameterServerJob, kWorkerJob}));
  command.add_option("--task_index", flags->task_index, "Number of this task in its job")
      ->check(AtLeast(0))
      ->needs(workers);
  workers->needs(job);
  ps->needs(workers)->needs(job);
  job->needs(workers);
}

}  // namespace tenon::tools
