// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/fingerprint.h"
#include "ops/sparse/sparse_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

Tensor BatchIndices() { return Tensor::Of<int64_t>({3, 2}, {0, 0, 0, 2, 1, 1}); }
Tensor BatchValues() { return Tensor::Vector<float>({1, 2, 3}); }
Tensor BatchSizes(std::initializer_list<int64_t> sizes) { return Tensor::Vector<int64_t>(sizes); }

// --- Serialized sparse tensors ---

TEST(SerializedSparse, ComesBackInBothForms) {
  for (const DType type : {DType::kString, DType::kVariant}) {
    const Tensor rows =
        RunOpOrDie("SerializeManySparse", {BatchIndices(), BatchValues(), BatchSizes({3, 3})},
                   {{"out_type", type}});
    EXPECT_EQ(rows.shape(), (Shape{3, 3}));
    const OpResult result = RunOp("DeserializeSparse", {rows}, {{"dtype", DType::kFloat}});
    ASSERT_OK(result.status);
    EXPECT_TRUE(result.outputs[0].Equals(BatchIndices()));
    EXPECT_TRUE(result.outputs[1].Equals(BatchValues()));
    EXPECT_THAT(Numbers(result.outputs[2]), ElementsAre(3, 3));
  }
}

TEST(SerializedSparse, TheLargestSizesCount) {
  Tensor two(DType::kString, {2, 3});
  const Tensor a =
      RunOpOrDie("SerializeSparse", {BatchIndices(), BatchValues(), BatchSizes({2, 3})});
  const Tensor b = RunOpOrDie("SerializeSparse", {Tensor::Of<int64_t>({1, 2}, {4, 0}),
                                                  Tensor::Vector<float>({9}), BatchSizes({5, 1})});
  std::copy_n(a.data<TString>(), 3, two.data<TString>());
  std::copy_n(b.data<TString>(), 3, two.data<TString>() + 3);
  const OpResult result = RunOp("DeserializeManySparse", {two}, {{"dtype", DType::kFloat}});
  ASSERT_OK(result.status);
  EXPECT_THAT(Numbers(result.outputs[2]), ElementsAre(2, 5, 3));
  EXPECT_THAT(Numbers(result.outputs[1]), ElementsAre(1, 2, 3, 9));
}

TEST(SerializedSparse, WhatIsNoSparseTensorIsRefused) {
  const auto status = [](const Tensor& t, DType type) {
    return RunOp("DeserializeSparse", {t}, {{"dtype", type}}).status;
  };
  const Tensor good =
      RunOpOrDie("SerializeSparse", {BatchIndices(), BatchValues(), BatchSizes({2, 3})});
  EXPECT_THAT(status(good, DType::kInt32),
              IsError(kInvalid, "Requested SparseTensor of type int32"));
  EXPECT_THAT(status(Tensor::Vector<TString>({"x", "y", "z"}), DType::kFloat),
              IsError(kInvalid, ""));
  EXPECT_THAT(status(Tensor::Vector<TString>({"", ""}), DType::kFloat),
              IsError(kInvalid, "3 as the last dimension"));
  EXPECT_THAT(status(Tensor(DType::kString, {0, 3}), DType::kFloat),
              IsError(kInvalid, "at least 1"));
  EXPECT_THAT(status(Tensor(DType::kVariant, {3}), DType::kFloat),
              IsError(kInvalid, "holds no tensor"));
}

