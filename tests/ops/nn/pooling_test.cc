// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/nn/nn_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using List = std::vector<int64_t>;

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Equality of numbers, or two that are none.
MATCHER(AreTheSame, "") {
  const auto& [a, b] = arg;
  return a == b || (a != a && b != b);
}

/// What MaxPool and MaxPoolGrad give is what the pair gives that keeps the places.
void ExpectThePlacesToServe(const Tensor& x, const Tensor& dy, const AttributeMap& attrs) {
  const OpResult pooled = RunOp("MaxPool", {x}, attrs, /*hide_inputs=*/true);
  ASSERT_OK(pooled.status);
  const Tensor y = pooled.outputs[0];
  const OpResult kept = RunOp("_MaxPoolWithPlaces", {x}, attrs, /*hide_inputs=*/true);
  ASSERT_OK(kept.status);
  EXPECT_THAT(Numbers(kept.outputs[0]), ::testing::Pointwise(AreTheSame(), Numbers(y)));
  EXPECT_THAT(
      Numbers(RunOpOrDie("_MaxPoolGradOfPlaces", {x, kept.outputs[1], dy}, attrs)),
      ::testing::Pointwise(AreTheSame(), Numbers(RunOpOrDie("MaxPoolGrad", {x, y, dy}, attrs))));
}

AttributeMap Attrs(List ksize, List strides, std::string_view padding) {
  return {{"ksize", std::move(ksize)}, {"strides", std::move(strides)}, {"padding", padding}};
}

Tensor Ramp(const Shape& shape, DType type = DType::kFloat) {
  Tensor t(type, shape);
  Dispatch(type, RealTypes(), [&]<typename T>(T) {
    for (int64_t i = 0; i < t.num_elements(); ++i) t.data<T>()[i] = T(static_cast<float>(i));
  });
  return t;
}

const AttributeMap& Twos() {
  static const AttributeMap attrs = Attrs({1, 2, 2, 1}, {1, 1, 1, 1}, "VALID");
  return attrs;
}

TEST(MaxPool, TakesTheLargestOfEachWindow) {
  EXPECT_THAT(Numbers(RunOpOrDie("MaxPool", {Ramp({1, 3, 3, 1})}, Twos())),
              ElementsAre(4, 5, 7, 8));
  const AttributeMap same = Attrs({1, 3, 2, 1}, {1, 2, 2, 1}, "SAME");
  EXPECT_THAT(Numbers(RunOpOrDie("MaxPool", {Ramp({1, 3, 3, 1})}, same)), ElementsAre(4, 5, 7, 8));
}

TEST(MaxPool, PassesOverNansAndIsNeverBelowTheLowestNumber) {
  const float lowest = std::numeric_limits<float>::lowest();
  const auto pool = [](std::initializer_list<float> x) {
    return Numbers(RunOpOrDie("MaxPool", {Tensor::Of<float>({1, 2, 2, 1}, x)}, Twos()));
  };
  EXPECT_THAT(pool({kNotANumber, 1, 2, 3}), ElementsAre(3));
  EXPECT_THAT(pool({kNotANumber, kNotANumber, kNotANumber, kNotANumber}), ElementsAre(lowest));
  EXPECT_THAT(pool({-kInfinity, -kInfinity, -kInfinity, -kInfinity}), ElementsAre(lowest));
}

TEST(MaxPool, ChannelsMayComeFirstAndBePooled) {
  AttributeMap first = Attrs({1, 1, 2, 2}, {1, 1, 1, 1}, "VALID");
  first.Set("data_format", "NCHW");
  EXPECT_THAT(Numbers(RunOpOrDie("MaxPool", {Ramp({1, 2, 2, 3})}, first)),
              ElementsAre(4, 5, 10, 11));
  const AttributeMap channels = Attrs({1, 1, 1, 2}, {1, 1, 1, 2}, "VALID");
  EXPECT_THAT(Numbers(RunOpOrDie("MaxPool", {Ramp({1, 1, 2, 4})}, channels)),
              ElementsAre(1, 3, 5, 7));
}

TEST(MaxPool, ExplicitPaddingIsNoElement) {
  AttributeMap attrs = Attrs({1, 2, 2, 1}, {1, 2, 2, 1}, "EXPLICIT");
  attrs.Set("explicit_paddings", List{0, 0, 1, 1, 1, 1, 0, 0});
  const Tensor x = Tensor::Of<float>({1, 2, 2, 1}, {-1, -2, -3, -4});
  EXPECT_THAT(Numbers(RunOpOrDie("MaxPool", {x}, attrs)), ElementsAre(-1, -2, -3, -4));
}

