// SPDX-License-Identifier: Apache-2.0
#include "ops/tensor_array/tensor_array_ops.h"

#include <gmock/gmock.h>

#include "core/gradient/gradients.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

class TensorArrayOpsTest : public ::testing::Test {
 protected:
  Output I(int32_t i) { return Const(i); }
  Output Ints(std::vector<int32_t> x) { return Const(x); }
  TensorArrayV3Outputs Array(int32_t size, const PartialShape& element_shape = PartialShape(),
                             const TensorArrayV3Options& options = {}) {
    return TensorArrayV3(I(size), DType::kFloat, element_shape, options);
  }
  GraphSession s;
};

TEST_F(TensorArrayOpsTest, ReadsWhatWasWritten) {
  const auto a = Array(2);
  const Output flow = TensorArrayWriteV3(a.handle, I(1), Const({4.0f, 5.0f}), a.flow);
  EXPECT_THAT(Numbers(s.Value(TensorArrayReadV3(a.handle, I(1), flow, DType::kFloat))),
              ElementsAre(4, 5));
  EXPECT_EQ(s.Value(flow).scalar<float>(), 0);
  EXPECT_EQ(s.Value(TensorArraySizeV3(a.handle, flow)).scalar<int32_t>(), 2);
}

TEST_F(TensorArrayOpsTest, AnElementThatWasNotWrittenIsZeroWhenItsShapeIsKnown) {
  const auto a = Array(1, PartialShape{2});
  EXPECT_THAT(Numbers(s.Value(TensorArrayReadV3(a.handle, I(0), a.flow, DType::kFloat))),
              ElementsAre(0, 0));
  const auto b = Array(1, PartialShape{-1});
  EXPECT_THAT(s.Run({TensorArrayReadV3(b.handle, I(0), b.flow, DType::kFloat)}),
              IsError(StatusCode::kInvalidArgument, "not fully defined"));
}

TEST_F(TensorArrayOpsTest, WritesOnceAndReadsOnce) {
  const auto a = Array(1);
  const Output one = Const(1.0f);
  const Output flow = TensorArrayWriteV3(a.handle, I(0), one, a.flow);
  EXPECT_THAT(s.Run({TensorArrayWriteV3(a.handle, I(0), one, flow)}),
              IsError(StatusCode::kInvalidArgument, "it has already been written to"));
  const Output read = TensorArrayReadV3(a.handle, I(0), flow, DType::kFloat);
  const Output again = [&] {
    const ControlDependencies after({read});
    return TensorArrayReadV3(a.handle, I(0), flow, DType::kFloat);
  }();
  EXPECT_THAT(s.Run({again}),
              IsError(StatusCode::kInvalidArgument, "cleared after a previous read"));
}

TEST_F(TensorArrayOpsTest, GrowsOnlyWhenDynamic) {
  const Output one = Const(1.0f);
  const auto fixed = Array(1), growing = Array(1, {}, {.dynamic_size = true});
  EXPECT_THAT(s.Run({TensorArrayWriteV3(fixed.handle, I(3), one, fixed.flow)}),
              IsError(StatusCode::kInvalidArgument, "index 3 but array is not resizeable"));
  const Output flow = TensorArrayWriteV3(growing.handle, I(3), one, growing.flow);
  EXPECT_EQ(s.Value(TensorArraySizeV3(growing.handle, flow)).scalar<int32_t>(), 4);
  EXPECT_THAT(s.Run({TensorArrayWriteV3(growing.handle, I(-1), one, growing.flow)}),
              IsError(StatusCode::kInvalidArgument, "index -1"));
}

