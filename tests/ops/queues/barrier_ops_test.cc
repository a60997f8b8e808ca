// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <limits>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/queues/queues_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

constexpr int64_t kFirst = std::numeric_limits<int64_t>::min();
const DTypeVector kPair = {DType::kFloat, DType::kString};

/// A barrier of pairs, and a session on its operations.
class BarrierOpsTest : public ::testing::Test {
 protected:
  BarrierOpsTest() : building_(graph_) {
    const Output barrier = Barrier(kPair, {.shapes = {Shape{2}, Shape{}}});
    numbers_ = BarrierInsertMany(barrier, keys_, values_, 0);
    texts_ = BarrierInsertMany(barrier, keys_, text_, 1);
    close_ = BarrierClose(barrier);
    cancel_ = BarrierClose(barrier, {.cancel_pending_enqueues = true});
    sizes_ = {BarrierReadySize(barrier), BarrierIncompleteSize(barrier)};
    take_ = BarrierTakeMany(barrier, count_, kPair);
    take_less_ = BarrierTakeMany(barrier, count_, kPair, {.allow_small_batch = true});
    session_ = MakeLocalSession(graph_).value();
  }

  Status Run(Node* node, const Session::Feeds& feeds = {}) {
    return session_->Run(feeds, {}, {node}).status();
  }
  Status Numbers(const std::vector<std::string>& keys, const Tensor& values) {
    return Run(numbers_, {{keys_.name(), Tensor::Vector(keys)}, {values_.name(), values}});
  }
  Status Texts(const std::vector<std::string>& keys) {
    return Run(texts_,
               {{keys_.name(), Tensor::Vector(keys)}, {text_.name(), Tensor::Vector(keys)}});
  }
  std::vector<int32_t> Sizes() {
    const auto found = session_->Run({}, sizes_);
    return {(*found)[0].scalar<int32_t>(), (*found)[1].scalar<int32_t>()};
  }
  StatusOr<std::vector<Tensor>> Take(const BarrierTakeManyOutputs& take, int32_t n,
                                     std::chrono::milliseconds timeout = 0ms) {
    return session_->Run({{count_, n}}, {take.indices, take.keys, take.values[0], take.values[1]},
                         {}, {.timeout = timeout});
  }

  Graph graph_{AllOps()};
  GraphBuilding building_;
  Output keys_ = Placeholder(DType::kString), values_ = Placeholder(DType::kFloat),
         text_ = Placeholder(DType::kString), count_ = Placeholder(DType::kInt32);
  Node *numbers_, *texts_, *close_, *cancel_;
  std::vector<Output> sizes_;
  BarrierTakeManyOutputs take_, take_less_;
  std::unique_ptr<Session> session_;
};

TEST_F(BarrierOpsTest, CompleteTuplesComeInTheOrderOfTheirKeys) {
  ASSERT_OK(Numbers({"a", "b"}, Tensor::Of<float>({2, 2}, {1, 2, 3, 4})));
  ASSERT_OK(Texts({"c"}));
  ASSERT_OK(Texts({"b"}));
  EXPECT_THAT(Sizes(), ElementsAre(1, 2));
  ASSERT_OK(Numbers({"c"}, Tensor::Of<float>({1, 2}, {5, 6})));
  ASSERT_OK(Texts({"a"}));
  const auto taken = Take(take_, 3);
  ASSERT_OK(taken);
  EXPECT_THAT((*taken)[0].flat<int64_t>(), ElementsAre(kFirst, kFirst, kFirst + 1));
  EXPECT_THAT((*taken)[1].flat<TString>(), ElementsAre("b", "a", "c"));
  EXPECT_THAT((*taken)[2].flat<float>(), ElementsAre(3, 4, 1, 2, 5, 6));
  EXPECT_THAT((*taken)[3].flat<TString>(), ElementsAre("b", "a", "c"));
}

TEST_F(BarrierOpsTest, WrongInsertionsAreErrors) {
  EXPECT_THAT(Numbers({"a"}, Tensor::Of<float>({1, 3}, {1, 2, 3})),
              IsError(StatusCode::kInvalidArgument, "[1,2]"));
  EXPECT_THAT(Numbers({"a", "b"}, Tensor::Of<float>({1, 2}, {1, 2})),
              IsError(StatusCode::kInvalidArgument, "[2,2]"));
  EXPECT_THAT(Numbers({"a"}, Tensor(DType::kFloat, {1, 0})),
              IsError(StatusCode::kInvalidArgument, "Tensors with no elements are not supported"));
  ASSERT_OK(Texts({"a"}));
  EXPECT_THAT(Texts({"a"}), IsError(StatusCode::kInvalidArgument, "already has a value"));
  EXPECT_THAT(Take(take_, -1), IsError(StatusCode::kInvalidArgument, "-1"));
}

TEST_F(BarrierOpsTest, ATakeWaitsUntilTheTuplesAreThere) {
  auto taken = std::async(std::launch::async, [&] { return Take(take_, 2); });
  ASSERT_OK(Texts({"a", "b"}));
  ASSERT_OK(Numbers({"a"}, Tensor::Of<float>({1, 2}, {1, 2})));
  EXPECT_EQ(taken.wait_for(20ms), std::future_status::timeout);
  ASSERT_OK(Numbers({"b"}, Tensor::Of<float>({1, 2}, {1, 2})));
  ASSERT_OK(taken.get());
  EXPECT_THAT(Take(take_, 1, 20ms), IsError(StatusCode::kDeadlineExceeded, ""));
  EXPECT_THAT(Sizes(), ElementsAre(0, 0));
}

TEST_F(BarrierOpsTest, AClosedBarrierGivesWhatItHas) {
  ASSERT_OK(Texts({"a", "b"}));
  ASSERT_OK(Numbers({"a"}, Tensor::Of<float>({1, 2}, {1, 2})));
  ASSERT_OK(Run(close_));
  EXPECT_THAT(Run(close_), IsError(StatusCode::kCancelled, "already closed"));
  EXPECT_THAT(Texts({"c"}), IsError(StatusCode::kCancelled, "closed"));
  ASSERT_OK(Numbers({"b"}, Tensor::Of<float>({1, 2}, {1, 2})));
  EXPECT_THAT(Take(take_, 3), IsError(StatusCode::kOutOfRange, "total size 2"));
  const auto taken = Take(take_less_, 3);
  ASSERT_OK(taken);
  EXPECT_EQ((*taken)[0].num_elements(), 2);
  EXPECT_THAT(Take(take_less_, 1), IsError(StatusCode::kOutOfRange, "total size 0"));
}

TEST_F(BarrierOpsTest, CancellingDropsWhatIsIncomplete) {
  ASSERT_OK(Texts({"a"}));
  auto taken = std::async(std::launch::async, [&] { return Take(take_, 1); });
  ASSERT_OK(Run(cancel_));
  EXPECT_THAT(taken.get(), IsError(StatusCode::kOutOfRange, "closed"));
  EXPECT_THAT(Sizes(), ElementsAre(0, 0));
  EXPECT_THAT(Texts({}), IsError(StatusCode::kCancelled, "closed"));
}

}  // namespace
}  // namespace tenon::testing
