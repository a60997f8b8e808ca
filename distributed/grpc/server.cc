// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/server.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/base/parallel.h"
#include "distributed/client/channel_session.h"
#include "distributed/grpc/cluster_service.h"
#include "distributed/grpc/health_service.h"
#include "distributed/grpc/job_reports.h"
#include "distributed/grpc/job_store.h"
#include "distributed/grpc/master_service.h"
#include "distributed/grpc/own_address.h"
#include "distributed/grpc/peer/peer_memory.h"
#include "distributed/grpc/peer_service.h"
#include "distributed/grpc/remote_worker.h"
#include "distributed/grpc/rpc/blocking_calls.h"
#include "distributed/grpc/rpc/host_address.h"
#include "distributed/grpc/rpc/rpc_server.h"
#include "distributed/grpc/session_directories.h"
#include "distributed/grpc/worker_service.h"
#include "distributed/protocol/job_end.h"
#include "distributed/protocol/task_role.h"
#include "distributed/resolver/cluster_resolver.h"
#include "distributed/worker/worker.h"
#include "runtime/device/task_devices.h"

namespace tenon {
namespace {

/// How long calls that are being answered get when the server ends.
constexpr std::chrono::seconds kShutdownGrace{1};

constexpr std::chrono::milliseconds kDrainPause{5};

/// How long a task that is there may take to hear that this one has ended.
constexpr std::chrono::milliseconds kReportDeadline{5000};
/// How long a task that has failed waits for those it is to tell and that may still start.
constexpr std::chrono::milliseconds kFailureReportDeadline{10000};

int PortOf(const std::string& address) {
  return std::atoi(address.c_str() + address.rfind(':') + 1);  // which AddTask has checked
}

// What messages are read into is freed and allocated again all the time. By default malloc gives it
// back to the system in between, and the system clears every page of it anew: a third of the time
// of a read of 16 MiB.
constexpr int kKeepFreedBytes = 64 << 20;
constexpr int kFromHeapBelowBytes = 32 << 20;  // the largest that malloc accepts

void KeepFreedMemory() {
  mallopt(M_TRIM_THRESHOLD, kKeepFreedBytes);
  mallopt(M_MMAP_THRESHOLD, kFromHeapBelowBytes);
}

/// The way to the server's calls for what may outlive it, as the end of a step's session may.
class CallsUntilEnd {
 public:
  explicit CallsUntilEnd(BlockingCalls& calls) : calls_(&calls) {}

  /// Runs the call as BlockingCalls::Run does; Cancelled when the server has ended.
  Status Run(std::function<void()> call) {
    MutexLock lock(mu_);
    if (calls_ == nullptr) return Cancelled("the server has ended");
    return calls_->Run(std::move(call));
  }
  void End() {
    MutexLock lock(mu_);
    calls_ = nullptr;
  }

