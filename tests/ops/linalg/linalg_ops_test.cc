// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/linalg/linalg_ops.h"
#include "ops/linalg/matrices.h"
#include "ops/math/math_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Pointwise;

Tensor Of(const Shape& shape, std::initializer_list<double> values) {
  return Tensor::Of<double>(shape, values);
}

Status Error(std::string_view op, const std::vector<Tensor>& inputs,
             const AttributeMap& attrs = {}) {
  return RunOp(op, inputs, attrs, /*hide_inputs=*/true).status;
}

auto AllNear(const std::vector<double>& values) {
  return Pointwise(::testing::DoubleNear(1e-9), values);
}

const Tensor kPositive = Of({2, 2}, {4, 2, 2, 5});

TEST(Linalg, EigenvaluesOfAMatrixThatIsNotSymmetricHaveGradients) {
  // The sum of the squares of the eigenvalues is the trace of the square of the matrix, whose
  // derivative is twice its transpose; these are 1 + 2i, 1 - 2i and 3.
  GraphSession s;
  const Output a = ::tenon::Const(Of({3, 3}, {1, 2, 1, -2, 1, 0, 0, 0, 3}));
  const Output e = Eig(a, DType::kComplex128).e;
  const Output f = Real(Sum(Square(e), {0}), {.Tout = DType::kDouble});
  EXPECT_THAT(Numbers(s.Value(Gradients(f, a)[0])), AllNear({2, -4, 0, 4, 2, 0, 2, 0, 6}));
}

TEST(Linalg, OldNamesDoTheSame) {
  const Tensor a = Of({1, 2, 2}, {4, 2, 2, 5}), b = Of({1, 2, 1}, {2, 1}),
               zero = Tensor::Scalar(0.0);
  EXPECT_THAT(Numbers(RunOpOrDie("BatchCholesky", {a})), AllNear({2, 0, 1, 2}));
  EXPECT_THAT(Numbers(RunOpOrDie("BatchMatrixDeterminant", {a})), AllNear({16}));
  EXPECT_THAT(Numbers(RunOpOrDie("BatchMatrixInverse", {a})),
              AllNear({5 / 16.0, -2 / 16.0, -2 / 16.0, 4 / 16.0}));
  for (const char* op : {"BatchMatrixSolve", "BatchMatrixSolveLs"}) {
    std::vector<Tensor> inputs = {a, b};
    if (op == std::string("BatchMatrixSolveLs")) inputs.push_back(zero);
    EXPECT_THAT(Numbers(RunOpOrDie(op, inputs)), AllNear({0.5, 0})) << op;
  }
  EXPECT_THAT(Numbers(RunOpOrDie("BatchMatrixTriangularSolve", {a, b})), AllNear({0.5, 0}));
  EXPECT_THAT(Numbers(RunOpOrDie("BatchMatrixDiagPart", {a})), ElementsAre(4, 5));
  EXPECT_THAT(Numbers(RunOpOrDie("BatchMatrixDiag", {Tensor::Vector({1.0, 2.0})})),
              ElementsAre(1, 0, 0, 2));
  EXPECT_THAT(Numbers(RunOpOrDie("BatchMatrixSetDiag", {a, Of({1, 2}, {7, 8})})),
              ElementsAre(7, 2, 2, 8));
  EXPECT_THAT(Numbers(RunOpOrDie("BatchMatrixBandPart",
                                 {a, Tensor::Scalar<int64_t>(0), Tensor::Scalar<int64_t>(-1)})),
              ElementsAre(4, 2, 0, 5));
  EXPECT_THAT(Numbers(RunOpOrDie("BatchSvd", {Of({1, 2, 2}, {3, 0, 0, -4})})), AllNear({4, 3}));
  EXPECT_THAT(Numbers(RunOpOrDie("BatchSelfAdjointEigV2", {a})),
              AllNear({(9 - std::sqrt(17)) / 2, (9 + std::sqrt(17)) / 2}));
}

