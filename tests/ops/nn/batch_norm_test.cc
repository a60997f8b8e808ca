// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr float kEpsilon = 0.5f;

Tensor Vector(std::vector<float> values) { return Tensor::Vector(values); }

/// y, batch mean, batch variance and the two reserve spaces, of two channels.
std::vector<std::vector<double>> Normed(const Tensor& x, AttributeMap attrs) {
  attrs.Set("epsilon", kEpsilon);
  const OpResult r =
      RunOp("FusedBatchNormV3",
            {x, Vector({2, 3}), Vector({0, 1}), Vector({10, 20}), Vector({3.5, 8.5})}, attrs);
  EXPECT_OK(r.status);
  std::vector<std::vector<double>> values;
  for (const Tensor& t : r.outputs) values.push_back(Numbers(t));
  return values;
}

TEST(FusedBatchNorm, TrainsWithTheMeanAndVarianceOfTheBatch) {
  // Means 3 and 5, variances 3.5 and 15.5: with epsilon 4 and 16.
  const Tensor x = Tensor::Of<float>({2, 1, 1, 2}, {3, 5, 3, 5});
  EXPECT_THAT(Normed(x, {}),
              ElementsAre(ElementsAre(0, 1, 0, 1), ElementsAre(3, 5), ElementsAre(0, 0),
                          ElementsAre(3, 5), ElementsAre(0, 0), ElementsAre(0)));
  const Tensor spread = Tensor::Of<float>({2, 1, 1, 2}, {1, 5, 5, 5});
  const auto r = Normed(spread, {{"exponential_avg_factor", 0.25f}});
  EXPECT_NEAR(r[0][0], -2 * 2 / std::sqrt(4.5), 1e-6);
  EXPECT_THAT(r[1], ElementsAre(0.75 * 10 + 0.25 * 3, 0.75 * 20 + 0.25 * 5));
  EXPECT_THAT(r[2], ElementsAre(0.75 * 3.5 + 0.25 * 8, 0.75 * 8.5));
  EXPECT_THAT(r[4], ElementsAre(4, 0));
}

TEST(FusedBatchNorm, InfersWithGivenMeanAndVariance) {
  const Tensor x = Tensor::Of<float>({1, 2, 1, 2}, {8, 23, 10, 20});
  EXPECT_THAT(Normed(x, {{"is_training", false}}),
              ElementsAre(ElementsAre(-2, 4, 0, 1), ElementsAre(10, 20), ElementsAre(3.5, 8.5),
                          ElementsAre(10, 20), ElementsAre(3.5, 8.5), ElementsAre(0)));
  const Tensor first = Tensor::Of<float>({1, 2, 2, 1}, {8, 10, 23, 20});
  EXPECT_THAT(Normed(first, {{"is_training", false}, {"data_format", "NCHW"}})[0],
              ElementsAre(-2, 0, 4, 1));
}

TEST(FusedBatchNorm, OfNothingHasNoMean) {
  const auto r = Normed(Tensor(DType::kFloat, {0, 2, 2, 2}), {});
  EXPECT_TRUE(std::isnan(r[1][0]) && std::isnan(r[2][1]));
  EXPECT_THAT(r[3], ElementsAre(0, 0));
}

TEST(FusedBatchNorm, LongSumsAreAccurate) {
  Tensor x(DType::kFloat, {100, 40, 50, 2});
  for (int64_t i = 0; i < x.num_elements(); ++i) x.data<float>()[i] = 1000.0f + (i / 2) % 3;
  const auto r = Normed(x, {});
  EXPECT_NEAR(r[3][0], 1001, 1e-3);
  EXPECT_NEAR(r[4][1], 2.0 / 3, 1e-4);
}

/// x and the gradient of y are [outer, channels, inner]; what training gives, in doubles.
struct PlainBatchNorm {
  PlainBatchNorm(const Tensor& x, const Tensor& dy, int64_t channels, int64_t inner)
      : y(x.num_elements()),
        dx(x.num_elements()),
        mean(channels),
        variance(channels),
        dscale(channels),
        doffset(channels) {
    const auto channel = [&](int64_t i) { return i / inner % channels; };
    const double count = static_cast<double>(x.num_elements()) / static_cast<double>(channels);
    const auto each = [&](auto fn) {
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        fn(i, channel(i), double{x.data<float>()[i]}, double{dy.data<float>()[i]});
      }
    };
    each([&](int64_t, int64_t c, double v, double) { mean[c] += v / count; });
    each([&](int64_t, int64_t c, double v, double) {
      variance[c] += (v - mean[c]) * (v - mean[c]) / count;
    });
    const auto normed = [&](int64_t c, double v) {
      return (v - mean[c]) / std::sqrt(variance[c] + kEpsilon);
    };
    each([&](int64_t i, int64_t c, double v, double d) {
      y[i] = normed(c, v) * Scale(c) + 1;
      dscale[c] += d * normed(c, v);
      doffset[c] += d;
    });
    each([&](int64_t i, int64_t c, double v, double d) {
      dx[i] = Scale(c) / std::sqrt(variance[c] + kEpsilon) *
              (d - doffset[c] / count - normed(c, v) * dscale[c] / count);
    });
  }
  static double Scale(int64_t c) { return 0.5 + static_cast<double>(c % 3); }

  std::vector<double> y, dx, mean, variance, dscale, doffset;
};

