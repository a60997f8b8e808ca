// SPDX-License-Identifier: Apache-2.0
#include "distributed/resolver/cluster_resolver.h"

#include <chrono>
#include <cstdint>
#include <tuple>
#include <utility>

#include "core/base/closest_name.h"
#include "core/base/plural.h"
#include "core/base/strings.h"
#include "distributed/resolver/ranked_tasks.h"
#include "distributed/resolver/tf_config.h"

namespace tenon {
namespace {

/// The jobs whose tasks ranks are counted through.
constexpr const char* kJobsOfRanks[] = {kParameterServerJob, kChiefJob, kMasterJob, kWorkerJob};

/// Thirty years.
constexpr double kMostSeconds = 1e9;

/// "worker 0 to 6" or "ps 0" of a job that the cluster has.
std::string TasksOf(const ClusterSpec& cluster, const std::string& job) {
  const ClusterSpec::Tasks& tasks = cluster.jobs().at(job);
  const int first = tasks.begin()->first, last = tasks.rbegin()->first;
  return first == last ? StrCat(job, " ", first) : StrCat(job, " ", first, " to ", last);
}

std::vector<std::string> JobsOf(const ClusterSpec& cluster) {
  std::vector<std::string> names;
  for (const auto& [job, tasks] : cluster.jobs()) names.push_back(job);
  return names;
}

class Resolver {
 public:
  Resolver(const ClusterFlags& flags, const TaskWishes& wishes, const Environment& environment)
      : flags_(flags), wishes_(wishes), environment_(environment) {}

  StatusOr<ResolvedTask> Resolve() {
    if (!(flags_.start_up_deadline >= 0 && flags_.start_up_deadline <= kMostSeconds)) {
      Add("--start_up_deadline", "found ", flags_.start_up_deadline, ", wanted 0 to ", kMostSeconds,
          " seconds");
    }
    if (!flags_.rendezvous.empty()) return ResolveRegistration();
    ReadFlags();
    if (cluster_source_.empty() || !HasTask()) ReadConfig();
    if (cluster_source_.empty() || !HasTask()) ReadRanks();
    if (!mistakes_.empty()) return InvalidArgument(Join(mistakes_, "\n"));
    if (!cluster_source_.empty()) {
      if (job_source_.empty())
        Add(kJob, "nothing says which job of the cluster this process is of; give --job_name");
      if (task_source_.empty()) Add(kTask, "nothing says which task of its job this process is");
    } else if (!flags_.job_name.empty() || flags_.task_index) {
      Add(flags_.job_name.empty() ? kTask : kJob,
          "nothing says what cluster that is a task of; give --ps_hosts and --worker_hosts, or "
          "TF_CONFIG");
    }
    if (mistakes_.empty() && !cluster_source_.empty()) Check();
    if (!mistakes_.empty()) return InvalidArgument(Join(mistakes_, "\n"));
    if (cluster_source_.empty()) {
      resolved_.settings.push_back({"cluster", "none: this process is alone", "nothing says more"});
      return std::move(resolved_);
    }
    if (wishes_.chief_is_worker) CountChief();
    Describe();
    return std::move(resolved_);
  }

 private:
  static constexpr char kJob[] = "--job_name", kTask[] = "--task_index", kConfig[] = "TF_CONFIG";

  template <typename... Parts>
  void Add(std::string_view source, const Parts&... parts) {
    mistakes_.push_back(StrCat(source, ": ", parts...));
  }
  bool HasTask() const { return !job_source_.empty() && !task_source_.empty(); }

  void ReadFlags() {
    const bool has_hosts = !flags_.ps_hosts.empty() || !flags_.worker_hosts.empty();
    if (!flags_.cluster.empty() && has_hosts) {
      Add("--cluster", "excludes --ps_hosts and --worker_hosts");
    } else if (!flags_.cluster.empty()) {
      cluster_source_ = "--cluster";
      auto cluster = ClusterSpec::Parse(flags_.cluster);
      if (cluster.ok()) {
        resolved_.cluster = *std::move(cluster);
      } else {
        Add(cluster_source_, Message(cluster.status()));
      }
    } else if (has_hosts) {
      cluster_source_ = "--ps_hosts, --worker_hosts";
      AddHosts("--ps_hosts", kParameterServerJob, flags_.ps_hosts);
      AddHosts("--worker_hosts", kWorkerJob, flags_.worker_hosts);
    }
    if (!flags_.job_name.empty()) {
      resolved_.job = flags_.job_name;
      job_source_ = kJob;
      // A job of one task, or the first of several.
      task_source_ = kTask;
    }
    if (flags_.task_index) {
      resolved_.task = *flags_.task_index;
      task_source_ = kTask;
    }
  }

