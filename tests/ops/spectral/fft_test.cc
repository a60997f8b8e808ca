// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <complex>

#include "core/gradient/gradients.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/math/math_ops.h"
#include "ops/spectral/spectral_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using C = std::complex<double>;

Tensor Numbered(const Shape& shape) {
  Tensor t(DType::kComplex128, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<C>()[i] =
        C(std::sin(1.7 * static_cast<double>(i)), std::cos(0.3 * static_cast<double>(i * i)));
  }
  return t;
}

TEST(Fft, IsTheSumThatItIsDefinedAsForEveryLength) {
  for (const int64_t n : {1, 2, 3, 5, 8, 12, 67, 134, 211, 1009}) {
    const Tensor x = Numbered({n});
    const Tensor y = RunOpOrDie("FFT", {x}), back = RunOpOrDie("IFFT", {y});
    for (int64_t k = 0; k < n; k += 1 + n / 7) {
      C sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        sum += x.data<C>()[j] * std::polar(1.0, -2 * M_PI * static_cast<double>(j * k % n) / n);
      }
      EXPECT_LT(std::abs(y.data<C>()[k] - sum), 1e-11 * n) << n << " " << k;
    }
    for (int64_t j = 0; j < n; ++j) {
      EXPECT_LT(std::abs(back.data<C>()[j] - x.data<C>()[j]), 1e-12) << n << " " << j;
    }
  }
}

/// Line i of x, [lines, n].
Tensor LineOf(const Tensor& x, int64_t i) {
  Tensor line(x.dtype(), {1, x.dim(1)});
  CopyElements(x, i * x.dim(1), &line, 0, x.dim(1));
  return line;
}

TEST(Fft, OfManyLinesIsThatOfEach) {
  // The sizes have all kinds of factors, and there are so many lines that they are transformed side
  // by side; the last of these are not as many as there is room for.
  for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 11, 13, 14, 16, 30, 49, 64, 120, 169, 143, 512}) {
    for (const DType type : {DType::kComplex64, DType::kComplex128}) {
      const DType real_type = type == DType::kComplex64 ? DType::kFloat : DType::kDouble;
      const double tolerance = (type == DType::kComplex64 ? 2e-6 : 4e-15) * std::sqrt(n);
      const Tensor x = Sample(type, {67, n}, -1, 1, n),
                   numbers = Sample(real_type, {67, n}, -1, 1, n);
      const AttributeMap types = {{"Treal", real_type}, {"Tcomplex", type}};
      const Tensor length = Tensor::Vector({static_cast<int32_t>(n)});
      const auto compare = [&](std::string_view op, const Tensor& in) {
        const bool is_real = op.find('R') != op.npos;
        const auto run = [&](const Tensor& lines) {
          return is_real ? RunOpOrDie(op, {lines, length}, types) : RunOpOrDie(op, {lines});
        };
        const Tensor all = run(in);
        for (int64_t i = 0; i < 67; i += 22) {
          const Tensor one = run(LineOf(in, i)), found = LineOf(all, i);
          Dispatch(one.dtype(), TypeList<float, double, std::complex<float>, C>(),
                   [&]<typename T>(T) {
                     for (int64_t k = 0; k < one.num_elements(); ++k) {
                       ASSERT_LE(std::abs(found.data<T>()[k] - one.data<T>()[k]), tolerance)
                           << op << " " << n << " line " << i << " at " << k;
                     }
                   });
        }
        return all;
      };
      compare("FFT", x);
      compare("IFFT", x);
      compare("IRFFT", compare("RFFT", numbers));
    }
  }
}

TEST(Fft, OfRealNumbersIsHalfOfThatOfComplexOnes) {
  const AttributeMap types = {{"Treal", DType::kDouble}, {"Tcomplex", DType::kComplex128}};
  const Tensor x = RunOpOrDie("Real", {Numbered({2, 3, 4, 5})}, {{"Tout", DType::kDouble}});
  const Tensor complex =
      RunOpOrDie("Cast", {x}, {{"SrcT", DType::kDouble}, {"DstT", DType::kComplex128}});
  const Tensor full = RunOpOrDie("FFT3D", {complex}), length = Tensor::Vector({3, 4, 5});
  const Tensor half = RunOpOrDie("RFFT3D", {x, length}, types);
  ASSERT_EQ(half.shape(), (Shape{2, 3, 4, 3}));
  for (int64_t i = 0; i < half.num_elements(); ++i) {
    EXPECT_LT(std::abs(half.data<C>()[i] - full.data<C>()[i / 3 * 5 + i % 3]), 1e-12);
  }
  const Tensor back = RunOpOrDie("IRFFT3D", {half, length}, types);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    EXPECT_NEAR(back.data<double>()[i], x.data<double>()[i], 1e-13);
  }
}

