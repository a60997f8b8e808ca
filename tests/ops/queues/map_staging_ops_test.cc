// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <thread>

#include "ops/array/constants.h"
#include "ops/queues/queues_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

/// Ops on one map of pairs of a float and an int32, by name.
class MapStagingTest : public ::testing::TestWithParam<std::string> {
 protected:
  NodeBuilder Op(const std::string& name, DTypeVector dtypes) {
    NodeBuilder builder(GetParam() + name);
    builder.Attr("dtypes", dtypes).Attr("shared_name", "map").Attr("capacity", 2);
    return builder;
  }
  Node* Stage(int64_t key, std::vector<int32_t> indices, std::vector<Output> values) {
    DTypeVector given;
    for (const Output& v : values) given.push_back(v.dtype());
    return Op("MapStage", kPair)
        .Input(Key(key))
        .Input(Const(indices))
        .Inputs(values)
        .Attr("fake_dtypes", given)
        .Finish();
  }
  Node* Stage(int64_t key, float x) { return Stage(key, {0, 1}, {Const(x), Const(7)}); }
  std::vector<Output> Get(const std::string& op, std::vector<Output> key,
                          std::vector<int32_t> indices, DTypeVector dtypes) {
    NodeBuilder builder = Op(op, dtypes);
    for (const Output& k : key) builder.Input(k);
    return builder.Input(Const(indices)).Outputs();
  }
  int Size(const std::string& op = "MapSize") {
    return s.Value(Op(op, kPair).Output()).scalar<int32_t>();
  }
  Output Key(int64_t key) { return Const(key, {.dtype = DType::kInt64}); }

  const DTypeVector kPair = {DType::kFloat, DType::kInt32};
  GraphSession s;
};

TEST_P(MapStagingTest, GivesTuplesByKey) {
  ASSERT_OK(s.Run({}, {Stage(5, 50), Stage(3, 30)}));
  EXPECT_EQ(Size(), 2);
  const auto peeked = s.Run(Get("MapPeek", {Key(3)}, {0, 1}, kPair));
  ASSERT_OK(peeked);
  EXPECT_EQ((*peeked)[0].scalar<float>(), 30);
  EXPECT_EQ((*peeked)[1].scalar<int32_t>(), 7);
  EXPECT_EQ(s.Value(Get("MapUnstage", {Key(5)}, {0}, {DType::kFloat})[0]).scalar<float>(), 50);
  EXPECT_EQ(Size(), 2);  // its second tensor is still there
  EXPECT_THAT(
      s.Run(Get("MapUnstage", {Key(5)}, {0}, {DType::kFloat})),
      IsError(StatusCode::kInvalidArgument, "index '0' for key '5' has already been removed"));
  ASSERT_OK(s.Run(Get("MapUnstage", {Key(5)}, {1}, {DType::kInt32})));
  EXPECT_EQ(Size(), 1);
  const auto least = s.Run(Get("MapUnstageNoKey", {}, {0, 1}, kPair));
  ASSERT_OK(least);
  EXPECT_EQ((*least)[0].scalar<int64_t>(), 3);
  EXPECT_EQ(Size(), 0);
}

TEST_P(MapStagingTest, PartsBecomeATuple) {
  ASSERT_OK(s.Run({}, {Stage(1, {1}, {Const(9)})}));
  EXPECT_EQ(Size(), 0);
  EXPECT_EQ(Size("MapIncompleteSize"), 1);
  EXPECT_THAT(s.Run({}, {Stage(1, {1}, {Const(9)})}),
              IsError(StatusCode::kInvalidArgument, "already initialized"));
  ASSERT_OK(s.Run({}, {Stage(1, {0}, {Const(4.0f)})}));
  EXPECT_EQ(Size(), 1);
  EXPECT_EQ(Size("MapIncompleteSize"), 0);
  ASSERT_OK(s.Run({}, {Op("MapClear", kPair).Finish()}));
  EXPECT_EQ(Size(), 0);
}

TEST_P(MapStagingTest, WhoWaitsForOneKeyHoldsUpNobody) {
  const std::vector<Output> first = Get("MapUnstage", {Key(1)}, {0, 1}, kPair);
  const std::vector<Output> second = Get("MapUnstage", {Key(2)}, {0, 1}, kPair);
  Node *one = Stage(1, 10), *two = Stage(2, 20);
  ASSERT_OK(s.Run({Op("MapSize", kPair).Output()}));
  std::thread waits([&] { EXPECT_OK(s.Run(first)); });
  std::thread also([&] {
    EXPECT_OK(s.Run(second));
    EXPECT_OK(s.Run({}, {one}));
  });
  EXPECT_OK(s.Run({}, {two}));
  waits.join();
  also.join();
}

TEST_P(MapStagingTest, WrongUsesFail) {
  EXPECT_THAT(s.Run({}, {Stage(1, {2}, {Const(1)})}),
              IsError(StatusCode::kInvalidArgument, "indices[0] = 2 is not in [0, 2)"));
  EXPECT_THAT(s.Run({}, {Stage(1, {1, 0}, {Const(1), Const(1.0f)})}),
              IsError(StatusCode::kInvalidArgument, "not strictly ordered"));
  ASSERT_OK(s.Run({}, {Stage(1, 10)}));
  EXPECT_THAT(s.Run({}, {Stage(1, 10)}), IsError(StatusCode::kInvalidArgument, "is in the map"));
  EXPECT_THAT(s.Run(Get("MapPeek", {Key(1)}, {0}, {DType::kInt32})),
              IsError(StatusCode::kInvalidArgument, "wanted int32"));
  for (const char* op : {"MapPeek", "MapUnstage"}) {
    EXPECT_THAT(s.Run(Get(op, {Key(1)}, {0, 0}, {DType::kFloat, DType::kFloat})),
                IsError(StatusCode::kInvalidArgument, "not strictly ordered"));
  }
  EXPECT_THAT(s.Run(Get("MapPeek", {Key(1)}, {-1}, {DType::kInt32})),
              IsError(StatusCode::kInvalidArgument, "is not in [0, 2)"));
}

INSTANTIATE_TEST_SUITE_P(Both, MapStagingTest, ::testing::Values("", "Ordered"));

}  // namespace
}  // namespace tenon::testing