 private:
  Mutex mu_;
  BlockingCalls* calls_ ABSL_GUARDED_BY(mu_);
};

StatusOr<TaskDevices> DevicesOf(const ServerOptions& options) {
  const bool keeps_variables = RoleOfJob(options.job) == TaskRole::kParameterServer;
  DeviceOptions wanted = options.devices;
  if (keeps_variables && !wanted.gpus) wanted.gpus = 0;
  TENON_ASSIGN_OR_RETURN(TaskDevices made,
                         MakeTaskDevices({TaskName(options.job, options.task), std::move(wanted),
                                          std::make_shared<ResourceStore>(options.job),
                                          *options.files, options.entropy}));
  if (keeps_variables && !options.devices.gpus) {
    made.why_no_gpu = "a parameter server uses none unless it is asked to";
  }
  return made;
}

class GrpcServer final : public Server {
 public:
  GrpcServer(const ServerOptions& options, TaskDevices task_devices, const OpRegistry& registry)
      : cluster_(options.cluster),
        job_(options.job),
        task_index_(options.task),
        task_(TaskName(options.job, options.task)),
        start_up_deadline_(options.start_up_deadline),
        notice_(options.notice),
        credentials_(options.credentials),
        clock_(*options.clock),
        entropy_(*options.entropy),
        job_end_(
            cluster_, clock_,
            [this](const std::string& job, int task, auto done) {
              FindOutIfAlive(job, task, std::move(done));
            },
            options.notice),
        devices_(std::move(task_devices)),
        pool_(options.threads > 0 ? options.threads : ThreadBudget()),
        rpc_server_(pool_, clock_, options.limits, credentials_, options.notice),
        directory_(cluster_, credentials_, rpc_server_.poller()),
        life_signs_(cluster_, credentials_, rpc_server_.poller()),
        session_directories_(cluster_, credentials_, rpc_server_.poller(), calls_) {
    std::vector<Device*> devices;
    for (const auto& d : devices_.devices) devices.push_back(d.get());
    const SessionDirectories session_directories = [this](const ClusterSpec& cluster,
                                                          const std::string& own_task) {
      return session_directories_.Get(cluster, own_task, worker_);
    };
    worker_ = std::make_shared<Worker>(
        WorkerEnvironment{task_, devices, &registry, &pool_, &directory_, &clock_, options.limits,
                          [this](const std::string& task, int64_t incarnation) {
                            job_end_.Heard(task, incarnation);
                            master_->StartSweeping();
                          },
                          session_directories,
                          [calls = calls_until_end_](std::function<void()> work) {
                            return calls->Run(std::move(work));
                          },
                          GroupLeaderOf(cluster_), &entropy_});
    directory_.SetLocal(task_, worker_);
    master_ = std::make_unique<Master>(
        MasterEnvironment{task_, cluster_, devices, &registry, &directory_, &clock_, &entropy_,
                          start_up_deadline_, options.notice, options.limits, session_directories,
                          [worker = worker_] { worker->Sweep(); }, devices_.why_no_gpu});
  }

  ~GrpcServer() override {
    Shutdown();
    steps_.reset();
    master_.reset();
    worker_->Shutdown();
    directory_.SetLocal(task_, nullptr);
    session_directories_.Close();
    worker_.reset();
    calls_until_end_->End();
  }

  Status Listen(int port, int loopback_port) {
    const std::string configured = *cluster_.Address(job_, task_index_);
    host_ = HostOf(configured);
    const int wanted = port >= 0 ? port : PortOf(configured);
    ServeWorker(rpc_server_, *worker_, pool_, entropy_);
    steps_ = std::make_unique<StepRunner>(*master_, calls_, pool_, rpc_server_.limits().steps);
    ServeMaster(rpc_server_, *master_, calls_, *steps_);
    ServePeers(rpc_server_, task_, *worker_, *steps_);
    job_values_.Serve(rpc_server_);
    ServeHealth(rpc_server_);
    ServeCluster(rpc_server_, {job_end_,
                               [this](bool ask_tasks, auto* status, std::function<void()> done) {
                                 Describe(status);
                                 if (!ask_tasks) return done();
                                 AskTasks(status, std::move(done));
                               },
                               [this](const std::string& reason) { End(reason); }});
    TENON_ASSIGN_OR_RETURN(port_, rpc_server_.Listen(host_, wanted));
    if (loopback_port >= 0) {
      TENON_ASSIGN_OR_RETURN(loopback_port_, rpc_server_.ListenAtLoopback(loopback_port));
    }
    return rpc_server_.Start();
  }

  std::string target() const override { return StrCat("grpc://", host_, ":", port_); }
  int port() const override { return port_; }
  int loopback_port() const override { return loopback_port_; }
  std::string task() const override { return task_; }
  int task_index() const override { return task_index_; }
  const ClusterSpec& cluster() const override { return cluster_; }
  Device* gpu() const override {
    const auto& devices = devices_.devices;
    const auto first = std::find_if(devices.begin(), devices.end(),
                                    [](const auto& d) { return d->queue() != nullptr; });
    return first == devices.end() ? nullptr : first->get();
  }

  StatusOr<std::unique_ptr<Session>> MakeSession(const Graph& graph) override {
    return OpenChannelSession(MakeLocalChannel(*master_), target(), graph, {});
  }