TEST(FusedBatchNorm, ManyRowsAndChannelsAreAsInDoubles) {
  const struct {
    const char* format;
    Shape x;
    int64_t channels, inner;
  } cases[] = {{"NHWC", {40, 9, 7, 37}, 37, 1},     {"NHWC", {9, 30, 40, 32}, 32, 1},
               {"NHWC", {3, 2, 1, 300}, 300, 1},    {"NCHW", {70, 5, 6, 7}, 5, 42},
               {"NCHW", {3, 33, 40, 40}, 33, 1600}, {"NCHW", {600, 3, 1, 1}, 3, 1},
               {"NHWC", {1, 1, 1, 5}, 5, 1}};
  for (const auto& c : cases) {
    Tensor x(DType::kFloat, c.x), dy(DType::kFloat, c.x);
    // Their mean goes up with the rows, so that the means of blocks differ.
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      x.data<float>()[i] = static_cast<float>(i * 37 % 101) / 10 +
                           static_cast<float>(i) * 20 / static_cast<float>(x.num_elements());
      dy.data<float>()[i] = static_cast<float>(i * 53 % 97) / 50 - 1;
    }
    Tensor scale(DType::kFloat, {c.channels}), offset(DType::kFloat, {c.channels});
    for (int64_t i = 0; i < c.channels; ++i) {
      scale.data<float>()[i] = static_cast<float>(PlainBatchNorm::Scale(i));
      offset.data<float>()[i] = 1;
    }
    const PlainBatchNorm wanted(x, dy, c.channels, c.inner);
    const AttributeMap attrs = {{"epsilon", kEpsilon}, {"data_format", c.format}};
    const Tensor none(DType::kFloat, {0});
    const OpResult r = RunOp("FusedBatchNormV3", {x, scale, offset, none, none}, attrs);
    ASSERT_OK(r.status);
    const auto near = [&](const Tensor& t, const std::vector<double>& values, double by) {
      EXPECT_THAT(Numbers(t), Pointwise(::testing::DoubleNear(by), values))
          << c.format << " " << c.x.ToString();
    };
    near(r.outputs[0], wanted.y, 1e-4);
    near(r.outputs[3], wanted.mean, 1e-4);
    near(r.outputs[4], wanted.variance, 1e-3);
    const OpResult g = RunOp("FusedBatchNormGradV3",
                             {dy, x, scale, r.outputs[3], r.outputs[4], r.outputs[5]}, attrs);
    ASSERT_OK(g.status);
    near(g.outputs[0], wanted.dx, 1e-4);
    near(g.outputs[1], wanted.dscale, 0.05);
    near(g.outputs[2], wanted.doffset, 0.01);
  }
}

TEST(FusedBatchNorm, ImagesWithoutElementsTakeNoTime) {
  const Tensor none(DType::kFloat, {0}), two = Vector({1, 2});
  const Tensor huge(DType::kFloat, {int64_t{1} << 60, 1, 1, 0});
  EXPECT_OK(RunOp("FusedBatchNormV3", {huge, none, none, none, none}, {}).status);
  EXPECT_OK(RunOp("FusedBatchNormGradV3", {huge, huge, none, none, none, none}, {}).status);
  const Tensor first(DType::kFloat, {int64_t{1} << 60, 2, 0, 1});
  const OpResult g =
      RunOp("FusedBatchNormGradV3", {first, first, two, two, two, none}, {{"data_format", "NCHW"}});
  ASSERT_OK(g.status);
  EXPECT_THAT(Numbers(g.outputs[1]), ElementsAre(0, 0));
}

TEST(FusedBatchNorm, RefusesWhatIsNotPerChannel) {
  const Tensor x(DType::kFloat, {2, 1, 1, 2}), two = Vector({1, 2}), three = Vector({1, 2, 3});
  const auto status = [&](std::vector<Tensor> inputs, bool training, bool hidden) {
    return RunOp("FusedBatchNormV3", inputs, {{"is_training", training}}, hidden).status;
  };
  for (const bool hidden : {false, true}) {
    EXPECT_THAT(status({x, three, two, two, two}, true, hidden), IsError(kInvalid, ""));
    EXPECT_THAT(status({x, two, three, two, two}, true, hidden), IsError(kInvalid, ""));
    EXPECT_THAT(status({x, two, two, three, two}, false, hidden), IsError(kInvalid, ""));
    EXPECT_THAT(status({two, two, two, two, two}, true, hidden), IsError(kInvalid, "4 or 5"));
  }
}

