// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "core/gradient/gradients.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

// Functions of numbers: special ones, parts of complex ones, bits, scans, and counts.

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

/// What the op makes of doubles, one for each input.
double Of(std::string_view op, std::initializer_list<double> inputs) {
  std::vector<Tensor> tensors;
  for (const double x : inputs) tensors.push_back(Tensor::Scalar(x));
  return RunOpOrDie(op, tensors).scalar<double>();
}

TEST(SpecialFunctionsTest, HaveTheirKnownValues) {
  constexpr double kClose = 1e-9, kPi = std::numbers::pi;
  EXPECT_NEAR(Of("Lgamma", {5}), std::log(24), kClose);
  EXPECT_NEAR(Of("Digamma", {1}), -0.5772156649015329, kClose);
  EXPECT_NEAR(Of("Polygamma", {1, 1}), kPi * kPi / 6, kClose);
  EXPECT_TRUE(std::isnan(Of("Polygamma", {0.5, 1})));
  EXPECT_NEAR(Of("Zeta", {2, 1}), kPi * kPi / 6, kClose);
  EXPECT_NEAR(Of("Igamma", {1, 2}), 1 - std::exp(-2), kClose);
  EXPECT_NEAR(Of("Igammac", {1, 2}), std::exp(-2), kClose);
  EXPECT_NEAR(Of("Betainc", {2, 1, 0.3}), 0.09, kClose);
  EXPECT_NEAR(Of("Ndtri", {0.975}), 1.959963984540054, kClose);
  EXPECT_NEAR(Of("Erfinv", {std::erf(0.7)}), 0.7, kClose);
  EXPECT_NEAR(Of("BesselI0", {1}), 1.2660658777520084, kClose);
  EXPECT_NEAR(Of("BesselI1", {1}), 0.5651591039924851, kClose);
  EXPECT_NEAR(Of("BesselI0e", {1}), 1.2660658777520084 / std::numbers::e, kClose);
  EXPECT_NEAR(Of("BesselI1e", {1}), 0.5651591039924851 / std::numbers::e, kClose);
  EXPECT_NEAR(Of("BesselK0", {1}), 0.42102443824070834, kClose);
  EXPECT_NEAR(Of("BesselK1", {1}), 0.6019072301972346, kClose);
  EXPECT_NEAR(Of("BesselK0e", {1}), 0.42102443824070834 * std::numbers::e, kClose);
  EXPECT_NEAR(Of("BesselK1e", {1}), 0.6019072301972346 * std::numbers::e, kClose);
  EXPECT_NEAR(Of("BesselJ0", {1}), 0.7651976865579666, kClose);
  EXPECT_NEAR(Of("BesselJ1", {1}), 0.44005058574493355, kClose);
  EXPECT_NEAR(Of("BesselY0", {1}), 0.088256964215677, kClose);
  EXPECT_NEAR(Of("BesselY1", {1}), -0.7812128213002887, kClose);
  EXPECT_NEAR(Of("Atan2", {1, -1}), 0.75 * kPi, kClose);
  EXPECT_EQ(Of("NextAfter", {1, 2}), 1 + std::numeric_limits<double>::epsilon());
}

TEST(SpecialFunctionsTest, BetaincWantsOneShape) {
  EXPECT_THAT(
      RunOp("Betainc",
            {Tensor(DType::kFloat, {2}), Tensor(DType::kFloat, {3}), Tensor(DType::kFloat, {})}, {},
            /*hide_inputs=*/true)
          .status,
      IsError(StatusCode::kInvalidArgument, "[2]"));
}

TEST(SpecialFunctionsTest, ZeroWinsOverWhatIsUndefined) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Of("Xlogy", {0, 0}), 0);
  EXPECT_EQ(Of("Xlog1py", {0, -1}), 0);
  EXPECT_EQ(Of("MulNoNan", {infinity, 0}), 0);
  EXPECT_TRUE(std::isnan(Of("MulNoNan", {0, infinity})));
}

TEST(ComplexOpsTest, PartsAndWholes) {
  using Complex64 = std::complex<float>;
  const Tensor z = Tensor::Vector<Complex64>({{3, 4}, {0, -1}});
  EXPECT_THAT(Numbers(RunOpOrDie("Real", {z})), ElementsAre(3, 0));
  EXPECT_THAT(Numbers(RunOpOrDie("Imag", {z})), ElementsAre(4, -1));
  EXPECT_THAT(Numbers(RunOpOrDie("ComplexAbs", {z})), ElementsAre(5, 1));
  EXPECT_FLOAT_EQ(RunOpOrDie("Angle", {z}).data<float>()[1], -std::numbers::pi / 2);
  const Tensor made =
      RunOpOrDie("Complex", {Tensor::Vector<float>({1, 2}), Tensor::Scalar<float>(3)});
  EXPECT_TRUE(made.Equals(Tensor::Vector<Complex64>({{1, 3}, {2, 3}})));
}

