// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>

#include "core/gradient/gradients.h"
#include "ops/array/constants.h"
#include "ops/composition.h"
#include "ops/image/image_ops.h"
#include "ops/register.h"
#include "tests/testing/graph_runner.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

// Ops that change images. Numbers without another source are TensorFlow's.

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;

std::vector<float> Floats(const Tensor& t) {
  return std::vector<float>(t.flat<float>().begin(), t.flat<float>().end());
}

auto AreNear(const std::vector<float>& values) { return Pointwise(FloatNear(1e-5f), values); }

Tensor RampImage(const Shape& shape) {
  Tensor t(DType::kFloat, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.data<float>()[i] = static_cast<float>(i);
  return t;
}

const Tensor kSmall = Tensor::Of<float>({1, 2, 2, 1}, {0, 2, 4, 6});
const Tensor kNine = RampImage({1, 3, 3, 1});

TEST(CubicResizeTest, BothConventions) {
  const Tensor size = Tensor::Vector({3, 3});
  EXPECT_THAT(Floats(RunOpOrDie("ResizeBicubic", {kSmall, size})),
              AreNear({0, 1.3710756f, 2.2222221f, 2.7421513f, 4.1132269f, 4.9643736f, 4.4444442f,
                       5.8155203f, 6.6666670f}));
  EXPECT_THAT(Floats(RunOpOrDie("ResizeBicubic", {kSmall, size}, {{"half_pixel_centers", true}})),
              AreNear({-0.3953330f, 0.7364446f, 1.8682220f, 1.8682222f, 3, 4.1317773f, 4.1317773f,
                       5.2635546f, 6.3953319f}));
  EXPECT_FALSE(RunOp("ResizeBicubic", {kSmall, size},
                     {{"half_pixel_centers", true}, {"align_corners", true}})
                   .status.ok());
}

TEST(AreaResizeTest, MeansOfWhatIsCovered) {
  EXPECT_THAT(Floats(RunOpOrDie("ResizeArea", {kNine, Tensor::Vector({2, 2})})),
              AreNear({1.3333334f, 2.6666667f, 5.3333335f, 6.6666665f}));
  EXPECT_FALSE(RunOp("ResizeArea", {kNine, Tensor::Vector({0, 2})}).status.ok());
}

TEST(ScaleAndTranslateTest, Triangles) {
  const Tensor scale = Tensor::Vector({0.7f, 0.7f}), shift = Tensor::Vector({0.0f, 0.1f});
  const Tensor size = Tensor::Vector({2, 2});
  EXPECT_THAT(Floats(RunOpOrDie("ScaleAndTranslate", {kNine, size, scale, shift},
                                {{"kernel_type", "triangle"}})),
              AreNear({1.3076923f, 2.5384617f, 5, 6.2307692f}));
  // Numbers that no pixel can be told by give zeros.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(Floats(RunOpOrDie("ScaleAndTranslate", {kNine, size, Tensor::Vector({1e-44f, 1.0f}),
                                                      Tensor::Vector({nan, 1e38f})})),
              ElementsAre(0, 0, 0, 0));
  EXPECT_FALSE(
      RunOp("ScaleAndTranslate", {kNine, size, Tensor::Vector({0.0f, 1.0f}), shift}).status.ok());
}

TEST(CropTest, InsideAndOutside) {
  const auto boxes = Tensor::Of<float>({2, 4}, {0, 0, 1, 1, 0.5f, 0.5f, 1.5f, 1});
  const Tensor index = Tensor::Vector({0, 0}), size = Tensor::Vector({2, 2});
  EXPECT_THAT(Floats(RunOpOrDie("CropAndResize", {kNine, boxes, index, size},
                                {{"extrapolation_value", -1.0f}})),
              ElementsAre(0, 2, 6, 8, 4, 5, -1, -1));
  const auto run = [&](const Tensor& of, const Tensor& n) {
    return RunOp("CropAndResize", {kNine, boxes, of, n}).status.code();
  };
  EXPECT_EQ(run(Tensor::Vector({0, 1}), size), StatusCode::kOutOfRange);
  EXPECT_EQ(run(index, Tensor::Vector({2, 0})), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(index, Tensor::Vector({1 << 30, 1 << 30})), StatusCode::kResourceExhausted);
}

