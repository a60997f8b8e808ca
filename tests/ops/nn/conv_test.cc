// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/conv.h"

#include <gmock/gmock.h>

#include <random>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/base/sanitizers.h"
#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/nn/nn_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using List = std::vector<int64_t>;

/// A convolution in two dimensions, padded explicitly.
struct Conv {
  int64_t batch, height, width, inputs, outputs, groups;
  int64_t window[2], stride[2], dilation[2], before[2], after[2];
  bool channels_first;

  int64_t out(int i) const {
    const int64_t in = i == 0 ? height : width;
    return (in + before[i] + after[i] - (window[i] - 1) * dilation[i] - 1) / stride[i] + 1;
  }
  Shape image(int64_t h, int64_t w, int64_t c) const {
    return channels_first ? Shape{batch, c, h, w} : Shape{batch, h, w, c};
  }
  Shape x() const { return image(height, width, inputs); }
  Shape filter() const { return {window[0], window[1], inputs / groups, outputs}; }
  Shape y() const { return image(out(0), out(1), outputs); }

  AttributeMap attrs() const {
    const auto list = [&](int64_t first, int64_t second) {
      return channels_first ? List{1, 1, first, second} : List{1, first, second, 1};
    };
    List paddings(8, 0);
    for (int i = 0; i < 2; ++i) {
      paddings[2 * (i + 1 + channels_first)] = before[i];
      paddings[2 * (i + 1 + channels_first) + 1] = after[i];
    }
    return {{"strides", list(stride[0], stride[1])},
            {"dilations", list(dilation[0], dilation[1])},
            {"padding", "EXPLICIT"},
            {"explicit_paddings", paddings},
            {"data_format", channels_first ? "NCHW" : "NHWC"}};
  }

  int64_t At(const Shape& s, int64_t b, int64_t h, int64_t w, int64_t c) const {
    return channels_first ? ((b * s.dim(1) + c) * s.dim(2) + h) * s.dim(3) + w
                          : ((b * s.dim(1) + h) * s.dim(2) + w) * s.dim(3) + c;
  }

  /// fn(place in x, place in the filter, place in y) for every product.
  template <typename Fn>
  void ForEachProduct(Fn fn) const {
    const int64_t group_inputs = inputs / groups;
    for (int64_t i = 0; i < batch * out(0) * out(1) * outputs; ++i) {
      const int64_t o = i % outputs, ow = i / outputs % out(1);
      const int64_t oh = i / outputs / out(1) % out(0), b = i / outputs / out(1) / out(0);
      for (int64_t k = 0; k < window[0] * window[1] * group_inputs; ++k) {
        const int64_t c = k % group_inputs, kw = k / group_inputs % window[1];
        const int64_t kh = k / group_inputs / window[1];
        const int64_t h = oh * stride[0] - before[0] + kh * dilation[0];
        const int64_t w = ow * stride[1] - before[1] + kw * dilation[1];
        if (h < 0 || h >= height || w < 0 || w >= width) continue;
        fn(At(x(), b, h, w, o / (outputs / groups) * group_inputs + c), k * outputs + o,
           At(y(), b, oh, ow, o));
      }
    }
  }
};

Conv RandomConv(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  Conv c = {};
  c.batch = pick(1, 3), c.height = pick(3, 9), c.width = pick(3, 9), c.groups = 1;
  c.channels_first = pick(0, 1) == 1;
  for (int i = 0; i < 2; ++i) {
    c.window[i] = pick(1, 3);
    c.stride[i] = pick(1, 3);
    c.dilation[i] = pick(1, 2);
    c.before[i] = pick(0, 3);
    c.after[i] = pick(2, 4);
  }
  if (pick(0, 3) == 0) {
    // A window that is the image.
    c.window[0] = c.height = pick(1, 3), c.window[1] = c.width = pick(1, 3);
    for (int i = 0; i < 2; ++i) c.dilation[i] = 1, c.before[i] = c.after[i] = 0;
  }
  if (pick(0, 2) == 0) c.groups = pick(2, 20);
  c.inputs = c.groups * pick(1, 3);
  c.outputs = c.groups * pick(1, 3);
  if (c.groups == 1 && pick(0, 1) == 0) c.inputs = 16 * pick(1, 3), c.outputs = pick(1, 40);
  return c;
}

Tensor ShapeOfTensor(const Shape& shape) {
  return Tensor::Vector(std::vector<int32_t>(shape.dims().begin(), shape.dims().end()));
}

double ToleranceOf(DType t) {
  switch (t) {
    case DType::kHalf:
      return 5e-2;
    case DType::kBFloat16:
      return 0.5;
    case DType::kFloat:
      return 1e-4;
    default:
      return 1e-12;
  }
}

