// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace tenon {
namespace {

std::atomic<int> times_read;

Status NoShapes(ShapeContext&) { return OkStatus(); }

OpFamily TwoOps() {
  return {"two.ops",
          "op First() op Second(x: T) -> y: T T: type",
          {"First", "Second"},
          [](OpRegistry& ops) {
            ++times_read;
            ops.Get("First").Shape(NoShapes);
            if (ops.Find("Second") != nullptr) ops.Get("Second").Shape(NoShapes);
          }};
}

class OpFamilyTest : public ::testing::Test {
 protected:
  OpFamilyTest() { times_read = 0; }
  OpRegistry ops_;
};

TEST_F(OpFamilyTest, IsReadWhenAnOpIsAskedFor) {
  ops_.DeclareFamily(TwoOps());
  ops_.DeclareFamily({"other.ops", "op Other()", {"Other"}, [](OpRegistry&) {}});
  EXPECT_EQ(ops_.Find("Third"), nullptr);
  EXPECT_NE(ops_.Find("Other"), nullptr);
  EXPECT_EQ(times_read, 0);
  ASSERT_NE(ops_.Find("Second"), nullptr);
  EXPECT_EQ(ops_.Find("Second")->schema.inputs.size(), 1u);
  EXPECT_NE(ops_.Find("First")->shape, nullptr);
  EXPECT_EQ(times_read, 1);
}

TEST_F(OpFamilyTest, IsReadForAllOps) {
  ops_.DeclareFamily(TwoOps());
  ASSERT_EQ(ops_.All().size(), 2u);
  EXPECT_EQ(ops_.All()[0]->schema.name, "First");
  EXPECT_EQ(times_read, 1);
}

TEST_F(OpFamilyTest, IsDeclaredOnce) {
  ops_.DeclareFamily(TwoOps());
  ops_.DeclareFamily(TwoOps());
  EXPECT_FALSE(ops_.Declare("op First()", "two.ops"));
  EXPECT_EQ(ops_.All().size(), 2u);
}

TEST_F(OpFamilyTest, IsReadOnceByManyThreads) {
  ops_.DeclareFamily(TwoOps());
  std::vector<std::thread> threads;
  std::atomic<int> found = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, name = i % 2 == 0 ? "First" : "Second"] {
      const OpRegistration* const op = ops_.Find(name);
      found += op != nullptr && op->schema.name == name && op->shape != nullptr;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, 8);
  EXPECT_EQ(times_read, 1);
}

TEST_F(OpFamilyTest, GetReadsItToo) {
  ops_.DeclareFamily(TwoOps());
  ops_.Get("First").NoExample("a test");
  EXPECT_EQ(times_read, 1);
  EXPECT_EQ(ops_.Find("First")->no_example_reason, "a test");
}

using OpFamilyDeathTest = OpFamilyTest;

TEST_F(OpFamilyDeathTest, AFamilyAsksForItsOwnOps) {
  EXPECT_DEATH(
      {
        ops_.DeclareFamily(TwoOps());
        ops_.DeclareFamily(
            {"other.ops", "op Other()", {"Other"}, [](OpRegistry& ops) { ops.Find("First"); }});
        ops_.Find("Other");
      },
      "an op family asks for an op of another one: two.ops");
}

TEST_F(OpFamilyDeathTest, NamesAreThoseOfTheText) {
  EXPECT_DEATH(
      {
        ops_.DeclareFamily({"two.ops", "op First()", {"Fist"}, [](OpRegistry&) {}});
        ops_.Find("Fist");
      },
      "two.ops declares op First, which is not among its names");
}

TEST_F(OpFamilyDeathTest, NoOpIsDeclaredTwice) {
  ops_.DeclareFamily(TwoOps());
  EXPECT_DEATH(ops_.Declare("op Second()", "more.ops"), "op Second is declared already");
}

}  // namespace
}  // namespace tenon
