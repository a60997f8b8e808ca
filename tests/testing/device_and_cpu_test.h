// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "core/build/building.h"
#include "ops/register.h"
#include "tests/testing/simulated_session.h"
#include "tests/testing/status_matchers.h"
#include "train/variables.h"

namespace tenon::testing {

/// One graph in two sessions: with the simulated devices, and with a CPU alone.
class DeviceAndCpuTest : public ::testing::Test {
 protected:
  /// Makes the sessions and the variables, when the graph is whole.
  void Start() {
    Node* init = nullptr;
    {
      const GraphBuilding building(graph_);
      init = GlobalVariablesInitializer();
    }
    ASSERT_OK(graph_.error());
    device_ = MakeSimulatedSession(graph_).value();
    cpu_ = MakeLocalSession(graph_, {}).value();
    for (Session* s : {device_.get(), cpu_.get()}) ASSERT_OK(s->Run({}, {}, {init}).status());
  }

  /// Gives the same in both, bit for bit, or fails with the same code. A step that never ends fails
  /// after a minute.
  void RunBoth(const StepFeeds& feeds, const std::vector<Output>& fetches,
               const StepTensors& targets = std::vector<Output>()) {
    const StepOptions options = {.timeout = std::chrono::minutes(1)};
    const auto found = device_->Run(feeds, fetches, targets, options);
    const auto wanted = cpu_->Run(feeds, fetches, targets, options);
    ASSERT_EQ(found.status().code(), wanted.status().code()) << found.status();
    if (!wanted.ok()) return;
    for (size_t i = 0; i < wanted->size(); ++i) {
      EXPECT_TRUE((*found)[i].Equals((*wanted)[i])) << "fetch " << i;
    }
  }

  Graph graph_{AllOps()};
  std::unique_ptr<Session> device_, cpu_;
};

}  // namespace tenon::testing