void ExpectClose(const Tensor& found, const std::vector<double>& wanted) {
  const std::vector<double> numbers = Numbers(found);
  ASSERT_EQ(numbers.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_NEAR(numbers[i], wanted[i], ToleranceOf(found.dtype()) * (1 + std::fabs(wanted[i]) / 8));
  }
}

TEST(Conv2D, AllPassesInAllDtypesAgreeWithLoops) {
  std::mt19937 random(5);
  for (int round = 0; round < (kSanitized ? 30 : 150); ++round) {
    const Conv c = RandomConv(random);
    for (const DType type :
         {DType::kFloat, DType::kDouble, DType::kInt32, DType::kHalf, DType::kBFloat16}) {
      const Tensor x = Sample(type, c.x(), -2, 2, round), f = Sample(type, c.filter(), -2, 2, 1);
      const Tensor y = Sample(type, c.y(), -2, 2, 2);
      SCOPED_TRACE(StrCat(round, " ", type, " ", x.shape(), " ", f.shape(), " ", y.shape()));
      const std::vector<double> xs = Numbers(x), fs = Numbers(f), ys = Numbers(y);
      std::vector<double> sums[3] = {std::vector<double>(xs.size()), std::vector<double>(fs.size()),
                                     std::vector<double>(ys.size())};
      c.ForEachProduct([&](int64_t i, int64_t k, int64_t o) {
        sums[0][i] += fs[k] * ys[o];
        sums[1][k] += xs[i] * ys[o];
        sums[2][o] += xs[i] * fs[k];
      });
      ExpectClose(RunOpOrDie("Conv2D", {x, f}, c.attrs()), sums[2]);
      const Tensor sizes = ShapeOfTensor(c.x());
      ExpectClose(RunOpOrDie("Conv2DBackpropInput", {sizes, f, y}, c.attrs()), sums[0]);
      if (type == DType::kInt32) continue;
      const Tensor filter_sizes = ShapeOfTensor(c.filter());
      ExpectClose(RunOpOrDie("Conv2DBackpropFilter", {x, filter_sizes, y}, c.attrs()), sums[1]);
    }
  }
}

/// What FastConv and PlainConv give for a pass of a convolution in three dimensions.
void ExpectFastIsPlain(ConvPass pass, const ConvShape& s) {
  const auto image = [&](int64_t pixels, int64_t channels) {
    return Sample(DType::kFloat, {s.batch * pixels * channels}, -1, 1, 1);
  };
  const int64_t weights = s.taps() * s.group_inputs() * s.out_channels;
  Tensor fast[3] = {image(s.in_pixels(), s.in_channels), Sample(DType::kFloat, {weights}, -1, 1, 2),
                    image(s.out_pixels(), s.out_channels)};
  Tensor plain[3];
  for (int i = 0; i < 3; ++i) plain[i] = fast[i].Copy().value();
  const auto arrays = [](Tensor* t) {
    return ConvArrays<float>{t[0].data<float>(), t[1].data<float>(), t[2].data<float>()};
  };
  const StatusOr<bool> done = FastConv(pass, s, arrays(fast));
  ASSERT_OK(done);
  EXPECT_TRUE(*done);
  ASSERT_OK(PlainConv(pass, s, arrays(plain)));
  for (int i = 0; i < 3; ++i) ExpectClose(fast[i], Numbers(plain[i]));
}

TEST(Convolve, TheFastCodeAgreesWithThePlainCode) {
  const WindowAxis same = {.in = 6, .window = 3, .before = 1, .after = 1, .out = 6};
  const WindowAxis strided = {.in = 7, .window = 2, .stride = 2, .out = 3};
  for (const ConvPass pass : {ConvPass::kOutput, ConvPass::kInput, ConvPass::kFilter}) {
    for (const bool channels_first : {false, true}) {
      for (const int64_t groups : {1, 16}) {
        SCOPED_TRACE(StrCat(static_cast<int>(pass), channels_first, groups));
        ConvShape s;
        s.batch = 2, s.in_channels = 16, s.out_channels = 16, s.groups = groups;
        s.channels_first = channels_first;
        s.axes = {WindowAxis(), same, strided};
        ExpectFastIsPlain(pass, s);
        if (groups > 1) continue;
        s.axes = {strided, same, same};
        ExpectFastIsPlain(pass, s);
      }
    }
  }
}