  void AddHosts(std::string_view flag, const std::string& job, const std::string& hosts) {
    if (hosts.empty()) return;
    const Status added = resolved_.cluster.AddJob(job, hosts);
    if (!added.ok()) Add(flag, Message(added));
  }

  void ReadConfig() {
    const std::string* const text = environment_.Find(kConfig);
    if (text == nullptr) return;
    std::vector<std::string> mistakes;
    TfConfig config = ReadTfConfig(*text, &mistakes);
    for (const std::string& mistake : mistakes) Add(kConfig, mistake);
    const bool has_cluster = !config.cluster.empty() || config.num_evaluators > 0;
    if (!has_cluster && cluster_source_.empty()) return;
    if (cluster_source_.empty()) {
      resolved_.cluster = std::move(config.cluster);
      cluster_source_ = kConfig;
    }
    if (job_source_.empty() && config.job) {
      resolved_.job = *config.job;
      job_source_ = kConfig;
      if (task_source_.empty() && config.task) {
        resolved_.task = *config.task;
        task_source_ = kConfig;
      }
    } else if (job_source_.empty() && mistakes.empty()) {
      Add(kConfig, R"(it has a cluster and no "task": {"type": ..., "index": ...})");
    }
  }

  void ReadRanks() {
    // A mistake of what is given is no reason to look further.
    if (!mistakes_.empty() || !job_source_.empty()) return;
    const auto found = FindRankedTasks(environment_);
    if (!found.ok()) {
      mistakes_.emplace_back(Message(found.status()));
    } else if (found->has_value()) {
      if (cluster_source_.empty()) MakeCluster(**found);
      if (mistakes_.empty()) SetByRank(**found);
    }
  }

  void SetByRank(const RankedTasks& ranks) {
    std::vector<std::pair<std::string, int>> tasks;
    for (const char* job : kJobsOfRanks) {
      const auto found = resolved_.cluster.jobs().find(job);
      if (found == resolved_.cluster.jobs().end()) continue;
      for (const auto& [task, address] : found->second) tasks.emplace_back(job, task);
    }
    if (ranks.size == 0 && static_cast<int>(tasks.size()) <= ranks.rank) {
      return Add(ranks.rank_source, "this is rank ", ranks.rank, ", and the cluster (",
                 cluster_source_, ") has ", Plural(static_cast<int64_t>(tasks.size()), "task"),
                 "; ranks are counted from 0");
    }
    if (ranks.size > 0 && static_cast<int>(tasks.size()) != ranks.size) {
      return Add(ranks.size_source, ranks.size == 1 ? "there is " : "there are ",
                 Plural(ranks.size, "process", "processes"), ", and the cluster (", cluster_source_,
                 ") has ", Plural(static_cast<int64_t>(tasks.size()), "task"));
    }
    std::tie(resolved_.job, resolved_.task) = tasks[ranks.rank];
    job_source_ = task_source_ = ranks.rank_source;
  }

  void MakeCluster(const RankedTasks& ranks) {
    if (ranks.hosts.empty()) return mistakes_.push_back(ranks.why_no_hosts);
    const int num_ps = flags_.num_ps.value_or(wishes_.num_ps);
    if (num_ps >= ranks.size) return AddNoWorker(num_ps, ranks);
    const int first = flags_.first_port > 0 ? flags_.first_port : ranks.first_port;
    for (int rank = 0; rank < ranks.size; ++rank) {
      const bool is_ps = rank < num_ps;
      const Status added = resolved_.cluster.AddTask(
          is_ps ? kParameterServerJob : kWorkerJob, is_ps ? rank : rank - num_ps,
          StrCat(ranks.hosts[rank], ":", first + ranks.local_ranks[rank]));
      if (!added.ok()) return Add(ranks.hosts_source, Message(added));
    }
    cluster_source_ =
        StrCat(ranks.launcher, ": ", ranks.size_source, ", ", ranks.hosts_source, "; ports ",
               flags_.first_port > 0 ? "by --first_port" : ranks.port_source);
  }

