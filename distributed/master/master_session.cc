// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/master_session.h"

#include <algorithm>

#include "core/base/exceptions.h"

namespace tenon {
namespace {

/// A year: longer limits would overflow a clock.
constexpr int64_t kLongestTimeoutMs = int64_t{365} * 24 * 3600 * 1000;

Status TookLonger(Clock::Duration limit) {
  return DeadlineExceeded("Timed out waiting for notification: the step took longer than ",
                          std::chrono::duration_cast<std::chrono::milliseconds>(limit).count(),
                          " ms");
}

/// Cancelled when the session closes or the caller gives up.
class EitherEnd {
 public:
  EitherEnd(Cancellation& closing, Cancellation* caller)
      : closing_(&closing, either_), caller_(caller, either_) {}
  Cancellation* get() { return &either_; }

 private:
  Cancellation either_;
  const CancellationLink closing_;
  const CancellationLink caller_;
};

}  // namespace

/// A call that blocks, while it lives: the session is not idle.
class MasterSession::Use {
 public:
  explicit Use(MasterSession& session) : session_(session) {
    MutexLock lock(session_.mu_);
    if (session_.uses_++ == 0) session_.uses_begin_ = session_.environment_.clock->Now();
  }
  ~Use() {
    MutexLock lock(session_.mu_);
    --session_.uses_;
    session_.last_use_ = session_.environment_.clock->Now();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  MasterSession& session_;
};

struct MasterSession::RunningCall {
  std::shared_ptr<MasterSession> session;
  std::shared_ptr<ClusterProgram> program;
  std::shared_ptr<PartialRun> partial;  // null for a whole step
  Cancellation own;
  Cancellation& cancellation() { return partial != nullptr ? partial->cancellation() : own; }
  Cancellation* outer = nullptr;
  Cancellation::Token token = Cancellation::kAlreadyCancelled;
  Clock::Timer timer = 0;
  Clock::Time begin;
  std::optional<Clock::Duration> limit;  // of its time
  std::function<void(Status)> done;
};

MasterSession::MasterSession(std::shared_ptr<const MasterEnvironment> environment,
                             std::string handle, ConfigProto config)
    : shared_environment_(std::move(environment)),
      handle_(std::move(handle)),
      config_(std::move(config)),
      graph_(environment_, handle_, config_),
      silent_tasks_(shared_environment_),
      last_use_(environment_.clock->Now()) {}

MasterSession::~MasterSession() = default;

Status MasterSession::Start(const GraphDef& graph, Cancellation* cancellation) {
  const Use use(*this);
  return graph_.Start(graph, EitherEnd(closing_, cancellation).get());
}

Status MasterSession::Extend(const GraphDef& graph, int64_t current_version, int64_t* new_version,
                             Cancellation* cancellation) {
  const Use use(*this);
  return graph_.Extend(graph, current_version, new_version,
                       EitherEnd(closing_, cancellation).get());
}

StatusOr<std::shared_ptr<ClusterProgram>> MasterSession::Compile(
    const Signature& signature, Cancellation* cancellation,
    std::shared_ptr<const FeedDependencies>* dependencies) {
  const Use use(*this);
  return graph_.Compile(signature, EitherEnd(closing_, cancellation).get(), dependencies);
}

Status MasterSession::CauseOf(const Status& error) {
  return closing_.cancelled() ? closing_.status() : error;
}

Status MasterSession::CompileFor(const ClientCall& call, Cancellation* cancellation) {
  const Status status =
      CatchExceptions([&] { return Compile(call.signature(), cancellation).status(); });
  return status.ok() ? status : CauseOf(status);
}

bool MasterSession::IsCompiled(const ClientCall& call) {
  return !call.partial_run_handle.empty() || graph_.Find(call.signature()) != nullptr;
}

StatusOr<int64_t> MasterSession::MakeCallable(const CallableOptions& options,
                                              Cancellation* cancellation) {
  Signature signature{{options.feed().begin(), options.feed().end()},
                      {options.fetch().begin(), options.fetch().end()},
                      {options.target().begin(), options.target().end()}};
  for (const TensorConnection& c : options.tensor_connection()) {
    signature.connections.emplace_back(c.from_tensor(), c.to_tensor());
  }
  TENON_RETURN_IF_ERROR(Compile(signature, cancellation).status());
  return callables_.Add({signature, options.run_options()});
}

StatusOr<std::string> MasterSession::SetUpPartialRun(const Signature& signature,
                                                     Cancellation* cancellation) {
  std::shared_ptr<const FeedDependencies> dependencies;
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<ClusterProgram> program,
                         Compile(signature, cancellation, &dependencies));
  return partial_runs_.Add(
      std::make_shared<PartialRun>(std::move(program), signature, std::move(dependencies)));
}

Status MasterSession::FindProgram(const ClientCall& call, Cancellation* cancellation,
                                  RunningCall* running, CallShare* share) {
  if (const std::string& handle = call.partial_run_handle; !handle.empty()) {
    if (!call.targets.empty()) {
      return InvalidArgument("a call of a partial run has targets; they belong to its set-up");
    }
    TENON_ASSIGN_OR_RETURN(running->partial, partial_runs_.Find(handle));
    return running->partial->BeginCall(call, share);
  }
  const Signature signature = call.signature();
  running->program = graph_.Find(signature);
  if (running->program != nullptr) return OkStatus();
  return CatchExceptions([&] {
    TENON_ASSIGN_OR_RETURN(running->program, Compile(signature, cancellation));
    return OkStatus();
  });
}

bool MasterSession::WantsCosts(ClusterProgram& program) const {
  const GraphOptions& options = config_.graph_options();
  if (options.build_cost_model() <= 0) return false;
  const int64_t after = std::clamp<int64_t>(options.build_cost_model_after(), 0, int64_t{1} << 62);
  return (program.CountRun() + 1 - after) % options.build_cost_model() == 0;
}

void MasterSession::RunStepAsync(ClientCall* call, Cancellation* cancellation,
                                 std::function<void(Status)> done) {
  if (call->output_partition_graphs && config_.experimental().disable_output_partition_graphs()) {
    return done(
        InvalidArgument("RunOptions.output_partition_graphs() is not supported when "
                        "disable_output_partition_graphs is true."));
  }
  // Not make_shared: a timer's weak_ptr would keep the whole step until it fires.
  std::shared_ptr<RunningCall> running(new RunningCall);
  CallShare share;
  if (Status status = FindProgram(*call, cancellation, running.get(), &share); !status.ok()) {
    return done(CauseOf(status));
  }
  running->session = shared_from_this();
  running->outer = cancellation;
  running->begin = environment_.clock->Now();
  running->done = std::move(done);
  bool closed = false;
  {
    MutexLock lock(mu_);
    closed = closing_.cancelled();
    running_.emplace(running.get(), running);
  }
  if (closed) return EndCall(running.get(), closing_.status());
  Cancellation& end = running->cancellation();
  if (cancellation != nullptr) {
    running->token = cancellation->Register(
        [running](const Status& why) { running->cancellation().Cancel(why); });
    if (running->token == Cancellation::kAlreadyCancelled) {
      return EndCall(running.get(), cancellation->status());
    }
  }
  if (call->timeout_ms > 0) {
    running->limit = std::chrono::milliseconds(std::min(call->timeout_ms, kLongestTimeoutMs));
    running->timer = environment_.clock->CallAfter(
        *running->limit, [weak = std::weak_ptr<RunningCall>(running), limit = *running->limit] {
          if (const auto late = weak.lock()) late->cancellation().Cancel(TookLonger(limit));
        });
  }
  const auto ended = [running](Status status) {
    running->session->EndCall(running.get(), std::move(status));
  };
  if (running->partial == nullptr) {
    call->costs = WantsCosts(*running->program);
    return running->program->RunAsync(call, &end, ended);
  }
  running->partial->program().RunShareAsync(call, std::move(share), &end, ended);
}

void MasterSession::EndCall(RunningCall* call, Status status) {
  // What cancelled the call is a better answer than what its parts said when they were cancelled.
  if (status.code() == StatusCode::kCancelled && call->cancellation().cancelled()) {
    status = call->cancellation().status();
  }
  // Its last kernels may have been under way when the time was over.
  if (status.ok() && call->limit && environment_.clock->Now() - call->begin > *call->limit) {
    status = TookLonger(*call->limit);
  }
  if (call->token != Cancellation::kAlreadyCancelled) call->outer->Deregister(call->token);
  if (call->timer != 0) environment_.clock->CancelTimer(call->timer);
  if (call->partial != nullptr && call->partial->EndCall(status)) {
    partial_runs_.Forget(call->partial);
  }
  const auto done = std::move(call->done);
  const std::shared_ptr<MasterSession> keep = call->session;
  std::shared_ptr<RunningCall> last;  // dies after the lock
  {
    MutexLock lock(mu_);
    const auto found = running_.find(call);
    last = std::move(found->second);
    running_.erase(found);
    if (running_.empty()) {
      last_use_ = environment_.clock->Now();
      idle_.NotifyAll();
    }
  }
  done(std::move(status));
}

bool MasterSession::BeginClose(const Status& why) {
  {
    MutexLock lock(mu_);
    if (closed_) return false;
    closed_ = true;
  }
  CancelAll(why);
  return true;
}

void MasterSession::CancelAll(const Status& why) {
  closing_.Cancel(why);
  std::vector<std::shared_ptr<RunningCall>> running;
  {
    MutexLock lock(mu_);
    for (const auto& [key, call] : running_) running.push_back(call);
  }
  // Without the lock: a step may end on this thread, inside Cancel.
  for (const std::shared_ptr<RunningCall>& call : running) call->cancellation().Cancel(why);
  partial_runs_.EndAll(why);
}

std::optional<Clock::Duration> MasterSession::Idle() {
  MutexLock lock(mu_);
  if (uses_ > 0 || !running_.empty()) return std::nullopt;
  return environment_.clock->Now() - last_use_;
}

void MasterSession::TouchWorkers() {
  if (!closing_.cancelled()) graph_.TouchWorkers();
}

void MasterSession::AskTasksOfLongStep() {
  Clock::Duration longest{0};
  {
    MutexLock lock(mu_);
    const Clock::Time now = environment_.clock->Now();
    if (uses_ > 0) longest = now - uses_begin_;
    for (const auto& [key, call] : running_) longest = std::max(longest, now - call->begin);
  }
  if (longest < kWatchPause) return silent_tasks_.Forget();
  silent_tasks_.Ask(graph_.OtherTasks(), longest);
}

void MasterSession::Describe(cluster::SessionStatus* out) {
  using Seconds = std::chrono::duration<double>;
  out->set_id(handle_.substr(0, 8));
  out->set_nodes(graph_.num_nodes());
  const auto idle = Idle();
  if (idle) out->set_idle_seconds(Seconds(*idle).count());
  out->set_signatures(graph_.num_programs());
  MutexLock lock(mu_);
  const Clock::Time now = environment_.clock->Now();
  for (const auto& [key, call] : running_) {
    out->add_running_seconds(Seconds(now - call->begin).count());
  }
}

void MasterSession::WaitUntilIdle() {
  MutexLock lock(mu_);
  while (!running_.empty()) idle_.Wait(mu_);
}

void MasterSession::DeleteWorkerSessions(WorkerDeletions* deletions) {
  graph_.DeleteWorkerSessions(deletions);
}

void MasterSession::Close() {
  if (!BeginClose(Cancelled("Step was cancelled by an explicit call to `Session::Close()`."))) {
    return;
  }
  WaitUntilIdle();
  WorkerDeletions deletions(&WorkerInterface::DeleteWorkerSessionAsync);
  DeleteWorkerSessions(&deletions);
  // A worker that is gone has lost the session anyway.
  deletions.Wait(nullptr).IgnoreError();
}

Status MasterSession::ListDevices(std::vector<DeviceAttributes>* devices,
                                  Cancellation* cancellation) {
  const Use use(*this);
  return graph_.ListDevices(devices, EitherEnd(closing_, cancellation).get());
}

}  // namespace tenon
