// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "core/base/mutex.h"
#include "core/build/building.h"
#include "distributed/client/remote_session.h"
#include "distributed/protocol/server.h"
#include "distributed/protocol/task_role.h"
#include "ops/array/array_basic_ops.h"
#include "ops/array/constants.h"
#include "ops/math/operators.h"
#include "tools/bench.h"
#include "tools/processes.h"
#include "train/variables.h"

namespace tenon::tools {
namespace {

/// A `tenon serve` process, ended with the object.
class ServerProcess {
 public:
  static StatusOr<std::unique_ptr<ServerProcess>> Start(const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {OwnPath(), "serve"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    std::unique_ptr<ServerProcess> server(new ServerProcess);
    TENON_ASSIGN_OR_RETURN(server->child_, StartChild(arguments));
    while (true) {
      TENON_ASSIGN_OR_RETURN(const std::string line, ReadLine(server->child_));
      if (line.starts_with("listening")) return server;
    }
  }
  ~ServerProcess() { EndChild(&child_); }

  /// A number of /proc/PID/status.
  StatusOr<double> ProcStatus(const std::string& key) const {
    std::ifstream in(StrCat("/proc/", child_.pid, "/status"));
    std::string word;
    double value = 0;
    while (in >> word) {
      if (word == key + ":" && in >> value) return value;
    }
    return NotFound("no ", key, " in /proc/", child_.pid, "/status");
  }

 private:
  ServerProcess() = default;
  Child child_;
};

/// A parameter server as a process, and this process as the worker.
struct Pair {
  std::unique_ptr<ServerProcess> ps;
  std::unique_ptr<Server> worker;
};

StatusOr<Pair> StartPair(const OpRegistry& ops) {
  TENON_ASSIGN_OR_RETURN(const std::vector<int> ports, FreePorts(2));
  const std::string ps = LoopbackHosts(ports, 0, 1), worker = LoopbackHosts(ports, 1, 1);
  Pair pair;
  TENON_ASSIGN_OR_RETURN(pair.ps, ServerProcess::Start({"--ps_hosts", ps, "--worker_hosts", worker,
                                                        "--job_name", kParameterServerJob}));
  ServerOptions options;
  options.job = kWorkerJob;
  TENON_RETURN_IF_ERROR(options.cluster.AddJob(kParameterServerJob, ps));
  TENON_RETURN_IF_ERROR(options.cluster.AddJob(kWorkerJob, worker));
  TENON_ASSIGN_OR_RETURN(pair.worker, Server::Start(options, ops));
  return pair;
}

/// Steps per second of all workers of `tenon train mnist` together.
StatusOr<double> AsynchronousSteps(int workers) {
  TENON_ASSIGN_OR_RETURN(
      Child launch,
      StartChild({OwnPath(), "launch", "--ps", "1", "--workers", StrCat(workers), "--", OwnPath(),
                  "train", "mnist", "--model", "classic", "--epochs", "4"}));
  constexpr std::string_view kFigure = "steps per second, of this worker: ";
  double total = 0;
  for (int reported = 0; reported < workers;) {
    TENON_ASSIGN_OR_RETURN(const std::string line, ReadLine(launch));
    const size_t at = line.find(kFigure);
    if (at == std::string::npos) continue;
    total += std::stod(line.substr(at + kFigure.size()));
    ++reported;
  }
  while (ReadLine(launch).ok()) continue;
  EndChild(&launch);
  return total;
}

/// Microseconds to read one scalar from a parameter server.
StatusOr<double> NullStep(const OpRegistry& ops) {
  TENON_ASSIGN_OR_RETURN(const Pair pair, StartPair(ops));
  Graph graph(ops);
  GraphBuilding building(graph);
  Variable value;
  {
    const DeviceScope ps("/job:ps/task:0");
    value = Variable("v", 1.0f);
  }
  Node* const init = GlobalVariablesInitializer();
  TENON_RETURN_IF_ERROR(graph.error());
  TENON_ASSIGN_OR_RETURN(const auto session, pair.worker->MakeSession(graph));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  TENON_ASSIGN_OR_RETURN(const auto step, session->Prepare({}, {value}));
  std::vector<Tensor> fetched;
  const auto run = [&] { return step->Run({}, &fetched); };
  TENON_RETURN_IF_ERROR(TimeCalls(200, run).status());
  TENON_ASSIGN_OR_RETURN(const double seconds, MedianCall(2000, run));
  return seconds * 1e6;
}

/// A client's small step that is made again and again, many at once.
class ManyRuns {
 public:
  explicit ManyRuns(PreparedStep& step) : step_(step) {}

  /// Runs a second of `in_flight` at once.
  StatusOr<double> Measure(int in_flight) {
    constexpr std::chrono::seconds kWarmUp{1}, kMeasured{3};
    {
      MutexLock lock(mu_);
      left_ = in_flight;
    }
    for (int i = 0; i < in_flight; ++i) Start(static_cast<float>(i));
    std::this_thread::sleep_for(kWarmUp);
    const int64_t before = runs_;
    const auto begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(kMeasured);
    const int64_t made = runs_ - before;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    over_ = true;
    MutexLock lock(mu_);
    while (left_ > 0) ended_.Wait(mu_);
    TENON_RETURN_IF_ERROR(failed_);
    return static_cast<double>(made) / seconds.count();
  }