TEST(ComplexOpsTest, TheResultIsAsExactAsTheInput) {
  const Tensor z = Tensor::Scalar(std::complex<double>(1, 2));
  EXPECT_FALSE(RunOp("Real", {z}, {{"Tout", DType::kFloat}}).status.ok());
  EXPECT_EQ(RunOpOrDie("Imag", {z}, {{"Tout", DType::kDouble}}).scalar<double>(), 2);
}

TEST(ComplexOpsTest, GradientsReachBothParts) {
  GraphSession s;
  const Output x = Const(Tensor::Scalar(3.0)), y = Const(Tensor::Scalar(4.0));
  const Output z = Complex(x, y, {.Tout = DType::kComplex128});
  const auto gradient = [&](const Output& f) {
    const auto values = s.Run(Gradients(f, {x, y}));
    EXPECT_OK(values.status());
    return std::pair((*values)[0].scalar<double>(), (*values)[1].scalar<double>());
  };
  EXPECT_EQ(gradient(Real(z, {.Tout = DType::kDouble})), std::pair(1.0, 0.0));
  EXPECT_EQ(gradient(Imag(z, {.Tout = DType::kDouble})), std::pair(0.0, 1.0));
  EXPECT_EQ(gradient(ComplexAbs(z, {.Tout = DType::kDouble})), std::pair(0.6, 0.8));
  const auto [dx, dy] = gradient(Angle(z, {.Tout = DType::kDouble}));
  EXPECT_NEAR(dx, -4.0 / 25, 1e-12);
  EXPECT_NEAR(dy, 3.0 / 25, 1e-12);
}

TEST(ComplexOpsTest, DerivativesOfTanhAndSigmoidAreConjugated) {
  using Complex128 = std::complex<double>;
  GraphSession s;
  const Output x = Const(Tensor::Scalar(0.3)), y = Const(Tensor::Scalar(0.7));
  const Output z = Complex(x, y, {.Tout = DType::kComplex128});
  const Complex128 at(0.3, 0.7), one(1);
  const auto check = [&](const Output& f, Complex128 first, Complex128 second) {
    // The real part of an analytic f changes with x by Re f' and with y by -Im f'.
    const std::vector<Output> d = Gradients(Real(f, {.Tout = DType::kDouble}), {x, y});
    const std::vector<Output> dd = Gradients(d[0], {x, y});
    const auto found = s.Run({d[0], d[1], dd[0], dd[1]});
    ASSERT_OK(found.status());
    const double wanted[] = {first.real(), -first.imag(), second.real(), -second.imag()};
    for (int i = 0; i < 4; ++i) EXPECT_NEAR((*found)[i].scalar<double>(), wanted[i], 1e-12) << i;
  };
  const Complex128 t = std::tanh(at), g = one / (one + std::exp(-at));
  check(Tanh(z), one - t * t, -2.0 * t * (one - t * t));
  check(Sigmoid(z), g * (one - g), g * (one - g) * (one - 2.0 * g));
}

TEST(BitwiseTest, ShiftsStayWithinTheWord) {
  const Tensor x = Tensor::Vector<int8_t>({-64, 1, 3}), y = Tensor::Vector<int8_t>({1, 100, -1});
  EXPECT_THAT(Numbers(RunOpOrDie("LeftShift", {x, y})), ElementsAre(-128, -128, 3));
  EXPECT_THAT(Numbers(RunOpOrDie("RightShift", {x, y})), ElementsAre(-32, 0, 3));
  EXPECT_THAT(Numbers(RunOpOrDie("PopulationCount", {x})), ElementsAre(2, 1, 2));
  EXPECT_THAT(Numbers(RunOpOrDie("Invert", {x})), ElementsAre(63, -2, -4));
  EXPECT_THAT(Numbers(RunOpOrDie("BitwiseAnd", {x, y})), ElementsAre(0, 0, 3));
  EXPECT_THAT(Numbers(RunOpOrDie("BitwiseOr", {x, y})), ElementsAre(-63, 101, -1));
  EXPECT_THAT(Numbers(RunOpOrDie("BitwiseXor", {x, y})), ElementsAre(-63, 101, -4));
}