TEST_F(TensorArrayOpsTest, ScattersAndGathers) {
  const auto a = Array(3, {}, {.clear_after_read = false});
  const Output rows = Const(Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const Output flow = TensorArrayScatterV3(a.handle, Ints({2, 0, 1}), rows, a.flow);
  const Tensor all = s.Value(TensorArrayGatherV3(a.handle, Ints({0, 1, 2}), flow, DType::kFloat));
  EXPECT_EQ(all.shape(), (Shape{3, 2}));
  EXPECT_THAT(Numbers(all), ElementsAre(3, 4, 5, 6, 1, 2));
}

TEST_F(TensorArrayOpsTest, GatheringNothingNeedsAKnownShape) {
  const auto a = Array(0, PartialShape{2}), b = Array(0);
  const Tensor none = s.Value(TensorArrayGatherV3(a.handle, Ints({}), a.flow, DType::kFloat));
  EXPECT_EQ(none.shape(), (Shape{0, 2}));
  EXPECT_THAT(s.Run({TensorArrayGatherV3(b.handle, Ints({}), b.flow, DType::kFloat)}),
              IsError(StatusCode::kUnimplemented, "is not fully defined"));
}

TEST_F(TensorArrayOpsTest, SplitsAndConcatenates) {
  const auto a = Array(3);
  const Output value = Const(Tensor::Of<float>({3, 1}, {1, 2, 3}));
  const Output flow =
      TensorArraySplitV3(a.handle, value, Const(std::vector<int64_t>{2, 0, 1}), a.flow);
  const auto joined = TensorArrayConcatV3(a.handle, flow, DType::kFloat);
  const auto values = s.Run({joined.value, joined.lengths});
  ASSERT_OK(values);
  EXPECT_EQ((*values)[0].shape(), (Shape{3, 1}));
  EXPECT_THAT(Numbers((*values)[0]), ElementsAre(1, 2, 3));
  EXPECT_THAT(Numbers((*values)[1]), ElementsAre(2, 0, 1));
}

TEST_F(TensorArrayOpsTest, AGradientArrayAddsUp) {
  const auto a = Array(1);
  const Output flow = TensorArrayWriteV3(a.handle, I(0), Const(1.0f), a.flow);
  const auto g = TensorArrayGradV3(a.handle, flow, "gradients");
  const Output first = TensorArrayWriteV3(g.grad_handle, I(0), Const(2.0f), g.flow_out);
  const Output second = TensorArrayWriteV3(g.grad_handle, I(0), Const(3.0f), first);
  EXPECT_THAT(Numbers(s.Value(TensorArrayReadV3(g.grad_handle, I(0), second, DType::kFloat))),
              ElementsAre(5));
}

TEST_F(TensorArrayOpsTest, GradientsGoThroughTheArray) {
  const Output x = Const(Tensor::Of<float>({2, 2}, {1, 2, 3, 4}));
  const auto a = Array(2, {}, {.clear_after_read = false});
  const Output flow = TensorArrayScatterV3(a.handle, Ints({0, 1}), x, a.flow);
  const Output e = TensorArrayReadV3(a.handle, I(1), flow, DType::kFloat);
  const Output all = TensorArrayGatherV3(a.handle, Ints({0, 1}), flow, DType::kFloat);
  const std::vector<Output> grads = Gradients({Mul(e, e), all}, x);
  ASSERT_OK(s.graph.error());
  EXPECT_THAT(Numbers(s.Value(grads[0])), ElementsAre(1, 1, 7, 9));
}

TEST_F(TensorArrayOpsTest, GradientsGoThroughSplitAndConcat) {
  const Output x = Const({1.0f, 2.0f, 3.0f});
  const auto a = Array(2);
  const Output flow = TensorArraySplitV3(a.handle, x, Const(std::vector<int64_t>{1, 2}), a.flow);
  const Output y = TensorArrayConcatV3(a.handle, flow, DType::kFloat).value;
  const std::vector<Output> grads = Gradients(Mul(y, y), x);
  ASSERT_OK(s.graph.error());
  EXPECT_THAT(Numbers(s.Value(grads[0])), ElementsAre(2, 4, 6));
}

TEST_F(TensorArrayOpsTest, WhatIsWrittenAfterASplitHasNoPartInItsGradient) {
  const Output x = Const({1.0f, 2.0f, 3.0f});
  const auto a = Array(2, {}, {.dynamic_size = true});
  const Output split = TensorArraySplitV3(a.handle, x, Const(std::vector<int64_t>{1, 2}), a.flow);
  const Output flow = TensorArrayWriteV3(a.handle, I(2), Const({4.0f, 5.0f}), split);
  const Output y = TensorArrayConcatV3(a.handle, flow, DType::kFloat).value;
  EXPECT_THAT(Numbers(s.Value(y)), ElementsAre(1, 2, 3, 4, 5));
  const std::vector<Output> grads = Gradients(Mul(y, y), x);
  ASSERT_OK(s.graph.error());
  EXPECT_THAT(Numbers(s.Value(grads[0])), ElementsAre(2, 4, 6));
}

TEST_F(TensorArrayOpsTest, AHandleOfNoContainerSaysSo) {
  const Output concat = NodeBuilder("TensorArrayConcatV2")
                            .Input(Const({std::string("a"), std::string("b")}))
                            .Input(Const(0.0f))
                            .Attr("dtype", DType::kFloat)
                            .Output();
  EXPECT_THAT(s.Run({concat}), IsError(StatusCode::kNotFound, "Container a does not exist."));
}

TEST_F(TensorArrayOpsTest, AClosedArrayFails) {
  const auto a = Array(1);
  Node* close = TensorArrayCloseV3(a.handle);
  const Output size = [&] {
    const ControlDependencies after({close});
    return TensorArraySizeV3(a.handle, a.flow);
  }();
  EXPECT_THAT(s.Run({size}), IsError(StatusCode::kInvalidArgument, "already been closed"));
}

/// The ops of TensorFlow 1, whose handles are strings.
TEST_F(TensorArrayOpsTest, TheFirstVersionsWorkToo) {
  for (const std::string version : {"", "V2"}) {
    const auto node = [&](const std::string& name) {
      return NodeBuilder("TensorArray" + name + version);
    };
    const Output array =
        node("").Input(I(2)).Attr("dtype", DType::kFloat).Attr("dynamic_size", true).Output();
    const Output zero = Const(0.0f);
    const Output flow =
        node("Write").Input(array).Input(I(1)).Input(Const({4.0f, 5.0f})).Input(zero).Output();
    const Output both =
        node("Write").Input(array).Input(I(0)).Input(Const({2.0f, 3.0f})).Input(flow).Output();
    const Output size = node("Size").Input(array).Input(both).Output();
    const Output rows = node("Gather")
                            .Input(array)
                            .Input(Ints({1, 0}))
                            .Input(both)
                            .Attr("dtype", DType::kFloat)
                            .Output();
    const auto values = s.Run({size, rows});
    ASSERT_OK(values);
    EXPECT_EQ((*values)[0].scalar<int32_t>(), 2);
    EXPECT_THAT(Numbers((*values)[1]), ElementsAre(4, 5, 2, 3));
  }
}

TEST_F(TensorArrayOpsTest, PacksAndUnpacks) {
  const Output array = NodeBuilder("TensorArray").Input(I(3)).Attr("dtype", DType::kFloat).Output();
  const auto unpack = [&](Output value) {
    return NodeBuilder("TensorArrayUnpack").Input(array).Input(value).Input(Const(0.0f)).Output();
  };
  const Output packed = NodeBuilder("TensorArrayPack")
                            .Input(array)
                            .Input(unpack(Const({1.0f, 2.0f, 3.0f})))
                            .Attr("dtype", DType::kFloat)
                            .Output();
  EXPECT_THAT(Numbers(s.Value(packed)), ElementsAre(1, 2, 3));
  EXPECT_THAT(s.Run({unpack(Const({1.0f, 2.0f}))}),
              IsError(StatusCode::kInvalidArgument, "equal to the array size (2 vs. 3)"));
}

TEST_F(TensorArrayOpsTest, AGradientArrayMayHaveMoreDimensions) {
  const auto a = Array(1);
  const Output flow = TensorArrayWriteV3(a.handle, I(0), Const({4.0f, 5.0f}), a.flow);
  const auto gradient = TensorArrayGradWithShape(a.handle, flow, Ints({2}), "gradients");
  const Output read =
      TensorArrayReadV3(gradient.grad_handle, I(0), gradient.flow_out, DType::kFloat);
  EXPECT_EQ(s.Value(read).shape(), (Shape{2, 2}));
}

}  // namespace
}  // namespace tenon::testing