 private:
  void Start(float x) {
    step_.RunAsync({Tensor::Scalar(x)}, [this, x](Status s, const std::vector<Tensor>& fetched) {
      if (s.ok() && *fetched[0].data<float>() != 2.0f * x + 1.0f) {
        s = Internal("a step gave what another one was to give");
      }
      ++runs_;
      if (s.ok() && !over_) return Start(x);
      MutexLock lock(mu_);
      failed_.Update(s);
      if (--left_ == 0) ended_.NotifyAll();
    });
  }

  PreparedStep& step_;
  std::atomic<int64_t> runs_{0};
  std::atomic<bool> over_{false};
  Mutex mu_;
  CondVar ended_;
  int left_ ABSL_GUARDED_BY(mu_) = 0;
  Status failed_ ABSL_GUARDED_BY(mu_);
};

/// Small steps a second of one client of a server, of which many are on their way at once.
StatusOr<double> StepsInFlight(const OpRegistry& ops) {
  TENON_ASSIGN_OR_RETURN(const std::vector<int> ports, FreePorts(1));
  TENON_ASSIGN_OR_RETURN(const auto server, ServerProcess::Start({"--port", StrCat(ports[0])}));
  Graph graph(ops);
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, {}), y = x * 2.0f + 1.0f;
  TENON_RETURN_IF_ERROR(graph.error());
  TENON_ASSIGN_OR_RETURN(const auto session,
                         MakeRemoteSession(StrCat("grpc://127.0.0.1:", ports[0]), graph));
  TENON_ASSIGN_OR_RETURN(const auto step, session->Prepare({x}, {y}));
  return ManyRuns(*step).Measure(256);
}

/// Milliseconds of a step in which a worker changes some rows of a parameter server's table, of the
/// graph that the peer runs too.
StatusOr<double> SparseUpdates(const OpRegistry& ops) {
  TENON_ASSIGN_OR_RETURN(const Pair pair, StartPair(ops));
  TENON_ASSIGN_OR_RETURN(const Graph graph, BenchGraph("sparse_updates", ops));
  TENON_ASSIGN_OR_RETURN(const auto session, pair.worker->MakeSession(graph));
  TENON_ASSIGN_OR_RETURN(const double seconds, GraphStep(*session, 200));
  return seconds * 1e3;
}

/// GB/s at which a worker reads a variable of `mebibytes` from a parameter server.
StatusOr<double> ReadVariable(const OpRegistry& ops, int mebibytes) {
  TENON_ASSIGN_OR_RETURN(const Pair pair, StartPair(ops));
  Graph graph(ops);
  GraphBuilding building(graph);
  Variable value;
  {
    const DeviceScope ps("/job:ps/task:0");
    value = Variable("v", Fill({int64_t{mebibytes} << 18}, 0.0f));
  }
  Output here;
  {
    const DeviceScope worker("/job:worker/task:0");
    here = Identity(value);
  }
  Node* const init = GlobalVariablesInitializer();
  TENON_RETURN_IF_ERROR(graph.error());
  TENON_ASSIGN_OR_RETURN(const auto session, pair.worker->MakeSession(graph));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  TENON_ASSIGN_OR_RETURN(const auto step, session->Prepare({}, {}, {here.node}));
  const auto run = [&] { return step->Run({}, nullptr); };
  TENON_RETURN_IF_ERROR(TimeCalls(3, run).status());
  TENON_ASSIGN_OR_RETURN(const double seconds, MedianCall(mebibytes > 16 ? 15 : 100, run));
  return static_cast<double>(int64_t{mebibytes} << 20) / seconds / 1e9;
}

StatusOr<double> IdleMemory() {
  TENON_ASSIGN_OR_RETURN(const auto server, ServerProcess::Start({"--port", "0"}));
  TENON_ASSIGN_OR_RETURN(const double kib, server->ProcStatus("VmRSS"));
  return kib / 1024;
}
StatusOr<double> IdleThreads() {
  TENON_ASSIGN_OR_RETURN(const auto server, ServerProcess::Start({"--port", "0"}));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return server->ProcStatus("Threads");
}
StatusOr<double> StartUp() {
  return TimeCalls(1, [] { return ServerProcess::Start({"--port", "0"}).status(); });
}

}  // namespace

std::vector<BenchRow> ClusterBenchRows(const OpRegistry& ops) {
  return {
      {"async_1", "asynchronous MNIST steps, 1 ps + 1 worker", "steps/s", true,
       [] { return AsynchronousSteps(1); }},
      {"async_2", "asynchronous MNIST steps, 1 ps + 2 workers", "steps/s", true,
       [] { return AsynchronousSteps(2); }},
      {"null_step", "null step: one scalar read from a ps", "us", false,
       [&ops] { return NullStep(ops); }},
      {"steps_in_flight", "small steps of one client on a server, 256 at once", "steps/s", true,
       [&ops] { return StepsInFlight(ops); }},
      {"sparse_updates", "1,000 of 10^6 rows of 64 on a ps, a step of SGD", "ms", false,
       [&ops] { return SparseUpdates(ops); }},
      {"read_1", "reading 1 MiB from a ps", "GB/s", true, [&ops] { return ReadVariable(ops, 1); }},
      {"read_16", "reading 16 MiB from a ps", "GB/s", true,
       [&ops] { return ReadVariable(ops, 16); }},
      {"read_128", "reading 128 MiB from a ps", "GB/s", true,
       [&ops] { return ReadVariable(ops, 128); }},
      {"idle_memory", "idle server: resident memory", "MiB", false, IdleMemory},
      {"idle_threads", "idle server: threads", "", false, IdleThreads},
      {"start_up", "server: start to listening", "s", false, StartUp},
  };
}

}  // namespace tenon::tools