TEST(MaxPool, TilesOfFourAreAsOtherWindows) {
  // Tiles of floats have a kernel of their own, tiles of doubles have not.
  const struct {
    Shape x;
    List ksize;
    const char* format;
  } cases[] = {{{2, 4, 6, 35}, {1, 2, 2, 1}, "NHWC"}, {{1, 8, 3, 64}, {1, 4, 1, 1}, "NHWC"},
               {{3, 2, 8, 1}, {1, 1, 4, 1}, "NHWC"},  {{2, 1, 3, 8}, {1, 1, 1, 4}, "NHWC"},
               {{2, 3, 4, 6}, {1, 1, 2, 2}, "NCHW"},  {{1, 7, 6, 5}, {1, 2, 2, 1}, "NHWC"}};
  for (const auto& c : cases) {
    AttributeMap attrs = Attrs(c.ksize, c.ksize, "VALID");
    attrs.Set("data_format", c.format);
    std::vector<double> pooled[2], gradients[2];
    for (const DType type : {DType::kFloat, DType::kDouble}) {
      Tensor x(type, c.x);
      Dispatch(type, TypeList<float, double>(), [&]<typename T>(T) {
        // Few values, so that there are equals, and some that are none.
        for (int64_t i = 0; i < x.num_elements(); ++i) {
          x.data<T>()[i] = i % 13 == 5 ? static_cast<T>(kNotANumber) : T(i * 37 % 11 - 6);
        }
      });
      const Tensor y = RunOpOrDie("MaxPool", {x}, attrs);
      const Tensor dy = Ramp(y.shape(), type);
      pooled[type == DType::kDouble] = Numbers(y);
      gradients[type == DType::kDouble] = Numbers(RunOpOrDie("MaxPoolGrad", {x, y, dy}, attrs));
      if (c.ksize[std::string_view(c.format) == "NHWC" ? 3 : 1] == 1) {
        ExpectThePlacesToServe(x, dy, attrs);
      }
    }
    for (double& v : pooled[1]) v = std::max<double>(v, std::numeric_limits<float>::lowest());
    EXPECT_EQ(pooled[0], pooled[1]) << c.x.ToString();
    EXPECT_EQ(gradients[0], gradients[1]) << c.x.ToString();
  }
}

TEST(MaxPool, RefusesWhatCannotBe) {
  const auto status = [](const Shape& x, const AttributeMap& attrs, bool hidden) {
    return RunOp("MaxPool", {Ramp(x)}, attrs, hidden).status;
  };
  const List ones = {1, 1, 1, 1};
  for (const bool hidden : {false, true}) {
    const auto refuses = [&](const AttributeMap& attrs, const char* why) {
      EXPECT_THAT(status({1, 4, 4, 6}, attrs, hidden), IsError(kInvalid, why));
    };
    refuses(Attrs({1, 0, 1, 1}, ones, "VALID"), "ksize holds 0");
    refuses(Attrs(ones, {1, -1, 1, 1}, "VALID"), "strides holds -1");
    refuses(Attrs({1, 2, 2, 1, 1}, ones, "VALID"), "ksize has 5 entries");
    refuses(Attrs({1, 7, 1, 1}, ones, "VALID"), "negative");
    const auto cannot = [&](const AttributeMap& attrs, const char* why) {
      EXPECT_THAT(status({1, 4, 4, 6}, attrs, hidden), IsError(StatusCode::kUnimplemented, why));
    };
    cannot(Attrs({2, 1, 1, 1}, ones, "VALID"), "not yet supported on the batch dimension");
    cannot(Attrs({1, 1, 1, 4}, {1, 1, 1, 4}, "VALID"), "evenly divide");
    cannot(Attrs({1, 1, 1, 2}, ones, "VALID"), "depth window to equal the depth stride");
    cannot(Attrs({1, 2, 1, 2}, {1, 1, 1, 2}, "VALID"), "exactly one of pooling across depth");
    EXPECT_THAT(status({4, 4, 1}, Twos(), hidden), IsError(kInvalid, "4"));
    AttributeMap padded = Attrs({1, 2, 2, 1}, ones, "EXPLICIT");
    padded.Set("explicit_paddings", List{0, 0, 2, 0, 0, 0, 0, 0});
    refuses(padded, "smaller than the window");
  }
}

