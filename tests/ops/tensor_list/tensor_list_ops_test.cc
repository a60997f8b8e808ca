// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/gradient/gradients.h"
#include "core/proto/proto_io_tensor.h"
#include "ops/composition.h"
#include "ops/tensor_list/tensor_list.h"
#include "ops/tensor_list/tensor_list_ops.h"
#include "tests/testing/cpu_time.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

const AttributeMap kOfDouble = {{"element_dtype", DType::kDouble}};

/// A list of vectors with the given first elements, each with that + 1 after it.
Tensor ListOfPairs(const std::vector<double>& firsts, PartialShape shape = {2}) {
  TensorList list(DType::kDouble, std::move(shape));
  for (const double x : firsts) EXPECT_OK(list.Append(Tensor::Vector({x, x + 1})));
  return ListTensor(std::move(list));
}

const TensorList& List(const Tensor& handle) {
  return *ListOf(handle.scalar<Variant>(), DType::kInvalid, "the test's list").value();
}

Tensor Stacked(const Tensor& handle) {
  return RunOpOrDie("TensorListStack", {handle, Tensor::Scalar(-1)},
                    {{"element_dtype", List(handle).dtype()}});
}

TEST(TensorLists, AChangedListLeavesTheOldOneAsItIs) {
  const Tensor old = ListOfPairs({1});
  const Tensor longer =
      RunOpOrDie("TensorListPushBack", {old, Tensor::Vector({5.0, 6.0})}, kOfDouble);
  const Tensor other = RunOpOrDie(
      "TensorListSetItem", {longer, Tensor::Scalar(0), Tensor::Vector({8.0, 9.0})}, kOfDouble);
  EXPECT_THAT(Numbers(Stacked(old)), ElementsAre(1, 2));
  EXPECT_THAT(Numbers(Stacked(longer)), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(Numbers(Stacked(other)), ElementsAre(8, 9, 5, 6));
}

TEST(TensorLists, AListThatNobodyElseHoldsIsChangedInPlace) {
  GraphSession s;
  Output list = EmptyTensorList(Const(-1), Const(-1), DType::kDouble);
  for (int i = 0; i < 3000; ++i) list = TensorListPushBack(list, Const(Tensor::Scalar(1.5)));
  const CpuTime time;
  EXPECT_EQ(s.Value(TensorListLength(list)).scalar<int32_t>(), 3000);
  // Copies would be 4.5 million tensors.
  EXPECT_LT(time.seconds(), 20);
}

TEST(TensorLists, ElementsNeverSetAreZerosOfTheShapeThatIsKnown) {
  const Tensor empty =
      RunOpOrDie("TensorListReserve", {Tensor::Vector({-1}), Tensor::Scalar(3)}, kOfDouble);
  const Tensor one = RunOpOrDie("TensorListSetItem",
                                {empty, Tensor::Scalar(1), Tensor::Vector({3.0, 4.0})}, kOfDouble);
  EXPECT_THAT(Numbers(Stacked(one)), ElementsAre(0, 0, 3, 4, 0, 0));
  const auto item = [](const Tensor& list, int32_t shape) {
    return RunOp("TensorListGetItem", {list, Tensor::Scalar(0), Tensor::Vector({shape})},
                 kOfDouble);
  };
  EXPECT_THAT(Numbers(item(one, -1).outputs[0]), ElementsAre(0, 0));
  EXPECT_THAT(Numbers(item(empty, 1).outputs[0]), ElementsAre(0));
  EXPECT_THAT(item(empty, -1).status, IsError(kInvalid, "element_shape is not fully defined: [?]"));
  EXPECT_THAT(RunOp("TensorListStack", {empty, Tensor::Scalar(-1)}, kOfDouble).status,
              IsError(kInvalid, "non-fully-defined element_shape: [?]"));
}

TEST(TensorLists, ConcatKnowsHowLongElementsNeverSetAre) {
  const Tensor reserved =
      RunOpOrDie("TensorListReserve", {Tensor::Vector({-1}), Tensor::Scalar(3)}, kOfDouble);
  const Tensor list = RunOpOrDie(
      "TensorListSetItem", {reserved, Tensor::Scalar(1), Tensor::Vector({3.0, 4.0})}, kOfDouble);
  const auto concat = [&](const Tensor& of, std::vector<int64_t> leading_dims) {
    return RunOp("TensorListConcatV2", {of, Tensor::Scalar(-1), Tensor::Vector(leading_dims)},
                 kOfDouble);
  };
  OpResult result = concat(list, {1});
  ASSERT_OK(result.status);
  EXPECT_THAT(Numbers(result.outputs[0]), ElementsAre(0, 3, 4, 0, 0));
  EXPECT_THAT(Numbers(result.outputs[1]), ElementsAre(1, 2, 2));
  EXPECT_THAT(concat(list, {-1}).status,
              IsError(kInvalid, "leading_dims[0] must be at least 0, found -1"));
  EXPECT_THAT(concat(list, {1, 2, int64_t{1} << 62}).status,
              IsError(StatusCode::kResourceExhausted, ""));
  EXPECT_THAT(concat(reserved, {1, 2}).status,
              IsError(kInvalid, "at index 2 but leading_dims has only 2 elements."));
  EXPECT_THAT(RunOp("TensorListConcat", {reserved}, kOfDouble).status,
              IsError(kInvalid, "fully defined"));
}

TEST(TensorLists, WrongArgumentsAreRefused) {
  const Tensor list = ListOfPairs({1, 3}), pair = Tensor::Vector({1.0, 2.0});
  const Tensor any = Tensor::Scalar(-1);
  const auto error = [](std::string_view op, const std::vector<Tensor>& inputs,
                        const AttributeMap& attrs = kOfDouble) {
    return RunOp(op, inputs, attrs, /*hide_inputs=*/true).status;
  };
  EXPECT_THAT(
      error("TensorListPushBack", {list, Tensor::Scalar(1.0)}),
      IsError(kInvalid, "incompatible shape to a list. Element shape: [], list shape: [2]"));
  EXPECT_THAT(error("TensorListPushBack", {Tensor(DType::kVariant, Shape()), pair}),
              IsError(kInvalid, "is no list; it is an empty variant"));
  EXPECT_THAT(error("TensorListPushBack", {Tensor(DType::kVariant, Shape{2}), pair}),
              IsError(kInvalid, "must be a scalar, found shape [2]"));
  const Tensor full = ListTensor(TensorList(DType::kDouble, PartialShape(), 0));
  EXPECT_THAT(error("TensorListPushBack", {full, pair}),
              IsError(kInvalid, "full list, list size: 0 max_num_elements: 0"));
  EXPECT_THAT(error("TensorListPopBack", {ListOfPairs({}), any}),
              IsError(kInvalid, "pop from an empty list"));
  for (const int32_t index : {-1, 2}) {
    const std::string element = StrCat(" element ", index, " in a list with 2 elements.");
    EXPECT_THAT(error("TensorListGetItem", {list, Tensor::Scalar(index), any}),
                IsError(kInvalid, "Trying to access" + element));
    EXPECT_THAT(error("TensorListSetItem", {list, Tensor::Scalar(index), pair}),
                IsError(kInvalid, "Trying to modify" + element));
    EXPECT_THAT(error("TensorListGather", {list, Tensor::Vector({index}), any}),
                IsError(kInvalid, "Trying to gather" + element));
  }
  EXPECT_THAT(error("TensorListStack", {list, any}, {{"element_dtype", DType::kFloat}}),
              IsError(kInvalid, "op elements float but list elements double"));
  EXPECT_THAT(error("TensorListStack", {list, Tensor::Vector({3})}), IsError(kInvalid, "[3]"));
  EXPECT_THAT(error("TensorListResize", {list, any}, {}),
              IsError(kInvalid, "non-negative. Got: -1"));
  EXPECT_THAT(error("TensorListReserve", {any, any}), IsError(kInvalid, "got -1"));
  EXPECT_THAT(error("TensorListScatter", {pair, Tensor::Vector({0, -2}), any}),
              IsError(kInvalid, "must all be non-negative. Found -2"));
  EXPECT_THAT(error("TensorListScatterV2", {pair, Tensor::Vector({0, 2}), any, Tensor::Scalar(2)}),
              IsError(kInvalid, "Trying to scatter at index 2 in list with size 2"));
  EXPECT_THAT(error("TensorListSplit", {pair, any, Tensor::Vector<int64_t>({1})}),
              IsError(kInvalid, "Unused values"));
  EXPECT_THAT(error("TensorListSplit", {pair, any, Tensor::Vector<int64_t>({1, 2})}),
              IsError(kInvalid, "Attempting to slice [1, 3] from tensor with length 2"));
  EXPECT_THAT(error("TensorListConcatLists", {list, ListOfPairs({1}, {-1})}),
              IsError(kInvalid, "not identical at index 0: [2] vs. [?]"));
}

TEST(TensorLists, ZerosAndSumsAreThoseOfTheElements) {
  TensorList with_hole(DType::kDouble, PartialShape{-1});
  with_hole.Resize(2);
  ASSERT_OK(with_hole.Set(1, Tensor::Vector({10.0, 20.0})));
  const Tensor a = ListOfPairs({1, 3}), b = ListTensor(with_hole);
  EXPECT_THAT(Numbers(Stacked(RunOpOrDie("AddN", {a, b, a}))), ElementsAre(2, 4, 16, 28));
  const Tensor zeros = RunOpOrDie("ZerosLike", {b});
  EXPECT_FALSE(List(zeros).elements()[0].valid());
  EXPECT_THAT(Numbers(List(zeros).elements()[1]), ElementsAre(0, 0));
  EXPECT_THAT(RunOp("AddN", {a, ListOfPairs({1})}).status,
              IsError(kInvalid, "two lists of tensors with different lengths: 2 and 1"));
}

TEST(TensorLists, SurviveAMessage) {
  AllOps();  // with which comes how lists are read
  TensorList list(DType::kDouble, PartialShape{-1, 2}, 7);
  list.Resize(3);
  ASSERT_OK(list.Set(1, Tensor::Of<double>({1, 2}, {4, 5})));
  TensorList outer(DType::kVariant, PartialShape());
  ASSERT_OK(outer.Append(ListTensor(list)));
  TensorProto proto;
  ASSERT_OK(TensorToProto(ListTensor(outer), &proto));
  EXPECT_EQ(proto.variant_val(0).type_name(), "tensorflow::TensorList");
  const auto back = TensorFromProto(proto);
  ASSERT_OK(back);
  ASSERT_EQ(List(*back).size(), 1);
  const TensorList& inner = List(List(*back).elements()[0]);
  EXPECT_EQ(inner.limit(), 7);
  EXPECT_EQ(inner.element_shape(), (PartialShape{-1, 2}));
  ASSERT_EQ(inner.size(), 3);
  EXPECT_FALSE(inner.elements()[0].valid());
  EXPECT_THAT(Numbers(inner.elements()[1]), ElementsAre(4, 5));
}

TEST(TensorLists, BrokenMessagesAreRefused) {
  TensorProto good;
  ASSERT_OK(TensorToProto(ListOfPairs({1, 3}), &good));
  const auto error = [&](auto change) {
    TensorProto proto = good;
    change(proto.mutable_variant_val(0));
    return TensorFromProto(proto).status();
  };
  for (size_t n = 0; n < good.variant_val(0).metadata().size(); ++n) {
    const Status s = error([&](auto* v) { v->mutable_metadata()->resize(n); });
    EXPECT_TRUE(s.ok() || s.code() == kInvalid) << s;
  }
  EXPECT_THAT(error([](auto* v) { v->set_metadata(std::string(9, '\xff') + "\x01"); }),
              IsError(kInvalid, "cannot be read"));
  EXPECT_THAT(error([](auto* v) { v->set_type_name("other"); }), IsError(kInvalid, "'other'"));
  EXPECT_THAT(error([](auto* v) { v->mutable_tensors(0)->set_dtype(DT_INT64); }),
              IsError(kInvalid, ""));
  EXPECT_THAT(error([](auto* v) { *v->add_tensors() = v->tensors(0); }), ::testing::_);
}

TEST(TensorLists, AreNotNestedWithoutEnd) {
  Tensor list = ListOfPairs({});
  Status status;
  for (int depth = 1; status.ok(); ++depth) {
    ASSERT_LE(depth, TensorList::kMaxLists);
    TensorList outer(DType::kVariant, PartialShape());
    status = outer.Append(list);
    list = ListTensor(outer);
  }
  EXPECT_THAT(status, IsError(kInvalid, "nested more than"));
}

class TensorListGradients : public ::testing::Test {
 protected:
  /// The gradient of sum(weights * y) by x.
  std::vector<double> Gradient(Output y, Output weights, Output x) {
    return Numbers(s.Value(Gradients(Sum(y * weights), x)[0]));
  }
  Output Stack(Output list) { return TensorListStack(list, Const(-1), DType::kDouble); }

  GraphSession s;
  const Output x = Const(Tensor::Of<double>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const Output rows = TensorListFromTensor(x, Const({2}));
  const Output w = Const(Tensor::Of<double>({3, 2}, {10, 20, 30, 40, 50, 60}));
};

TEST_F(TensorListGradients, OfFromTensorAndStack) {
  EXPECT_THAT(Gradient(Stack(rows), w, x), ElementsAre(10, 20, 30, 40, 50, 60));
}

TEST_F(TensorListGradients, OfPushAndPop) {
  const auto [shorter, last] = TensorListPopBack(rows, Const(-1), DType::kDouble);
  const Output pushed = TensorListPushBack(shorter, last * last);
  EXPECT_THAT(Gradient(Stack(pushed), w, x), ElementsAre(10, 20, 30, 40, 500, 720));
  EXPECT_THAT(Gradient(last, Const(Tensor::Vector({1.0, 2.0})), x), ElementsAre(0, 0, 0, 0, 1, 2));
}

TEST_F(TensorListGradients, OfGetItemAndSetItem) {
  const Output item = TensorListGetItem(rows, Const(1), Const(-1), DType::kDouble);
  const Output set = TensorListSetItem(rows, Const(0), 2.0 * item);
  EXPECT_THAT(Gradient(Stack(set), w, x), ElementsAre(0, 0, 50, 80, 50, 60));
}

TEST_F(TensorListGradients, OfGatherAndScatter) {
  const Output gathered = TensorListGather(rows, Const({2, 0}), Const(-1), DType::kDouble);
  EXPECT_THAT(Gradient(gathered, Const(Tensor::Of<double>({2, 2}, {1, 2, 3, 4})), x),
              ElementsAre(3, 4, 0, 0, 1, 2));
  for (const Output scattered : {TensorListScatter(x, Const({1, 2, 0}), Const({2})),
                                 TensorListScatterV2(x, Const({1, 2, 0}), Const({2}), Const(3)),
                                 TensorListScatterIntoExistingList(rows, x, Const({1, 2, 0}))}) {
    EXPECT_THAT(Gradient(Stack(scattered), w, x), ElementsAre(30, 40, 50, 60, 10, 20));
  }
}

TEST_F(TensorListGradients, OfSplitConcatAndResize) {
  const Output split = TensorListSplit(x, Const({-1, 2}), Const(Tensor::Vector<int64_t>({1, 2})));
  const Output concat =
      TensorListConcatV2(split, Const({-1, 2}), Const(Tensor::Vector<int64_t>({})), DType::kDouble)
          .tensor;
  EXPECT_THAT(Gradient(concat, w, x), ElementsAre(10, 20, 30, 40, 50, 60));
  EXPECT_THAT(Gradient(TensorListConcat(split, DType::kDouble, {-1, 2}).tensor, w, x),
              ElementsAre(10, 20, 30, 40, 50, 60));
  const Output shorter = TensorListResize(rows, Const(1));
  EXPECT_THAT(Gradient(Stack(shorter), Const(Tensor::Of<double>({1, 2}, {7, 8})), x),
              ElementsAre(7, 8, 0, 0, 0, 0));
}

TEST_F(TensorListGradients, OfAListUsedTwiceAddUp) {
  EXPECT_THAT(Gradient(Stack(rows) + Stack(rows), w, x), ElementsAre(20, 40, 60, 80, 100, 120));
}

}  // namespace
}  // namespace tenon::testing
