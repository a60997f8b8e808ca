// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "absl/strings/str_split.h"
#include "core/device/device_plugin.h"
#include "distributed/resolver/cluster_resolver.h"
#include "tools/commands.h"
#include "tools/launch/kubernetes_manifest.h"
#include "tools/launch/launcher.h"
#include "tools/launch/received_signals.h"
#include "tools/launch/slurm_command.h"
#include "tools/launch/slurm_launcher.h"
#include "tools/launch/ssh_flags.h"
#include "tools/launch/task_plan.h"
#include "tools/processes.h"

namespace tenon::tools {
namespace {

struct LaunchFlags {
  ClusterShape shape;
  std::optional<int> max_restarts;
  std::vector<std::string> environment;
  std::string log_dir;
  bool tee = false;
  bool allreduce = false;
  bool dry_run = false;
  SshFlags ssh;
  SlurmFlags slurm;
  KubernetesFlags kubernetes;

  bool is_printed() const { return log_dir.empty() || tee; }
};

std::string CheckVariable(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals != 0 && equals != std::string::npos) return "";
  return StrCat("found ", text, ", wanted NAME=VALUE");
}

/// The variables without those that have the name of a later one.
std::vector<std::string> LastOfEachName(const std::vector<std::string>& variables) {
  std::vector<std::string> kept;
  for (const std::string& variable : variables) {
    const std::string name = variable.substr(0, variable.find('=') + 1);
    std::erase_if(kept, [&](const std::string& other) { return other.starts_with(name); });
    kept.push_back(variable);
  }
  return kept;
}

/// The GPUs that a process here sees, by their names for CUDA.
StatusOr<std::vector<std::string>> OwnGpus() {
  TENON_ASSIGN_OR_RETURN(const std::vector<GpuDescription> gpus, ListGpus());
  std::vector<std::string> names;
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr) {
    names = absl::StrSplit(visible, ',');
  }
  for (size_t i = names.size(); i < gpus.size(); ++i) names.push_back(StrCat(i));
  names.resize(gpus.size());  // CUDA leaves off those from a wrong one on
  return names;
}

StatusOr<std::vector<TaskPlan>> Plan(const ClusterShape& shape) {
  TENON_ASSIGN_OR_RETURN(const std::vector<int> cores, OwnCores());
  if (shape.cpus_per_task > static_cast<int>(cores.size())) {
    return WrongUsage(StrCat("--cpus_per_task: found ", shape.cpus_per_task, ", wanted at most ",
                             cores.size(), ", the cores that this process may run on"));
  }
  TENON_ASSIGN_OR_RETURN(std::vector<TaskPlan> plans, PlanTasks(shape, cores));
  if (shape.gpus_per_task > 0) {
    TENON_ASSIGN_OR_RETURN(const std::vector<std::string> gpus, OwnGpus());
    if (shape.workers > static_cast<int>(gpus.size()) / shape.gpus_per_task) {
      return WrongUsage(StrCat("--gpus_per_task: found ", shape.gpus_per_task, " for each of ",
                               shape.workers, " workers, and there are ", gpus.size(), " here"));
    }
    DealGpus(shape.gpus_per_task, gpus, &plans);
  }
  return plans;
}

Status LaunchBySlurm(const LaunchFlags& flags, int* left_by) {
  if (flags.max_restarts) {
    return WrongUsage(
        "--max_restarts: srun does not start a task again; where it is killed, the job ends");
  }
  SlurmJob job = {flags.shape, flags.slurm.nodes, {}, LastOfEachName(flags.environment)};
  if (job.nodes > job.num_tasks()) {
    return WrongUsage(StrCat("--nodes: found ", job.nodes, ", wanted at most ", job.num_tasks(),
                             ", as many as there are tasks"));
  }
  TENON_ASSIGN_OR_RETURN(job.arguments,
                         SlurmArguments(flags.slurm.values, flags.slurm.print_slurm));
  if (flags.slurm.print_slurm || flags.dry_run) {
    std::printf("%s", flags.slurm.print_slurm ? SbatchScript(job).c_str()
                                              : StrCat(SrunLine(job), "\n").c_str());
    return OkStatus();
  }
  CatchSignals();
  SlurmLauncher launcher({flags.log_dir, flags.is_printed()});
  const Status status = launcher.Run(job);
  *left_by = launcher.left_by();
  return status;
}