/// The same in simple ops.
Output Composed(const Output& x, const Output& scale, const Output& offset, bool training,
                const Output& mean, const Output& variance) {
  const Output m = training ? Mean(x, {0, 1, 2}) : mean;
  const Output v = training ? Mean(Square(x - m), {0, 1, 2}) : variance;
  return (x - m) * Rsqrt(v + kEpsilon) * scale + offset;
}

void ExpectSame(GraphSession& s, const std::vector<Output>& found,
                const std::vector<Output>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_THAT(Numbers(s.Value(found[i])),
                Pointwise(FloatNear(2e-4f), Numbers(s.Value(wanted[i]))))
        << "gradient " << i;
  }
}

TEST(FusedBatchNorm, FirstAndSecondGradientsAreThoseOfSimpleOps) {
  for (const bool training : {true, false}) {
    for (const bool first : {true, false}) {
      SCOPED_TRACE(StrCat(training, first));
      GraphSession s;
      const Output x = Const(Sample(DType::kFloat, {3, 2, 2, 2}, -2, 2, 1));
      const Output weights = Const(Sample(DType::kFloat, {3, 2, 2, 2}, -2, 2, 2));
      const Output scale = Const(Vector({2, 3})), offset = Const(Vector({0.5, -1}));
      const Output mean = Const(Vector({0.25, -0.5})), variance = Const(Vector({1.5, 0.75}));
      const Output image = first ? Transpose(x, {0, 3, 1, 2}) : x;
      FusedBatchNormV3Options options = {.epsilon = kEpsilon, .is_training = training};
      if (first) options.data_format = "NCHW";
      Output y = FusedBatchNormV3(image, scale, offset, mean, variance, options).y;
      if (first) y = Transpose(y, {0, 2, 3, 1});
      const Output z = Composed(x, scale, offset, training, mean, variance);
      const std::vector<Output> xs = {x, scale, offset};
      const std::vector<Output> dy = Gradients(y * weights, xs), dz = Gradients(z * weights, xs);
      ExpectSame(s, {y, dy[0], dy[1], dy[2]}, {z, dz[0], dz[1], dz[2]});
      const auto twice = [&](const std::vector<Output>& d) {
        return Gradients(Sum(d[0] * Sin(x), {0, 1, 2, 3}) + Sum(d[1] * Const(Vector({1, 2})), {0}),
                         {x, scale, weights});
      };
      ExpectSame(s, twice(dy), twice(dz));
    }
  }
}

TEST(BatchNormWithGlobalNormalization, NormalisesWithItsInputs) {
  const Tensor x = Tensor::Of<float>({1, 1, 2, 2}, {8, 23, 10, 20});
  const Tensor mean = Vector({10, 20}), variance = Vector({3.5, 8.5});
  const Tensor beta = Vector({0, 1}), gamma = Vector({2, 3});
  AttributeMap attrs = {{"variance_epsilon", kEpsilon}, {"scale_after_normalization", true}};
  const auto norm = [&] {
    return Numbers(
        RunOpOrDie("BatchNormWithGlobalNormalization", {x, mean, variance, beta, gamma}, attrs));
  };
  const auto grad = [&](const Tensor& dy, bool hidden) {
    return RunOp("BatchNormWithGlobalNormalizationGrad", {x, mean, variance, gamma, dy}, attrs,
                 hidden);
  };
  EXPECT_THAT(norm(), ElementsAre(-2, 4, 0, 1));
  const OpResult r = grad(x, false);
  EXPECT_THAT(Numbers(r.outputs[0]), ElementsAre(8, 23, 10, 20));
  EXPECT_THAT(Numbers(r.outputs[1]), ElementsAre(-18, -43));
  EXPECT_THAT(Numbers(r.outputs[2]),
              Pointwise(FloatNear(1e-5f), std::vector<double>{2, -23.0 / 6}));
  EXPECT_THAT(Numbers(r.outputs[3]), ElementsAre(18, 43));
  EXPECT_THAT(Numbers(r.outputs[4]), ElementsAre(-8, 23));
  attrs.Set("scale_after_normalization", false);
  EXPECT_THAT(norm(), ElementsAre(-1, 2, 0, 1));
  EXPECT_THAT(Numbers(grad(x, false).outputs[4]), ElementsAre(0, 0));
  EXPECT_THAT(grad(mean, true).status, IsError(kInvalid, "input 4"));
}

}  // namespace
}  // namespace tenon::testing