/// The gradients of y's sum, weighted by a ramp so that no symmetry hides a mistake.
std::vector<Tensor> GradientsOf(const Graph& graph, const Output& y,
                                const std::vector<Output>& xs) {
  Tensor weights(DType::kFloat, y.shape().ToShape());
  for (int64_t i = 0; i < weights.num_elements(); ++i) {
    weights.data<float>()[i] = 0.5f + 0.1f * static_cast<float>(i % 7);
  }
  const std::vector<Output> found = Gradients(Sum(y * Const(weights)), xs);
  GraphRunner runner(graph);
  const auto values = runner.Run(found);
  EXPECT_OK(values.status());
  return values.ok() ? *values : std::vector<Tensor>();
}

/// Compares them with finite differences in float, of linear functions or nearly so.
void CheckFloatGradients(const std::function<Output(const std::vector<Output>&)>& build,
                         const std::vector<Tensor>& inputs) {
  const auto sum = [&](const std::vector<Tensor>& at, std::vector<Tensor>* dxs) {
    Graph graph(AllOps());
    GraphBuilding building(graph);
    std::vector<Output> xs;
    for (const Tensor& t : at) xs.push_back(Const(t));
    const Output y = build(xs);
    EXPECT_OK(graph.error());
    if (dxs != nullptr) *dxs = GradientsOf(graph, y, xs);
    GraphRunner runner(graph);
    const Tensor value = (*runner.Run({y}))[0];
    double total = 0;
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      total += value.data<float>()[i] * (0.5 + 0.1 * static_cast<double>(i % 7));
    }
    return total;
  };
  std::vector<Tensor> dxs;
  (void)sum(inputs, &dxs);
  ASSERT_EQ(dxs.size(), inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    for (int64_t i = 0; i < inputs[k].num_elements(); i += 3) {
      const float step = 1e-2f;
      std::vector<Tensor> up = inputs, down = inputs;
      up[k] = *inputs[k].Copy();
      down[k] = *inputs[k].Copy();
      up[k].data<float>()[i] += step;
      down[k].data<float>()[i] -= step;
      const double slope = (sum(up, nullptr) - sum(down, nullptr)) / (2 * step);
      EXPECT_NEAR(dxs[k].data<float>()[i], slope, 2e-2 * std::max(1.0, std::abs(slope)))
          << "input " << k << " element " << i;
    }
  }
}

TEST(PictureGradientTest, CropsOfImagesAndOfBoxes) {
  const auto boxes =
      Tensor::Of<float>({2, 4}, {0.13f, 0.21f, 0.83f, 0.92f, 0.4f, 0.35f, 0.1f, 0.6f});
  for (const Tensor& size : {Tensor::Vector({2, 2}), Tensor::Vector({1, 1})}) {
    CheckFloatGradients(
        [&](const std::vector<Output>& x) {
          return CropAndResize(x[0], x[1], Const(Tensor::Vector({1, 0})), Const(size));
        },
        {RampImage({2, 4, 5, 2}), boxes});
  }
}

TEST(PictureGradientTest, Resizing) {
  const Tensor image = RampImage({1, 4, 3, 1});
  for (const bool half : {false, true}) {
    CheckFloatGradients(
        [&](const std::vector<Output>& x) {
          return ResizeBicubic(x[0], Const(Tensor::Vector({3, 5})), {.half_pixel_centers = half});
        },
        {image});
  }
  for (const char* filter : {"lanczos3", "gaussian", "box", "mitchellcubic"}) {
    CheckFloatGradients(
        [&](const std::vector<Output>& x) {
          return ScaleAndTranslate(x[0], Const(Tensor::Vector({3, 5})),
                                   Const(Tensor::Vector({0.6f, 1.3f})),
                                   Const(Tensor::Vector({0.2f, -0.7f})), {.kernel_type = filter});
        },
        {image});
  }
}

