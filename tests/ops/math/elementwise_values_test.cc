// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/testing/op_runner.h"

// Elementwise ops beside TensorFlow's, at the places where implementations differ: NaN, infinities,
// zeros of both signs, denormals, overflow, halves, negative divisors.

namespace tenon::testing {
namespace {

std::vector<std::string> Fields(const std::string& line) {
  std::vector<std::string> fields;
  for (size_t begin = 0; begin != std::string::npos;) {
    const size_t end = line.find(" | ", begin);
    fields.push_back(line.substr(begin, end - begin));
    begin = end == std::string::npos ? end : end + 3;
  }
  return fields;
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

template <typename T>
T Parse(const std::string& word) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    return std::strtoull(word.c_str(), nullptr, 10);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(std::strtoll(word.c_str(), nullptr, 10));
  } else {
    return T(std::strtod(word.c_str(), nullptr));
  }
}

Tensor ParseTensor(DType dtype, const std::string& text) {
  const std::vector<std::string> words = Words(text);
  Tensor t(dtype, Shape{static_cast<int64_t>(words.size())});
  Dispatch(dtype, decltype(ConcatTypes(RealTypes(), TypeList<bool>()))(), [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < words.size(); ++i) t.data<T>()[i] = Parse<T>(words[i]);
  });
  return t;
}

/// Units in the last place that results may differ by, besides rounding to the dtype.
double Tolerance(const std::string& op, DType dtype) {
  const double epsilon = dtype == DType::kHalf       ? 1.0 / 1024
                         : dtype == DType::kBFloat16 ? 1.0 / 128
                         : dtype == DType::kFloat    ? 1.2e-7
                                                     : 2.3e-16;
  // Where TensorFlow itself is off: its float approximations lose some bits, and arguments of many
  // turns more.
  if (op == "Erf" || op == "Erfc" || op == "Tan" || op == "Pow") return 40 * epsilon;
  return 8 * epsilon;
}

bool Near(double found, double wanted, double tolerance, double tiny) {
  if (std::isnan(wanted)) return std::isnan(found);
  if (found == wanted) return true;
  return std::fabs(found - wanted) <= tolerance * std::fabs(wanted) + tiny;
}

void Compare(const std::string& op, const std::vector<Tensor>& inputs, const Tensor& found,
             const Tensor& wanted) {
  ASSERT_EQ(found.dtype(), wanted.dtype());
  const double tolerance = Tolerance(op, wanted.dtype());
  // TensorFlow flushes denormal floats to zero in kernels, and has exp(x) - 1 instead of an
  // accurate expm1(x) in Elu and Selu.
  const bool cancels = op == "Elu" || op == "Selu";
  const double tiny =
      wanted.dtype() == DType::kDouble ? (cancels ? 4e-16 : 3e-308) : (cancels ? 2e-7 : 2e-38);
  Dispatch(wanted.dtype(), decltype(ConcatTypes(RealTypes(), TypeList<bool>()))(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < wanted.num_elements(); ++i) {
      const T a = found.data<T>()[i], b = wanted.data<T>()[i];
      bool same = a == b;
      if constexpr (!std::is_integral_v<T>) {
        same = Near(static_cast<double>(a), static_cast<double>(b), tolerance, tiny);
      }
      std::string arguments;
      for (const Tensor& t : inputs) StrAppend(&arguments, " ", t.Slice(i, i + 1).ToString());
      EXPECT_TRUE(same) << op << arguments << " gives " << found.Slice(i, i + 1).ToString()
                        << ", in TensorFlow " << wanted.Slice(i, i + 1).ToString();
    }
  });
}

TEST(ElementwiseValues, AtSpecialArgumentsAreTensorFlows) {
  const char* root = std::getenv("TENON_SOURCE_DIR");
  std::ifstream file(StrCat(root == nullptr ? "." : root, "/tests/data/tf/elementwise_values.txt"));
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const std::vector<std::string> fields = Fields(line);
    const std::vector<std::string> head = Words(fields[0]);
    const std::string& op = head[0];
    const DType type = *ParseDType(head[1]), result_type = *ParseDType(fields[fields.size() - 2]);
    std::vector<Tensor> inputs;
    for (size_t i = 1; i + 2 < fields.size(); ++i) inputs.push_back(ParseTensor(type, fields[i]));
    AttributeMap attrs;
    if (op == "Cast") attrs.Set("DstT", result_type);
    SCOPED_TRACE(line.substr(0, 40));
    Compare(op, inputs, RunOpOrDie(op, inputs, attrs), ParseTensor(result_type, fields.back()));
  }
  EXPECT_GT(lines, 300);
}

}  // namespace
}  // namespace tenon::testing