Status PrintKubernetes(const LaunchFlags& flags) {
  const KubernetesJob job = {*flags.kubernetes.name, flags.kubernetes.image, flags.shape,
                             LastOfEachName(flags.environment), flags.max_restarts};
  TENON_ASSIGN_OR_RETURN(const std::string text,
                         flags.kubernetes.tfjob ? TfJobManifest(job) : KubernetesManifest(job));
  std::printf("%s", text.c_str());
  return OkStatus();
}

/// What flags about one way to start tasks say where another one is chosen.
Status CheckTogether(const LaunchFlags& flags) {
  const bool is_slurm = flags.slurm.slurm || flags.slurm.print_slurm;
  const bool is_kubernetes = flags.kubernetes.name.has_value();
  if (flags.ssh.is_given() && (is_slurm || is_kubernetes)) {
    return WrongUsage(StrCat(is_kubernetes       ? "--print_kubernetes"
                             : flags.slurm.slurm ? "--slurm"
                                                 : "--print_slurm",
                             " excludes --hosts and --hostfile"));
  }
  if (is_slurm && is_kubernetes) {
    return WrongUsage(
        StrCat("--print_kubernetes excludes ", flags.slurm.slurm ? "--slurm" : "--print_slurm"));
  }
  if (!is_slurm && (flags.slurm.nodes > 0 || !flags.slurm.values.empty())) {
    return WrongUsage(StrCat(flags.slurm.nodes > 0 ? "--nodes" : "--slurm_args",
                             " needs --slurm or --print_slurm"));
  }
  if (!flags.log_dir.empty() && (flags.slurm.print_slurm || is_kubernetes)) {
    return WrongUsage(is_kubernetes
                          ? "--log_dir: Kubernetes keeps what tasks print (kubectl logs)"
                          : "--log_dir: in a script of sbatch, its line --output says where what "
                            "tasks print is written");
  }
  if (flags.dry_run && (flags.slurm.print_slurm || is_kubernetes)) {
    return WrongUsage(StrCat("--dry_run: ", is_kubernetes ? "--print_kubernetes" : "--print_slurm",
                             " starts nothing in any case"));
  }
  return OkStatus();
}

/// `left_by` gets the signal that has ended a task in good order, or 0.
Status Launch(const LaunchFlags& flags, int* left_by) {
  TENON_RETURN_IF_ERROR(flags.ssh.Check());
  TENON_RETURN_IF_ERROR(CheckTogether(flags));
  if (flags.slurm.slurm || flags.slurm.print_slurm) return LaunchBySlurm(flags, left_by);
  if (flags.kubernetes.name.has_value()) return PrintKubernetes(flags);
  const bool is_elsewhere = flags.ssh.is_given();
  TENON_ASSIGN_OR_RETURN(const std::vector<TaskPlan> plans,
                         is_elsewhere ? flags.ssh.Plan(flags.shape) : Plan(flags.shape));
  LauncherOptions options;
  options.max_restarts = flags.max_restarts.value_or(0);
  options.environment = LastOfEachName(flags.environment);
  options.log_dir = flags.log_dir;
  options.is_printed = flags.is_printed();
  if (is_elsewhere) {
    TENON_ASSIGN_OR_RETURN(options.ssh, flags.ssh.Options(flags.shape));
    TENON_ASSIGN_OR_RETURN(const std::vector<std::string> variables,
                           VariablesElsewhere(flags.shape.command, options.environment));
    if (flags.dry_run) {
      PrintSshLines(plans, options.ssh, options.environment);
      return OkStatus();
    }
    options.environment = LastOfEachName(variables);
  }
  if (flags.dry_run) {
    for (const TaskPlan& task : plans) {
      std::printf("%s\n", ShellLine(task, options.environment).c_str());
    }
    return OkStatus();
  }
  CatchSignals();
  Launcher launcher(std::move(options));
  const Status status = launcher.Run(plans);
  *left_by = launcher.left_by();
  return status;
}

