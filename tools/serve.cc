// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>

#include "core/base/parallel.h"
#include "distributed/protocol/server.h"
#include "distributed/protocol/task_role.h"
#include "tools/access_flags.h"
#include "tools/commands.h"
#include "tools/device_flags.h"
#include "train/replica_flags.h"

namespace tenon::tools {
namespace {

/// Thirty years.
constexpr double kMaxSeconds = 1e9;

/// A server to talk to.
struct TargetFlags {
  std::string target;
  CredentialFiles credentials;

  void AddTo(CLI::App& app) {
    app.add_option("target", target, "grpc://host:port")->required();
    AddCredentialFlags(app, &credentials);
  }
};

struct ServeFlags {
  std::string job_name;
  int task_index = 0;
  std::string ps_hosts;
  std::string worker_hosts;
  std::string cluster;
  int port = -1;
  int threads = 0;
  bool check_config = false;
  double start_up_deadline = 60;
  double worker_timeout = 300;
  bool until_workers_end = false;
  ServerAccessFlags access;
  DeviceFlags devices;
};

StatusOr<ServerOptions> Resolve(const ServeFlags& flags) {
  ServerOptions options;
  if (!flags.cluster.empty()) {
    if (!flags.ps_hosts.empty() || !flags.worker_hosts.empty()) {
      return InvalidArgument("--cluster and --ps_hosts/--worker_hosts exclude each other");
    }
    TENON_ASSIGN_OR_RETURN(options.cluster, ClusterSpec::Parse(flags.cluster));
  }
  if (!flags.ps_hosts.empty()) {
    TENON_RETURN_IF_ERROR(options.cluster.AddJob(kParameterServerJob, flags.ps_hosts));
  }
  if (!flags.worker_hosts.empty()) {
    TENON_RETURN_IF_ERROR(options.cluster.AddJob(kWorkerJob, flags.worker_hosts));
  }
  if (options.cluster.empty()) TENON_RETURN_IF_ERROR(CheckNoTfConfig());
  if (options.cluster.empty() && flags.port < 0) {
    return InvalidArgument(
        "nothing says where to listen; give --port for a server of its own, or "
        "--ps_hosts and --worker_hosts, or --cluster");
  }
  options.job = flags.job_name;
  options.task = flags.task_index;
  options.port = flags.port;
  options.threads = flags.threads;
  TENON_RETURN_IF_ERROR(flags.access.ApplyTo(&options));
  TENON_ASSIGN_OR_RETURN(options.devices, flags.devices.Resolve());
  options.notice = PrintNotice;
  options.start_up_deadline =
      std::chrono::milliseconds(static_cast<int64_t>(flags.start_up_deadline * 1000));
  if (!options.cluster.empty()) {
    if (flags.job_name.empty()) return InvalidArgument("--job_name is missing");
    TENON_RETURN_IF_ERROR(options.cluster.Address(options.job, options.task).status());
  }
  return options;
}

void PrintConfig(const ServeFlags& flags, const ServerOptions& options) {
  if (options.cluster.empty()) {
    std::printf("cluster: this server alone (--port %d)\n", flags.port);
    return;
  }
  std::printf("cluster: %s (%s)\n", options.cluster.ToString().c_str(),
              flags.cluster.empty() ? "--ps_hosts, --worker_hosts" : "--cluster");
  std::printf("task: %s (--job_name, --task_index)\n", TaskName(options.job, options.task).c_str());
}

/// The signals that a server listens to.
sigset_t ServerSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&signals, signal);
  return signals;
}

/// Ends the server on SIGINT and SIGTERM, and says what it is doing on SIGUSR1. One that is to end
/// with the workers does so when they have ended, whom it is needed by until then; at a second
/// signal at once. The signals are taken by one thread, since a handler may do next to nothing.
void WatchSignals(Server* server, bool ends_with_workers) {
  std::thread([server, ends_with_workers] {
    const sigset_t signals = ServerSignals();
    int which = 0;
    bool waits = ends_with_workers;
    while (sigwait(&signals, &which) == 0) {
      if (which == SIGUSR1) {
        PrintNotice(server->Describe());
        continue;
      }
      const char* const name = which == SIGINT ? "SIGINT" : "SIGTERM";
      if (std::exchange(waits, false) && server->ExpectEnd(kWorkerJob)) {
        PrintNotice(
            StrCat(name, ": ending when the workers have ended; a second one ends at once"));
        continue;
      }
      PrintNotice(StrCat(name, ": ending"));
      break;
    }
    server->Shutdown();
  }).detach();
}

