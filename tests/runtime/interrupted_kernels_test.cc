// SPDX-License-Identifier: Apache-2.0
//
// Kernels at work end soon after their step is cancelled, whatever they do.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include "core/parallel.h"
#include "core/sanitizers.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/state_ops.h"
#include "runtime/local_session.h"
#include "tests/testing/registry.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::AllOps;
using testing::IsError;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Far less than each of the kernels here would take, and far more than it should take to end one.
/// Half a second on a machine that has nothing else to do.
constexpr milliseconds kSoon{kSanitized ? 30000 : 6000};

struct Expensive {
  std::string name;
  /// Adds the node, whose inputs are not constant.
  std::function<Output(const Scope& s, Output zero)> build;

  friend void PrintTo(const Expensive& e, std::ostream* out) { *out << e.name; }
};

/// A matrix that only the step makes, of the value `zero`.
Output Filled(const Scope& s, Output zero, const std::vector<int32_t>& dims, DType type) {
  const Output value = s.Op("Cast").Input(zero).Attr("DstT", type).Output();
  return s.Op("Fill").Input(Const(s, Tensor::Vector(dims))).Input(value).Output();
}

Expensive Product(DType type, int32_t n) {
  return {StrCat("MatMulOf", ToString(type)), [type, n](const Scope& s, Output zero) {
            const Output x = Filled(s, zero, {n, n}, type);
            return MatMul(s, x, x);
          }};
}

Expensive Random(const std::string& op) {
  return {op, [op](const Scope& s, Output zero) {
            const Output shape = s.Op("Cast").Input(zero).Attr("DstT", DType::kInt32).Output();
            return s.Op(op)
                .Input(Reshape(s, Add(s, shape, Const<int32_t>(s, 1 << 28)),
                               Const<int32_t>(s, std::vector<int32_t>{1})))
                .Attr("dtype", DType::kFloat)
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
    ::testing::Values(
        Product(DType::kFloat, 9000), Product(DType::kDouble, 6000), Product(DType::kInt32, 4000),
        Product(DType::kHalf, 6000),
        Expensive{"BatchMatMul",
                  [](const Scope& s, Output zero) {
                    const Output x = Filled(s, zero, {200, 1500, 1500}, DType::kFloat);
                    return s.Op("BatchMatMul").Input(x).Input(x).Output();
                  }},
        Expensive{"Pow",
                  [](const Scope& s, Output zero) {
                    return s.Op("Pow")
                        .Input(Filled(s, zero, {1 << 15, 1}, DType::kDouble))
                        .Input(Filled(s, zero, {1, 1 << 12}, DType::kDouble))
                        .Output();
                  }},
        Random("TruncatedNormal"), Random("RandomStandardNormal"),
        Expensive{"AsString",
                  [](const Scope& s, Output zero) {
                    return s.Op("AsString")
                        .Input(Filled(s, zero, {1 << 22}, DType::kFloat))
                        .Attr("width", 1000)
                        .Output();
                  }},
        Expensive{"TileOfText",
                  [](const Scope& s, Output zero) {
                    const Output text = s.Op("AsString").Input(zero).Attr("width", 900).Output();
                    return s.Op("Fill")
                        .Input(Const(s, Tensor::Vector<int32_t>({1 << 22})))
                        .Input(text)
                        .Output();
                  }}),
    [](const auto& info) { return info.param.name; });

TEST_P(InterruptedKernelsTest, EndSoonAfterTheTimeLimitOfTheirStep) {
  const Scope root = Scope::Root(AllOps());
  const Output zero = Placeholder(root.WithName("zero"), DType::kFloat);
  const Output large = GetParam().build(root, zero);
  root.WithName("y").Op("Shape").Input(large).Output();
  ASSERT_OK(root.status());
  auto session = MakeLocalSession(root.graph());
  ASSERT_OK(session);
  const milliseconds limit(300);
  const auto start = steady_clock::now();
  EXPECT_THAT((*session)->Run({{"zero", Tensor::Scalar(0.0f)}}, {"y"}, {}, {.timeout = limit}),
              IsError(StatusCode::kDeadlineExceeded, "longer than 300 ms"));
  EXPECT_LT(steady_clock::now() - start, limit + kSoon);
}

TEST(InterruptedStepTest, ClosingTheSessionEndsAnExpensiveKernel) {
  const Scope root = Scope::Root(AllOps());
  const Output zero = Placeholder(root.WithName("zero"), DType::kFloat);
  const Output x = Filled(root, zero, {4000, 4000}, DType::kInt32);
  root.WithName("y").Op("Shape").Input(MatMul(root, x, x)).Output();
  auto session = MakeLocalSession(root.graph());
  ASSERT_OK(session);
  auto step = std::async(std::launch::async, [&] {
    return (*session)->Run({{"zero", Tensor::Scalar(0.0f)}}, {"y"}).status();
  });
  std::this_thread::sleep_for(milliseconds(300));
  const auto start = steady_clock::now();
  EXPECT_OK((*session)->Close());
  EXPECT_LT(steady_clock::now() - start, kSoon);
  EXPECT_THAT(step.get(), IsError(StatusCode::kCancelled, ""));
}

TEST(InterruptedStepTest, AVariableHasTheValueBeforeOrAfterItsUpdate) {
  constexpr int64_t kElements = 1 << 23;
  const Scope root = Scope::Root(AllOps());
  const Output variable = VariableV2(root.WithName("v"), {kElements}, DType::kFloat);
  const Output ones = Fill(root, Const<int64_t>(root, std::vector<int64_t>{kElements}),
                           Const(root, 1.0f));
  Assign(root.WithName("init"), variable, ones);
  AssignAdd(root.WithName("add"), variable, ones);
  Identity(root.WithName("value"), variable);
  ASSERT_OK(root.status());
  auto session = MakeLocalSession(root.graph());
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