  Status WaitForJobEnd(const std::string& job, const JobPatience& patience) override {
    return job_end_.Wait(job, patience);
  }

  bool ExpectEnd(const std::string& job) override { return job_end_.ExpectEnd(job); }

  void ReportEnd(const std::string& to_job, const Status& status) override {
    const auto tasks = cluster_.jobs().find(to_job);
    if (tasks == cluster_.jobs().end()) return;
    const auto starting = std::chrono::duration_cast<std::chrono::milliseconds>(
        started_ + start_up_deadline_ - clock_.Now());
    const bool failed = !status.ok() && status.code() != StatusCode::kCancelled;
    const auto limit = failed ? std::min(starting, kFailureReportDeadline) : starting;
    std::vector<TaskToTell> to_tell;
    for (const auto& [task, address] : tasks->second) {
      // A task that has answered before has ended when nobody listens there any more.
      const bool answered = directory_.HasAnswered(TaskName(to_job, task));
      to_tell.push_back({StrCat(TaskName(to_job, task), " at ", address), address,
                         !answered && starting.count() > 0 && !is_shutting_down(),
                         answered ? kReportDeadline : std::max(kReportDeadline, limit),
                         directory_.ConnectedTo(TaskName(to_job, task))});
    }
    TellTaskEnded(to_tell, job_, task_index_, status,
                  {clock_, credentials_, notice_, [this] { return is_shutting_down(); }});
  }

  void EndTasks(const std::string& job, const Status& why) override {
    const bool may_start = clock_.Now() < started_ + start_up_deadline_;
    std::vector<TaskToTell> to_tell;
    bool ends_itself = false;
    for (const auto& [task, is_known] : job_end_.NotEnded(job)) {
      const std::string name = TaskName(job, task), address = *cluster_.Address(job, task);
      ends_itself |= name == task_;
      if (name == task_) continue;
      to_tell.push_back({StrCat(name, " at ", address), address, may_start && !is_known,
                         kReportDeadline, directory_.ConnectedTo(name)});
    }
    TellShutdown(to_tell, std::string(Message(why)), {clock_, credentials_});
    if (ends_itself) End(std::string(Message(why)));
  }

  StatusOr<std::unique_ptr<KeyValueStore>> OpenStore(const std::string& job) override {
    TENON_ASSIGN_OR_RETURN(const std::string address, cluster_.Address(job, 0));
    return OpenJobStore(address, credentials_, clock_);
  }

  const Credentials& credentials() const override { return credentials_; }

  std::optional<std::chrono::milliseconds> IdleTime() override {
    const auto since = worker_->idle_since();
    if (!since) return std::nullopt;
    return std::chrono::duration_cast<std::chrono::milliseconds>(clock_.Now() - *since);
  }

  std::string Describe() override {
    cluster::ServerStatusResponse status;
    Describe(&status);
    return ToText(status);
  }

  void WaitForShutdown() override {
    MutexLock lock(mu_);
    while (!shutting_down_) changed_.Wait(mu_);
  }

  std::string why_it_ended() const override {
    MutexLock lock(mu_);
    return why_it_ended_;
  }

  void Shutdown() override {
    BeginShutdown("it shuts down");
    // The last sums of others may need something of this task.
    const Clock::Time end = clock_.Now() + kShutdownGrace;
    while (worker_->HasUntaken() && clock_.Now() < end) clock_.SleepFor(kDrainPause);
    worker_->EndGroups(Cancelled("the server of ", task_, " ends"));
    rpc_server_.Shutdown(kShutdownGrace);
  }

  Status AskIfAlive(const std::string& job, int task) override {
    struct Answer {
      Mutex mu;
      CondVar given;
      std::optional<Status> life ABSL_GUARDED_BY(mu);
    };
    const auto answer = std::make_shared<Answer>();
    FindOutIfAlive(job, task, [answer](const Status& life) {
      MutexLock lock(answer->mu);
      answer->life = life;
      answer->given.NotifyAll();
    });
    MutexLock lock(answer->mu);
    while (!answer->life) answer->given.Wait(answer->mu);
    return *answer->life;
  }

