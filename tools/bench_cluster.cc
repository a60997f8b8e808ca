// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <fstream>
#include <thread>

#include "core/build/building.h"
#include "distributed/protocol/server.h"
#include "distributed/protocol/task_role.h"
#include "ops/array/array_basic_ops.h"
#include "ops/array/constants.h"
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
