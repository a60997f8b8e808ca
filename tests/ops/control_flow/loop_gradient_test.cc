// SPDX-License-Identifier: Apache-2.0
// Gradients through while loops, beside what the unrolled loop gives, and finite differences.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/tensor_array/tensor_array_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

using Values = std::vector<Output>;

/// A condition on the loop's first value.
auto Below(int limit) {
  return [limit](const Values& v) { return v[0] < limit; };
}

TEST(LoopGradientTest, PowerByALoop) {
  GraphSession s;
  const Output x = Placeholder(DType::kDouble, Shape());
  const Output n = Placeholder(DType::kInt32, Shape());
  const Values exits = WhileLoop(
      {0, Const(1.0, {.dtype = DType::kDouble})}, [&](const Values& v) { return v[0] < n; },
      [&](const Values& v) {
        return Values{v[0] + 1, v[1] * x};
      });
  const Output dx = Gradients(exits[1], {x})[0];
  for (const int times : {0, 1, 2, 7}) {
    const auto values = s.Run({exits[1], dx}, {},
                              {{x.name(), Tensor::Scalar(1.5)}, {n.name(), Tensor::Scalar(times)}});
    ASSERT_OK(values.status());
    EXPECT_DOUBLE_EQ((*values)[0].scalar<double>(), std::pow(1.5, times));
    EXPECT_DOUBLE_EQ((*values)[1].scalar<double>(), times * std::pow(1.5, times - 1));
  }
}

/// h <- tanh(x[t] w + h u + b), with weights that enter once; through all of it, or unrolled.
struct Recurrence {
  static constexpr int kSteps = 4;
  Output x = Const({{{0.1, -0.4, 0.3}, {0.2, 0.5, -0.7}},
                    {{0.8, 0.1, 0.3}, {-0.2, 0.9, 0.4}},
                    {{0.6, -0.5, 0.2}, {0.3, 0.3, -0.9}},
                    {{-0.1, 0.7, 0.5}, {0.4, -0.6, 0.1}}},
                   {.dtype = DType::kDouble});
  Output w = Const({{0.3, -0.2}, {0.5, 0.1}, {-0.6, 0.4}}, {.dtype = DType::kDouble});
  Output u = Const({{0.2, 0.7}, {-0.3, 0.5}}, {.dtype = DType::kDouble});
  Output b = Const({0.05, -0.1}, {.dtype = DType::kDouble});
  Output h0 = Const({{0.3, 0.1}, {-0.2, 0.6}}, {.dtype = DType::kDouble});

  Values Gradient(const Output& h) const { return Gradients(h * h, {x, w, u, b, h0}); }
  static Output Step(Output x, Output h, Output w, Output u, Output b) {
    return Tanh(MatMul(x, w) + MatMul(h, u) + b);
  }
};

void ExpectEqual(GraphSession* s, const Values& looped, const Values& unrolled) {
  ASSERT_EQ(looped.size(), unrolled.size());
  for (size_t i = 0; i < looped.size(); ++i) {
    EXPECT_THAT(Numbers(s->Value(looped[i])),
                Pointwise(DoubleNear(1e-12), Numbers(s->Value(unrolled[i]))))
        << i;
  }
}

TEST(LoopGradientTest, ARecurrentNetworkIsTheUnrolledOne) {
  GraphSession s;
  const Recurrence r;
  const Values exits =
      WhileLoop({0, r.h0}, Below(Recurrence::kSteps), [&](const Values& v) -> Values {
        return {v[0] + 1, Recurrence::Step(GatherV2(r.x, v[0], 0), v[1], r.w, r.u, r.b)};
      });
  Output h = r.h0;
  for (int t = 0; t < Recurrence::kSteps; ++t) {
    h = Recurrence::Step(GatherV2(r.x, t, 0), h, r.w, r.u, r.b);
  }
  ExpectEqual(&s, r.Gradient(exits[1]), r.Gradient(h));
}

TEST(LoopGradientTest, TensorArraysGoThroughTheLoop) {
  GraphSession s;
  const Recurrence r;
  const auto inputs = TensorArrayV3(Recurrence::kSteps, DType::kDouble);
  const Output filled =
      TensorArrayScatterV3(inputs.handle, Range(0, Recurrence::kSteps, 1), r.x, inputs.flow);
  const auto outputs = TensorArrayV3(Recurrence::kSteps, DType::kDouble);
  const Values exits =
      WhileLoop({0, r.h0, outputs.flow}, Below(Recurrence::kSteps), [&](const Values& v) -> Values {
        const Output now = TensorArrayReadV3(inputs.handle, v[0], filled, DType::kDouble);
        const Output next = Recurrence::Step(now, v[1], r.w, r.u, r.b);
        return {v[0] + 1, next, TensorArrayWriteV3(outputs.handle, v[0], next, v[2])};
      });
  const Output all = TensorArrayGatherV3(outputs.handle, Range(0, Recurrence::kSteps, 1), exits[2],
                                         DType::kDouble);
  Output h = r.h0;
  Values hs;
  for (int t = 0; t < Recurrence::kSteps; ++t) {
    hs.push_back(h = Recurrence::Step(GatherV2(r.x, t, 0), h, r.w, r.u, r.b));
  }
  ExpectEqual(&s, r.Gradient(all), r.Gradient(Pack(hs)));
}

