// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/numeric_expression.h"

#include <algorithm>
#include <cmath>

namespace tenon {
namespace {

template <typename F>
void MapTop(std::vector<std::vector<double>>* stack, F f) {
  for (double& x : stack->back()) x = f(x);
}

template <typename F>
void JoinTop(std::vector<std::vector<double>>* stack, F f) {
  const std::vector<double> right = std::move(stack->back());
  stack->pop_back();
  std::vector<double>& left = stack->back();
  std::transform(left.begin(), left.end(), right.begin(), left.begin(), f);
}

}  // namespace

void NumericExpression::Evaluate(absl::Span<const double* const> values, int64_t count,
                                 double* out) const {
  std::vector<std::vector<double>> stack;
  for (const Step& step : steps) {
    switch (step.op) {
      case Op::kColumn:
        stack.emplace_back(values[step.index], values[step.index] + count);
        break;
      case Op::kNumber:
        stack.emplace_back(count, step.number);
        break;
      case Op::kAdd:
        JoinTop(&stack, [](double a, double b) { return a + b; });
        break;
      case Op::kSubtract:
        JoinTop(&stack, [](double a, double b) { return a - b; });
        break;
      case Op::kMultiply:
        JoinTop(&stack, [](double a, double b) { return a * b; });
        break;
      case Op::kDivide:
        JoinTop(&stack, [](double a, double b) { return a / b; });
        break;
      case Op::kPower:
        JoinTop(&stack, [](double a, double b) { return std::pow(a, b); });
        break;
      case Op::kNegate:
        MapTop(&stack, [](double x) { return -x; });
        break;
      case Op::kLog:
        MapTop(&stack, [](double x) { return std::log(x); });
        break;
      case Op::kLog1p:
        MapTop(&stack, [](double x) { return std::log1p(x); });
        break;
      case Op::kSqrt:
        MapTop(&stack, [](double x) { return std::sqrt(x); });
        break;
      case Op::kExp:
        MapTop(&stack, [](double x) { return std::exp(x); });
        break;
      case Op::kAbs:
        MapTop(&stack, [](double x) { return std::abs(x); });
        break;
    }
  }
  std::copy_n(stack.back().begin(), count, out);
}

}  // namespace tenon