TEST(Fft, WrongLengthsAreRefused) {
  const AttributeMap types = {{"Treal", DType::kFloat}, {"Tcomplex", DType::kComplex64}};
  const auto error = [&](std::string_view op, const Shape& shape,
                         const std::vector<int32_t>& length) {
    const DType dtype = op[0] == 'I' ? DType::kComplex64 : DType::kFloat;
    return RunOp(op, {Tensor::Zeros(dtype, shape), Tensor::Vector(length)}, types, true).status;
  };
  EXPECT_THAT(error("RFFT", {3}, {5}), IsError(kInvalid, "length of at least 5 but got: 3"));
  EXPECT_THAT(error("RFFT", {3}, {-1}), IsError(kInvalid, "fft_length must >= 0, but got: -1"));
  EXPECT_THAT(error("RFFT2D", {3, 3}, {3}), IsError(kInvalid, "fft_length"));
  EXPECT_THAT(error("RFFT2D", {3}, {3, 3}), IsError(kInvalid, "rank of at least 2 but got: [3]"));
  EXPECT_THAT(error("IRFFT", {3}, {6}), IsError(kInvalid, "length of at least 4 but got: 3"));
  EXPECT_THAT(error("IRFFT", {3}, {INT32_MAX}), IsError(kInvalid, "fft_length"));
  EXPECT_OK(error("RFFT", {3}, {0}));
}

/// Compares the gradient of sum |y|^4 by x with differences, y being `fn(x)`.
template <typename Fn>
void CheckGradient(const Shape& shape, Fn fn) {
  GraphSession s;
  const Output x = Placeholder(DType::kDouble, PartialShape(shape));
  const Output y = fn(x);
  const Output magnitude = IsComplex(y.dtype()) ? ComplexAbs(y, {.Tout = DType::kDouble}) : y;
  const Output loss = Sum(Square(Square(magnitude)));
  const Output dx = Gradients(loss, x)[0];
  const Tensor at = Sample(DType::kDouble, shape, -1, 1, 5);
  const auto grads = s.Run({dx}, {}, {{x.name(), at}});
  ASSERT_OK(grads);
  ASSERT_EQ((*grads)[0].shape(), shape);
  constexpr double kStep = 1e-5;
  for (int64_t i = 0; i < at.num_elements(); ++i) {
    double sides[2];
    for (int side = 0; side < 2; ++side) {
      Tensor moved = at.Copy().value();
      moved.data<double>()[i] += side == 0 ? kStep : -kStep;
      sides[side] = (*s.Run({loss}, {}, {{x.name(), moved}}))[0].scalar<double>();
    }
    const double wanted = (sides[0] - sides[1]) / (2 * kStep);
    EXPECT_NEAR((*grads)[0].data<double>()[i], wanted, 1e-6 * (1 + std::abs(wanted))) << i;
  }
}

Output Turned(const Output& x) { return Complex(x, 0.5 * x * x, {.Tout = DType::kComplex128}); }

TEST(FftGradients, OfComplexTransforms) {
  CheckGradient({2, 3}, [](const Output& x) { return FFT(Turned(x)); });
  CheckGradient({2, 3}, [](const Output& x) { return IFFT(Turned(x)); });
  CheckGradient({2, 3, 2}, [](const Output& x) { return FFT2D(Turned(x)); });
  CheckGradient({3, 2}, [](const Output& x) { return IFFT2D(Turned(x)); });
  CheckGradient({2, 3, 2}, [](const Output& x) { return FFT3D(Turned(x)); });
  CheckGradient({2, 3, 2}, [](const Output& x) { return IFFT3D(Turned(x)); });
}

TEST(FftGradients, OfRealTransforms) {
  const auto rfft = [](auto op, const std::vector<int32_t>& length) {
    return [op, length](const Output& x) { return op(x, Const(length)); };
  };
  const auto one = [](const Output& x, const Output& n) {
    return RFFT(x, n, {.Tcomplex = DType::kComplex128});
  };
  const auto two = [](const Output& x, const Output& n) {
    return RFFT2D(x, n, {.Tcomplex = DType::kComplex128});
  };
  const auto three = [](const Output& x, const Output& n) {
    return RFFT3D(x, n, {.Tcomplex = DType::kComplex128});
  };
  for (const int32_t n : {4, 5}) CheckGradient({2, 5}, rfft(one, {n}));
  CheckGradient({3, 5}, rfft(two, {3, 4}));
  CheckGradient({2, 3, 3}, rfft(two, {2, 3}));
  CheckGradient({2, 2, 3}, rfft(three, {2, 2, 3}));
}

TEST(FftGradients, OfInverseRealTransforms) {
  const auto inverse = [](int rank, const std::vector<int32_t>& length) {
    return [rank, length](const Output& x) {
      const Output n = Const(length), z = Turned(x);
      return rank == 1   ? IRFFT(z, n, {.Treal = DType::kDouble})
             : rank == 2 ? IRFFT2D(z, n, {.Treal = DType::kDouble})
                         : IRFFT3D(z, n, {.Treal = DType::kDouble});
    };
  };
  for (const int32_t n : {3, 4, 5}) CheckGradient({2, 3}, inverse(1, {n}));
  CheckGradient({3, 3}, inverse(2, {3, 4}));
  CheckGradient({3, 4}, inverse(2, {2, 5}));
  CheckGradient({2, 2, 3}, inverse(3, {2, 2, 4}));
}

}  // namespace
}  // namespace tenon::testing
