// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/left_tensors.h"

#include <gtest/gtest.h>

#include "core/memory/memory_limit.h"

namespace tenon {
namespace {

/// Half of the memory limit is a MiB.
class LeftTensorsTest : public ::testing::Test {
 protected:
  LeftTensorsTest() { SetCpuMemoryLimit(2 << 20); }
  ~LeftTensorsTest() override { SetCpuMemoryLimit(DefaultCpuMemoryLimit()); }

  static Tensor OfBytes(int64_t bytes) { return Tensor::Zeros(DType::kInt8, {bytes}); }

  LeftTensors one_, other_;
};

TEST_F(LeftTensorsTest, AllCallersTogetherHaveHalfOfTheLimit) {
  EXPECT_TRUE(one_.Keep(1, OfBytes(600 << 10)));
  EXPECT_TRUE(one_.Keep(2, OfBytes(100 << 10)));
  EXPECT_TRUE(other_.Keep(1, OfBytes(100 << 10)));
  EXPECT_FALSE(other_.Keep(2, OfBytes(300 << 10)));
  EXPECT_TRUE(other_.Keep(3, OfBytes(200 << 10)));
  one_.Drop(2);
  EXPECT_FALSE(other_.Keep(4, OfBytes(200 << 10)));
  one_.Drop(1);
  one_.Drop(1);
  one_.Drop(7);
  EXPECT_TRUE(other_.Keep(4, OfBytes(700 << 10)));
  EXPECT_FALSE(other_.Keep(5, OfBytes(100 << 10)));
  other_.Clear();
  EXPECT_TRUE(one_.Keep(1, OfBytes(1 << 20)));
}

TEST_F(LeftTensorsTest, EachCallerHasOneOfAnySize) {
  EXPECT_TRUE(one_.Keep(1, OfBytes(1500 << 10)));
  EXPECT_FALSE(one_.Keep(2, OfBytes(1)));
  EXPECT_TRUE(other_.Keep(1, OfBytes(300 << 10)));
  one_.Drop(1);
  EXPECT_TRUE(one_.Keep(2, OfBytes(1500 << 10)));
}

TEST_F(LeftTensorsTest, ACallHasOneAndAnEndedCallerNone) {
  EXPECT_TRUE(one_.Keep(1, OfBytes(10)));
  EXPECT_FALSE(one_.Keep(1, OfBytes(10)));
  {
    LeftTensors ended;
    EXPECT_TRUE(ended.Keep(1, OfBytes(1 << 20)));
    EXPECT_FALSE(one_.Keep(2, OfBytes(10)));
  }
  EXPECT_TRUE(one_.Keep(2, OfBytes((1 << 20) - 10)));
}

}  // namespace
}  // namespace tenon
