// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <initializer_list>
#include <random>

#include "absl/functional/function_ref.h"
#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "ops/math/gemm.h"
#include "ops/maths.h"
#include "tests/testing/op_runner.h"

namespace tenon::testing {
namespace {

template <typename T>
Tensor Naive(const Tensor& a, const Tensor& b, bool ta, bool tb) {
  using C = ComputeType<T>;
  const int64_t m = a.dim(ta), k = a.dim(!ta), n = b.dim(!tb);
  Tensor c(a.dtype(), {m, n});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      C sum(0);
      for (int64_t p = 0; p < k; ++p) {
        const T x = a.data<T>()[ta ? p * m + i : i * k + p];
        const T y = b.data<T>()[tb ? j * k + p : p * n + j];
        sum = Plus(sum, Times(static_cast<C>(x), static_cast<C>(y)));
      }
      c.data<T>()[i * n + j] = T(sum);
    }
  }
  return c;
}

template <typename T>
void ExpectNear(const Tensor& found, const Tensor& wanted, double tolerance) {
  ASSERT_EQ(found.shape().ToString(), wanted.shape().ToString());
  for (int64_t i = 0; i < wanted.num_elements(); ++i) {
    const ComputeType<T> a(found.data<T>()[i]), b(wanted.data<T>()[i]);
    if constexpr (kIsComplex<T>) {
      ASSERT_LE(std::abs(a - b), tolerance * (1 + std::abs(b)));
    } else {
      ASSERT_NEAR(static_cast<double>(a), static_cast<double>(b),
                  tolerance * (1 + std::fabs(static_cast<double>(b))));
    }
  }
}

double Tolerance(DType t) {
  switch (t) {
    case DType::kHalf:
      return 1e-2;
    case DType::kBFloat16:
      return 5e-2;
    case DType::kFloat:
    case DType::kComplex64:
      return 1e-4;
    default:
      return IsInteger(t) ? 0 : 1e-12;
  }
}

using MatMulTypes = TypeList<float, double, Half, BFloat16, int32_t, int64_t, uint8_t, uint16_t,
                             uint32_t, uint64_t, std::complex<float>, std::complex<double>>;

TEST(MatMulTest, EveryDtypeAndTranspositionAgreesWithThreeLoops) {
  std::mt19937 random(4);
  for (const DType type : DTypesOf(MatMulTypes())) {
    for (int round = 0; round < 24; ++round) {
      const int64_t m = random() % 20, n = random() % 20, k = random() % 40;
      const bool ta = round & 1, tb = round & 2;
      const Tensor a = Sample(type, ta ? Shape{k, m} : Shape{m, k}, -3, 3, round);
      const Tensor b = Sample(type, tb ? Shape{n, k} : Shape{k, n}, -3, 3, round + 1);
      SCOPED_TRACE(StrCat(ToString(type), " ", m, "x", k, "x", n, " ", ta, tb));
      const Tensor c = RunOpOrDie("MatMul", {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}});
      Dispatch(type, MatMulTypes(), [&](auto zero) {
        using T = decltype(zero);
        ExpectNear<T>(c, Naive<T>(a, b, ta, tb), Tolerance(type));
      });
    }
  }
}

/// The product is near the sum of its terms, which may be added up in any order: the difference is
/// small beside the sum of their magnitudes.
void ExpectProduct(const GemmShape& s, const Tensor& a, const Tensor& b, const Tensor& found) {
  const float *x = a.data<float>(), *y = b.data<float>(), *z = found.data<float>();
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = 0, magnitude = 0;
      for (int64_t p = 0; p < s.k; ++p) {
        const double term = static_cast<double>(x[s.transpose_a ? p * s.m + i : i * s.k + p]) *
                            static_cast<double>(y[s.transpose_b ? j * s.k + p : p * s.n + j]);
        sum += term;
        magnitude += std::fabs(term);
      }
      const double value = z[i * s.n + j];
      if (std::isnan(sum)) {
        ASSERT_TRUE(std::isnan(value)) << i << ", " << j << ": " << value;
      } else if (std::isinf(sum)) {
        ASSERT_EQ(value, sum) << i << ", " << j;
      } else {
        ASSERT_NEAR(value, sum, 1e-5 * magnitude) << i << ", " << j;
      }
    }
  }
}