TEST(ScanTest, ProductsAndSumsOfExponentials) {
  const Tensor x = Tensor::Vector<double>({2, 3, 0.5}), axis = Tensor::Scalar(0);
  EXPECT_THAT(Numbers(RunOpOrDie("Cumprod", {x, axis})), ElementsAre(2, 6, 3));
  EXPECT_THAT(Numbers(RunOpOrDie("Cumprod", {x, axis}, {{"exclusive", true}, {"reverse", true}})),
              ElementsAre(1.5, 0.5, 1));
  const Tensor sums = RunOpOrDie(
      "CumulativeLogsumexp", {Tensor::Vector<double>({0, 0, -800}), axis}, {{"exclusive", true}});
  EXPECT_THAT(Numbers(sums), ElementsAre(-std::numeric_limits<double>::infinity(), 0, std::log(2)));
}

TEST(ScanTest, GradientOfAnExclusiveSumOfExponentials) {
  GraphSession s;
  const Output x = Const(Tensor::Vector<double>({0.5, -1, 2}));
  const Output sums = CumulativeLogsumexp(x, 0, {.exclusive = true});
  const Output dy = Const(Tensor::Vector<double>({0, 2, -1}));
  const Output dx = Gradients(sums, x, {.grad_ys = {dy}})[0];
  // The second sum is x0 alone; in the third x0 has the part e^0.5 / (e^0.5 + e^-1).
  const double part = std::exp(0.5) / (std::exp(0.5) + std::exp(-1));
  const std::vector<double> found = Numbers(s.Value(dx));
  EXPECT_NEAR(found[0], 2 - part, 1e-12);
  EXPECT_NEAR(found[1], part - 1, 1e-12);
  EXPECT_EQ(found[2], 0);
}

TEST(CountOpsTest, CountsAndWeighs) {
  const Tensor values = Tensor::Vector({1, 3, 1, 9}), size = Tensor::Scalar(4);
  const Tensor weights = Tensor::Vector<double>({0.5, 2, 1, 8}), none = Tensor(DType::kInt32, {0});
  EXPECT_THAT(Numbers(RunOpOrDie("Bincount", {values, size, weights})), ElementsAre(0, 1.5, 0, 2));
  EXPECT_THAT(Numbers(RunOpOrDie("Bincount", {values, size, none})), ElementsAre(0, 2, 0, 1));
  const Tensor rows = Tensor::Of({2, 2}, {1, 1, 0, 1});
  EXPECT_THAT(Numbers(RunOpOrDie("DenseBincount", {rows, Tensor::Scalar(2), none})),
              ElementsAre(0, 2, 1, 1));
  EXPECT_THAT(Numbers(RunOpOrDie("DenseBincount", {rows, Tensor::Scalar(2), none},
                                 {{"binary_output", true}})),
              ElementsAre(0, 1, 1, 1));
  const Tensor numbers = Tensor::Vector<float>({-5, 0, 1, 1.5, 2, 7});
  EXPECT_THAT(Numbers(RunOpOrDie("HistogramFixedWidth",
                                 {numbers, Tensor::Vector<float>({0, 2}), Tensor::Scalar(2)})),
              ElementsAre(2, 4));
  EXPECT_THAT(
      Numbers(RunOpOrDie("Bucketize", {numbers}, {{"boundaries", std::vector<float>{0, 1.5, 7}}})),
      ElementsAre(0, 1, 1, 2, 2, 3));
}

TEST(CountOpsTest, ARangeOfAHistogramMayBeMoreThanItsDtypeHolds) {
  const auto counts = [](const Tensor& values, const Tensor& range) {
    return Numbers(RunOpOrDie("HistogramFixedWidth", {values, range, Tensor::Scalar(2)}));
  };
  EXPECT_THAT(counts(Tensor::Vector<float>({3e38f, 100}), Tensor::Vector<float>({-1e38f, 3e38f})),
              ElementsAre(1, 1));
  EXPECT_THAT(counts(Tensor::Vector({1.5e308, 1e307, -1e307}), Tensor::Vector({-1.5e308, 1.5e308})),
              ElementsAre(1, 2));
  const int32_t most = std::numeric_limits<int32_t>::max();
  EXPECT_THAT(counts(Tensor::Vector({most, 1, -1, -most}), Tensor::Vector({-most, most})),
              ElementsAre(2, 2));
}

