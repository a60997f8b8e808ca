// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>
#include <thread>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/io/io_ops.h"
#include "ops/math/math_ops.h"
#include "ops/state/state_ops.h"
#include "ops/strings/strings_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

// Steps of one session that read and update the same variables at the same time, without any order.

namespace tenon::testing {
namespace {

class VariableRacesTest : public ::testing::Test {
 protected:
  /// A variable that has a value after Begin.
  Output Variable(const char* name, const Output& initial) {
    const Output v = VariableV2(initial.shape().ToShape(), initial.dtype(), {.name = name});
    initializers_.push_back(Assign(v, initial));
    return v;
  }

  void Begin() {
    ASSERT_OK(graph_.error());
    auto session = MakeLocalSession(graph_);
    ASSERT_OK(session.status());
    session_ = *std::move(session);
    ASSERT_OK(session_->Run({}, {}, initializers_).status());
  }

  /// Runs each target so often, a thread a target. Errors are the steps' own.
  void RunBeside(const std::vector<Output>& targets, int rounds) {
    std::vector<std::thread> threads;
    for (const Output& target : targets) {
      threads.emplace_back([this, target, rounds] {
        for (int i = 0; i < rounds; ++i) (void)session_->Run({}, {}, {target});
      });
    }
    for (std::thread& t : threads) t.join();
  }

  Graph graph_{AllOps()};
  GraphBuilding building_{graph_};
  std::vector<Output> initializers_;
  std::unique_ptr<Session> session_;
};

TEST_F(VariableRacesTest, DivisorsMayBecomeZeroWhileTheyAreUsed) {
  const Output v = Variable("v", Const({100, 100, 100}));
  const Output divisors = Variable("divisors", Const({1, 1, 1}));
  const Output read = Identity(divisors);
  const Output step = ScatterDiv(v, Const({0, 1, 2}), read);
  const std::vector<Output> targets = {step, Assign(divisors, Const({0, 0, 0})),
                                       Assign(divisors, Const({1, 1, 1})), Div(Identity(v), read),
                                       FloorMod(Identity(v), read)};
  ASSERT_NO_FATAL_FAILURE(Begin());
  RunBeside(targets, 300);
  EXPECT_OK(session_->Run({}, {v}).status());
}

TEST_F(VariableRacesTest, TextMayChangeWhileItIsRead) {
  const Output v = Variable("v", Const(std::vector<std::string>{"short", std::string(100, 'a')}));
  const Output read = Identity(v);
  std::vector<Output> targets = {StringJoin({read, Const("!")}),
                                 StringLength(Reshape(read, {2, 1}))};
  for (const char c : {'b', 'c', 'd'}) {
    targets.push_back(Assign(v, Const(std::vector<std::string>{std::string(60, c), "short"})));
  }
  ASSERT_NO_FATAL_FAILURE(Begin());
  RunBeside(targets, 300);
  const auto values = session_->Run({}, {v});
  ASSERT_OK(values.status());
  EXPECT_EQ((*values)[0].flat<TString>()[1], "short");
}

TEST_F(VariableRacesTest, ShapesMayChangeWhileTheyAreUsed) {
  const Output v = VariableV2(PartialShape(), DType::kFloat, {.name = "v"});
  const auto set = [&](int64_t n) {
    return Assign(v, Const(Tensor::Zeros(DType::kFloat, {n, 3})), {.validate_shape = false});
  };
  initializers_.push_back(set(4));
  const Output read = Identity(v);
  const Output rows = Const({3, 0}), ones = Const(Tensor::Zeros(DType::kFloat, {2, 3}));
  const std::vector<Output> targets = {set(4),
                                       set(400),
                                       set(1),
                                       Sum(read, {0, 1}),
                                       GatherV2(read, rows, 0),
                                       ScatterAdd(v, rows, ones),
                                       AssignAdd(v, Identity(read)),
                                       Slice(read, {1, 0}, {-1, 2})};
  ASSERT_NO_FATAL_FAILURE(Begin());
  RunBeside(targets, 200);
  EXPECT_OK(session_->Run({}, {v}).status());
}

TEST_F(VariableRacesTest, EachVariableOfACheckpointIsOfOneMoment) {
  constexpr int kThreads = 8, kVariables = 3, kElements = 20'000;
  std::vector<Output> variables, updates, values;
  for (int i = 0; i < kVariables; ++i) {
    const std::string name = StrCat("v", i);
    variables.push_back(Variable(name.c_str(), Const(Tensor::Zeros(DType::kFloat, {kElements}))));
    values.push_back(Identity(variables.back()));
  }
  Tensor ones(DType::kFloat, {kElements});
  std::fill_n(ones.data<float>(), kElements, 1.0f);
  for (int i = 0; i < kThreads; ++i) {
    updates.push_back(AssignAdd(variables[i % kVariables], Const(ones)));
  }
  const std::string folder = ::testing::TempDir() + "/variable_races";
  std::filesystem::create_directories(folder);
  const Output prefix = Const(folder + "/checkpoint");
  const Output names = Const(std::vector<std::string>{"v0", "v1", "v2"});
  const Output whole = Const(std::vector<std::string>(kVariables, ""));
  Node* const save = SaveV2(prefix, names, whole, values);
  const std::vector<Output> restored =
      RestoreV2(prefix, names, whole, std::vector<DType>(kVariables, DType::kFloat));
  ASSERT_NO_FATAL_FAILURE(Begin());
  std::thread updating([&] { RunBeside(updates, 60); });
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(session_->Run({}, {}, {Output(save)}).status());
    const auto read = session_->Run({}, restored);
    ASSERT_OK(read.status());
    for (const Tensor& t : *read) {
      const auto elements = t.flat<float>();
      EXPECT_EQ(std::count(elements.begin(), elements.end(), elements[0]), kElements);
    }
  }
  updating.join();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tenon::testing