/// TensorFlow takes the gradient back by the inverse transform.
TEST(PictureGradientTest, AProjectionGoesBack) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output image = Const(kNine);
  const auto shift = Tensor::Of<float>({1, 8}, {1, 0, 1, 0, 1, 0, 0, 0});
  for (const bool third : {false, true}) {
    const Output y = third
                         ? ImageProjectiveTransformV3(image, Const(shift), {3, 3}, 5.0f, "NEAREST")
                         : ImageProjectiveTransformV2(image, Const(shift), {3, 3}, "NEAREST");
    const Output dx = Gradients(Sum(y * Const(kNine)), image)[0];
    GraphRunner runner(graph);
    const auto values = runner.Run({dx});
    ASSERT_OK(values.status());
    EXPECT_THAT(Floats((*values)[0]), ElementsAre(0, 0, 1, 0, 3, 4, 0, 6, 7));
  }
}

TEST(ProjectionTest, WrapsAround) {
  const auto shift = Tensor::Of<float>({1, 8}, {1, 0, 1, 0, 1, -1, 0, 0});
  EXPECT_THAT(
      Floats(RunOpOrDie("ImageProjectiveTransformV2", {kNine, shift, Tensor::Vector({3, 3})},
                        {{"interpolation", "NEAREST"}, {"fill_mode", "WRAP"}})),
      ElementsAre(7, 8, 6, 1, 2, 0, 4, 5, 3));
  // No place at all, and places beyond any number.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* mode : {"WRAP", "REFLECT", "CONSTANT", "NEAREST"}) {
    for (const float far : {nan, 1e38f, -1e38f}) {
      const auto lost = Tensor::Of<float>({1, 8}, {far, 0, far, 0, far, far, 0, 0});
      EXPECT_OK(RunOp("ImageProjectiveTransformV2", {kNine, lost, Tensor::Vector({3, 3})},
                      {{"interpolation", "BILINEAR"}, {"fill_mode", mode}})
                    .status);
    }
  }
  EXPECT_FALSE(RunOp("ImageProjectiveTransformV2", {kNine, shift, Tensor::Vector({3, 3})},
                     {{"interpolation", "CUBIC"}})
                   .status.ok());
}

TEST(ColorTest, SpacesAndAdjustments) {
  const auto rgb = Tensor::Of<float>(
      {5, 3}, {0.8f, 0.2f, 0.4f, 0.1f, 0.5f, 0.3f, 0.2f, 0.2f, 0.9f, 0.5f, 0.5f, 0.5f, 0, 0, 0});
  const Tensor hsv = RunOpOrDie("RGBToHSV", {rgb});
  EXPECT_THAT(Floats(hsv), AreNear({0.9444444f, 0.75f, 0.8f, 0.4166667f, 0.8f, 0.5f, 0.6666667f,
                                    0.7777778f, 0.9f, 0, 0, 0.5f, 0, 0, 0}));
  EXPECT_THAT(Floats(RunOpOrDie("HSVToRGB", {hsv})), AreNear(Floats(rgb)));
  const auto two = Tensor::Of<float>({1, 2, 3}, {0.8f, 0.2f, 0.4f, 0.1f, 0.5f, 0.3f});
  EXPECT_THAT(Floats(RunOpOrDie("AdjustHue", {two, Tensor::Scalar(0.3f)})),
              AreNear({0.52f, 0.8f, 0.2f, 0.22f, 0.1f, 0.5f}));
  EXPECT_THAT(Floats(RunOpOrDie("AdjustHue", {two, Tensor::Scalar(1e30f)})).size(), 6);
  EXPECT_THAT(Floats(RunOpOrDie("AdjustSaturation", {two, Tensor::Scalar(0.0f)})),
              AreNear({0.8f, 0.8f, 0.8f, 0.5f, 0.5f, 0.5f}));
  EXPECT_EQ(RunOp("RGBToHSV", {RampImage({2, 4})}, {}, true).status.code(),
            StatusCode::kFailedPrecondition);
  EXPECT_FALSE(RunOp("AdjustHue", {RampImage({2, 3}), Tensor::Scalar(0.3f)}).status.ok());
}

TEST(ColorTest, ContrastIsTheDistanceFromTheMean) {
  const auto image = Tensor::Of<float>({1, 2, 2}, {1, 2, 3, 6});
  EXPECT_THAT(Floats(RunOpOrDie("AdjustContrastv2", {image, Tensor::Scalar(2.0f)})),
              ElementsAre(0, 0, 4, 8));
  EXPECT_THAT(Floats(RunOpOrDie("AdjustContrast", {image, Tensor::Scalar(2.0f),
                                                   Tensor::Scalar(1.0f), Tensor::Scalar(7.0f)})),
              ElementsAre(1, 1, 4, 7));
  EXPECT_EQ(RunOpOrDie("AdjustContrastv2", {RampImage({0, 2, 2, 3}), Tensor::Scalar(2.0f)}).shape(),
            Shape({0, 2, 2, 3}));
}

