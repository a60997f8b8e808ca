// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/gpu_test.h"

#include <cstdlib>

#include "core/build/building.h"
#include "core/device/device_plugin.h"
#include "ops/array/array_ops.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"

namespace tenon::testing {

void GpuTest::SetUp() {
  const auto gpus = ListGpus();
  if (!gpus.ok()) GTEST_SKIP() << "no GPU: " << Message(gpus.status());
}

StatusOr<std::unique_ptr<Session>> GpuSession(const Graph& graph) {
  LocalSessionOptions options;
  options.allow_soft_placement = true;
  return MakeLocalSession(graph, options);
}

StatusOr<std::unique_ptr<Session>> CpuSession(const Graph& graph) {
  LocalSessionOptions options;
  options.devices.gpus = 0;
  options.allow_soft_placement = true;
  return MakeLocalSession(graph, options);
}

Status TryGpu() {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, {});
  const DeviceScope on(kGpuName);
  const Output y = Add(x, x);
  TENON_RETURN_IF_ERROR(graph.error());
  TENON_ASSIGN_OR_RETURN(const auto session, GpuSession(graph));
  TENON_ASSIGN_OR_RETURN(const auto sum, session->Run({{x.name(), Tensor::Scalar(1.5f)}}, {y}));
  const float found = sum[0].scalar<float>();
  return found == 3 ? OkStatus() : Internal("1.5 + 1.5 is ", found, " on the GPU");
}

int EnvironmentNumber(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace tenon::testing
