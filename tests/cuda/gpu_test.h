// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "runtime/session/local_session.h"

// The tests of this folder run on the GPUs that any program here would use: NVIDIA's by the plugin,
// or the simulated device. They need nothing else, so that their program can be taken to any host.

namespace tenon::testing {

inline constexpr char kCpuName[] = "/device:CPU:0";
inline constexpr char kGpuName[] = "/device:GPU:0";

/// Skipped, with the reason, where there is no GPU.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override;
};

/// A session with the GPUs, of which the first takes what nothing puts elsewhere.
StatusOr<std::unique_ptr<Session>> GpuSession(const Graph& graph);
/// One that has the CPU alone.
StatusOr<std::unique_ptr<Session>> CpuSession(const Graph& graph);

/// Whether a GPU still computes: what one does wrong may be for good.
Status TryGpu();

/// A number of the environment, such as TENON_GPU_ROUNDS.
int EnvironmentNumber(const char* name, int otherwise);

}  // namespace tenon::testing