  void Check() {
    const std::string& job = resolved_.job;
    const auto role = RoleOfJob(job);
    resolved_.role = role.value_or(TaskRole::kWorker);
    // An evaluator follows checkpoints: it is of no cluster.
    if (role == TaskRole::kEvaluator) return;
    const auto found = resolved_.cluster.jobs().find(job);
    if (found == resolved_.cluster.jobs().end()) {
      return Add(job_source_, "the cluster (", cluster_source_, ") has no job '", job, "'",
                 DidYouMeanOrNames(job, JobsOf(resolved_.cluster)));
    }
    if (!found->second.contains(resolved_.task)) {
      Add(task_source_, "this is task ", resolved_.task, " of job ", job, ", and the cluster (",
          cluster_source_, ") has ", TasksOf(resolved_.cluster, job),
          resolved_.cluster.NumTasks(job) == resolved_.task ? "; tasks are counted from 0" : "");
    }
  }

  /// The task registers, as a rank of a launcher where it is one and no flag says more.
  StatusOr<ResolvedTask> ResolveRegistration() {
    Registration& wanted = resolved_.registration.emplace();
    wanted = {flags_.rendezvous, flags_.num_ps.value_or(wishes_.num_ps),
              flags_.num_workers.value_or(0), flags_.job_name, flags_.task_index};
    ClusterSpec check;
    const Status is_address = check.AddTask(kWorkerJob, 0, wanted.address);
    if (!is_address.ok()) Add("--rendezvous", Message(is_address));
    if (!flags_.cluster.empty() || !flags_.ps_hosts.empty() || !flags_.worker_hosts.empty()) {
      Add("--rendezvous", "excludes --cluster, --ps_hosts and --worker_hosts");
    }
    std::string size_source = flags_.num_ps ? "--num_ps, --num_workers" : "--num_workers";
    std::string task_source;
    const auto ranks = FindRankedTasks(environment_);
    if (!ranks.ok()) {
      mistakes_.emplace_back(Message(ranks.status()));
    } else if (ranks->has_value() && wanted.job.empty()) {
      TakeRank(**ranks, &wanted);
      if ((*ranks)->size > 0) size_source = (*ranks)->size_source;
      task_source = (*ranks)->rank_source;
    }
    if (wanted.num_workers < 1 && size_source.starts_with("--")) {
      Add("--rendezvous", "give --num_workers, at least 1, for how many register there");
    }
    CheckWanted(wanted);
    if (!mistakes_.empty()) return InvalidArgument(Join(mistakes_, "\n"));
    resolved_.is_by_environment = true;
    resolved_.settings = {{"cluster",
                           StrCat(wanted.num_ps, " ps and ", Plural(wanted.num_workers, "worker"),
                                  ", which register at ", wanted.address),
                           StrCat("--rendezvous, ", size_source)}};
    if (wanted.job.empty()) return std::move(resolved_);
    if (task_source.empty()) task_source = wanted.task ? "--job_name, --task_index" : kJob;
    resolved_.settings.push_back(
        {"task", wanted.task ? TaskName(wanted.job, *wanted.task) : StrCat("one of ", wanted.job),
         task_source});
    return std::move(resolved_);
  }

  void TakeRank(const RankedTasks& ranks, Registration* wanted) {
    if (ranks.size == 0) {
      if (ranks.rank < wanted->num_ps + wanted->num_workers) return TakePlace(ranks, wanted);
      if (wanted->num_workers < 1) return;  // which is a mistake of its own
      return Add(ranks.rank_source, "this is rank ", ranks.rank,
                 ", and --num_ps and --num_workers say ", wanted->num_ps, " and ",
                 wanted->num_workers, "; ranks are counted from 0");
    }
    if (!flags_.num_workers) wanted->num_workers = ranks.size - wanted->num_ps;
    if (wanted->num_ps >= ranks.size) return AddNoWorker(wanted->num_ps, ranks);
    if (wanted->num_ps + wanted->num_workers != ranks.size) {
      return Add(ranks.size_source, "there are ", ranks.size,
                 " processes, and --num_ps and "
                 "--num_workers say ",
                 wanted->num_ps, " and ", wanted->num_workers);
    }
    TakePlace(ranks, wanted);
  }

