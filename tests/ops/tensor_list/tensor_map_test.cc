// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::UnorderedElementsAre;

Tensor With(const Tensor& map, const Tensor& key, const Tensor& value) {
  return RunOpOrDie("TensorMapInsert", {map, key, value});
}
OpResult Get(const Tensor& map, const Tensor& key, DType type) {
  return RunOp("TensorMapLookup", {map, key}, {{"value_dtype", type}});
}
int32_t SizeOfMap(const Tensor& map) {
  return RunOpOrDie("TensorMapSize", {map}).scalar<int32_t>();
}

TEST(TensorMapTest, AChangedMapLeavesTheOldOneAsItIs) {
  const Tensor empty = RunOpOrDie("EmptyTensorMap", {}), key = Tensor::Vector({1, 2});
  const Tensor one = With(empty, key, Tensor::Scalar(0.5f));
  const Tensor other = With(one, key, Tensor::Scalar(1.5f));
  const Tensor less = RunOpOrDie("TensorMapErase", {other, key}, {{"value_dtype", DType::kFloat}});
  EXPECT_EQ(SizeOfMap(empty), 0);
  EXPECT_EQ(SizeOfMap(one), 1);
  EXPECT_EQ(SizeOfMap(other), 1);
  EXPECT_EQ(SizeOfMap(less), 0);
  EXPECT_EQ(Get(one, key, DType::kFloat).outputs[0].scalar<float>(), 0.5f);
  EXPECT_EQ(Get(other, key, DType::kFloat).outputs[0].scalar<float>(), 1.5f);
}

TEST(TensorMapTest, KeysDifferInTypeShapeAndValue) {
  Tensor map = RunOpOrDie("EmptyTensorMap", {});
  const std::vector<Tensor> keys = {Tensor::Vector({1, 2}),
                                    Tensor::Of<int32_t>({2, 1}, {1, 2}),
                                    Tensor::Vector({2, 1}),
                                    Tensor::Vector<int64_t>({1, 2}),
                                    Tensor::Vector<std::string>({"a", "bc"}),
                                    Tensor::Vector<std::string>({"ab", "c"}),
                                    Tensor::Scalar(1)};
  for (size_t i = 0; i < keys.size(); ++i) {
    map = With(map, keys[i], Tensor::Scalar(static_cast<int32_t>(i)));
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(Get(map, keys[i], DType::kInt32).outputs[0].scalar<int32_t>(), i);
  }
  EXPECT_FALSE(RunOpOrDie("TensorMapHasKey", {map, Tensor::Scalar(2)}).scalar<bool>());
  EXPECT_FALSE(RunOp("TensorMapStackKeys", {map}, {{"key_dtype", DType::kInt32}}).status.ok());
}

TEST(TensorMapTest, WrongUsesAreErrors) {
  const Tensor empty = RunOpOrDie("EmptyTensorMap", {}), key = Tensor::Scalar(1);
  const Tensor one = With(empty, key, Tensor::Scalar(0.5f));
  EXPECT_FALSE(Get(empty, key, DType::kFloat).status.ok());
  EXPECT_FALSE(Get(one, key, DType::kInt32).status.ok());
  EXPECT_FALSE(RunOp("TensorMapErase", {empty, key}, {{"value_dtype", DType::kFloat}}).status.ok());
  EXPECT_FALSE(RunOp("TensorMapStackKeys", {empty}, {{"key_dtype", DType::kInt32}}).status.ok());
  EXPECT_FALSE(RunOp("TensorMapSize", {Tensor(DType::kVariant, Shape())}).status.ok());
  EXPECT_FALSE(RunOp("TensorMapSize", {Tensor(DType::kVariant, {0})}).status.ok());
  const Tensor two = With(one, Tensor::Scalar(7), Tensor::Scalar("text"));
  EXPECT_THAT(
      RunOpOrDie("TensorMapStackKeys", {two}, {{"key_dtype", DType::kInt32}}).flat<int32_t>(),
      UnorderedElementsAre(1, 7));
}

}  // namespace
}  // namespace tenon::testing
