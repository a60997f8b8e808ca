// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>

#include "core/base/parallel.h"
#include "distributed/protocol/server.h"
#include "distributed/protocol/task_role.h"
#include "distributed/resolver/task_credentials.h"
#include "ops/register.h"
#include "tools/access_flags.h"
#include "tools/commands.h"
#include "tools/device_flags.h"
#include "train/replica_flags.h"

namespace tenon::tools {
namespace {

/// Thirty years.
constexpr double kMaxSeconds = 1e9;
/// Servers of TensorFlow's take long to start.
constexpr double kStartUpSeconds = 60;

/// How often a server that is to end when it is idle looks whether it is.
constexpr std::chrono::milliseconds kIdlePause{200};

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
  ClusterFlags cluster;
  int port = -1;
  int threads = 0;
  double worker_timeout = 300;
  bool until_workers_end = false;
  double end_when_idle = 0;
  ServerAccessFlags access;
  DeviceFlags devices;
};

StatusOr<ServerOptions> OptionsOf(const ServeFlags& flags) {
  ServerOptions options;
  options.port = flags.port;
  options.threads = flags.threads;
  TENON_RETURN_IF_ERROR(flags.access.ApplyTo(&options));
  TENON_ASSIGN_OR_RETURN(options.devices, flags.devices.Resolve());
  options.notice = PrintNotice;
  options.start_up_deadline = StartUpDeadline(flags.cluster);
  return options;
}

/// Which task the server is. A mistake is wrong usage.
StatusOr<ResolvedTask> Resolve(const ServeFlags& flags) {
  TENON_ASSIGN_OR_RETURN(ResolvedTask task, ResolveTask(flags.cluster, {.num_ps = 1}));
  if (task.role == TaskRole::kEvaluator) {
    return InvalidArgument("an evaluator has no server: it follows the checkpoints of others");
  }
  if (task.is_alone() && flags.port < 0) {
    return InvalidArgument(
        "nothing says where to listen; give --port for a server of its own, or --ps_hosts and "
        "--worker_hosts, or --cluster, or --rendezvous, or TF_CONFIG, or start it by srun or "
        "mpirun");
  }
  return task;
}

void PrintConfig(const ServeFlags& flags, const ResolvedTask& task) {
  if (task.is_alone()) {
    std::printf("cluster: this server alone (--port %d)\n", flags.port);
  } else {
    std::printf("%s\n", task.Describe().c_str());
  }
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

/// Ends the server when no client has used it for so long.
void EndWhenIdle(Server* server, double seconds) {
  std::thread([server, seconds] {
    const auto limit = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
    while (true) {
      const auto idle = server->IdleTime();
      if (idle && *idle >= limit) break;
      std::this_thread::sleep_for(kIdlePause);
    }
    PrintNotice(StrCat("no client has used this server for ", seconds, " s: ending"));
    server->Shutdown();
  }).detach();
}

int Serve(const ServeFlags& flags, const OpRegistry& ops) {
  auto task = Resolve(flags);
  if (!task.ok()) return Report(WrongUsage(Message(task.status())));
  auto options = OptionsOf(flags);
  if (!options.ok()) return Report(WrongUsage(Message(options.status())));
  PrintConfig(flags, *task);
  if (flags.cluster.check_config) return kDone;
  if (const Status taken = TakeTask(&*task, &*options); !taken.ok()) return Report(taken);
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
  if (flags.end_when_idle > 0) EndWhenIdle(server->get(), flags.end_when_idle);
  Status status;
  if (flags.until_workers_end) {
    status = (*server)->WaitForJobEnd(
        kWorkerJob, {std::chrono::milliseconds(static_cast<int64_t>(flags.worker_timeout * 1000))});
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

void AddServeCommand(CLI::App& app, Command* chosen) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* serve = app.add_subcommand("serve", "Be one server of a cluster");
  flags->cluster.start_up_deadline = kStartUpSeconds;
  AddClusterFlags(*serve, &flags->cluster);
  serve->add_option("--cluster", flags->cluster.cluster, "JOB=host:port,...;JOB=...");
  serve
      ->add_option("--port", flags->port,
                   "Alone: a cluster of this one server on loopback. With a cluster: listen here")
      ->check(CLI::Range(0, 65535));
  serve->add_option("--threads", flags->threads, "Threads that run kernels (default: cores)")
      ->check(AtLeast(0));
  serve->add_flag("--until_workers_end", flags->until_workers_end,
                  "End when every worker of the cluster has reported its end");
  serve
      ->add_option("--worker_timeout", flags->worker_timeout,
                   "With it: seconds without a sign of life after which a worker counts as failed; "
                   "0: never")
      ->check(CLI::Range(0.0, kMaxSeconds));
  serve
      ->add_option("--end_when_idle", flags->end_when_idle,
                   "End when no client has run a step here for so many seconds, after the first "
                   "session; default: 0, never")
      ->check(CLI::Range(0.0, kMaxSeconds));
  flags->access.AddTo(*serve);
  flags->devices.AddTo(*serve);
  serve->callback([=] { *chosen = [flags] { return Serve(*flags, AllOps()); }; });
}

void AddStopCommand(CLI::App& app, Command* chosen) {
  auto flags = std::make_shared<TargetFlags>();
  CLI::App* stop = app.add_subcommand("stop", "End a server");
  flags->AddTo(*stop);
  stop->callback([=] {
    *chosen = [flags] {
      const auto credentials = FindCredentials(flags->credentials);
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
      const auto credentials = FindCredentials(flags->credentials);
      if (!credentials.ok()) return Report(credentials.status());
      const auto text = DescribeServer(flags->target, *credentials);
      if (text.ok()) std::fputs(text->c_str(), stdout);
      return Report(text.status());
    };
  });
}

}  // namespace tenon::tools
