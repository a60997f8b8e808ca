// SPDX-License-Identifier: Apache-2.0
#include "tests/train/finite_differences.h"

#include <algorithm>
#include <cmath>

#include "core/gradient/gradients.h"
#include "ops/array/constants.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

Tensor WavesTensor(const Shape& shape, double k) {
  Tensor t = Tensor::Zeros(DType::kDouble, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    t.data<double>()[i] = std::sin(static_cast<double>(i + 1) * k);
  }
  return t;
}

}  // namespace

Output Waves(const Shape& shape, double k) { return Const(WavesTensor(shape, k)); }

void ExpectGradientsOfVariables(GraphSession& s, const Output& loss, const Session::Feeds& feeds) {
  constexpr double kStep = 1e-5, kTolerance = 1e-7;
  ASSERT_OK(s.graph.error());
  std::vector<Output> values;
  Session::Feeds all = feeds;
  for (const VariableEntry& v : s.graph.variables()) {
    if (!v.trainable) continue;
    values.emplace_back(v.value);
    const auto k = static_cast<double>(all.size()) + 1.7;
    all.emplace_back(values.back().name(), WavesTensor(values.back().shape().ToShape(), k));
  }
  ASSERT_FALSE(values.empty());
  const auto gradients = s.Run(Gradients(loss, values), {}, all);
  ASSERT_OK(gradients.status());
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor& gradient = (*gradients)[i];
    ASSERT_EQ(PartialShape(gradient.shape()), values[i].shape()) << values[i].name();
    Session::Feeds changed = all;
    double largest = 0;
    for (auto& [name, value] : changed) {
      if (name != values[i].name()) continue;
      const Tensor before = value;
      for (int64_t e = 0; e < gradient.num_elements(); ++e) {
        double loss_at[2];
        for (const int side : {0, 1}) {
          value = Tensor::Zeros(DType::kDouble, before.shape());
          std::copy_n(before.data<double>(), before.num_elements(), value.data<double>());
          value.data<double>()[e] += side == 0 ? -kStep : kStep;
          auto at = s.Run({loss}, {}, changed);
          ASSERT_OK(at.status());
          loss_at[side] = (*at)[0].scalar<double>();
        }
        const double found = gradient.data<double>()[e];
        EXPECT_NEAR(found, (loss_at[1] - loss_at[0]) / (2 * kStep), kTolerance)
            << values[i].name() << "[" << e << "]";
        largest = std::max(largest, std::abs(found));
      }
      value = before;
    }
    EXPECT_GT(largest, 0) << values[i].name() << " shows nothing";
  }
}

}  // namespace tenon::testing