TEST(Linalg, SelfAdjointEigGivesValuesAndThenVectors) {
  for (const char* op : {"SelfAdjointEig", "BatchSelfAdjointEig"}) {
    const Tensor both = RunOpOrDie(op, {Of({2, 2}, {2, 0, 0, 1})});
    ASSERT_EQ(both.shape(), (Shape{3, 2}));
    const std::vector<double> v = Numbers(both);
    EXPECT_THAT(std::vector<double>(v.begin(), v.begin() + 2), AllNear({1, 2}));
    EXPECT_NEAR(std::abs(v[4]), 1, 1e-12);  // the vector of 1 is the second unit vector
    EXPECT_NEAR(std::abs(v[3]), 1, 1e-12);
  }
}

TEST(Linalg, CholeskyOfAnIndefiniteMatrixIsNaN) {
  const std::vector<double> l = Numbers(RunOpOrDie("Cholesky", {Of({2, 2}, {1, 2, 2, 1})}));
  EXPECT_TRUE(std::isnan(l[0]) && std::isnan(l[2]) && std::isnan(l[3]));
  EXPECT_EQ(l[1], 0);
}

TEST(Linalg, CholeskyGradIsTheGradient) {
  GraphSession s;
  const Output a = Const(kPositive), l = Cholesky(a);
  const Tensor weights = Of({2, 2}, {1, 0, 2, 3});
  const Output grad = Gradients(l, a, {.grad_ys = {Const(weights)}})[0];
  const Tensor l_value = RunOpOrDie("Cholesky", {kPositive});
  for (const char* op : {"CholeskyGrad", "BatchCholeskyGrad"}) {
    EXPECT_THAT(Numbers(RunOpOrDie(op, {l_value, weights})), AllNear(Numbers(s.Value(grad)))) << op;
  }
  // By differences, of the matrices whose two triangles are equal.
  const auto loss = [&](double x, double y, double z) {
    const std::vector<double> f = Numbers(RunOpOrDie("Cholesky", {Of({2, 2}, {x, y, y, z})}));
    return f[0] + 2 * f[2] + 3 * f[3];
  };
  const std::vector<double> g = Numbers(s.Value(grad));
  constexpr double kStep = 1e-5;
  EXPECT_NEAR(g[0], (loss(4 + kStep, 2, 5) - loss(4 - kStep, 2, 5)) / (2 * kStep), 1e-8);
  EXPECT_NEAR(g[1] + g[2], (loss(4, 2 + kStep, 5) - loss(4, 2 - kStep, 5)) / (2 * kStep), 1e-8);
  EXPECT_NEAR(g[3], (loss(4, 2, 5 + kStep) - loss(4, 2, 5 - kStep)) / (2 * kStep), 1e-8);
}

TEST(Linalg, FunctionsOfMatrices) {
  EXPECT_THAT(Numbers(RunOpOrDie("MatrixExponential", {Of({2, 2}, {0, 1, 0, 0})})),
              AllNear({1, 1, 0, 1}));
  EXPECT_THAT(Numbers(RunOpOrDie("MatrixExponential", {Of({2, 2}, {0, -M_PI, M_PI, 0})})),
              AllNear({-1, 0, 0, -1}));
  EXPECT_THAT(Numbers(RunOpOrDie("MatrixSquareRoot", {Of({2, 2}, {4, 5, 0, 9})})),
              AllNear({2, 1, 0, 3}));
  EXPECT_THAT(Numbers(RunOpOrDie("MatrixSquareRoot", {Of({1, 1}, {NAN})})),
              Each(::testing::IsNan()));
}

TEST(Linalg, TheExponentialOfALogarithmIsTheMatrix) {
  // Equal eigenvalues, for which roots are taken; two of them with numbers far above these.
  const Tensor x = Of({3, 4, 4}, {2, 1,   0, 3, 0, 2, 1,   0, 0, 0, 2, 1,   0, 0, 0, 2,  //
                                  1, 1e3, 0, 0, 0, 1, 1e3, 0, 0, 0, 1, 1e3, 0, 0, 0, 1,  //
                                  4, 1,   0, 2, 1, 3, 1,   0, 0, 1, 5, 1,   2, 0, 1, 6});
  const Tensor z = RunOpOrDie("Cast", {x}, {{"DstT", DType::kComplex128}});
  const Tensor back = RunOpOrDie("MatrixExponential", {RunOpOrDie("MatrixLogarithm", {z})});
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    EXPECT_NEAR(std::abs(back.data<std::complex<double>>()[i] - x.data<double>()[i]), 0, 1e-4) << i;
  }
}

