// SPDX-License-Identifier: Apache-2.0
#include "ops/math/vector_maths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/base/strings.h"

// Functions of many numbers beside the C library's of a longer type.

namespace tenon::testing {
namespace {

template <typename T>
struct Function {
  const char* name;
  void (*loop)(const T*, T*, int64_t);
  long double (*exact)(long double);
  long double lowest, highest;  // where most numbers are drawn
};

template <typename T>
std::vector<Function<T>> Functions() {
  using Loop = void (*)(const T*, T*, int64_t);
  const long double far = sizeof(T) == 4 ? 90 : 720;
  const auto sigmoid = [](long double x) { return 1 / (1 + std::exp(-x)); };
  const auto softplus = [](long double x) {
    return x != x ? x : (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x)));
  };
  return {{"exp", Loop(&VectorExp), [](long double x) { return std::exp(x); }, -far, far},
          {"expm1", Loop(&VectorExpm1), [](long double x) { return std::expm1(x); }, -far, far},
          {"log", Loop(&VectorLog), [](long double x) { return std::log(x); }, 0, 100},
          {"log1p", Loop(&VectorLog1p), [](long double x) { return std::log1p(x); }, -1, 100},
          {"sin", Loop(&VectorSin), [](long double x) { return std::sin(x); }, -50, 50},
          {"cos", Loop(&VectorCos), [](long double x) { return std::cos(x); }, -50, 50},
          {"tan", Loop(&VectorTan), [](long double x) { return std::tan(x); }, -50, 50},
          {"tanh", Loop(&VectorTanh), [](long double x) { return std::tanh(x); }, -20, 20},
          {"erf", Loop(&VectorErf), [](long double x) { return std::erf(x); }, -6, 6},
          {"sigmoid", Loop(&VectorSigmoid), sigmoid, -far * 0.95L, far},
          {"softplus", Loop(&VectorSoftplus), softplus, -far, far}};
}

template <typename T>
std::vector<T> Arguments(const Function<T>& f) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> x = {0,
                      -T(0),
                      1,
                      -1,
                      T(0.5),
                      T(-0.5),
                      Limits::infinity(),
                      -Limits::infinity(),
                      Limits::quiet_NaN(),
                      Limits::min(),
                      -Limits::min(),
                      Limits::max(),
                      Limits::lowest(),
                      T(1e-5),
                      T(-1e-5),
                      T(1e-10),
                      Limits::denorm_min()};
  std::mt19937 random(3);
  std::uniform_real_distribution<double> anywhere(static_cast<double>(f.lowest),
                                                  static_cast<double>(f.highest));
  std::uniform_real_distribution<double> near(-1, 1);
  for (int i = 0; i < 20000; ++i) {
    x.push_back(static_cast<T>(i % 4 == 0 ? near(random) : anywhere(random)));
  }
  return x;
}

template <typename T>
class VectorMathsTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(VectorMathsTest, Types, );

TYPED_TEST(VectorMathsTest, ResultsAreWithinFourUnits) {
  using T = TypeParam;
  for (const Function<T>& f : Functions<T>()) {
    const std::vector<T> x = Arguments(f);
    std::vector<T> y(x.size());
    f.loop(x.data(), y.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      const long double exact = f.exact(x[i]);
      const T wanted = static_cast<T>(exact);
      SCOPED_TRACE(StrCat(f.name, " of ", static_cast<double>(x[i])));
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(y[i])) << y[i];
      } else if (std::isinf(wanted)) {
        ASSERT_EQ(y[i], wanted);
      } else {
        const T size = std::max(std::fabs(wanted), std::numeric_limits<T>::min());
        const T unit = std::nextafter(size, std::numeric_limits<T>::infinity()) - size;
        ASSERT_LE(std::fabs(static_cast<long double>(y[i]) - exact), 4 * unit)
            << y[i] << ", wanted " << wanted;
      }
    }
  }
}

TYPED_TEST(VectorMathsTest, AnElementDoesNotDependOnItsNeighbours) {
  using T = TypeParam;
  for (const Function<T>& f : Functions<T>()) {
    std::vector<T> x = Arguments(f);
    x.resize(67);
    std::vector<T> all(x.size());
    f.loop(x.data(), all.data(), static_cast<int64_t>(x.size()));
    for (size_t begin = 0; begin < x.size(); ++begin) {
      for (const size_t n : {size_t{0}, size_t{1}, size_t{5}, x.size() - begin}) {
        if (begin + n > x.size()) continue;
        std::vector<T> y(x.begin() + begin, x.begin() + begin + n);
        f.loop(y.data(), y.data(), static_cast<int64_t>(n));
        for (size_t i = 0; i < n; ++i) {
          const T wanted = all[begin + i];
          ASSERT_TRUE(y[i] == wanted || (std::isnan(y[i]) && std::isnan(wanted)))
              << f.name << " of " << x[begin + i] << ": " << y[i] << " and " << wanted;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::testing
