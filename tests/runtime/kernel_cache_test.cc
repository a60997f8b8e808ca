// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/kernel_cache.h"

#include <gtest/gtest.h>

#include "ops/register.h"
#include "tests/testing/cpu_devices.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

class KernelCacheTest : public ::testing::Test {
 protected:
  /// The kernel of a random op that is called "r" in a graph of its own.
  std::shared_ptr<const Kernel> Get(DType dtype, int64_t seed, int device = 0,
                                    std::string_view op = "RandomStandardNormal") {
    Graph graph(AllOps());
    AttributeMap attrs = {{"dtype", dtype}, {"T", DType::kInt32}, {"seed", seed}};
    const auto node = graph.AddNode("r", op, attrs);
    EXPECT_OK(node);
    (*node)->set_assigned_device(devices_[device]->name());
    const auto kernel = kernels_.Get(**node, *devices_[device]);
    EXPECT_OK(kernel);
    return *kernel;
  }

  std::vector<std::unique_ptr<Device>> devices_ =
      testing::MakeCpuDevices("/job:localhost/replica:0/task:0", 2, "localhost");
  KernelCache kernels_;
};

TEST_F(KernelCacheTest, ANodeKeepsItsKernelFromGraphToGraph) {
  const auto kernel = Get(DType::kFloat, 1);
  EXPECT_EQ(Get(DType::kFloat, 1), kernel);
}

TEST_F(KernelCacheTest, AnotherNodeOfTheSameNameHasAKernelOfItsOwn) {
  const auto kernel = Get(DType::kFloat, 1);
  EXPECT_NE(Get(DType::kDouble, 1), kernel);
  EXPECT_NE(Get(DType::kFloat, 2), kernel);
  EXPECT_NE(Get(DType::kFloat, 1, 1), kernel);
  EXPECT_NE(Get(DType::kFloat, 1, 0, "TruncatedNormal"), kernel);
  EXPECT_EQ(Get(DType::kFloat, 1), kernel);
}

}  // namespace
}  // namespace tenon
