// SPDX-License-Identifier: Apache-2.0
// Passes over convolutional networks: what a step gives with them is what it gives without; that of
// a bias to the rounding of sums.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "ops/register.h"
#include "runtime/passes/pass.h"
#include "runtime/session/local_session.h"
#include "tests/testing/cpu_devices.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using List = std::vector<int64_t>;

class NetworkPassesTest : public ::testing::Test {
 protected:
  /// The op of the node `name` on the CPU.
  std::string OpOf(const std::string& name) const {
    EXPECT_OK(graph_.error());
    Graph part = graph_.Clone();
    EXPECT_OK(RunPasses(PassStage::kDevice, &part, {devices_[0].get()}, {}));
    const Node* const node = part.Find(name);
    return node == nullptr ? "" : node->op();
  }

  /// What a step gives, without some passes.
  std::vector<Tensor> Run(const StepFeeds& feeds, const std::vector<Output>& fetches,
                          std::vector<std::string> disabled = {}) const {
    LocalSessionOptions options;
    options.passes.disabled = std::move(disabled);
    const auto session = MakeLocalSession(graph_, options);
    EXPECT_OK(session.status());
    auto values = (*session)->Run(feeds, fetches);
    EXPECT_OK(values.status());
    return *std::move(values);
  }

  static Tensor Numbered(const Shape& shape, int64_t step, int64_t modulus) {
    Tensor t(DType::kFloat, shape);
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      t.data<float>()[i] = static_cast<float>(i * step % modulus - modulus / 2);
    }
    return t;
  }

  Graph graph_{AllOps()};
  const GraphBuilding building_{graph_};
  std::vector<std::unique_ptr<Device>> devices_ =
      testing::MakeCpuDevices("/job:localhost/replica:0/task:0", 1, "localhost");
};

/// Pooling of Relu, its gradient, and with `used` something else that needs what Relu gives.
class PooledReluTest : public NetworkPassesTest {
 protected:
  void Build(const List& ksize, const std::string& padding = "SAME", bool used = false) {
    x_ = Placeholder(DType::kFloat, {2, 8, 8, 3}, {.name = "x"});
    const Output relu = Relu(x_ * 1, {.name = "relu"});
    MaxPoolOptions options{.name = "pool"};
    if (padding == "EXPLICIT") options.explicit_paddings = {0, 0, 1, 1, 1, 1, 0, 0};
    pool_ = MaxPool(relu, ksize, {1, 2, 2, 1}, padding, options);
    dy_ = Placeholder(DType::kFloat, {}, {.name = "dy"});
    dx_ = Gradients(pool_, {x_}, {.grad_ys = {dy_}})[0];
    if (used) Neg(relu);
    ASSERT_OK(graph_.error());
  }

  Output x_, dy_, pool_, dx_;
};

TEST_F(PooledReluTest, PoolingComputesRelu) {
  Build({1, 2, 2, 1});
  EXPECT_EQ(OpOf("relu"), "");
  EXPECT_EQ(OpOf("pool"), "_ReluMaxPoolWithPlaces");
  EXPECT_EQ(OpOf("gradients/relu_grad/ReluGrad"), "_ReluMaxPoolGradOfPlaces");
  EXPECT_EQ(OpOf("gradients/pool_grad/MaxPoolGrad"), "");
}

TEST_F(PooledReluTest, ReluStaysWhereOthersUseItOrWaitForIt) {
  Build({1, 2, 2, 1}, "SAME", true);
  EXPECT_EQ(OpOf("relu"), "Relu");
}

TEST_F(PooledReluTest, ValuesAndGradientsAreTheSameWithNaNsTiesAndWindowsThatOverlap) {
  for (const int64_t size : {2, 3}) {
    for (const std::string& padding : {"SAME", "VALID"}) {
      Build({1, size, size, 1}, padding);
      Tensor x = Numbered({2, 8, 8, 3}, 37, 11);
      const float nan = std::numeric_limits<float>::quiet_NaN();
      for (int64_t i = 0; i < 48; ++i) x.data<float>()[i] = -1;  // nothing positive
      for (int64_t i = 60; i < x.num_elements(); i += 13) x.data<float>()[i] = nan;
      for (int64_t i = 192; i < 384; ++i) x.data<float>()[i] = nan;  // nothing else in an image
      const auto shape = Run({{x_, x}}, {pool_})[0].shape();
      Tensor dy = Numbered(shape, 5, 9);
      for (int64_t i = 0; i < dy.num_elements(); i += 7) dy.data<float>()[i] = nan;
      const auto with = Run({{x_, x}, {dy_, dy}}, {pool_, dx_});
      const auto without = Run({{x_, x}, {dy_, dy}}, {pool_, dx_}, {"relu-in-pooling"});
      for (int i = 0; i < 2; ++i) {
        const std::vector<double> a = Numbers(with[i]), b = Numbers(without[i]);
        ASSERT_EQ(a.size(), b.size());
        int nans = 0;
        for (size_t k = 0; k < a.size(); ++k) {
          nans += std::isnan(a[k]);
          EXPECT_TRUE(a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k])))
              << "element " << k << " of " << i << ": " << a[k] << ", " << b[k];
        }
        if (i == 1) EXPECT_GT(nans, 0);
      }
    }
  }
}

