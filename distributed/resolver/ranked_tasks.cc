// SPDX-License-Identifier: Apache-2.0
#include "distributed/resolver/ranked_tasks.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "core/base/strings.h"
#include "distributed/resolver/host_list.h"

namespace tenon {
namespace {

/// Jobs have ports from here on, below those that systems give to clients.
constexpr int kFirstPort = 10000, kPortsOfJob = 100, kJobs = 220;

/// FNV-1a of a job's name, so that jobs which share a host seldom share ports.
int FirstPortOf(std::string_view job) {
  uint32_t hash = 2166136261;
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  return kFirstPort + kPortsOfJob * static_cast<int>(hash % kJobs);
}

std::string ValueOr(const Environment& environment, std::string_view name, std::string_view other) {
  const std::string* const value = environment.Find(name);
  return value == nullptr ? std::string(other) : *value;
}

/// The ranks of MPI, which are all on one host or on hosts that nothing names.
Status FindMpi(const Environment& environment, std::string_view launcher,
               const Environment::Number& rank, const Environment::Number& size,
               const std::optional<Environment::Number>& local_size, std::string_view job_variable,
               RankedTasks* tasks) {
  tasks->launcher = launcher;
  tasks->is_mpi = true;
  tasks->rank = rank.value;
  tasks->size = size.value;
  tasks->rank_source = rank.name;
  tasks->size_source = size.name;
  if (rank.value >= size.value) {
    return InvalidArgument(rank.name, " is ", rank.value, ", and ", size.name, " is ", size.value);
  }
  if (!local_size || local_size->value != size.value) {
    tasks->why_no_hosts = StrCat(
        launcher, " has started ", size.value, " processes, of which ",
        local_size ? StrCat(local_size->value) : "not all", " are on this host",
        local_size ? StrCat(" (", local_size->name, ")") : "",
        ", and does not say where the others are: give --rendezvous with a port of one of the "
        "hosts, or --ps_hosts and --worker_hosts, in whose order ranks are counted");
    return OkStatus();
  }
  tasks->hosts.assign(size.value, "127.0.0.1");
  tasks->local_ranks.resize(size.value);
  std::iota(tasks->local_ranks.begin(), tasks->local_ranks.end(), 0);
  tasks->hosts_source = local_size->name;
  tasks->first_port = FirstPortOf(ValueOr(environment, job_variable, ""));
  tasks->port_source = environment.Find(job_variable) == nullptr
                           ? "the same for every job of such a launcher"
                           : StrCat("by ", job_variable);
  return OkStatus();
}

/// The rank of PMIx, whose other facts a program gets by calls alone.
RankedTasks FindPmix(const Environment::Number& rank) {
  RankedTasks tasks;
  tasks.launcher = "PMIx";
  tasks.rank = rank.value;
  tasks.rank_source = rank.name;
  tasks.why_no_hosts =
      StrCat("PMIx says that this is rank ", rank.value, " (", rank.name,
             "), and not how many there are, nor where: give --rendezvous with a port of one of "
             "the hosts and --num_workers, or --ps_hosts and --worker_hosts, in whose order ranks "
             "are counted");
  return tasks;
}

/// The node of each rank, where each has room for so many.
std::vector<int> NodesOfRanks(const std::vector<int>& room, bool is_cyclic) {
  std::vector<int> nodes;
  const auto count = static_cast<int>(room.size());
  if (!is_cyclic) {
    for (int n = 0; n < count; ++n) nodes.insert(nodes.end(), room[n], n);
    return nodes;
  }
  const int most = *std::max_element(room.begin(), room.end());
  for (int turn = 0; turn < most; ++turn) {
    for (int n = 0; n < count; ++n) {
      if (room[n] > turn) nodes.push_back(n);
    }
  }
  return nodes;
}

Status FindSlurm(const Environment& environment, const Environment::Number& rank,
                 const Environment::Number& size, RankedTasks* tasks) {
  constexpr const char* kNodes = "SLURM_STEP_NODELIST";
  constexpr const char* kCounts = "SLURM_STEP_TASKS_PER_NODE";
  const std::string* const nodes = environment.Find(kNodes);
  const std::string* const counts = environment.Find(kCounts);
  if (nodes == nullptr || counts == nullptr) {
    return InvalidArgument("a step of Slurm (SLURM_STEP_ID is set) has no ",
                           nodes == nullptr ? kNodes : kCounts);
  }
  auto hosts = ExpandHostList(*nodes);
  if (!hosts.ok()) return InvalidArgument(kNodes, ": ", Message(hosts.status()));
  const auto room = ExpandCounts(*counts);
  if (!room.ok()) return InvalidArgument(kCounts, ": ", Message(room.status()));
  const int places = std::accumulate(room->begin(), room->end(), 0);
  if (room->size() != hosts->size() || places != size.value || rank.value >= size.value) {
    return InvalidArgument("Slurm's variables contradict each other: ", hosts->size(), " nodes (",
                           kNodes, "=", *nodes, "), ", kCounts, "=", *counts, ", ", size.name, "=",
                           size.value, ", ", rank.name, "=", rank.value);
  }
  const std::string distribution = ValueOr(environment, "SLURM_DISTRIBUTION", "block");
  const std::vector<int> node_of = NodesOfRanks(*room, distribution.starts_with("cyclic"));
  tasks->launcher = "Slurm";
  tasks->rank = rank.value;
  tasks->size = size.value;
  tasks->rank_source = rank.name;
  tasks->size_source = size.name;
  tasks->hosts_source = kNodes;
  std::vector<int> used(hosts->size());
  for (const int node : node_of) {
    tasks->hosts.push_back((*hosts)[node]);
    tasks->local_ranks.push_back(used[node]++);
  }
  const auto node = environment.FirstNumber({"SLURM_NODEID"});
  const auto local = environment.FirstNumber({"SLURM_LOCALID"});
  if ((node && node->value != node_of[rank.value]) ||
      (local && local->value != tasks->local_ranks[rank.value])) {
    return InvalidArgument(
        "Slurm has put rank ", rank.value, " onto node ", node ? node->value : 0,
        " as its process ", local ? local->value : 0, ", where the distribution '", distribution,
        "' would have put it onto node ", node_of[rank.value], " as process ",
        tasks->local_ranks[rank.value], "; start the step with srun --distribution=block");
  }
  const std::string job = StrCat(ValueOr(environment, "SLURM_JOB_ID", ""), ".",
                                 ValueOr(environment, "SLURM_STEP_ID", ""));
  tasks->first_port = FirstPortOf(job);
  tasks->port_source = "by SLURM_JOB_ID and SLURM_STEP_ID";
  return OkStatus();
}

}  // namespace

StatusOr<std::optional<RankedTasks>> FindRankedTasks(const Environment& environment) {
  RankedTasks tasks;
  const auto ompi_rank = environment.FirstNumber({"OMPI_COMM_WORLD_RANK"});
  const auto ompi_size = environment.FirstNumber({"OMPI_COMM_WORLD_SIZE"});
  const auto pmi_rank = environment.FirstNumber({"PMI_RANK"});
  const auto pmi_size = environment.FirstNumber({"PMI_SIZE"});
  const auto slurm_rank = environment.FirstNumber({"SLURM_PROCID"});
  const auto slurm_size = environment.FirstNumber({"SLURM_STEP_NUM_TASKS"});
  if (ompi_rank && ompi_size) {
    if (ompi_size->value == 1) return std::nullopt;
    TENON_RETURN_IF_ERROR(FindMpi(environment, "Open MPI", *ompi_rank, *ompi_size,
                                  environment.FirstNumber({"OMPI_COMM_WORLD_LOCAL_SIZE"}),
                                  "PMIX_NAMESPACE", &tasks));
    return tasks;
  }
  const bool is_step = environment.Find("SLURM_STEP_ID") != nullptr && slurm_rank && slurm_size;
  if (is_step) {
    if (slurm_size->value == 1) return std::nullopt;
    TENON_RETURN_IF_ERROR(FindSlurm(environment, *slurm_rank, *slurm_size, &tasks));
    return tasks;
  }
  if (pmi_rank && pmi_size) {
    if (pmi_size->value == 1) return std::nullopt;
    TENON_RETURN_IF_ERROR(FindMpi(environment, "MPICH", *pmi_rank, *pmi_size,
                                  environment.FirstNumber({"MPI_LOCALNRANKS"}), "PMI_JOBID",
                                  &tasks));
    return tasks;
  }
  if (const auto pmix_rank = environment.FirstNumber({"PMIX_RANK"})) return FindPmix(*pmix_rank);
  return std::nullopt;
}

}  // namespace tenon