TEST(SparseTensorsMap, TensorsAreTakenOnce) {
  GraphSession s;
  const AddManySparseToTensorsMapOptions named = {.shared_name = "m"};
  const Output handles = AddManySparseToTensorsMap(Const(BatchIndices()), Const(BatchValues()),
                                                   Const(BatchSizes({2, 3})), named);
  const Output wanted = Placeholder(DType::kInt64, {-1}, {.name = "wanted"});
  const auto taken = TakeManySparseFromTensorsMap(wanted, DType::kFloat, {.shared_name = "m"});
  EXPECT_THAT(Numbers(s.Value(handles)), ElementsAre(0, 1));
  const auto take = [&](const Tensor& numbers) {
    return s.Run({taken.sparse_indices, taken.sparse_values, taken.sparse_shape}, {},
                 {{"wanted:0", numbers}});
  };
  EXPECT_THAT(take(BatchSizes({1, 5})), IsError(kInvalid, "Unable to find SparseTensor: 5 in map"));
  const auto values = take(BatchSizes({1, 0}));
  ASSERT_OK(values);
  EXPECT_THAT(Numbers((*values)[0]), ElementsAre(0, 1, 1, 0, 1, 2));
  EXPECT_THAT(Numbers((*values)[1]), ElementsAre(3, 1, 2));
  EXPECT_THAT(Numbers((*values)[2]), ElementsAre(2, 3));
  EXPECT_THAT(take(BatchSizes({1})), IsError(kInvalid, "Unable to find SparseTensor: 1"));
  EXPECT_THAT(take(BatchSizes({})), IsError(kInvalid, "at least one sparse tensor"));
}

// --- Crosses ---

TEST(Fingerprints, AreThoseOfTensorFlow) {
  std::string text;
  for (int i = 0; i < 129; ++i) text.push_back(static_cast<char>((i * 7 + 208) % 251));
  constexpr uint64_t kMost = INT64_MAX;
  EXPECT_EQ(Fingerprint64("") % kMost, 1936946117179621456u);
  EXPECT_EQ(Fingerprint64(text) % kMost, 5639329970440910996u);
  EXPECT_EQ(SipHash({17, 12345678901}, text) % kMost, 6465090199499578315u);
  EXPECT_EQ(FingerprintCat64(FingerprintCat64(956888297470, 1), 7) % 100, 89u);
}

std::vector<Tensor> Features() {
  return {Tensor::Of<int64_t>({3, 2}, {0, 0, 0, 1, 1, 0}), Tensor::Vector<TString>({"a", "b", "c"}),
          BatchSizes({2, 2}), Tensor::Of<int64_t>({2, 2}, {7, 8, 9, 10})};
}

TEST(SparseCross, TextsJoinEveryCombination) {
  std::vector<Tensor> in = Features();
  in.push_back(Tensor::Scalar<TString>("+"));
  const OpResult result = RunOp("SparseCrossV2", in);
  ASSERT_OK(result.status);
  EXPECT_THAT(Numbers(result.outputs[0]), ElementsAre(0, 0, 0, 1, 0, 2, 0, 3, 1, 0, 1, 1));
  EXPECT_TRUE(result.outputs[1].Equals(
      Tensor::Vector<TString>({"a+7", "a+8", "b+7", "b+8", "c+9", "c+10"})));
  EXPECT_THAT(Numbers(result.outputs[2]), ElementsAre(2, 4));
}

TEST(SparseCross, CrossesThatDoNotFitTogetherAreRefused) {
  const auto status = [](size_t i, const Tensor& t) {
    std::vector<Tensor> in = Features();
    in.push_back(Tensor::Scalar<TString>("+"));
    in[i] = t;
    return RunOp("SparseCrossV2", in, {}, true).status;
  };
  EXPECT_THAT(status(3, Tensor::Of<int64_t>({1, 1}, {7})),
              IsError(kInvalid, "Expected batch size 2 got 1 at dense tensor 0"));
  EXPECT_THAT(status(0, Tensor::Of<int64_t>({3, 2}, {0, 0, 0, 1, 5, 0})),
              IsError(kInvalid, "the row of entry 2 at position 0 = 5 is not in [0, 2)"));
  EXPECT_THAT(status(2, BatchSizes({INT64_MAX, 2})), IsError(kInvalid, ""));
  EXPECT_THAT(status(4, Tensor::Vector<TString>({"+"})),
              IsError(kInvalid, "Input separator should be a scalar."));
}

}  // namespace
}  // namespace tenon::testing
