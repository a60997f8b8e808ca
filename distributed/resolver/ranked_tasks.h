// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "distributed/resolver/environment.h"

namespace tenon {

/// The processes that a launcher has started together, numbered from 0.
struct RankedTasks {
  std::string launcher;  // "Slurm", "Open MPI"
  bool is_mpi = false;   // started by mpirun
  int rank = 0;
  int size = 0;                          // 0: no variable says how many there are
  std::string rank_source, size_source;  // the variables that said so
  /// The host of each rank, and its number among those of its host. Both are empty for ranks of MPI
  /// on several hosts, whose names no variable says; then `why_no_hosts` does.
  std::vector<std::string> hosts;
  std::vector<int> local_ranks;
  std::string hosts_source, why_no_hosts;
  /// A port of this host for each of its ranks, from this one on, unless a user has chosen: ports
  /// of several jobs differ where the launcher says which job this is.
  int first_port = 0;
  std::string port_source;
};

/// The ranks of Open MPI (OMPI_COMM_WORLD_*), of a step of Slurm (SLURM_STEP_ID), of MPICH and
/// others with Hydra (PMI_*), or of PMIx alone, as prterun sets it (PMIX_RANK), which has a number
/// for each process and none for all; in that order, since mpirun in a job of Slurm has its
/// variables too, and so has a step of Slurm those of PMI and PMIx, which name no hosts. Nothing
/// outside of a launcher, in
/// a shell of salloc or a batch script, which are no tasks, and where there is one process alone.
/// InvalidArgument, naming the variables, where they contradict each other.
///
/// Ranks are on Slurm's nodes as --distribution=block or cyclic puts them; another distribution is
/// found by SLURM_NODEID and SLURM_LOCALID and refused.
StatusOr<std::optional<RankedTasks>> FindRankedTasks(const Environment& environment);

}  // namespace tenon