  /// The first ranks are parameter servers.
  void TakePlace(const RankedTasks& ranks, Registration* wanted) {
    const bool is_ps = ranks.rank < wanted->num_ps;
    wanted->job = is_ps ? kParameterServerJob : kWorkerJob;
    wanted->task = is_ps ? ranks.rank : ranks.rank - wanted->num_ps;
  }

  void CheckWanted(const Registration& wanted) {
    if (wanted.job.empty()) {
      if (wanted.task) Add(kTask, "of which job? Give --job_name");
      return;
    }
    if (wanted.job != kParameterServerJob && wanted.job != kWorkerJob) {
      return Add(kJob, "found '", wanted.job, "', wanted ps or worker, which register");
    }
    const int room = wanted.job == kWorkerJob ? wanted.num_workers : wanted.num_ps;
    if (wanted.task && (*wanted.task < 0 || *wanted.task >= room)) {
      Add(kTask, "this is task ", *wanted.task, " of job ", wanted.job, ", of which there are ",
          room, "; tasks are counted from 0");
    }
  }

  void AddNoWorker(int num_ps, const RankedTasks& ranks) {
    Add("--num_ps", num_ps, " of the ", ranks.size, " processes of ", ranks.launcher,
        " are parameter servers, and none is left to be a worker");
  }

  void CountChief() {
    const bool has_master = resolved_.cluster.jobs().contains(kMasterJob);
    const std::string chief = has_master ? kMasterJob : kChiefJob;
    if (!resolved_.cluster.jobs().contains(chief)) return;
    ClusterSpec renamed;
    for (const auto& [job, tasks] : resolved_.cluster.jobs()) {
      for (const auto& [task, address] : tasks) {
        const bool is_chief = job == chief;
        // Every address was in a cluster before.
        const Status added = renamed.AddTask(is_chief ? kWorkerJob : job,
                                             job == kWorkerJob ? task + 1 : task, address);
        if (!added.ok()) return;
      }
    }
    if (resolved_.job == chief) {
      resolved_.job = kWorkerJob;
    } else if (resolved_.job == kWorkerJob) {
      ++resolved_.task;
    }
    resolved_.cluster = std::move(renamed);
    cluster_source_ += "; its chief is worker 0, and the others come after it";
  }

  void Describe() {
    resolved_.settings.push_back({"cluster", resolved_.cluster.ToString(), cluster_source_});
    const std::string task_source =
        job_source_ == task_source_ ? job_source_ : StrCat(job_source_, ", ", task_source_);
    resolved_.settings.push_back({"task", TaskName(resolved_.job, resolved_.task), task_source});
    const auto is_flag = [](std::string_view source) { return source.starts_with("--"); };
    resolved_.is_by_environment =
        !is_flag(cluster_source_) || !is_flag(job_source_) || !is_flag(task_source_);
  }

  const ClusterFlags& flags_;
  const TaskWishes& wishes_;
  const Environment& environment_;
  ResolvedTask resolved_;
  std::string cluster_source_, job_source_, task_source_;
  std::vector<std::string> mistakes_;
};

}  // namespace

std::chrono::milliseconds StartUpDeadline(const ClusterFlags& flags) {
  return std::chrono::milliseconds(static_cast<int64_t>(flags.start_up_deadline * 1000));
}

std::string ResolvedTask::Describe() const {
  std::string text;
  for (const Setting& setting : settings) {
    StrAppend(&text, text.empty() ? "" : "\n", setting.name, ": ", setting.value, " (",
              setting.source, ")");
  }
  return text;
}

bool WantsAllreduce(const ClusterFlags& flags, const Environment& environment) {
  if (!flags.ps_hosts.empty() || flags.num_ps.value_or(0) > 0) return false;
  const std::string* const asked = environment.Find(kAllreduceVariable);
  if (asked != nullptr) return *asked != "0";
  if (!flags.worker_hosts.empty() || !flags.cluster.empty() || flags.num_ps) return false;
  const auto ranks = FindRankedTasks(environment);
  return ranks.ok() && *ranks && (*ranks)->is_mpi;
}

StatusOr<ResolvedTask> ResolveTask(const ClusterFlags& flags, const TaskWishes& wishes,
                                   const Environment& environment) {
  return Resolver(flags, wishes, environment).Resolve();
}

}  // namespace tenon