 private:
  void FindOutIfAlive(const std::string& job, int task, std::function<void(const Status&)> done) {
    const auto worker = life_signs_.Get(TaskName(job, task));
    if (!worker.ok()) return done(worker.status());
    struct Question {
      GetStatusRequest request;
      GetStatusResponse response;
    };
    auto question = std::make_shared<Question>();
    (*worker)->GetStatusAsync(question->request, &question->response,
                              [question, done = std::move(done)](const Status& s) { done(s); });
  }

  /// Asks all other tasks whether they live, and adds those that do not answer.
  void AskTasks(cluster::ServerStatusResponse* out, std::function<void()> done) {
    struct Answers {
      Mutex mu;
      std::map<std::string, std::string> silent ABSL_GUARDED_BY(mu);
      int expected ABSL_GUARDED_BY(mu) = 1;  // one of this function
    };
    auto answers = std::make_shared<Answers>();
    const auto answered = [answers, out, done = std::move(done)] {
      {
        MutexLock lock(answers->mu);
        if (--answers->expected > 0) return;
        for (const auto& [task, why] : answers->silent) {
          out->add_silent_tasks(StrCat(task, ": ", why));
        }
      }
      done();
    };
    for (const auto& [job, tasks] : cluster_.jobs()) {
      for (const auto& [task, address] : tasks) {
        const std::string name = TaskName(job, task);
        if (name == task_) continue;
        {
          MutexLock lock(answers->mu);
          ++answers->expected;
        }
        FindOutIfAlive(job, task, [answers, answered, name, address = address](const Status& life) {
          if (!life.ok()) {
            const std::string where = StrCat(name, " at ", address);
            std::string_view why = Message(life);
            if (const std::string known = StrCat("task ", where, " is "); why.starts_with(known)) {
              why.remove_prefix(known.size());
            }
            MutexLock lock(answers->mu);
            answers->silent[where] = why;
          }
          answered();
        });
      }
    }
    answered();
  }

  void Describe(cluster::ServerStatusResponse* out) {
    out->set_task(task_);
    out->set_uptime_seconds(
        std::chrono::duration_cast<std::chrono::seconds>(clock_.Now() - started_).count());
    for (const std::string& t : job_end_.Ended()) out->add_ended_tasks(t);
    for (const std::string& t : job_end_.Awaited()) out->add_awaited_tasks(t);
    master_->Describe(out);
    worker_->Describe(out);
    out->set_memory_bytes(CpuAllocator().bytes_in_use());
    out->set_calls(rpc_server_.num_calls());
    out->set_connections(rpc_server_.num_connections());
  }

  bool is_shutting_down() const {
    MutexLock lock(mu_);
    return shutting_down_;
  }

  /// Ends the server for the reason that the first such call gives.
  void End(const std::string& reason) {
    {
      MutexLock lock(mu_);
      if (why_it_ended_.empty()) why_it_ended_ = reason;
    }
    BeginShutdown(reason);
  }

  /// Ends what sessions of this process and of others run here, so that a program which trains with
  /// this server learns of it.
  void BeginShutdown(const std::string& reason) {
    {
      MutexLock lock(mu_);
      if (std::exchange(shutting_down_, true)) return;
      changed_.NotifyAll();
    }
    job_end_.Stop();
    master_->Stop(Cancelled("the server of ", task_, " ends: ", reason));
  }