/// Two values of which each feeds the other, one of which nobody reads after the loop.
TEST(LoopGradientTest, ValuesThatFeedEachOther) {
  GraphSession s;
  const Output a = Const(0.7, {.dtype = DType::kDouble}), b = Const(1.3, {.dtype = DType::kDouble});
  const auto step = [](Output p, Output q) { return std::pair(p * q, Sin(p) + q); };
  const Values exits = WhileLoop({0, a, b}, Below(3), [&](const Values& v) -> Values {
    const auto [p, q] = step(v[1], v[2]);
    return {v[0] + 1, p, q};
  });
  Output p = a, q = b;
  for (int i = 0; i < 3; ++i) std::tie(p, q) = step(p, q);
  ExpectEqual(&s, Gradients(exits[1], {a, b}), Gradients(p, {a, b}));
}

TEST(LoopGradientTest, TwoLoopsAndAGraphAround) {
  GraphSession s;
  const Output x = Const({0.4, -1.1}, {.dtype = DType::kDouble});
  const auto loop = [](Output of) {
    return WhileLoop({0, of}, Below(2), [](const Values& v) {
      return Values{v[0] + 1, v[1] * Cos(v[1])};
    })[1];
  };
  const auto plain = [](Output of) {
    for (int i = 0; i < 2; ++i) of = of * Cos(of);
    return of;
  };
  const Output looped = loop(Exp(loop(x)) + x) * loop(x);
  const Output unrolled = plain(Exp(plain(x)) + x) * plain(x);
  ExpectEqual(&s, Gradients(looped, {x}), Gradients(unrolled, {x}));
}

/// The branches of a body may have gradients where these need no value of a branch.
TEST(LoopGradientTest, ABranchInTheLoop) {
  GraphSession s;
  const Output x = Const(3.0, {.dtype = DType::kDouble});
  const Values exits = WhileLoop({0, x}, Below(3), [](const Values& v) -> Values {
    const Output odd = Equal(v[0] % 2, 1);
    return {v[0] + 1, Cond(
                          odd, [&] { return -v[1]; }, [&] { return v[1]; })};
  });
  EXPECT_THAT(Numbers(s.Value(Gradients(exits[1], {x})[0])), ElementsAre(-1.0));
}

/// What a loop gives and what `unrolled` says of the same, with their gradients.
void ExpectGradients(GraphSession* s, const Output& looped, const Output& unrolled,
                     const Values& xs) {
  ExpectEqual(s, {looped}, {unrolled});
  ExpectEqual(s, Gradients(looped, xs), Gradients(unrolled, xs));
}

Values Repeat(Output times, const Values& from, const std::function<Values(Output, Values)>& body) {
  Values begin = {Identity(times) * 0};
  begin.insert(begin.end(), from.begin(), from.end());
  const Values exits = WhileLoop(
      begin, [&](const Values& v) { return v[0] < times; },
      [&](const Values& v) {
        Values next = body(v[0], {v.begin() + 1, v.end()});
        next.insert(next.begin(), v[0] + 1);
        return next;
      });
  return {exits.begin() + 1, exits.end()};
}

/// The inner loop takes another number of turns in each iteration, none in the first.
TEST(LoopGradientTest, ALoopInALoop) {
  GraphSession s;
  const Output x = Const({0.4, -1.1}, {.dtype = DType::kDouble});
  const Output w = Const(1.3, {.dtype = DType::kDouble});
  const auto step = [](Output h, Output w, Output x) { return Sin(h * w) + h * x; };
  const Values exits = Repeat(Const(4), {x}, [&](Output i, Values v) {
    const Values inner =
        Repeat(i, {v[0]}, [&](Output, Values u) { return Values{step(u[0], w, x)}; });
    return Values{Cos(inner[0]) * v[0]};
  });
  Output h = x;
  for (int i = 0; i < 4; ++i) {
    Output u = h;
    for (int k = 0; k < i; ++k) u = step(u, w, x);
    h = Cos(u) * h;
  }
  ExpectGradients(&s, exits[0], h, {x, w});
}

