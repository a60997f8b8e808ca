// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <chrono>
#include <future>

#include "ops/array/array_ops.h"
#include "ops/queues/queues_ops.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class StagingOpsTest : public ::testing::Test {
 protected:
  StagingOpsTest() : building_(graph_) {}

  void Use(int64_t capacity, int64_t memory_limit) {
    const StageOptions stage = {
        .capacity = capacity, .memory_limit = memory_limit, .shared_name = "area"};
    put_ = Stage({value_}, stage);
    take_ = Unstage({DType::kFloat},
                    {.capacity = capacity, .memory_limit = memory_limit, .shared_name = "area"})[0];
    ints_ = Unstage({DType::kInt32}, {.shared_name = "area"})[0];
    peek_ = StagePeek(index_, {DType::kFloat}, {.shared_name = "area"})[0];
    size_ = StageSize({DType::kFloat}, {.shared_name = "area"});
    clear_ = StageClear({DType::kFloat}, {.shared_name = "area"});
    auto session = MakeLocalSession(graph_);
    ASSERT_OK(session);
    session_ = *std::move(session);
  }
  Status Put(const std::vector<float>& x) {
    return session_->Run({{value_, Tensor::Vector(x)}}, {}, {put_}).status();
  }
  std::vector<double> Get(const Output& what, int32_t index = 0) {
    const auto values = session_->Run({{index_, index}}, {what});
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? Numbers((*values)[0]) : std::vector<double>();
  }

  Graph graph_{AllOps()};
  GraphBuilding building_;
  Output value_ = Placeholder(DType::kFloat), index_ = Placeholder(DType::kInt32);
  Output take_, ints_, peek_, size_;
  Node *put_ = nullptr, *clear_ = nullptr;
  std::unique_ptr<Session> session_;
};

TEST_F(StagingOpsTest, GivesTheOldestFirstAndWaitsForRoom) {
  Use(2, 0);
  ASSERT_OK(Put({1}));
  ASSERT_OK(Put({2, 2}));
  EXPECT_THAT(Get(size_), ElementsAre(2));
  EXPECT_THAT(Get(peek_, 1), ElementsAre(2, 2));
  auto third = std::async(std::launch::async, [&] { return Put({3}); });
  EXPECT_EQ(third.wait_for(30ms), std::future_status::timeout);
  EXPECT_THAT(Get(take_), ElementsAre(1));
  ASSERT_OK(third.get());
  EXPECT_THAT(Get(take_), ElementsAre(2, 2));
  EXPECT_THAT(Get(take_), ElementsAre(3));
  // One who looks for what is not there does not hold up those who take.
  auto peek = std::async(std::launch::async, [&] { return Get(peek_, 1); });
  auto take = std::async(std::launch::async, [&] { return Get(take_); });
  EXPECT_EQ(take.wait_for(30ms), std::future_status::timeout);
  ASSERT_OK(Put({4}));
  EXPECT_THAT(take.get(), ElementsAre(4));
  ASSERT_OK(Put({5}));
  ASSERT_OK(Put({6}));
  EXPECT_THAT(peek.get(), ElementsAre(6));
}

TEST_F(StagingOpsTest, MemoryIsLimited) {
  Use(0, 16);
  ASSERT_OK(Put({1, 2, 3}));
  EXPECT_THAT(Put({1, 2, 3, 4, 5}), IsError(StatusCode::kResourceExhausted,
                                            "'20' bytes into Staging Area with a memory"));
  auto second = std::async(std::launch::async, [&] { return Put({1, 2}); });
  EXPECT_EQ(second.wait_for(30ms), std::future_status::timeout);
  ASSERT_OK(session_->Run({}, {}, {clear_}));
  ASSERT_OK(second.get());
  EXPECT_THAT(session_->Run({}, {ints_}),
              IsError(StatusCode::kInvalidArgument, "tensor 0 is float, wanted int32"));
  EXPECT_THAT(Get(size_), ElementsAre(1));
}

}  // namespace
}  // namespace tenon::testing
