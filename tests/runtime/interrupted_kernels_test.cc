// SPDX-License-Identifier: Apache-2.0
//
// Kernels at work end soon after their step is cancelled, whatever they do.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include "core/base/parallel.h"
#include "core/base/sanitizers.h"
#include "ops/array/array_ops.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "ops/strings/strings_ops.h"
#include "runtime/session/local_session.h"
#include "tests/testing/cpu_time.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;
using testing::IsError;

/// Seconds of processors' time, which other programs do not lengthen: far less than each of the
/// kernels here would take, and far more than it should take to end one.
constexpr double kSoon = kSanitized ? 30 : 6;

struct Expensive {
  std::string name;
  /// Adds the node, whose inputs are not constant.
  std::function<Output(Output zero)> build;

  friend void PrintTo(const Expensive& e, std::ostream* out) { *out << e.name; }
};

/// A matrix that only the step makes, of the value `zero`.
Output Filled(Output zero, const std::vector<int32_t>& dims, DType type) {
  const Output value = Cast(zero, type);
  return Fill(dims, value);
}

Expensive Product(DType type, int32_t n) {
  return {StrCat("MatMulOf", ToString(type)), [type, n](Output zero) {
            const Output x = Filled(zero, {n, n}, type);
            return MatMul(x, x);
          }};
}

Expensive Random(const std::string& op) {
  return {op, [op](Output zero) {
            const Output shape = Cast(zero, DType::kInt32);
            return NodeBuilder(op)
                .Input(Reshape(Add(shape, 1 << 27), {1}))
                .Attr("dtype", DType::kDouble)
                .Output();
          }};
}

class InterruptedKernelsTest : public ::testing::TestWithParam<Expensive> {
 protected:
  // On however many cores, the kernels must take long.
  InterruptedKernelsTest() : threads_before_(ThreadBudget()) { SetThreadBudget(2); }
  ~InterruptedKernelsTest() override { SetThreadBudget(threads_before_); }

 private:
  const int threads_before_;
};

INSTANTIATE_TEST_SUITE_P(
    Kernels, InterruptedKernelsTest,
    ::testing::Values(Product(DType::kFloat, 9000), Product(DType::kDouble, 6000),
                      Product(DType::kInt32, 4000), Product(DType::kHalf, 6000),
                      Expensive{"BatchMatMul",
                                [](Output zero) {
                                  const Output x = Filled(zero, {200, 1500, 1500}, DType::kFloat);
                                  return BatchMatMul(x, x);
                                }},
                      Expensive{"Pow",
                                [](Output zero) {
                                  return Pow(Filled(zero, {1 << 15, 1}, DType::kDouble),
                                             Filled(zero, {1, 1 << 12}, DType::kDouble));
                                }},
                      Random("TruncatedNormal"), Random("RandomStandardNormal"),
                      Expensive{"AsString",
                                [](Output zero) {
                                  return AsString(Filled(zero, {1 << 22}, DType::kFloat),
                                                  {.width = 1000});
                                }},
                      Expensive{"TileOfText",
                                [](Output zero) {
                                  const Output text = AsString(zero, {.width = 900});
                                  return Fill({1 << 22}, text);
                                }}),
    [](const auto& info) { return info.param.name; });

TEST_P(InterruptedKernelsTest, EndSoonAfterTheTimeLimitOfTheirStep) {
  if (kSanitized && GetParam().name == "MatMulOfdouble") {
    GTEST_SKIP() << "a block of Eigen's product, of a second, takes sanitizers five minutes";
  }
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output zero = Placeholder(DType::kFloat, {}, {.name = "zero"});
  const Output large = GetParam().build(zero);
  ShapeOf(large, {.name = "y"});
  ASSERT_OK(graph.error());
  auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  const milliseconds limit(300);
  const testing::CpuTime time;
  EXPECT_THAT((*session)->Run({{"zero", Tensor::Scalar(0.0f)}}, {"y"}, {}, {.timeout = limit}),
              IsError(StatusCode::kDeadlineExceeded, "longer than 300 ms"));
  EXPECT_LT(time.seconds(), kSoon);
}

TEST(InterruptedStepTest, ClosingTheSessionEndsAnExpensiveKernel) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output zero = Placeholder(DType::kFloat, {}, {.name = "zero"});
  const Output x = Filled(zero, {4000, 4000}, DType::kInt32);
  ShapeOf(MatMul(x, x), {.name = "y"});
  auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  auto step = std::async(std::launch::async, [&] {
    return (*session)->Run({{"zero", Tensor::Scalar(0.0f)}}, {"y"}).status();
  });
  std::this_thread::sleep_for(milliseconds(300));
  const testing::CpuTime time;
  EXPECT_OK((*session)->Close());
  EXPECT_LT(time.seconds(), kSoon);
  EXPECT_THAT(step.get(), IsError(StatusCode::kCancelled, ""));
}

TEST(InterruptedStepTest, AVariableHasTheValueBeforeOrAfterItsUpdate) {
  constexpr int64_t kElements = 1 << 23;
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output variable = VariableV2({kElements}, DType::kFloat, {.name = "v"});
  const Output ones = Fill(Tensor::Vector<int64_t>({kElements}), 1.0f);
  Assign(variable, ones, {.name = "init"});
  AssignAdd(variable, ones, {.name = "add"});
  Identity(variable, {.name = "value"});
  ASSERT_OK(graph.error());
  auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {"init"}));
  int failed = 0;
  for (const int ms : {1, 2, 3, 5, 8}) {
    failed += !(*session)->Run({}, {}, {"add"}, {.timeout = milliseconds(ms)}).ok();
    const auto value = (*session)->Run({}, {"value"});
    ASSERT_OK(value);
    const absl::Span<const float> numbers = (*value)[0].flat<float>();
    ASSERT_EQ(std::count(numbers.begin(), numbers.end(), numbers[0]), kElements);
  }
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace tenon