/// Nothing but the order of stacks ties the turns of the inner loops together.
TEST(LoopGradientTest, InnerLoopsThatDoNotDependOnEachOther) {
  GraphSession s;
  const Output x = Const({0.4, -1.1, 0.9}, {.dtype = DType::kDouble});
  const Output zero = Const(0.0, {.dtype = DType::kDouble});
  const Values exits = Repeat(Const(9), {zero}, [&](Output i, Values v) {
    const Values inner = Repeat(9 - i, {GatherV2(x, i % 3, 0)},
                                [&](Output, Values u) { return Values{Sin(u[0]) * u[0] + u[0]}; });
    return Values{v[0] + inner[0]};
  });
  Output sum = Const(0.0, {.dtype = DType::kDouble});
  for (int i = 0; i < 9; ++i) {
    Output u = GatherV2(x, i % 3, 0);
    for (int k = i; k < 9; ++k) u = Sin(u) * u + u;
    sum = sum + u;
  }
  for (int run = 0; run < 5; ++run) ExpectGradients(&s, exits[0], sum, {x});
}

TEST(LoopGradientTest, ThreeLoopsWithinEachOther) {
  GraphSession s;
  const Output x = Const(0.7, {.dtype = DType::kDouble});
  const std::function<Output(int, Output)> nested = [&](int depth, Output h) {
    if (depth == 3) return Sin(h) * h + h;
    const Output two = h.node == x.node ? Const(2) : Cast(h * 0.0, DType::kInt32) + 2;
    return Repeat(Identity(two), {h},
                  [&](Output, Values v) { return Values{Cos(nested(depth + 1, v[0])) + v[0]}; })[0];
  };
  const std::function<Output(int, Output)> unrolled = [&](int depth, Output h) {
    if (depth == 3) return Sin(h) * h + h;
    for (int i = 0; i < 2; ++i) h = Cos(unrolled(depth + 1, h)) + h;
    return h;
  };
  ExpectGradients(&s, nested(0, x), unrolled(0, x), {x});
}

/// Values of a branch that gradients need, in iterations that take it and in others.
TEST(LoopGradientTest, ValuesOfBranchesInALoop) {
  GraphSession s;
  const Output x = Const({0.4, -1.1}, {.dtype = DType::kDouble});
  const Output w = Const(1.3, {.dtype = DType::kDouble});
  const auto odd = [](Output h, Output w) { return Sin(h) * h * w; };
  const Values exits = Repeat(Const(5), {x}, [&](Output i, Values v) {
    return Values{Cond(
        Equal(i % 2, 1), [&] { return odd(v[0], w); }, [&] { return Exp(Cos(v[0])) * v[0]; })};
  });
  Output h = x;
  for (int i = 0; i < 5; ++i) h = i % 2 == 1 ? odd(h, w) : Exp(Cos(h)) * h;
  ExpectGradients(&s, exits[0], h, {x, w});
}

TEST(LoopGradientTest, BranchesWithinBranchesInALoop) {
  GraphSession s;
  const Output x = Const({0.4, -1.1}, {.dtype = DType::kDouble});
  const Values exits = Repeat(Const(8), {x}, [&](Output i, Values v) {
    const Output& h = v[0];
    return Values{Cond(
        i < 5,
        [&] {
          const Output u = Sin(h);
          return Tanh(Cond(
              Equal(i % 2, 1), [&] { return Exp(Sin(u)) * u; }, [&] { return Cos(u) * u; }));
        },
        [&] { return Sin(h) + h; })};
  });
  Output h = x;
  for (int i = 0; i < 8; ++i) {
    const Output u = Sin(h);
    h = i >= 5 ? u + h : Tanh(i % 2 == 1 ? Exp(Sin(u)) * u : Cos(u) * u);
  }
  ExpectGradients(&s, exits[0], h, {x});
}

/// An inner loop that runs in some iterations only, with a branch in it.
TEST(LoopGradientTest, ALoopInABranchOfALoop) {
  GraphSession s;
  const Output x = Const(0.7, {.dtype = DType::kDouble});
  const Values exits = Repeat(Const(6), {x}, [&](Output i, Values v) {
    return Values{Cond(
        Equal(i % 2, 1),
        [&] {
          return Repeat(i, {v[0]}, [](Output k, Values u) {
            const Output& t = u[0];
            return Values{Cond(
                k < 2, [&] { return Sin(t) + t * t; }, [&] { return Cos(t) * t; })};
          })[0];
        },
        [&] { return Tanh(v[0]) + v[0]; })};
  });
  Output h = x;
  for (int i = 0; i < 6; ++i) {
    if (i % 2 == 0) h = Tanh(h) + h;
    for (int k = 0; i % 2 == 1 && k < i; ++k) h = k < 2 ? Sin(h) + h * h : Cos(h) * h;
  }
  ExpectGradients(&s, exits[0], h, {x});
}

}  // namespace
}  // namespace tenon::testing