TEST(PatchesTest, ZerosOutside) {
  using List = std::vector<int64_t>;
  const AttributeMap attrs = {{"ksizes", List{1, 2, 2, 1}},
                              {"strides", List{1, 2, 2, 1}},
                              {"rates", List{1, 1, 1, 1}},
                              {"padding", "SAME"}};
  EXPECT_THAT(Floats(RunOpOrDie("ExtractImagePatches", {kNine}, attrs)),
              ElementsAre(0, 1, 3, 4, 2, 0, 5, 0, 6, 7, 0, 0, 8, 0, 0, 0));
  AttributeMap huge = attrs;
  huge.Set("ksizes", List{1, int64_t{1} << 40, int64_t{1} << 40, 1});
  EXPECT_FALSE(RunOp("ExtractImagePatches", {kNine}, huge).status.ok());
}

TEST(BoxTest, OutlinesAreDrawn) {
  const auto box = Tensor::Of<float>({1, 1, 4}, {0, 0.4f, 1, 1});
  const Tensor blank = *RampImage({1, 3, 4, 1}).Reshaped({1, 3, 4, 1});
  Tensor image = *blank.Copy();
  std::fill_n(image.data<float>(), 12, 0.0f);
  EXPECT_THAT(Floats(RunOpOrDie("DrawBoundingBoxes", {image, box})),
              ElementsAre(0, 1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 1));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float v : {nan, 1e38f, -1e38f}) {
    EXPECT_OK(
        RunOp("DrawBoundingBoxes", {image, Tensor::Of<float>({1, 1, 4}, {v, 0, v, 1})}).status);
  }
}

TEST(BoxTest, ASampleIsTensorFlows) {
  const OpResult r =
      RunOp("StatelessSampleDistortedBoundingBox",
            {Tensor::Vector({60, 70, 3}), Tensor::Of<float>({1, 1, 4}, {0, 0.1f, 0.9f, 0.8f}),
             Tensor::Scalar(0.3f), Tensor::Vector({3, 7})});
  ASSERT_OK(r.status);
  EXPECT_THAT(r.outputs[0].flat<int32_t>(), ElementsAre(13, 16, 0));
  EXPECT_THAT(r.outputs[1].flat<int32_t>(), ElementsAre(25, 32, -1));
  EXPECT_THAT(Floats(r.outputs[2]), AreNear({0.2166667f, 0.2285714f, 0.6333333f, 0.6857143f}));
}

TEST(GlimpseTest, TheCornerAndZerosBeside) {
  const AttributeMap attrs = {{"noise", "zero"}, {"uniform_noise", false}};
  const Tensor size = Tensor::Vector({2, 2});
  EXPECT_THAT(Floats(RunOpOrDie("ExtractGlimpseV2",
                                {kNine, size, Tensor::Of<float>({1, 2}, {-1, 1})}, attrs)),
              ElementsAre(0, 0, 2, 0));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(Floats(RunOpOrDie("ExtractGlimpse",
                                {kNine, size, Tensor::Of<float>({1, 2}, {nan, 1e38f})}, attrs)),
              ElementsAre(0, 0, 0, 0));
}

/// Noise is like the image it stands for.
TEST(GlimpseTest, Noise) {
  for (const char* noise : {"uniform", "gaussian"}) {
    const Tensor shown = RunOpOrDie(
        "ExtractGlimpseV2", {kNine, Tensor::Vector({20, 20}), Tensor::Of<float>({1, 2}, {9, 9})},
        {{"noise", noise}, {"uniform_noise", std::string_view(noise) == "uniform"}});
    float low = 9, high = -1;
    for (const float v : shown.flat<float>()) {
      low = std::min(low, v);
      high = std::max(high, v);
    }
    EXPECT_GE(low, 0) << noise;
    EXPECT_LE(high, 8) << noise;
    EXPECT_GT(high, low + 2) << noise;
  }
}

}  // namespace
}  // namespace tenon::testing
