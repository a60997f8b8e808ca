// SPDX-License-Identifier: Apache-2.0
//
// Random graphs give the same, bit by bit, however they are run in one process. A failure prints
// the seed; TENON_SEED=<seed> runs that graph alone.
#include <gtest/gtest.h>

#include "core/base/sanitizers.h"
#include "ops/register.h"
#include "runtime/compile/placer.h"
#include "runtime/compile/step_graph.h"
#include "runtime/device/cpu_device.h"
#include "runtime/session/local_session.h"
#include "tests/testing/interpreter.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/simulated_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::Difference;
using testing::MakeRandomGraph;
using testing::RandomGraph;
using testing::RandomStep;
using testing::StepResults;
using testing::StepWay;

constexpr int kGraphs = kSanitized ? 40 : 200;
constexpr char kTask[] = "/job:localhost/replica:0/task:0";

/// Runs the steps of a graph without loops node by node.
class Oracle {
 public:
  explicit Oracle(Graph graph) : graph_(std::move(graph)) {
    const auto name = DeviceName::Parse(device_.name());
    EXPECT_OK(PlaceNodes(&graph_, {{*name, kCpu}}, {*name}));
  }

  StatusOr<std::vector<Tensor>> Run(const RandomStep& step) {
    Signature signature{{}, step.fetches, step.targets};
    std::vector<Tensor> args;
    for (const auto& [name, value] : step.feeds) {
      signature.feeds.push_back(name);
      args.push_back(value);
    }
    TENON_ASSIGN_OR_RETURN(const Graph graph, MakeStepGraph(graph_, signature));
    ResourceStore resources;
    Cancellation cancellation;
    const ProgramRun run{.cancellation = &cancellation, .resources = &resources};
    return testing::Interpret(graph, {run, device_, ++runs_}, kernels_, args);
  }

 private:
  Graph graph_;
  CpuDevice device_{std::string(kTask) + "/device:CPU:0", std::make_shared<ResourceStore>()};
  KernelCache kernels_;
  int64_t runs_ = 0;
};

struct Regime {
  std::string name;
  int threads;
  bool passes;
  int devices;
  bool simulated = false;  // a simulated device, which takes what is not on a CPU
  int parts = 1;           // the graph's, by which the session is extended
  StepWay way = StepWay::kRun;
};

const std::vector<Regime>& Regimes() {
  static const std::vector<Regime> regimes = {
      {"one thread, no passes", 1, false, 1},
      {"one thread", 1, true, 1},
      {"four threads, no passes", 4, false, 1},
      {"four threads", 4, true, 1},
      {"one thread, two devices", 1, true, 2},
      {"four threads, two devices", 4, true, 2},
      {"two devices, no passes", 4, false, 2},
      {"one thread, four parts", 1, true, 1, false, 4},
      {"two devices, four parts", 4, true, 2, false, 4},
      {"one thread, traced", 1, true, 1, false, 1, StepWay::kTraced},
      {"four threads, traced", 4, true, 1, false, 1, StepWay::kTraced},
      {"one thread, RunAsync", 1, true, 1, false, 1, StepWay::kAsync},
      {"simulated device", 1, true, 1, true},
      {"simulated device, four threads, no passes", 4, false, 1, true},
      {"simulated device, traced", 1, true, 1, true, 1, StepWay::kTraced},
      {"simulated devices beside a CPU", 4, true, 3, true},
      {"simulated devices, four parts", 4, true, 3, true, 4},
  };
  return regimes;
}

/// The steps of the random graph; on simulated devices several times, so that they are recorded and
/// repeated.
std::vector<RandomStep> Steps(const RandomGraph& random, bool simulated) {
  std::vector<RandomStep> steps;
  for (int round = 0; round < (simulated ? 4 : 1); ++round) {
    steps.insert(steps.end(), random.steps.begin(), random.steps.end());
  }
  return steps;
}

StepResults RunIn(const Regime& regime, const RandomGraph& random, uint64_t seed) {
  LocalSessionOptions options;
  options.threads = regime.threads;
  options.passes.enabled = regime.passes;
  options.devices.cpus = regime.simulated ? 1 : regime.devices;
  Graph graph = random.graph.Clone();
  if (regime.devices > 1) {
    std::vector<std::string> devices = {"/device:CPU:0", "/device:CPU:1"};
    if (regime.simulated) devices = {"/device:CPU:0", "/device:GPU:0", "/device:GPU:1"};
    testing::AssignRandomDevices(&graph, seed, devices);
  }
  const OpRegistry& ops = regime.simulated ? testing::SimulatedOps() : AllOps();
  auto session = testing::MakeSessionInParts(graph, regime.parts, ops, [&](const Graph& part) {
    return regime.simulated ? testing::MakeSimulatedSession(part, options)
                            : MakeLocalSession(part, options);
  });
  const std::vector<RandomStep> steps = Steps(random, regime.simulated);
  if (!session.ok()) return StepResults(steps.size(), session.status());
  return RunSteps(steps, **session, regime.way);
}

/// Compares the regimes with simulated devices, or all others, on one graph; "" when they agree.
std::string TestSeed(uint64_t seed, bool simulated) {
  auto unrolled = MakeRandomGraph(seed, {.unroll_loops = true});
  if (!unrolled.ok()) return unrolled.status().ToString();
  Oracle oracle(std::move(unrolled->graph));
  StepResults wanted;
  const std::vector<RandomStep> steps = Steps(*unrolled, simulated);
  for (const RandomStep& step : steps) wanted.push_back(oracle.Run(step));
  if (auto d = Difference(steps, wanted, wanted); !d.empty()) return "interpreter: " + d;
  const auto random = MakeRandomGraph(seed);
  if (!random.ok()) return random.status().ToString();
  for (const Regime& regime : Regimes()) {
    if (regime.simulated != simulated) continue;
    const auto found = RunIn(regime, *random, seed);
    if (auto d = Difference(Steps(*random, simulated), found, wanted); !d.empty())
      return regime.name + ": " + d;
  }
  return "";
}

void TestGraphs(int count, bool simulated) {
  int failures = 0;
  for (const uint64_t seed : testing::SeedsToTest(count)) {
    const std::string difference = TestSeed(seed, simulated);
    if (difference.empty()) continue;
    ADD_FAILURE() << "TENON_SEED=" << seed << ": " << difference;
    if (++failures == 5) FAIL() << "and perhaps more";
  }
}

TEST(DifferentialTest, RandomGraphsGiveTheSameInEveryRegime) { TestGraphs(kGraphs, false); }
TEST(DifferentialTest, RandomGraphsGiveTheSameOnSimulatedDevices) { TestGraphs(kGraphs / 2, true); }

}  // namespace
}  // namespace tenon