int Serve(const ServeFlags& flags, const OpRegistry& ops) {
  const auto options = Resolve(flags);
  if (!options.ok()) return Report(WrongUsage(Message(options.status())));
  PrintConfig(flags, *options);
  if (flags.check_config) return kDone;
  // Before any other thread exists, so that all of them leave the signals to the watcher.
  const sigset_t signals = ServerSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  auto server = Server::Start(*options, ops);
  if (!server.ok()) return Report(server.status());
  std::printf("listening at %s as %s\n", (*server)->target().c_str(), (*server)->task().c_str());
  if (const int port = (*server)->loopback_port(); port > 0) {
    std::printf("listening at grpc://127.0.0.1:%d for clients without credentials\n", port);
  }
  if (options->insecure && options->credentials.empty()) {
    std::printf("whoever reaches that address can run what they like (--insecure)\n");
  }
  std::fflush(stdout);
  WatchSignals(server->get(), flags.until_workers_end);
  Status status;
  if (flags.until_workers_end) {
    status = (*server)->WaitForJobEnd(
        kWorkerJob, std::chrono::milliseconds(static_cast<int64_t>(flags.worker_timeout * 1000)));
    if (status.ok()) std::printf("all workers are done\n");
    if (status.code() == StatusCode::kCancelled) status = OkStatus();
    // The others would look for this server, and wait.
    if (!status.ok()) (*server)->EndTasks(kWorkerJob, status);
  } else {
    (*server)->WaitForShutdown();
  }
  if (const std::string why = (*server)->why_it_ended(); !why.empty()) PrintNotice("ended: " + why);
  (*server)->Shutdown();
  const int code = FinishOutput(Report(status));
  // The watcher may still hold the server: the process ends without destroying it.
  std::_Exit(code);
}

}  // namespace

void AddServeCommand(CLI::App& app, const OpRegistry& ops, Command* chosen) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* serve = app.add_subcommand("serve", "Be one server of a cluster");
  serve->add_option("--job_name,--job-name", flags->job_name, "This server's job: ps, worker");
  serve->add_option("--task_index,--task-index", flags->task_index, "Its number in the job")
      ->check(AtLeast(0));
  serve->add_option("--ps_hosts,--ps-hosts", flags->ps_hosts, "host:port,... of job ps");
  serve->add_option("--worker_hosts,--worker-hosts", flags->worker_hosts,
                    "host:port,... of job worker");
  serve->add_option("--cluster", flags->cluster, "JOB=host:port,...;JOB=...");
  serve
      ->add_option("--port", flags->port,
                   "Alone: a cluster of this one server on loopback. With a cluster: listen here")
      ->check(CLI::Range(0, 65535));
  serve->add_option("--threads", flags->threads, "Threads that run kernels (default: cores)")
      ->check(AtLeast(0));
  serve
      ->add_option("--start_up_deadline", flags->start_up_deadline,
                   "Seconds that a session waits for the tasks it needs")
      ->check(CLI::Range(0.0, kMaxSeconds));
  serve->add_flag("--until_workers_end", flags->until_workers_end,
                  "End when every worker of the cluster has reported its end");
  serve
      ->add_option("--worker_timeout", flags->worker_timeout,
                   "With it: seconds without a sign of life after which a worker counts as failed; "
                   "0: never")
      ->check(CLI::Range(0.0, kMaxSeconds));
  serve->add_flag("--check-config,--check_config", flags->check_config,
                  "Print what the flags mean and stop");
  flags->access.AddTo(*serve);
  flags->devices.AddTo(*serve);
  serve->callback([=, &ops] { *chosen = [flags, &ops] { return Serve(*flags, ops); }; });
}

void AddStopCommand(CLI::App& app, Command* chosen) {
  auto flags = std::make_shared<TargetFlags>();
  CLI::App* stop = app.add_subcommand("stop", "End a server");
  flags->AddTo(*stop);
  stop->callback([=] {
    *chosen = [flags] {
      const auto credentials = ReadCredentials(flags->credentials);
      if (!credentials.ok()) return Report(credentials.status());
      const Status stopped = StopServer(flags->target, "tenon stop", *credentials);
      if (stopped.ok()) PrintNotice(StrCat(flags->target, " ends"));
      return Report(stopped);
    };
  });
}

void AddStatusCommand(CLI::App& app, Command* chosen) {
  auto flags = std::make_shared<TargetFlags>();
  CLI::App* status = app.add_subcommand(
      "status", "Say what a server is doing: sessions, steps, what waits for what, memory");
  flags->AddTo(*status);
  status->callback([=] {
    *chosen = [flags] {
      const auto credentials = ReadCredentials(flags->credentials);
      if (!credentials.ok()) return Report(credentials.status());
      const auto text = DescribeServer(flags->target, *credentials);
      if (text.ok()) std::fputs(text->c_str(), stdout);
      return Report(text.status());
    };
  });
}

}  // namespace tenon::tools