TEST(MaxPool, HugeWindowsAndStridesDoNotOverflow) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  const AttributeMap same = Attrs({1, huge, huge, 1}, {1, huge, huge, 1}, "SAME");
  EXPECT_THAT(Numbers(RunOpOrDie("MaxPool", {Ramp({1, 3, 3, 1})}, same)), ElementsAre(8));
  const AttributeMap many = Attrs({1, huge, 1, 1}, {1, 1, 1, 1}, "SAME");
  EXPECT_THAT(RunOp("MaxPool", {Ramp({1, 3, 3, 1})}, many).status, IsError(kInvalid, ""));
}

TEST(MaxPoolGrad, ImagesWithoutElementsTakeNoTime) {
  const AttributeMap twos = Attrs({1, 2, 2, 1}, {1, 2, 2, 1}, "VALID");
  const Tensor x(DType::kFloat, {1, 2, int64_t{1} << 60, 0});
  const Tensor y(DType::kFloat, {1, 1, int64_t{1} << 59, 0});
  EXPECT_OK(RunOp("MaxPoolGrad", {x, y, y}, twos).status);
  const Tensor places(DType::kUInt8, y.shape());
  EXPECT_OK(RunOp("_MaxPoolGradOfPlaces", {x, places, y}, twos).status);
  EXPECT_OK(RunOp("MaxPoolGradGrad", {x, y, x}, twos).status);
  const Tensor shape = Tensor::Vector<int32_t>({1, 2, 1 << 30, 0});
  const Tensor averages(DType::kFloat, {1, 1, 1 << 29, 0});
  EXPECT_OK(RunOp("AvgPoolGrad", {shape, averages}, twos).status);
  const Tensor deep(DType::kFloat, {1, 2, 2, int64_t{1} << 58, 0});
  const Tensor pooled(DType::kFloat, {1, 1, 1, int64_t{1} << 57, 0});
  EXPECT_OK(RunOp("MaxPool3DGrad", {deep, pooled, pooled},
                  Attrs({1, 2, 2, 2, 1}, {1, 2, 2, 2, 1}, "VALID"))
                .status);
  const AttributeMap dilated = {
      {"strides", List{1, 1, 1, 1}}, {"rates", List{1, 1, 1, 1}}, {"padding", "VALID"}};
  const Tensor filter(DType::kFloat, {1, 1, 0}), wide(DType::kFloat, {1, 1, int64_t{1} << 60, 0});
  EXPECT_OK(RunOp("Dilation2DBackpropInput", {wide, filter, wide}, dilated).status);
}

TEST(MaxPool, OfNothingIsNothing) {
  EXPECT_EQ(RunOpOrDie("MaxPool", {Ramp({0, 3, 3, 1})}, Twos()).shape(), Shape({0, 2, 2, 1}));
  // A window that does not fit is found by the shapes; of an image of unknown size kernels make
  // none.
  EXPECT_THAT(RunOp("MaxPool", {Ramp({1, 1, 3, 1})}, Twos()).status,
              IsError(kInvalid, "Negative dimension size caused by subtracting 2 from 1"));
  const OpResult hidden = RunOp("MaxPool", {Ramp({1, 1, 3, 1})}, Twos(), /*hide_inputs=*/true);
  ASSERT_OK(hidden.status);
  EXPECT_EQ(hidden.outputs[0].shape(), Shape({1, 0, 2, 1}));
}

TEST(MaxPoolV2, TakesSizesAsInputs) {
  const auto pool = [](const Tensor& ksize, bool hidden) {
    const Tensor strides = Tensor::Vector<int32_t>({1, 1, 1, 1});
    return RunOp("MaxPoolV2", {Ramp({1, 3, 3, 1}), ksize, strides}, {{"padding", "VALID"}}, hidden);
  };
  for (const bool hidden : {false, true}) {
    const OpResult good = pool(Tensor::Vector<int32_t>({1, 2, 2, 1}), hidden);
    ASSERT_OK(good.status);
    EXPECT_THAT(Numbers(good.outputs[0]), ElementsAre(4, 5, 7, 8));
    EXPECT_THAT(pool(Tensor::Vector<int32_t>({1, 2, 2}), hidden).status, IsError(kInvalid, "3"));
    EXPECT_THAT(pool(Tensor::Vector<int32_t>({1, -2, 2, 1}), hidden).status,
                IsError(kInvalid, "-2"));
    EXPECT_THAT(pool(Tensor::Scalar<int32_t>(2), hidden).status, IsError(kInvalid, "ksize"));
  }
}

