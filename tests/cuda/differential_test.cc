// SPDX-License-Identifier: Apache-2.0
//
// Random graphs give on GPUs, and on GPUs and CPU mixed, what they give on the CPU. A graph in
// which a rounding decides (a comparison, a cut to whole numbers) may give something else
// altogether on another device: it is known by this, that it does so on the CPU too when its feeds
// are changed in their last places. TENON_GPU_GRAPHS is how many are tried, TENON_SEED one that
// failed.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/device/device_plugin.h"
#include "tests/cuda/comparison.h"
#include "tests/cuda/gpu_test.h"
#include "tests/cuda/op_case.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/random_ops.h"

namespace tenon::testing {
namespace {

/// Graphs have tens of ops after each other, gradients among them, whose roundings add up.
constexpr double kTolerance = 1e-3;
/// Sums of numbers of about 1 that cancel each other leave roundings.
constexpr double kLeast = 1e-6;

/// The largest difference of two tensors of floats of one shape.
double LargestDifference(const Tensor& found, const Tensor& wanted) {
  double largest = 0;
  Dispatch(found.dtype(), FloatTypes(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < found.num_elements(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(found.data<T>()[i]) -
                                           static_cast<double>(wanted.data<T>()[i])));
    }
  });
  return largest;
}

/// "" when all is near enough; whole numbers must be equal.
std::string Apart(const std::vector<Tensor>& found, const std::vector<Tensor>& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Comparison c = Compare({found[i]}, {wanted[i]}, Closeness::kSums);
    if (c.difference.empty()) continue;
    const bool same_kind = found[i].dtype() == wanted[i].dtype() &&
                           found[i].shape() == wanted[i].shape() && IsFloating(wanted[i].dtype());
    // An infinity or a NaN that only one has is no rounding, and is not in the error.
    const bool finite = c.difference.find("inf") == std::string::npos &&
                        c.difference.find("nan") == std::string::npos;
    if (same_kind && finite &&
        (c.error <= kTolerance || LargestDifference(found[i], wanted[i]) <= kLeast)) {
      continue;
    }
    return StrCat("fetch ", i, ": ", c.difference);
  }
  return "";
}

std::string ApartSteps(const RandomGraph& random, const StepResults& found,
                       const StepResults& wanted) {
  for (size_t i = 0; i < random.steps.size(); ++i) {
    if (found[i].ok() == random.steps[i].fails) {
      return StrCat("step ", i, ": ", found[i].status().ToString());
    }
    if (!found[i].ok()) continue;
    const std::string apart = Apart(*found[i], *wanted[i]);
    if (!apart.empty()) return StrCat("step ", i, ", ", apart);
  }
  return "";
}

/// The steps with their floats changed by up to `places` units in the last place.
std::vector<RandomStep> Nudged(std::vector<RandomStep> steps, uint64_t seed, int places) {
  Random random(seed);
  for (RandomStep& step : steps) {
    for (auto& [name, value] : step.feeds) {
      value = value.Copy().value();
      Dispatch(value.dtype(), FloatTypes(), [&](auto zero) {
        using T = decltype(zero);
        for (int64_t i = 0; i < value.num_elements(); ++i) {
          const double change = std::ldexp(random.Below(2 * places + 1) - places, -23);
          T& x = value.data<T>()[i];
          x = T(static_cast<float>(static_cast<double>(x) * (1 + change) + change * 1e-3));
        }
      });
    }
  }
  return steps;
}

/// Whether roundings decide what the graph gives.
bool IsUnsteady(const RandomGraph& random, const StepResults& wanted) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const auto session = CpuSession(random.graph);
    if (!session.ok()) return false;
    const std::vector<RandomStep> steps = Nudged(random.steps, seed, 1 << seed);
    if (!ApartSteps(random, RunSteps(steps, **session), wanted).empty()) return true;
  }
  return false;
}

class GpuDifferentialTest : public GpuTest {};

TEST_F(GpuDifferentialTest, RandomGraphsGiveWhatTheyGiveOnTheCpu) {
  const auto gpus = ListGpus();
  ASSERT_TRUE(gpus.ok());
  std::vector<std::string> devices = {kCpuName, kGpuName};
  if (gpus->size() > 1) devices.push_back("/device:GPU:1");
  OpRow alone("random graphs on the GPU"), mixed("random graphs on GPU and CPU");
  int unsteady = 0, failures = 0;
  for (const uint64_t seed : SeedsToTest(EnvironmentNumber("TENON_GPU_GRAPHS", 300))) {
    const auto random = MakeRandomGraph(seed);
    ASSERT_TRUE(random.ok()) << random.status();
    const auto cpu = CpuSession(random->graph);
    ASSERT_TRUE(cpu.ok()) << cpu.status();
    const StepResults wanted = RunSteps(random->steps, **cpu);
    for (OpRow* row : {&alone, &mixed}) {
      Graph graph = random->graph.Clone();
      if (row == &mixed) AssignRandomDevices(&graph, seed, devices);
      const auto gpu = GpuSession(graph);
      ASSERT_TRUE(gpu.ok()) << gpu.status();
      const std::string apart = ApartSteps(*random, RunSteps(random->steps, **gpu), wanted);
      if (apart.empty()) {
        row->AddCase(DType::kFloat, 0);
      } else if (IsUnsteady(*random, wanted)) {
        ++unsteady;
      } else {
        row->Fail(StrCat("TENON_SEED=", seed, ": ", apart));
        if (!GpuIsThere() || ++failures == 5) return;
      }
    }
  }
  if (unsteady > 0) std::printf("%d runs of graphs in which a rounding decides\n", unsteady);
}

}  // namespace
}  // namespace tenon::testing