TEST(Convolve, IsTheSameInEveryRunForAnyNumberOfThreads) {
  const Tensor x = Sample(DType::kFloat, {16, 28, 28, 16}, -1, 1, 1);
  const Tensor y = Sample(DType::kFloat, {16, 28, 28, 32}, -1, 1, 2);
  const Tensor sizes = ShapeOfTensor({3, 3, 16, 32});
  const AttributeMap attrs = {{"strides", List{1, 1, 1, 1}}, {"padding", "SAME"}};
  const int before = ThreadBudget();
  std::vector<double> first;
  for (const int threads : {1, 2, 4}) {
    SetThreadBudget(threads);
    const Tensor once = RunOpOrDie("Conv2DBackpropFilter", {x, sizes, y}, attrs);
    EXPECT_TRUE(once.Equals(RunOpOrDie("Conv2DBackpropFilter", {x, sizes, y}, attrs)));
    const std::vector<double> numbers = Numbers(once);
    if (first.empty()) first = numbers;
    for (size_t i = 0; i < first.size(); ++i) ASSERT_NEAR(numbers[i], first[i], 1e-3);
  }
  SetThreadBudget(before);
}

TEST(Convolve, StopsWhenInterrupted) {
  Cancellation cancellation;
  cancellation.Cancel(Cancelled("enough"));
  const InterruptibleBy scope(&cancellation);
  const AttributeMap attrs = {{"strides", List{1, 1, 1, 1}}, {"padding", "SAME"}};
  for (const DType type : {DType::kFloat, DType::kDouble}) {
    // Hours of work.
    const Tensor x(type, {1, 4096, 4096, 1}), filter(type, {2048, 2048, 1, 1});
    EXPECT_OK(RunOp("Conv2D", {x, filter}, attrs).status);
    EXPECT_OK(RunOp("DepthwiseConv2dNative", {x, filter}, attrs).status);
  }
}

TEST(DepthwiseConv2dNative, ConvolvesEachChannelByItself) {
  const Tensor x = Tensor::Of<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  const Tensor filter = Tensor::Of<float>({1, 2, 2, 2}, {1, 10, 100, 1000, 2, 20, 200, 2000});
  const AttributeMap attrs = {{"strides", List{1, 1, 1, 1}}, {"padding", "VALID"}};
  EXPECT_THAT(Numbers(RunOpOrDie("DepthwiseConv2dNative", {x, filter}, attrs)),
              ElementsAre(7, 70, 1000, 10000));
}

TEST(Conv2D, OfEmptyTensorsIsEmptyOrZero) {
  const AttributeMap attrs = {{"strides", List{1, 1, 1, 1}}, {"padding", "VALID"}};
  const auto floats = [](const Shape& s) { return Sample(DType::kFloat, s, 1, 2, 1); };
  EXPECT_EQ(RunOpOrDie("Conv2D", {floats({0, 4, 4, 2}), floats({2, 2, 2, 3})}, attrs).shape(),
            Shape({0, 3, 3, 3}));
  EXPECT_THAT(Numbers(RunOpOrDie("Conv2D", {floats({1, 2, 2, 0}), floats({2, 2, 2, 3})}, attrs)),
              ElementsAre(0, 0, 0));
  const Tensor sizes = ShapeOfTensor({1, 1, 2, 2});
  EXPECT_THAT(Numbers(RunOpOrDie("Conv2DBackpropFilter",
                                 {floats({0, 4, 4, 2}), sizes, floats({0, 4, 4, 2})}, attrs)),
              Each(0));
}

TEST(Conv2D, StepsAlongBatchAndDepthFailInTheStepThatHasThem) {
  const auto floats = [](const Shape& s) { return Sample(DType::kFloat, s, 1, 2, 1); };
  GraphSession s;
  const Output x = Const(floats({2, 4, 4, 2})), filter = Const(floats({2, 2, 2, 2}));
  for (const std::string op : {"Conv2D", "Conv"}) {
    for (const List& strides : {List{2, 1, 1, 1}, List{1, 1, 1, 2}}) {
      const Output wrong = NodeBuilder(op)
                               .Input(x)
                               .Input(filter)
                               .Attr("strides", strides)
                               .Attr("padding", "SAME")
                               .Output();
      EXPECT_THAT(s.Run({wrong}), IsError(op == "Conv" ? kInvalid : StatusCode::kUnimplemented,
                                          "strides in the batch and depth dimensions"));
    }
  }
  const Output empty = NodeBuilder("Conv2D")
                           .Input(x)
                           .Input(Const(Tensor(DType::kFloat, {0, 2, 2, 2})))
                           .Attr("strides", List{1, 1, 1, 1})
                           .Attr("padding", "SAME")
                           .Output();
  EXPECT_THAT(s.Run({empty}), IsError(kInvalid, "filter must not have zero elements"));
  // The graph still holds them.
  EXPECT_OK(s.Run({x}));
}