/// BiasAdd of a convolution.
class BiasedConvolutionTest : public NetworkPassesTest {
 protected:
  void Build(int64_t channels = 16, const std::string& format = "NHWC",
             DType dtype = DType::kFloat) {
    const bool first = format == "NCHW";
    const PartialShape shape = first ? PartialShape{2, 4, 9, 8} : PartialShape{2, 9, 8, 4};
    x_ = Placeholder(dtype, shape, {.name = "x"});
    filter_ = Placeholder(dtype, PartialShape{3, 3, 4, channels}, {.name = "filter"});
    bias_ = Placeholder(dtype, {}, {.name = "bias"});
    conv_ = Conv2D(x_, filter_, {1, 1, 1, 1}, "SAME", {.data_format = format, .name = "conv"});
    y_ = BiasAdd(conv_, bias_, {.data_format = format, .name = "y"});
    ASSERT_OK(graph_.error());
  }

  Output x_, filter_, bias_, conv_, y_;
};

TEST_F(BiasedConvolutionTest, TheConvolutionAddsTheBias) {
  Build();
  EXPECT_EQ(OpOf("y"), "_Conv2DWithBias");
  EXPECT_EQ(OpOf("conv"), "");
}

TEST_F(BiasedConvolutionTest, AConvolutionThatOthersUseStays) {
  Build();
  Neg(conv_);
  EXPECT_EQ(OpOf("y"), "BiasAdd");
}

TEST_F(BiasedConvolutionTest, AConvolutionThatOthersWaitForStays) {
  Build();
  {
    const ControlDependencies after({conv_});
    NoOp();
  }
  EXPECT_EQ(OpOf("y"), "BiasAdd");
}

TEST_F(BiasedConvolutionTest, WhatTheConvolutionWaitsForIsWaitedFor) {
  const Output before = Placeholder(DType::kFloat, {}, {.name = "before"});
  {
    const ControlDependencies after({before});
    Build();
  }
  Graph part = graph_.Clone();
  ASSERT_OK(RunPasses(PassStage::kDevice, &part, {devices_[0].get()}, {}));
  EXPECT_THAT(part.Find("y")->control_inputs(), ::testing::Each(part.Find("before")));
  EXPECT_EQ(part.Find("y")->control_inputs().size(), 1u);
}

TEST_F(BiasedConvolutionTest, OtherDtypesStay) {
  Build(16, "NHWC", DType::kDouble);
  EXPECT_EQ(OpOf("y"), "BiasAdd");
}

TEST_F(BiasedConvolutionTest, GivesWhatBothGive) {
  for (const int64_t channels : {1, 3, 16}) {
    for (const std::string& format : {"NHWC", "NCHW"}) {
      Build(channels, format);
      const bool first = format == "NCHW";
      Tensor x = Numbered(first ? Shape{2, 4, 9, 8} : Shape{2, 9, 8, 4}, 37, 101);
      const Tensor filter = Numbered({3, 3, 4, channels}, 7, 13);
      const Tensor bias = Numbered({channels}, 3, 7);
      x.data<float>()[50] = std::numeric_limits<float>::infinity();
      const StepFeeds feeds = {{x_, x}, {filter_, filter}, {bias_, bias}};
      const std::vector<double> with = Numbers(Run(feeds, {y_})[0]);
      const std::vector<double> without = Numbers(Run(feeds, {y_}, {"bias-in-convolutions"})[0]);
      ASSERT_EQ(with.size(), without.size());
      for (size_t i = 0; i < with.size(); ++i) {
        // Whole numbers, small enough to be exact.
        EXPECT_TRUE(with[i] == without[i] || (std::isnan(with[i]) && std::isnan(without[i])))
            << format << ' ' << i << ": " << with[i] << ", " << without[i];
      }
    }
  }
}

TEST_F(BiasedConvolutionTest, SumsRoundAsSumsInAnotherOrderDo) {
  Build();
  const auto fraction = [](Tensor t, float by) {
    for (float& x : t.flat<float>()) x *= by;
    return t;
  };
  const StepFeeds feeds = {{x_, fraction(Numbered({2, 9, 8, 4}, 37, 101), 0.013f)},
                           {filter_, fraction(Numbered({3, 3, 4, 16}, 7, 13), 0.17f)},
                           {bias_, fraction(Numbered({16}, 3, 7), 0.3f)}};
  const std::vector<double> with = Numbers(Run(feeds, {y_})[0]);
  const std::vector<double> without = Numbers(Run(feeds, {y_}, {"bias-in-convolutions"})[0]);
  EXPECT_THAT(with, ::testing::Pointwise(::testing::DoubleNear(1e-5), without));
}

TEST_F(BiasedConvolutionTest, AWrongBiasIsAsWrongAsThatOfBiasAdd) {
  Build();
  LocalSessionOptions options;
  const auto session = MakeLocalSession(graph_, options);
  ASSERT_OK(session.status());
  const Tensor x = Numbered({2, 9, 8, 4}, 1, 5), filter = Numbered({3, 3, 4, 16}, 1, 5);
  const auto run = [&](const Tensor& bias) {
    return (*session)->Run({{x_, x}, {filter_, filter}, {bias_, bias}}, {y_}).status();
  };
  EXPECT_THAT(run(Numbered({15}, 1, 3)),
              IsError(StatusCode::kInvalidArgument, "Must provide as many biases as channels"));
  EXPECT_THAT(run(Numbered({1, 16}, 1, 3)),
              IsError(StatusCode::kInvalidArgument, "Biases must be 1D"));
}

}  // namespace
}  // namespace tenon::testing
