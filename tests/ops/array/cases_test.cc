// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/testing/op_runner.h"

// What TensorFlow's kernels make of the arguments in tests/data/tf/array_cases.json (written by
// make_array_cases.py beside it), ours must make of them too: the same values, or an error.

namespace tenon::testing {
namespace {

using Json = nlohmann::json;

Tensor ReadTensor(const Json& json) {
  const std::string type = json["t"];
  const DType dtype = type == "string" ? DType::kString : ParseDType(type).value();
  const std::vector<int64_t> dims = json["s"];
  Tensor t(dtype, Shape(absl::Span<const int64_t>(dims)));
  const Json& values = json["v"];
  if (dtype == DType::kString) {
    for (size_t i = 0; i < values.size(); ++i) t.data<TString>()[i] = values[i];
  }
  Dispatch(dtype, PlainTypes(), [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        t.data<T>()[i] = values[i].get<bool>();
      } else if constexpr (std::is_arithmetic_v<T>) {
        t.data<T>()[i] = values[i].get<T>();
      }
    }
  });
  return t;
}

/// Arguments of TensorFlow's Python whose names are not those of the attributes.
AttributeMap ReadAttrs(const std::string& op, const Json& json) {
  AttributeMap attrs;
  for (const auto& [name, value] : json.items()) {
    if (op == "Squeeze" && name == "axis") {
      attrs.Set("squeeze_dims", value.get<std::vector<int64_t>>());
    } else if (value.is_string()) {
      attrs.Set(name, ParseDType(value.get<std::string>()).value());
    } else if (value.is_boolean()) {
      attrs.Set(name, value.get<bool>());
    } else {
      attrs.Set(name, value.get<int64_t>());
    }
  }
  return attrs;
}

bool Near(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.dtype() != DType::kFloat) return a.Equals(b);
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    if (std::abs(a.data<float>()[i] - b.data<float>()[i]) > 1e-5f) return false;
  }
  return true;
}

TEST(ArrayCases, GiveWhatTensorFlowGives) {
  std::ifstream file("tests/data/tf/array_cases.json");
  ASSERT_TRUE(file);
  const Json cases = Json::parse(file);
  ASSERT_GT(cases.size(), 500u);
  for (const Json& c : cases) {
    SCOPED_TRACE(c.dump());
    std::vector<Tensor> inputs;
    for (const Json& in : c["in"]) inputs.push_back(ReadTensor(in));
    const std::string op = c["op"];
    for (const bool hidden : {false, true}) {
      const OpResult result = RunOp(op, inputs, ReadAttrs(op, c["attrs"]), hidden);
      if (c.contains("error")) {
        EXPECT_EQ(static_cast<int>(result.status.code()), c["error"].get<int>()) << result.status;
        continue;
      }
      ASSERT_TRUE(result.status.ok()) << result.status;
      ASSERT_EQ(result.outputs.size(), c["out"].size());
      for (size_t i = 0; i < result.outputs.size(); ++i) {
        const Tensor wanted = ReadTensor(c["out"][i]);
        EXPECT_TRUE(Near(result.outputs[i], wanted))
            << "output " << i << ": found " << result.outputs[i].ToString(50) << ", wanted "
            << wanted.ToString(50);
      }
    }
  }
}

}  // namespace
}  // namespace tenon::testing