TEST(Conv2D, RefusesWhatCannotBe) {
  const auto floats = [](const Shape& s) { return Sample(DType::kFloat, s, 1, 2, 1); };
  AttributeMap attrs = {{"strides", List{1, 1, 1, 1}}, {"padding", "VALID"}};
  const auto refuses = [&](const Shape& x, const Shape& f, const char* why) {
    for (const bool hidden : {false, true}) {
      EXPECT_THAT(RunOp("Conv2D", {floats(x), floats(f)}, attrs, hidden).status,
                  IsError(kInvalid, why));
    }
  };
  refuses({1, 4, 4, 3}, {2, 2, 2, 2}, "multiple of the filter's");
  refuses({1, 4, 4, 4}, {2, 2, 2, 3}, "number of groups");
  refuses({1, 4, 4, 4}, {2, 2, 0, 3}, "multiple of the filter's");
  refuses({1, 4, 4, 4}, {0, 2, 4, 3}, "window is empty");
  refuses({1, 2, 2, 4}, {4, 4, 4, 3}, "negative");
  refuses({2, 2, 4}, {1, 1, 4, 3}, "4");
  attrs.Set("strides", List{1, 0, 1, 1});
  refuses({1, 4, 4, 2}, {2, 2, 2, 2}, "strides holds 0");
  attrs.Set("strides", List{1, 1, 1});
  refuses({1, 4, 4, 2}, {2, 2, 2, 2}, "strides has 3 entries");
  attrs.Set("strides", List{1, 1, 1, 1});
  attrs.Set("dilations", List{1, INT64_MAX, 1, 1});
  refuses({1, 4, 4, 2}, {3, 2, 2, 2}, "");
}

TEST(Conv2DBackpropInput, SizesMustFit) {
  const AttributeMap attrs = {{"strides", List{1, 1, 1, 1}}, {"padding", "VALID"}};
  const Tensor f = Sample(DType::kFloat, {2, 2, 1, 1}, 1, 1, 1);
  const Tensor dy = Sample(DType::kFloat, {1, 1, 1, 1}, 1, 1, 1);
  const auto run = [&](const Tensor& sizes) {
    return RunOp("Conv2DBackpropInput", {sizes, f, dy}, attrs, true);
  };
  using Sizes = std::initializer_list<int32_t>;
  EXPECT_THAT(Numbers(run(Tensor::Vector<int32_t>({2, 2})).outputs[0]), ElementsAre(1, 1, 1, 1));
  for (const Sizes sizes : {Sizes{1, 3, 2, 1},
                            {2, 2, 2, 1},
                            {1, 2, 2, 2},
                            {2, 2, 1},
                            {1, -2, 2, 1},
                            {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}}) {
    EXPECT_THAT(run(Tensor::Vector<int32_t>(sizes)).status, IsError(kInvalid, ""));
  }
  EXPECT_THAT(run(Tensor::Scalar<int32_t>(2)).status, IsError(kInvalid, "input_sizes"));
}

TEST(Conv2D, GradientsOfGroupsAreTheirConvolutions) {
  GraphSession s;
  const Output x = Const(Tensor::Of<double>({1, 1, 1, 4}, {1, 2, 3, 4}));
  const Output f = Const(Tensor::Of<double>({1, 1, 2, 2}, {1, 2, 3, 4}));
  const Output y = Conv2D(x, f, {1, 1, 1, 1}, "VALID");
  EXPECT_THAT(Numbers(s.Value(y)), ElementsAre(7, 22));
  const std::vector<Output> dxs = Gradients(y, {x, f});
  EXPECT_THAT(Numbers(s.Value(dxs[0])), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(Numbers(s.Value(dxs[1])), ElementsAre(1, 3, 2, 4));
}

TEST(Conv2D, TheShapeIsKnownAsFarAsItCanBe) {
  GraphSession s;
  const Output x = Placeholder(DType::kFloat, PartialShape{-1, 28, -1, 3});
  const Output f = Placeholder(DType::kFloat, PartialShape{5, 5, 3, 8});
  EXPECT_EQ(Conv2D(x, f, {1, 2, 2, 1}, "SAME").shape(), (PartialShape{-1, 14, -1, 8}));
  EXPECT_EQ(Conv2D(x, f, {1, 1, 1, 1}, "VALID").shape(), (PartialShape{-1, 24, -1, 8}));
}

}  // namespace
}  // namespace tenon::testing