TEST(MaxPoolGrad, GoesToTheFirstOfEquals) {
  const Tensor ones = Tensor::Of<float>({1, 1, 1, 1}, {1});
  const auto grad = [&](std::initializer_list<float> x) {
    return Numbers(
        RunOpOrDie("MaxPoolGrad", {Tensor::Of<float>({1, 2, 2, 1}, x), ones, ones}, Twos()));
  };
  EXPECT_THAT(grad({1, 2, 2, 2}), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(grad({1, kNotANumber, 2, 3}), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(grad({kNotANumber, 1, 2, 3}), ElementsAre(1, 0, 0, 0));
}

TEST(MaxPoolGrad, IsThatOfThePlacesOfTheLargest) {
  const struct {
    Shape x;
    List ksize, strides;
    const char* padding;
  } cases[] = {{{3, 9, 7, 37}, {1, 3, 3, 1}, {1, 2, 2, 1}, "SAME"},
               {{2, 8, 8, 5}, {1, 3, 3, 1}, {1, 2, 2, 1}, "VALID"},
               {{1, 7, 9, 3}, {1, 2, 4, 1}, {1, 3, 1, 1}, "SAME"},
               {{2, 6, 5, 2}, {1, 5, 5, 1}, {1, 1, 1, 1}, "SAME"},
               {{70, 1, 40, 1}, {1, 1, 9, 1}, {1, 1, 5, 1}, "VALID"},
               {{1, 90, 80, 2}, {1, 40, 40, 1}, {1, 3, 3, 1}, "VALID"},
               // Further from a window's first pixel than 16 bits tell.
               {{1, 300, 300, 1}, {1, 299, 298, 1}, {1, 1, 1, 1}, "VALID"},
               {{0, 4, 4, 1}, {1, 3, 3, 1}, {1, 2, 2, 1}, "SAME"},
               {{2, 2, 2, 1}, {1, 3, 3, 1}, {1, 2, 2, 1}, "VALID"}};
  for (const auto& c : cases) {
    const AttributeMap attrs = Attrs(c.ksize, c.strides, c.padding);
    for (const DType type : {DType::kFloat, DType::kHalf, DType::kInt32}) {
      Tensor x(type, c.x);
      Dispatch(type, RealTypes(), [&]<typename T>(T) {
        // Few values, so that there are equals.
        for (int64_t i = 0; i < x.num_elements(); ++i) {
          x.data<T>()[i] = T(static_cast<float>(i * 7919 % 83));
        }
      });
      const OpResult pooled = RunOp("MaxPoolWithArgmax", {x}, attrs, /*hide_inputs=*/true);
      ASSERT_OK(pooled.status);
      Tensor dy(type, pooled.outputs[0].shape());
      Dispatch(type, RealTypes(), [&]<typename T>(T) {
        for (int64_t i = 0; i < dy.num_elements(); ++i) {
          dy.data<T>()[i] = T(static_cast<float>(i % 5));
        }
      });
      const Tensor expected =
          RunOpOrDie("MaxPoolGradWithArgmax", {x, dy, pooled.outputs[1]}, attrs);
      EXPECT_EQ(Numbers(RunOpOrDie("MaxPoolGrad", {x, pooled.outputs[0], dy}, attrs)),
                Numbers(expected))
          << c.x.ToString() << " " << ToString(type);
      if (c.ksize[1] * c.ksize[2] <= 256) ExpectThePlacesToServe(x, dy, attrs);
    }
  }
}

TEST(MaxPoolWithPlaces, ServesWholeBlocksOfChannelsWithNansAndInfinities) {
  for (const DType type : {DType::kFloat, DType::kDouble, DType::kBFloat16}) {
    for (const int64_t ksize : {2, 3, 4}) {
      for (const std::string_view padding : {"SAME", "VALID"}) {
        const AttributeMap attrs = Attrs({1, ksize, ksize, 1}, {1, 2, 2, 1}, padding);
        Tensor x(type, {2, 15, 15, 72});
        Dispatch(type, RealTypes(), [&]<typename T>(T) {
          for (int64_t i = 0; i < x.num_elements(); ++i) {
            const int64_t row = i / (15 * 72);
            float value = static_cast<float>(i * 37 % 101);
            if (row >= 4 && row < 9 && i % 72 == 33) value = -kInfinity;
            if (i % 977 == 0 || (row >= 20 && i % 72 == 70)) value = kNotANumber;
            x.data<T>()[i] = static_cast<T>(value);
          }
        });
        const Tensor y = RunOpOrDie("MaxPool", {x}, attrs);
        ExpectThePlacesToServe(x, Ramp(y.shape(), type), attrs);
      }
    }
  }
}

TEST(MaxPoolWithPlaces, PlacesAreNumbersInTheWindow) {
  const auto places = [](std::initializer_list<float> x, const AttributeMap& attrs) {
    return Numbers(
        RunOp("_MaxPoolWithPlaces", {Tensor::Of<float>({1, 2, 2, 1}, x)}, attrs).outputs[1]);
  };
  EXPECT_THAT(places({1, 2, 2, 0}, Twos()), ElementsAre(1));
  EXPECT_THAT(places({kNotANumber, 2, 2, 0}, Twos()), ElementsAre(0));
  // Only pixels of the image count.
  EXPECT_THAT(places({1, 2, 3, 4}, Attrs({1, 2, 2, 1}, {1, 1, 1, 1}, "SAME")),
              ElementsAre(3, 1, 1, 0));
}

TEST(MaxPoolWithPlaces, RefusesWindowsThatAreTooLargeAndPlacesOfAnotherShape) {
  const Tensor x = Ramp({1, 20, 20, 1}), y = Ramp({1, 1, 1, 1});
  const AttributeMap large = Attrs({1, 20, 20, 1}, {1, 1, 1, 1}, "VALID");
  EXPECT_THAT(RunOp("_MaxPoolWithPlaces", {x}, large).status,
              IsError(kInvalid, "windows have more than 256 pixels: ksize is [1,20,20,1]"));
  const Tensor other = Tensor::Of<uint8_t>({1, 1, 2, 1}, {0, 0});
  const Tensor nowhere = Tensor::Of<uint8_t>({1, 1, 1, 1}, {200});
  const Tensor four = Ramp({1, 2, 2, 1});
  EXPECT_THAT(RunOp("_MaxPoolGradOfPlaces", {four, other, y}, Twos()).status,
              IsError(kInvalid, "orig_output"));
  EXPECT_THAT(Numbers(RunOpOrDie("_MaxPoolGradOfPlaces", {four, nowhere, y}, Twos())), Each(0));
}

TEST(MaxPoolGrad, ShapesMustBeThoseOfTheWindows) {
  const Tensor x = Ramp({1, 3, 3, 1}), y = Ramp({1, 2, 2, 1}), other = Ramp({1, 2, 1, 1});
  EXPECT_THAT(RunOp("MaxPoolGrad", {x, other, y}, Twos()).status, IsError(kInvalid, "orig_output"));
  EXPECT_THAT(RunOp("MaxPoolGrad", {x, y, other}, Twos()).status, IsError(kInvalid, "grad"));
  EXPECT_THAT(RunOp("MaxPoolGradGrad", {x, y, y}, Twos()).status, IsError(kInvalid, "grad"));
}

TEST(MaxPoolGradGrad, IsZeroWhereNoElementIsTheLargest) {
  const Tensor x = Ramp({1, 2, 2, 1}), y = Tensor::Of<float>({1, 1, 1, 1}, {2.5f});
  EXPECT_THAT(Numbers(RunOpOrDie("MaxPoolGradGrad", {x, y, x}, Twos())), ElementsAre(0));
}

TEST(MaxPoolWithArgmax, SaysWhereTheLargestIs) {
  const auto places = [](bool batch_in_index) {
    AttributeMap attrs = Twos();
    attrs.Set("include_batch_in_index", batch_in_index);
    return Numbers(RunOp("MaxPoolWithArgmax", {Ramp({2, 2, 3, 1})}, attrs).outputs[1]);
  };
  EXPECT_THAT(places(false), ElementsAre(4, 5, 4, 5));
  EXPECT_THAT(places(true), ElementsAre(4, 5, 10, 11));
}

TEST(MaxPoolGradWithArgmax, RefusesPlacesOutsideTheInput) {
  const Tensor x = Ramp({1, 2, 3, 1}), dy = Tensor::Of<float>({1, 1, 2, 1}, {1, 10});
  const auto grad = [&](int64_t place) {
    const Tensor argmax = Tensor::Of<int64_t>({1, 1, 2, 1}, {0, place});
    return RunOp("MaxPoolGradWithArgmax", {x, dy, argmax}, Twos());
  };
  EXPECT_THAT(Numbers(grad(0).outputs[0]), ElementsAre(11, 0, 0, 0, 0, 0));
  EXPECT_THAT(grad(6).status, IsError(kInvalid, "argmax[1] is out of range [0, 6)"));
  EXPECT_THAT(grad(-1).status, IsError(kInvalid, "argmax[1]"));
}

TEST(AvgPool, CountsOnlyWhatIsInside) {
  const AttributeMap same = Attrs({1, 2, 2, 1}, {1, 1, 1, 1}, "SAME");
  EXPECT_THAT(Numbers(RunOpOrDie("AvgPool", {Ramp({1, 2, 2, 1})}, same)),
              ElementsAre(1.5, 2, 2.5, 3));
  const Tensor shape = Tensor::Vector<int32_t>({1, 2, 2, 1});
  EXPECT_THAT(Numbers(RunOpOrDie("AvgPoolGrad", {shape, Ramp({1, 2, 2, 1})}, same)),
              ElementsAre(0, 0.5, 1, 4.5));
}

TEST(AvgPoolGrad, TheShapeMustFit) {
  for (const auto& dims :
       {std::vector<int32_t>{1, 4, 2, 1}, {2, 2, 2, 1}, {2, 2, 1}, {1, -2, 2, 1}}) {
    const Tensor shape = Tensor::Vector<int32_t>(dims);
    EXPECT_THAT(RunOp("AvgPoolGrad", {shape, Ramp({1, 1, 1, 1})}, Twos()).status,
                IsError(kInvalid, ""));
  }
}

TEST(MaxPool3D, GradientsGoToAllEqualsAndBack) {
  const AttributeMap attrs = Attrs({1, 1, 1, 2, 1}, {1, 1, 1, 1, 1}, "VALID");
  GraphSession s;
  const Output x = Const(Tensor::Of<float>({1, 1, 1, 4, 1}, {1, 3, 3, 2}));
  const Output weights = Const(Tensor::Of<float>({1, 1, 1, 3, 1}, {1, 10, 100}));
  const Output y = MaxPool3D(x, {1, 1, 1, 2, 1}, {1, 1, 1, 1, 1}, "VALID");
  EXPECT_THAT(Numbers(s.Value(y)), ElementsAre(3, 3, 3));
  const Output dx = Gradients(Mul(y, weights), x)[0];
  EXPECT_THAT(Numbers(s.Value(dx)), ElementsAre(0, 11, 110, 0));
  // dx is linear in the weights; the derivative takes the first of equals.
  const Output twice = Const(Tensor::Of<float>({1, 1, 1, 4, 1}, {5, 6, 7, 8}));
  const Output dweights = Gradients(Mul(dx, twice), weights)[0];
  EXPECT_THAT(Numbers(s.Value(dweights)), ElementsAre(6, 6, 7));
  const Output back = Gradients(dweights, twice)[0];
  EXPECT_THAT(Numbers(s.Value(back)), ElementsAre(0, 2, 2, 0));
}

TEST(MaxPool3D, GradientsGoToAllThatTieWithTheLargest) {
  const Tensor x = Tensor::Of<float>({1, 1, 1, 6, 1}, {3, 3, 0.5F - 9.9e-6F, 0.5F, 2, 2 - 1.1e-5F});
  const Tensor y = Tensor::Of<float>({1, 1, 1, 3, 1}, {3, 0.5F, 2});
  const Tensor dy = Tensor::Of<float>({1, 1, 1, 3, 1}, {1, 10, 100});
  const AttributeMap pairs = Attrs({1, 1, 1, 2, 1}, {1, 1, 1, 2, 1}, "VALID");
  EXPECT_THAT(Numbers(RunOpOrDie("MaxPool3DGrad", {x, y, dy}, pairs)),
              ElementsAre(1, 1, 10, 10, 100, 0));
}

TEST(MaxPoolWithArgmax, EveryDtypeAndAnyNumberOfChannelsAgreeWithDoubles) {
  const AttributeMap same = Attrs({1, 3, 2, 1}, {1, 2, 1, 1}, "SAME");
  for (const DType type : DTypesOf(RealTypes())) {
    for (const int64_t channels : {1, 7, 33}) {
      Tensor x = Sample(type, {2, 5, 4, channels}, 0, 50, 3), wide(DType::kDouble, x.shape());
      const std::vector<double> numbers = Numbers(x);
      std::copy(numbers.begin(), numbers.end(), wide.data<double>());
      EXPECT_EQ(Numbers(RunOpOrDie("MaxPoolWithArgmax", {x}, same)),
                Numbers(RunOpOrDie("MaxPoolWithArgmax", {wide}, same)));
    }
  }
}

}  // namespace
}  // namespace tenon::testing