TEST(Linalg, WhatHasNoLogarithmGivesNone) {
  const auto logarithm = [](std::initializer_list<double> values) {
    const Tensor z = RunOpOrDie("Cast", {Of({3, 3}, values)}, {{"DstT", DType::kComplex128}});
    return RunOpOrDie("MatrixLogarithm", {z});
  };
  for (const Tensor& log :
       {logarithm({0, 1, 0, 0, 0, 1, 0, 0, 0}), logarithm({0, 1, 2, 0, 0, 3, 0, 0, 1e-9})}) {
    EXPECT_TRUE(std::isnan(log.data<std::complex<double>>()[1].real()));
  }
}

TEST(Linalg, ManyMatricesAreDoneInParallelAndTheFirstErrorIsGiven) {
  Tensor many(DType::kDouble, {1000, 2, 2});
  for (int64_t i = 0; i < 4000; ++i) many.data<double>()[i] = i % 4 == 0 || i % 4 == 3 ? 2 : 1;
  const Tensor inverses = RunOpOrDie("MatrixInverse", {many});
  for (int64_t i = 0; i < 1000; ++i) EXPECT_NEAR(inverses.data<double>()[4 * i], 2 / 3.0, 1e-12);
  for (int64_t i = 4 * 700; i < 4 * 700 + 4; ++i) many.data<double>()[i] = 1;
  EXPECT_THAT(Error("MatrixInverse", {many}), IsError(kInvalid, "Input is not invertible."));
}

TEST(Linalg, WrongArgumentsAreRefused) {
  const Tensor wide(DType::kDouble, {2, 3}), b = Of({2, 1}, {1, 2});
  EXPECT_THAT(Error("Cholesky", {wide}), IsError(kInvalid, "must be square, found shape [2,3]"));
  EXPECT_THAT(Error("Qr", {Tensor::Scalar(1.0)}), IsError(kInvalid, "rank >= 2, found shape []"));
  EXPECT_THAT(Error("MatrixSolve", {kPositive, Of({3, 1}, {1, 2, 3})}),
              IsError(kInvalid, "rhs must have shape [..., m, k], where m = 2"));
  EXPECT_THAT(Error("MatrixSolveLs", {kPositive, b, Tensor::Scalar(std::nan(""))}),
              IsError(kInvalid, "l2_regularizer must be >= 0, found nan"));
  EXPECT_THAT(Error("Eig", {kPositive}, {{"Tout", DType::kComplex64}}),
              IsError(kInvalid, "eigenvalues of double cannot be complex64"));
  EXPECT_THAT(Error("TridiagonalSolve", {wide, b}), IsError(kInvalid, "of shape [3,2]"));
  EXPECT_THAT(Error("TridiagonalSolve", {Tensor(DType::kDouble, {3, 2}), b},
                    {{"partial_pivoting", false}, {"perturb_singular", true}}),
              IsError(kInvalid, "requires also setting partial_pivoting"));
}