  const ClusterSpec cluster_;
  const std::string job_;
  const int task_index_;
  const std::string task_;
  const std::chrono::milliseconds start_up_deadline_;
  const std::function<void(const std::string& line)> notice_;
  const Credentials credentials_;
  Clock& clock_;
  Entropy& entropy_;
  const Clock::Time started_ = clock_.Now();
  JobEnd job_end_;  // outlives the calls that ask for signs of life
  JobValues job_values_;
  const TaskDevices devices_;
  ThreadPool pool_;
  RpcServer rpc_server_;
  GrpcWorkerDirectory directory_;
  // Connections of their own: a task that was not there yet a moment ago may be called by a step
  // now, and must not get the error of the question that came too early.
  GrpcWorkerDirectory life_signs_;
  GrpcSessionDirectories session_directories_;
  std::shared_ptr<Worker> worker_;
  std::unique_ptr<Master> master_;
  BlockingCalls calls_{clock_};
  const std::shared_ptr<CallsUntilEnd> calls_until_end_ = std::make_shared<CallsUntilEnd>(calls_);
  std::unique_ptr<StepRunner> steps_;  // from Listen on
  std::string host_;
  int port_ = 0;
  int loopback_port_ = 0;
  mutable Mutex mu_;
  CondVar changed_;
  bool shutting_down_ ABSL_GUARDED_BY(mu_) = false;
  std::string why_it_ended_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

StatusOr<std::unique_ptr<Server>> Server::FromEnvironment(const OpRegistry& registry,
                                                          ServerOptions options, int num_ps) {
  TENON_ASSIGN_OR_RETURN(ResolvedTask task, ResolveTask({}, {.num_ps = num_ps}));
  if (task.is_alone()) {
    return InvalidArgument(
        "nothing says which task of which cluster this is: set TF_CONFIG, or start it by srun or "
        "mpirun");
  }
  if (task.role == TaskRole::kEvaluator) {
    return FailedPrecondition("an evaluator has no server: it follows the checkpoints of others");
  }
  if (options.notice) options.notice(task.Describe());
  TENON_RETURN_IF_ERROR(TakeTask(&task, &options));
  return Start(options, registry);
}

StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                const OpRegistry& registry) {
  ServerOptions resolved = options;
  if (resolved.cluster.empty()) {
    resolved.job = "localhost";
    resolved.task = 0;
    TENON_RETURN_IF_ERROR(
        resolved.cluster.AddTask("localhost", 0, StrCat("127.0.0.1:", std::max(0, options.port))));
  }
  TENON_RETURN_IF_ERROR(HostMemoryLimit(resolved.credentials).status());
  TENON_ASSIGN_OR_RETURN(const std::string address,
                         resolved.cluster.Address(resolved.job, resolved.task));
  if (options.port < 0) AwaitName(resolved, address);
  const bool is_loopback = IsLoopback(address);
  if (!resolved.files) {
    resolved.files =
        FileAccess{is_loopback ? FileAccess::Kind::kEverything : FileAccess::Kind::kNone, ""};
  }
  TENON_RETURN_IF_ERROR(CheckListening(resolved, address));
  if (is_loopback) NoticeHiddenHost(resolved, address);
  KeepFreedMemory();
  TENON_ASSIGN_OR_RETURN(TaskDevices devices, DevicesOf(resolved));
  auto server = std::make_unique<GrpcServer>(resolved, std::move(devices), registry);
  if (const Status listens = server->Listen(resolved.port, resolved.loopback_port); !listens.ok()) {
    return resolved.port < 0 ? WithOccupant(listens, resolved) : listens;
  }
  return server;
}

void ReportFailedStart(const ServerOptions& options, const std::string& to_job, const Status& why,
                       std::chrono::milliseconds wait) {
  const auto tasks = options.cluster.jobs().find(to_job);
  const auto own = options.cluster.Address(options.job, options.task);
  if (tasks == options.cluster.jobs().end() || !own.ok()) return;
  // Where this task lives already, in a process that was started before, it has not failed; one
  // that does not answer may hang.
  const auto there = AskForTask(*own, kReportDeadline, options.credentials);
  if (there.ok() && *there == TaskName(options.job, options.task)) return;
  if (there.status().code() == StatusCode::kDeadlineExceeded) return;
  std::vector<TaskToTell> to_tell;
  for (const auto& [task, address] : tasks->second) {
    to_tell.push_back({StrCat(TaskName(to_job, task), " at ", address), address, wait.count() > 0,
                       std::max(kReportDeadline, wait)});
  }
  TellTaskEnded(to_tell, options.job, options.task, why,
                {*options.clock, options.credentials, options.notice});
}

}  // namespace tenon