void AddFlags(CLI::App& launch, LaunchFlags* flags) {
  CLI::Option* const ps =
      launch.add_option("--ps", flags->shape.ps, "Parameter servers")->check(AtLeast(0));
  launch
      .add_flag("--allreduce", flags->allreduce,
                "No parameter servers: the tasks, which learn of it by TENON_ALLREDUCE, train by "
                "allreduce")
      ->excludes(ps);
  flags->ssh.workers =
      launch
          .add_option("--workers", flags->shape.workers,
                      "Workers; default: 1, with --hosts and --hostfile a worker for each slot")
          ->check(AtLeast(1));
  launch
      .add_option("--max_restarts", flags->max_restarts,
                  "How often, in all, a task that a signal has ended, such as that of a machine "
                  "without memory, is started again; default: 0, of Kubernetes 3 for each job")
      ->check(AtLeast(0));
  CLI::Option* const log_dir = launch.add_option(
      "--log_dir", flags->log_dir,
      "A folder for what each task prints, in files such as worker-0.log, to which is added; only "
      "the last lines of a task that has failed are printed then");
  launch.add_flag("--tee", flags->tee, "With --log_dir: print what tasks print, too")
      ->needs(log_dir);
  launch
      .add_option("--env", flags->environment,
                  "NAME=VALUE: a variable of the tasks' environment; a flag for each")
      ->check(CLI::Validator(CheckVariable, ""))
      ->allow_extra_args(false);
  launch
      .add_option("--cpus_per_task", flags->shape.cpus_per_task,
                  "Cores that a task is bound to: the first task to the first ones, and so on "
                  "round. default: 0, all for everybody")
      ->check(AtLeast(0));
  launch
      .add_option("--gpus_per_task", flags->shape.gpus_per_task,
                  "GPUs that a worker sees: the first worker of a host the first ones, and so on; "
                  "parameter servers see none. default: 0, all for everybody")
      ->check(AtLeast(0));
  launch.add_flag("--dry_run", flags->dry_run,
                  "Start nothing: print each task's command, as one writes it in a shell");
  flags->ssh.AddTo(launch);
  flags->slurm.AddTo(launch);
  flags->kubernetes.AddTo(launch);
  launch
      .add_option("command", flags->shape.command,
                  "-- PROGRAM ARGS...: each task gets it with --ps_hosts, --worker_hosts, "
                  "--job_name and --task_index added")
      ->required();
}

}  // namespace

void AddLaunchCommand(CLI::App& app, Command* chosen) {
  auto flags = std::make_shared<LaunchFlags>();
  CLI::App* launch = app.add_subcommand(
      "launch",
      "Run a program as every task of a job, here or on other hosts, until its workers end or one "
      "fails. Ctrl-C and SIGTERM are handed on: workers end with a checkpoint, parameter servers "
      "after them (exit code 130 or 143)");
  AddFlags(*launch, flags.get());
  launch->callback([=] {
    if (flags->allreduce) {
      flags->shape.ps = 0;
      flags->environment.push_back(StrCat(kAllreduceVariable, "=1"));
    }
    *chosen = [flags] {
      int left_by = 0;
      const int code = Report(Launch(*flags, &left_by));
      const int received = FirstReceivedSignal();
      return code == kDone ? SignalCode(received != 0 ? received : left_by) : code;
    };
  });
}

}  // namespace tenon::tools