// Real matrices x + i y, whose decompositions' gradients by x and y are differences too.
TEST(Linalg, GradientsOfComplexMatricesAreDerivatives) {
  const Tensor x = Of({3, 2}, {1, 2, -1, 0.5, 0.25, 1}), y = Of({3, 2}, {0.5, -1, 2, 1, 0, -0.5});
  const Tensor u = Of({2, 2}, {3, 0.5, -1, 2}), v = Of({2, 2}, {0.5, -1, 1, 0.25});
  const auto complex = [](const Output& re, const Output& im) {
    return Complex(re, im, {.Tout = DType::kComplex128});
  };
  const auto size = [](const Output& z) {
    return Sum(Square(ComplexAbs(z, {.Tout = DType::kDouble})));
  };
  const std::vector<std::function<Output(const Output&)>> losses = {
      [&](const Output& z) { return size(MatrixInverse(Product(z, z, true))); },
      [&](const Output& z) { return size(Svd(z).s * Svd(z).s); },
      [&](const Output& z) {
        const Output a = Product(z, z, true);
        return size(MatrixSolve(a, complex(Const(u), Const(v)), {.adjoint = true}));
      },
      [&](const Output& z) { return size(Product(Qr(z).r, Qr(z).r) + Qr(z).r); },
      [&](const Output& z) { return size(SelfAdjointEigV2(Product(z, z, true)).e); },
      [&](const Output& z) {
        return size(Einsum({z, z}, "ij,ik->jk"));
      },
  };
  for (size_t k = 0; k < losses.size(); ++k) {
    GraphSession s;
    const Output re = Placeholder(DType::kDouble, {3, 2}), im = Placeholder(DType::kDouble, {3, 2});
    const Output loss = losses[k](complex(re, im));
    const std::vector<Output> grads = Gradients(loss, {re, im});
    const auto values = s.Run(grads, {}, {{re.name(), x}, {im.name(), y}});
    ASSERT_OK(values);
    constexpr double kStep = 1e-5;
    for (int part = 0; part < 2; ++part) {
      for (int64_t i = 0; i < 6; ++i) {
        double sides[2];
        for (int side = 0; side < 2; ++side) {
          Tensor moved[2] = {x.Copy().value(), y.Copy().value()};
          moved[part].data<double>()[i] += side == 0 ? kStep : -kStep;
          const auto value = s.Run({loss}, {}, {{re.name(), moved[0]}, {im.name(), moved[1]}});
          ASSERT_OK(value);
          sides[side] = (*value)[0].scalar<double>();
        }
        const double wanted = (sides[0] - sides[1]) / (2 * kStep);
        EXPECT_NEAR((*values)[part].data<double>()[i], wanted, 1e-5 * (1 + std::abs(wanted)))
            << "loss " << k << " part " << part << " element " << i;
      }
    }
  }
}

TEST(Einsum, WrongEquationsAreRefused) {
  const Tensor a(DType::kFloat, {2, 3});
  const auto error = [&](std::string equation) {
    return Error("Einsum", {a}, {{"equation", std::move(equation)}});
  };
  EXPECT_THAT(error("ij"), IsError(kInvalid, "exactly one '->'"));
  EXPECT_THAT(error("ij->ijk"), IsError(kInvalid, "a label that no input has: k"));
  EXPECT_THAT(error("i j->ij"), IsError(kInvalid, "Invalid character at position 1"));
  EXPECT_THAT(error("....->"), IsError(kInvalid, "Invalid character at position 3"));
  EXPECT_THAT(error("ij,jk->ik"), IsError(kInvalid, "Expected 1 or 2 inputs"));
  EXPECT_THAT(error("ijk->k"), IsError(kInvalid, "to have rank 3 but got: 2"));
  EXPECT_THAT(error("ii->i"), IsError(kInvalid, "Expected dimension 2 at axis 1"));
  EXPECT_THAT(error("...i->i"), IsError(kInvalid, "no ellipsis (...)"));
}

TEST(Einsum, AddsUpProductsOfEveryKind) {
  const Tensor a = Of({2, 3}, {1, 2, 3, 4, 5, 6}), b = Of({3, 2}, {1, 0, 2, 1, 0, 3});
  const auto sum = [&](std::string equation, const std::vector<Tensor>& inputs) {
    return Numbers(RunOpOrDie("Einsum", inputs, {{"equation", std::move(equation)}}));
  };
  EXPECT_THAT(sum("ij,jk->ik", {a, b}), ElementsAre(5, 11, 14, 23));
  EXPECT_THAT(sum("ij,ji->", {a, b}), ElementsAre(5 + 23));
  EXPECT_THAT(sum("ij->j", {a}), ElementsAre(5, 7, 9));
  EXPECT_THAT(sum("i->ii", {Tensor::Vector({1.0, 2.0})}), ElementsAre(1, 0, 0, 2));
  EXPECT_THAT(sum("...j,...->...j", {a, Tensor::Vector({1.0, 10.0})}),
              ElementsAre(1, 2, 3, 40, 50, 60));
}

}  // namespace
}  // namespace tenon::testing