TEST(CountOpsTest, HistogramsHaveABinForEachNumberWhateverTheRange) {
  const double inf = HUGE_VAL, least = std::numeric_limits<double>::denorm_min();
  const auto counts = [](const std::vector<double>& values, const std::vector<double>& range) {
    return Numbers(RunOpOrDie(
        "HistogramFixedWidth",
        {Tensor::Vector<double>(values), Tensor::Vector<double>(range), Tensor::Scalar(2)}));
  };
  EXPECT_THAT(counts({-inf, 0.1, inf}, {0, 1}), ElementsAre(2, 1));
  EXPECT_THAT(counts({1, 5, inf}, {0, inf}), ElementsAre(2, 1));
  EXPECT_THAT(counts({-inf, 0, 1, 5}, {-inf, 1}), ElementsAre(1, 3));
  EXPECT_THAT(counts({-inf, 0, inf}, {-inf, inf}), ElementsAre(1, 2));
  EXPECT_THAT(counts({0, least, 1}, {0, least}), ElementsAre(1, 2));
  EXPECT_THAT(counts({0, least, 2 * least, 1}, {0, 2 * least}), ElementsAre(1, 3));
}

TEST(CountOpsTest, WrongCountsAreErrors) {
  const Tensor none = Tensor(DType::kInt32, {0}), size = Tensor::Scalar(4);
  const auto refuse = [](std::string_view op, const std::vector<Tensor>& inputs,
                         std::string_view text) {
    EXPECT_THAT(RunOp(op, inputs, {}, /*hide_inputs=*/true).status,
                IsError(StatusCode::kInvalidArgument, text));
  };
  refuse("Bincount", {Tensor::Vector({1, -1}), size, none}, "non-negative");
  refuse("Bincount", {Tensor::Vector({1}), Tensor::Scalar(-1), none}, "size (-1)");
  refuse("Bincount", {Tensor::Vector({1}), size, Tensor::Vector({1, 2})}, "weights");
  refuse("DenseBincount", {Tensor::Of({1, 1, 1}, {1}), size, none}, "at most rank 2");
  const Tensor range = Tensor::Vector({3, 3});
  refuse("HistogramFixedWidth", {none, range, size}, "value_range[0] < value_range[1]");
  refuse("HistogramFixedWidth", {none, range, Tensor::Scalar(0)}, "nbins");
  refuse("HistogramFixedWidth",
         {Tensor::Vector<float>({1, NAN}), Tensor::Vector<float>({0, 1}), Tensor::Scalar(2)},
         "Histogram values must not contain NaN");
  refuse("NthElement", {Tensor::Vector({1, 2}), Tensor::Scalar(2)},
         "must have last dimension > n = 2 but has 2");
  refuse("NthElement", {Tensor::Scalar(1), Tensor::Scalar(0)}, "input must have shape [..., k]");
  refuse("NthElement", {range, Tensor::Vector({1})}, "n must have shape []");
  refuse("NthElement", {range, Tensor::Scalar(-1)}, "non-negative but is -1");
  EXPECT_THAT(RunOp("Cross", {range, range}, {}, /*hide_inputs=*/true).status,
              IsError(StatusCode::kFailedPrecondition, "3 elements"));
}

TEST(CountOpsTest, TheNthElementCountsNanLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::Vector<float>({nan, 2, nan, 1, 3});
  EXPECT_EQ(RunOpOrDie("NthElement", {x, Tensor::Scalar(2)}).scalar<float>(), 3);
  EXPECT_TRUE(std::isnan(RunOpOrDie("NthElement", {x, Tensor::Scalar(3)}).scalar<float>()));
}

TEST(NumberOpsTest, NormsCrossProductsAndTruth) {
  const Tensor z = Tensor::Vector<std::complex<double>>({{3, 0}, {0, 4}}), axes = Tensor::Scalar(0);
  EXPECT_EQ(RunOpOrDie("EuclideanNorm", {z, axes}).scalar<std::complex<double>>(), 5.0);
  EXPECT_EQ(RunOpOrDie("EuclideanNorm", {Tensor::Vector<float>({-2}), axes}).scalar<float>(), 2);
  EXPECT_THAT(Numbers(RunOpOrDie("Cross", {Tensor::Vector({1, 2, 3}), Tensor::Vector({4, 5, 7})})),
              ElementsAre(-1, 5, -3));
  const auto truth = [](const Tensor& t) { return RunOpOrDie("ToBool", {t}).scalar<bool>(); };
  EXPECT_TRUE(truth(Tensor::Scalar(0.5f)) && truth(Tensor::Scalar("a")) &&
              truth(Tensor::Vector({0})));
  EXPECT_FALSE(truth(Tensor::Scalar(0)) || truth(Tensor::Scalar("")) ||
               truth(Tensor(DType::kFloat, {0})));
}

}  // namespace
}  // namespace tenon::testing