TEST(MatMulTest, ProductsOfFloatsOfEveryFormIncludeNoNumbers) {
  for (const int64_t m : {1, 2, 8, 9, 48, 49}) {
    for (const int64_t n : {1, 2, 4, 5, 17, 511, 512}) {
      for (const int64_t k : {1, 2, 100, 300}) {
        for (int round = 0; round < 8; ++round) {
          GemmShape s{m, n, k, (round & 1) != 0, (round & 2) != 0};
          Tensor a = Sample(DType::kFloat, {m * k}, -1, 1, round);
          Tensor b = Sample(DType::kFloat, {k * n}, -1, 1, round + 1);
          if (round >= 4) {
            const int64_t last_a = m * k - 1, last_b = k * n - 1;
            b.data<float>()[last_b / 3] = 0;
            a.data<float>()[last_a / 3] = 0;
            a.data<float>()[last_a / 2] = INFINITY;
            b.data<float>()[last_b / 2] = -INFINITY;
            b.data<float>()[last_b] = NAN;
          }
          // Nothing of what the memory held before comes into the product.
          Tensor c(DType::kFloat, {m * n});
          std::fill_n(c.data<float>(), m * n, NAN);
          SCOPED_TRACE(StrCat(m, "x", k, "x", n, " ", s.transpose_a, s.transpose_b));
          ASSERT_TRUE(Gemm(DType::kFloat, s, a.raw_data(), b.raw_data(), c.raw_data()).ok());
          ExpectProduct(s, a, b, c);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

/// Calls `fn` for products of the sizes with each of the four transpositions.
void ForEachProduct(
    std::initializer_list<GemmShape> forms,
    absl::FunctionRef<void(const GemmShape&, const Tensor& a, const Tensor& b)> fn) {
  for (const GemmShape& form : forms) {
    const Tensor a = Sample(DType::kFloat, {form.m * form.k}, -1, 1, 1);
    const Tensor b = Sample(DType::kFloat, {form.k * form.n}, -1, 1, 2);
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        const GemmShape s{form.m, form.n, form.k, transpose_a, transpose_b};
        SCOPED_TRACE(StrCat(s.m, "x", s.k, "x", s.n, " ", s.transpose_a, s.transpose_b));
        fn(s, a, b);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

/// The product as so many threads of the process make it.
Tensor ProductBy(int threads, const GemmShape& s, const Tensor& a, const Tensor& b) {
  const int before = ThreadBudget();
  SetThreadBudget(threads);
  Tensor c(DType::kFloat, {s.m * s.n});
  EXPECT_TRUE(Gemm(DType::kFloat, s, a.raw_data(), b.raw_data(), c.raw_data()).ok());
  SetThreadBudget(before);
  return c;
}

TEST(MatMulTest, LargeProductsOfFewRowsOrColumnsAgreeForAnyNumberOfThreads) {
  ForEachProduct({{1, 5000, 4000}, {5000, 1, 4000}, {16, 4096, 300}, {2000, 3, 1000}},
                 [](const GemmShape& s, const Tensor& a, const Tensor& b) {
                   for (const int threads : {1, 2}) {
                     ExpectProduct(s, a, b, ProductBy(threads, s, a, b));
                   }
                 });
}

TEST(MatMulTest, ProductsInPartsAreTheSameOnAnyNumberOfThreads) {
  ForEachProduct({{100, 100, 784}, {784, 100, 100}, {97, 16, 5000}, {1000, 37, 200}},
                 [](const GemmShape& s, const Tensor& a, const Tensor& b) {
                   const Tensor c = ProductBy(3, s, a, b);
                   ExpectProduct(s, a, b, c);
                   EXPECT_TRUE(ProductBy(1, s, a, b).Equals(c));
                   const BusyThread one, two, three;
                   EXPECT_TRUE(ProductBy(3, s, a, b).Equals(c));
                 });
}

TEST(MatMulTest, AnEmptySumIsZero) {
  const Tensor c =
      RunOpOrDie("MatMul", {Tensor(DType::kFloat, {2, 0}), Tensor(DType::kFloat, {0, 3})});
  EXPECT_TRUE(c.Equals(Tensor::Zeros(DType::kFloat, {2, 3})));
}

TEST(MatMulTest, LargeProductsAgreeForAnyNumberOfThreads) {
  const Tensor a = Sample(DType::kFloat, {200, 300}, -1, 1, 1);
  const Tensor b = Sample(DType::kFloat, {300, 250}, -1, 1, 2);
  const Tensor wanted = Naive<float>(a, b, false, false);
  const int before = ThreadBudget();
  for (const int threads : {1, 2, 4}) {
    SetThreadBudget(threads);
    ExpectNear<float>(RunOpOrDie("MatMul", {a, b}), wanted, 1e-4);
  }
  SetThreadBudget(before);
}

TEST(MatMulTest, SizesThatDoNotFitAreNamed) {
  const std::vector<Tensor> in = {Tensor(DType::kFloat, {2, 3}), Tensor(DType::kFloat, {4, 5})};
  const OpResult r = RunOp("MatMul", in, {}, /*hide_inputs=*/true);
  EXPECT_EQ(r.status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(r.status), "Matrix size-incompatible: In[0]: [2,3], In[1]: [4,5]");
}

TEST(MatMulTest, BatchesBroadcastAndTakeAdjoints) {
  using C = std::complex<double>;
  const Tensor x = Sample(DType::kComplex128, {2, 1, 3, 2}, -1, 1, 1);
  const Tensor y = Sample(DType::kComplex128, {4, 3, 5}, -1, 1, 2);
  const Tensor z = RunOpOrDie("BatchMatMulV2", {x, y}, {{"adj_x", true}});
  ASSERT_EQ(z.shape().ToString(), "[2,4,2,5]");
  for (int64_t b = 0; b < 8; ++b) {
    const C* a = x.data<C>() + b / 4 * 6;
    const C* c = y.data<C>() + b % 4 * 15;
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 5; ++j) {
        C sum = 0;
        for (int64_t p = 0; p < 3; ++p) sum += std::conj(a[p * 2 + i]) * c[p * 5 + j];
        ASSERT_LE(std::abs(z.data<C>()[b * 10 + i * 5 + j] - sum), 1e-12);
      }
    }
  }
}

TEST(MatMulTest, TheFusedOpIsItsParts) {
  const Tensor a = Sample(DType::kFloat, {4, 3}, -1, 1, 1),
               b = Sample(DType::kFloat, {3, 7}, -1, 1, 2);
  const Tensor bias = Sample(DType::kFloat, {7}, -1, 1, 3);
  const Tensor sum = RunOpOrDie("BiasAdd", {RunOpOrDie("MatMul", {a, b}), bias});
  for (const char* activation : {"Relu", "Relu6", "Elu", "Sigmoid", "Tanh"}) {
    const std::vector<std::string> fused = {"BiasAdd", activation};
    const AttributeMap attrs = {{"fused_ops", fused}, {"num_args", 1}};
    ExpectNear<float>(RunOpOrDie("_FusedMatMul", {a, b, bias}, attrs),
                      RunOpOrDie(activation, {sum}), 1e-6);
  }
  const std::vector<std::string> unknown = {"BiasAdd", "Strange"};
  EXPECT_EQ(RunOp("_FusedMatMul", {a, b, bias}, {{"fused_ops", unknown}}).status.code(),
            StatusCode::kUnimplemented);
}

TEST(LossTest, CrossEntropyIsStableForLargeLogits) {
  const Tensor logits = Tensor::Of<float>({2, 3}, {1000, 0, -1000, -1e30f, 0, 1});
  const Tensor labels = Tensor::Of<float>({2, 3}, {1, 0, 0, 0, 0, 1});
  const OpResult r = RunOp("SoftmaxCrossEntropyWithLogits", {logits, labels});
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_NEAR(r.outputs[0].data<float>()[0], 0, 1e-6);
  EXPECT_NEAR(r.outputs[0].data<float>()[1], std::log1p(std::exp(-1.0)), 1e-6);
  EXPECT_NEAR(r.outputs[1].data<float>()[5], -0.2689414, 1e-6);
}

TEST(LossTest, ALabelOutOfRangeIsAnError) {
  const Tensor logits(DType::kFloat, {2, 3});
  const OpResult r =
      RunOp("SparseSoftmaxCrossEntropyWithLogits", {logits, Tensor::Vector<int64_t>({0, 3})});
  EXPECT_EQ(r.status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(r.status),
            "Received a label value of 3 which is outside the valid range of "
            "[0, 3).  Label values: 0 3");
}

TEST(LossTest, TiesWithTheTargetStayInTheTopK) {
  const Tensor predictions = Tensor::Of<float>({3, 3}, {1, 2, 2, 3, 2, 1, 0, NAN, 1});
  const Tensor y =
      RunOpOrDie("InTopK", {predictions, Tensor::Vector<int32_t>({1, 1, 2})}, {{"k", 1}});
  EXPECT_TRUE(y.Equals(Tensor::Vector<bool>({true, false, false})));
}

TEST(GemmTest, AProductInBlocksOfRowsIsThatOfTheWhole) {
  for (const DType type : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kComplex64}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const GemmShape shape{500, 37, 53, ta, tb};
        const Tensor a = Sample(type, {shape.m * shape.k}, -1, 1, 1);
        const Tensor b = Sample(type, {shape.k * shape.n}, -1, 1, 2);
        Tensor whole(type, {shape.m, shape.n});
        ASSERT_TRUE(Gemm(type, shape, a.raw_data(), b.raw_data(), whole.raw_data()).ok());
        for (const int64_t rows : {1, 20, 200, 499}) {
          Tensor blocks(type, {shape.m, shape.n});
          const double work = static_cast<double>(rows * shape.n * shape.k);
          ASSERT_TRUE(Gemm(type, shape, a.raw_data(), b.raw_data(), blocks.raw_data(), work).ok());
          Dispatch(type, NumericTypes(), [&](auto zero) {
            ExpectNear<decltype(zero)>(blocks, whole, type == DType::kHalf ? 1e-3 : 1e-6);
          });
        }
      }
    }
  }
}

TEST(GemmTest, AnInterruptedProductIsLeftUnfinished) {
  Cancellation cancellation;
  cancellation.Cancel(Cancelled("enough"));
  const InterruptibleBy step(&cancellation);
  const GemmShape shape{500, 10, 10};
  const Tensor a = Tensor::Zeros(DType::kFloat, {500, 10});
  Tensor c(DType::kFloat, {500, 10});
  for (float& v : c.flat<float>()) v = 1;
  ASSERT_TRUE(Gemm(DType::kFloat, shape, a.raw_data(), a.raw_data(), c.raw_data(), 1e4).ok());
  for (const float v : c.flat<float>()) ASSERT_EQ(v, 1);
}

}  // namespace
}  // namespace tenon::testing
