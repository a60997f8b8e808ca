// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/base/exceptions.h"
#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/sparse/sparse_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A sparse matrix of three entries.
Tensor Indices() { return Tensor::Of<int64_t>({3, 2}, {0, 0, 0, 2, 1, 1}); }
Tensor SparseValues() { return Tensor::Vector<float>({1, 2, 3}); }
Tensor Sizes(std::initializer_list<int64_t> sizes) { return Tensor::Vector<int64_t>(sizes); }

TEST(Sparse, ReorderSortsByRows) {
  const OpResult result = RunOp("SparseReorder", {Tensor::Of<int64_t>({3, 2}, {1, 1, 0, 2, 0, 0}),
                                                  SparseValues(), Sizes({2, 3})});
  ASSERT_OK(result.status);
  EXPECT_THAT(Numbers(result.outputs[0]), ElementsAre(0, 0, 0, 2, 1, 1));
  EXPECT_THAT(Numbers(result.outputs[1]), ElementsAre(3, 2, 1));
}

TEST(Sparse, ReshapeKeepsPlaces) {
  const OpResult result = RunOp("SparseReshape", {Indices(), Sizes({2, 3}), Sizes({3, -1})});
  ASSERT_OK(result.status);
  EXPECT_THAT(Numbers(result.outputs[0]), ElementsAre(0, 0, 1, 0, 2, 0));
  EXPECT_THAT(Numbers(result.outputs[1]), ElementsAre(3, 2));
}

TEST(Sparse, EmptyRowsAreFilled) {
  const OpResult result =
      RunOp("SparseFillEmptyRows", {Tensor::Of<int64_t>({3, 2}, {3, 0, 1, 2, 3, 1}), SparseValues(),
                                    Sizes({5, 3}), Tensor::Scalar<float>(-1)});
  ASSERT_OK(result.status);
  EXPECT_THAT(Numbers(result.outputs[0]), ElementsAre(0, 0, 1, 2, 2, 0, 3, 0, 3, 1, 4, 0));
  EXPECT_THAT(Numbers(result.outputs[1]), ElementsAre(-1, 2, -1, 1, 3, -1));
  EXPECT_THAT(result.outputs[2].flat<bool>(), ElementsAre(true, false, true, false, true));
  EXPECT_THAT(Numbers(result.outputs[3]), ElementsAre(3, 1, 4));
}

TEST(Sparse, TheErrorsOfTensorFlowsKernelsAreFoundInOurs) {
  const Tensor values = SparseValues(), sizes = Sizes({2, 3}), zero = Tensor::Scalar<int64_t>(0);
  const Tensor four = Tensor::Vector<float>({1, 2, 3, 4}), three = Sizes({2, 3, 4});
  // What shape inference says, and what the kernel does of inputs that it does not see.
  const auto refused = [](std::string_view op, const std::vector<Tensor>& inputs,
                          const AttributeMap& attrs, std::string_view text) {
    EXPECT_THAT(RunOp(op, inputs, attrs).status, IsError(kInvalid, text)) << op;
    EXPECT_THAT(RunOp(op, inputs, attrs, /*hide_inputs=*/true).status, IsError(kInvalid, text))
        << op;
  };
  const std::string_view counts = "Number of elements in indices (3) and values (4) do not match";
  const std::string_view ranks = "Index rank (2) and shape rank (3) do not match";
  for (const char* op : {"SparseReorder", "SparseReduceSum"}) {
    std::vector<Tensor> inputs = {Indices(), four, sizes};
    if (op == std::string_view("SparseReduceSum")) inputs.push_back(Tensor::Vector<int32_t>({0}));
    refused(op, inputs, {}, counts);
    inputs[1] = values;
    inputs[2] = three;
    refused(op, inputs, {}, ranks);
  }
  refused("SparseSlice", {Indices(), four, sizes, sizes, sizes}, {}, counts);
  refused("SparseTensorDenseAdd", {Indices(), four, sizes, Tensor(DType::kFloat, {2, 3})}, {},
          "Dimensions 3 and 4 are not compatible");
  refused(
      "SparseSparseMaximum",
      {Indices(), values, sizes, Tensor(DType::kInt64, {0, 3}), Tensor(DType::kFloat, {0}), three},
      {}, "Operands do not have the same ranks");
  refused("SparseSparseMinimum", {Indices(), values, sizes, Indices(), values, Sizes({2, 4})}, {},
          "Operands' shapes do not match");
  refused("SparseSplit", {Sizes({0, 1}), Indices(), values, sizes}, {{"num_split", 2}},
          "axis should be a scalar");
  refused("SparseReshape", {Indices(), sizes, Sizes({4, -1})}, {},
          "requested shape requires a multiple of 4");
  const Tensor ids = Tensor::Vector<int64_t>({1, 2, 3});
  refused("SetSize", {Indices(), ids, zero}, {}, "Shape must be a 1D tensor");
  refused("SetSize", {Indices(), ids, Sizes({2, 2})}, {{"validate_indices", false}},
          "indices[1, 1] expected < 2, got 2");
  const Tensor huge = Tensor::Vector<int64_t>({(int64_t{1} << 62) - 1});
  refused("SparseSegmentSum", {Tensor(DType::kFloat, {2, 4}), huge, huge}, {},
          "Encountered overflow when multiplying");
}

TEST(Sparse, OfAScalarThereAreNoBins) {
  const Tensor indices(DType::kInt64, {2, 0}), values = Tensor::Vector<int32_t>({0, 1});
  const OpResult result = RunOp("SparseBincount", {indices, values, Tensor(DType::kInt64, {0}),
                                                   Tensor::Scalar(2), Tensor(DType::kFloat, {0})});
  EXPECT_THAT(result.status, IsError(kInvalid, "a vector or a matrix, found rank 0"));
  ASSERT_EQ(result.declared_shapes.size(), 1u);
  EXPECT_FALSE(result.declared_shapes[0].rank_known());
}

TEST(Sparse, AGraphMayHoldASparseTensorThatDoesNotFitItself) {
  GraphSession s;
  const Output indices = Const(Indices()), values = Const(SparseValues());
  const Output few = Const(Tensor::Vector<float>({1, 2})), sizes = Const(Sizes({2, 3}));
  const Output dense = Const(Tensor(DType::kFloat, {2, 3}));
  EXPECT_THAT(s.Run({SparseTensorDenseAdd(indices, few, sizes, dense)}),
              IsError(kInvalid, "3 and 2"));
  EXPECT_THAT(s.Run({SparseReorder(indices, values, Const(Sizes({2}))).output_values}),
              IsError(kInvalid, "Index rank (2) and shape rank (1)"));
  EXPECT_THAT(
      s.Run({SparseSparseMaximum(indices, values, sizes, indices, values, Const(Sizes({3, 3})))
                 .output_values}),
      IsError(kInvalid, "Operands' shapes do not match"));
  EXPECT_OK(s.Run({SparseTensorDenseAdd(indices, values, sizes, dense)}));
}

TEST(Sparse, StringsMoveToo) {
  const Tensor words = Tensor::Vector<TString>({"a", "b", "c"});
  EXPECT_TRUE(
      RunOpOrDie("SparseToDense", {Indices(), Sizes({2, 3}), words, Tensor::Scalar<TString>("-")})
          .Equals(Tensor::Of<TString>({2, 3}, {"a", "-", "b", "-", "c", "-"})));
  const OpResult joined =
      RunOp("SparseConcat", {Indices(), Indices(), words, words, Sizes({2, 3}), Sizes({2, 3})},
            {{"concat_dim", 1}});
  ASSERT_OK(joined.status);
  EXPECT_TRUE(joined.outputs[1].Equals(Tensor::Vector<TString>({"a", "b", "a", "b", "c", "c"})));
}

TEST(Sparse, SplitAndConcatUndoEachOther) {
  const OpResult parts =
      RunOp("SparseSplit", {Tensor::Scalar<int64_t>(-1), Indices(), SparseValues(), Sizes({2, 3})},
            {{"num_split", 2}});
  ASSERT_OK(parts.status);
  EXPECT_THAT(Numbers(parts.outputs[0]), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(Numbers(parts.outputs[1]), ElementsAre(0, 0));
  EXPECT_THAT(Numbers(parts.outputs[5]), ElementsAre(2, 1));
  const OpResult whole = RunOp("SparseConcat", parts.outputs, {{"concat_dim", 1}});
  ASSERT_OK(whole.status);
  EXPECT_TRUE(whole.outputs[0].Equals(Indices()));
  EXPECT_TRUE(whole.outputs[1].Equals(SparseValues()));
  EXPECT_TRUE(whole.outputs[2].Equals(Sizes({2, 3})));
}

TEST(Sparse, ProductsWithEachAdjoint) {
  const Tensor b = Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(
      Numbers(RunOpOrDie("SparseTensorDenseMatMul", {Indices(), SparseValues(), Sizes({2, 3}), b})),
      ElementsAre(11, 14, 9, 12));
  const Tensor c = Tensor::Of<float>({1, 2}, {1, 10});
  EXPECT_THAT(
      Numbers(RunOpOrDie("SparseTensorDenseMatMul", {Indices(), SparseValues(), Sizes({2, 3}), c},
                         {{"adjoint_a", true}, {"adjoint_b", true}})),
      ElementsAre(1, 30, 2));
  const std::complex<float> i(0, 1);
  const Tensor complex =
      RunOpOrDie("SparseTensorDenseMatMul",
                 {Tensor::Of<int64_t>({1, 2}, {0, 0}), Tensor::Vector<std::complex<float>>({i}),
                  Sizes({1, 1}), Tensor::Of<std::complex<float>>({1, 1}, {2})},
                 {{"adjoint_a", true}});
  EXPECT_EQ(complex.scalar<std::complex<float>>(), -2.0f * i);
}

TEST(Sparse, EntriesAddUpWhereTheyMeet) {
  const Tensor other = Tensor::Of<int64_t>({2, 2}, {0, 0, 1, 2});
  const Tensor values = Tensor::Vector<float>({-1, 5});
  const auto add = [&](float thresh) {
    return RunOp("SparseAdd", {Indices(), SparseValues(), Sizes({2, 3}), other, values,
                               Sizes({2, 3}), Tensor::Scalar(thresh)});
  };
  EXPECT_THAT(Numbers(add(0).outputs[1]), ElementsAre(0, 2, 3, 5));
  EXPECT_THAT(Numbers(add(0.1f).outputs[0]), ElementsAre(0, 2, 1, 1, 1, 2));
  const OpResult least = RunOp("SparseSparseMinimum", {Indices(), SparseValues(), Sizes({2, 3}),
                                                       other, values, Sizes({2, 3})});
  EXPECT_THAT(Numbers(least.outputs[1]), ElementsAre(-1, 0, 0, 0));
}

TEST(Sparse, SoftmaxIsOverWhatIsStored) {
  const Tensor values = Tensor::Vector<double>({0, std::log(3.0), 1000});
  EXPECT_THAT(
      Numbers(RunOpOrDie("SparseSoftmax", {Indices(), values, Sizes({2, 3})})),
      ElementsAre(::testing::DoubleNear(0.25, 1e-12), ::testing::DoubleNear(0.75, 1e-12), 1));
}

TEST(Sparse, ReductionsToDenseAndToSparse) {
  const std::vector<Tensor> in = {Indices(), SparseValues(), Sizes({3, 3}),
                                  Tensor::Scalar<int32_t>(-1)};
  EXPECT_THAT(Numbers(RunOpOrDie("SparseReduceSum", in)), ElementsAre(3, 3, 0));
  EXPECT_EQ(RunOpOrDie("SparseReduceMax", in, {{"keep_dims", true}}).shape(), (Shape{3, 1}));
  const OpResult sparse = RunOp("SparseReduceMaxSparse", in);
  ASSERT_OK(sparse.status);
  EXPECT_THAT(Numbers(sparse.outputs[0]), ElementsAre(0, 1));
  EXPECT_THAT(Numbers(sparse.outputs[1]), ElementsAre(2, 3));
  EXPECT_THAT(Numbers(sparse.outputs[2]), ElementsAre(3));
}

TEST(Sparse, WhatIsMalformedIsRefusedInTensorFlowsWords) {
  const auto status = [](const Tensor& indices, const Tensor& values, const Tensor& shape) {
    return RunOp("SparseToDense", {indices, shape, values, Tensor::Scalar<float>(0)}, {}, true)
        .status;
  };
  const auto at = [](std::initializer_list<int64_t> indices) {
    return Tensor::Of<int64_t>({static_cast<int64_t>(indices.size()) / 2, 2}, indices);
  };
  const Tensor one = Tensor::Scalar<float>(1), shape = Sizes({2, 3});
  EXPECT_THAT(status(at({0, 0, 0, 3}), one, shape),
              IsError(kInvalid, "indices[1] = [0,3] is out of bounds: need 0 <= index < [2,3]"));
  EXPECT_THAT(status(at({1, 0, 0, 2}), one, shape),
              IsError(kInvalid, "indices[1] = [0,2] is out of order"));
  EXPECT_THAT(status(at({0, 1, 0, 1}), one, shape),
              IsError(kInvalid, "indices[1] = [0,1] is repeated"));
  EXPECT_THAT(status(at({0, 1}), SparseValues(), shape),
              IsError(kInvalid, "[3], should be [] or [1]"));
  EXPECT_FALSE(status(at({0, 1}), one, Sizes({INT64_MAX, 3})).ok());
  EXPECT_THAT(status(at({0, 1}), one, Sizes({2, -3})), IsError(kInvalid, "-3"));
}

/// Every op that takes a sparse tensor first: sizes whose product does not fit, indices beyond the
/// shape and below 0 give a result or an error, and nothing else.
TEST(Sparse, HostileShapesAndIndicesNeverCrash) {
  for (const OpRegistration* op : AllOps().All()) {
    if (op->schema.name.find("Sparse") == std::string::npos || op->examples.empty()) continue;
    const OpExample& example = op->examples[0];
    const AttributeMap attrs = TypeChoices(*op, example)[0];
    const std::vector<Tensor> good = SampleInputs(*op, example, attrs, 3);
    for (size_t i = 0; i < good.size(); ++i) {
      if (good[i].dtype() != DType::kInt64) continue;
      for (const int64_t value :
           {INT64_MIN, int64_t{-1}, int64_t{1} << 40, int64_t{1} << 62, INT64_MAX}) {
        for (const bool all : {false, true}) {
          std::vector<Tensor> inputs = good;
          inputs[i] = good[i].Copy().value();
          if (inputs[i].num_elements() == 0) continue;
          std::fill_n(inputs[i].data<int64_t>(), all ? inputs[i].num_elements() : 1, value);
          SCOPED_TRACE(StrCat(op->schema.name, " input ", i, " ", value));
          const Status status = CatchExceptions(
              [&] { return RunOp(op->schema.name, inputs, attrs, /*hide_inputs=*/true).status; });
          EXPECT_NE(status.code(), StatusCode::kInternal) << status;
        }
      }
    }
  }
}

TEST(Sparse, TheGradientOfAScalarThatStandsForAllValues) {
  GraphSession s;
  const Output value = Const(2.0);
  const Output dense =
      SparseToDense(Const(Indices()), Const({2, 3}, {.dtype = DType::kInt64}), value, 1.0);
  EXPECT_THAT(Numbers(s.Value(Gradients(dense, value)[0])), ElementsAre(3));
}

TEST(Sparse, TheGradientsOfAProductOfManyZerosAreThoseOfMatMul) {
  GraphSession s;
  const Output x = Const(Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  const Output y = Const(Tensor::Of<float>({4, 2}, {1, 0, 2, -1, 0, 3, 5, 4}));
  for (const bool transpose : {false, true}) {
    const Output a = transpose ? x : Const(Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
    const Output b = transpose ? y : Const(Tensor::Of<float>({2, 4}, {1, 0, 2, -1, 0, 3, 5, 4}));
    const Output product = SparseMatMul(a, b, {.transpose_a = transpose, .transpose_b = transpose});
    const Output wanted = MatMul(a, b, {.transpose_a = transpose, .transpose_b = transpose});
    for (const Output& in : {a, b}) {
      EXPECT_EQ(Numbers(s.Value(Gradients(product * product, in)[0])),
                Numbers(s.Value(Gradients(wanted * wanted, in)[0])));
    }
  }
}

// --- Sets ---

TEST(Sets, EachOperation) {
  const Tensor a = Tensor::Of<int32_t>({2, 3}, {3, 1, 1, 2, 2, 5});
  const Tensor b = Tensor::Of<int32_t>({2, 2}, {1, 3, 7, 2});
  const auto run = [&](const char* operation) {
    const OpResult result =
        RunOp("DenseToDenseSetOperation", {a, b}, {{"set_operation", operation}});
    EXPECT_TRUE(result.status.ok()) << result.status;
    return std::pair(Numbers(result.outputs[1]), Numbers(result.outputs[2]));
  };
  EXPECT_THAT(run("union").first, ElementsAre(1, 3, 2, 5, 7));
  EXPECT_THAT(run("union").second, ElementsAre(2, 3));
  EXPECT_THAT(run("intersection").first, ElementsAre(1, 3, 2));
  EXPECT_THAT(run("a-b").first, ElementsAre(5));
  EXPECT_THAT(run("B-A").first, ElementsAre(7));
  EXPECT_THAT(run("b-a").second, ElementsAre(2, 1));
}

TEST(Sets, OfFewEntriesAmongVeryManyRows) {
  const Tensor far = Tensor::Of<int64_t>({2, 2}, {5, 0, int64_t{1} << 40, 0});
  const Tensor values = Tensor::Vector<int64_t>({1, 2}), shape = Sizes({int64_t{1} << 41, 4});
  const OpResult result =
      RunOp("SparseToSparseSetOperation", {far, values, shape, far, values, shape},
            {{"set_operation", "intersection"}});
  ASSERT_OK(result.status);
  EXPECT_THAT(Numbers(result.outputs[1]), ElementsAre(1, 2));
  EXPECT_TRUE(result.outputs[0].Equals(far));
}

TEST(Sets, WrongOnesAreRefused) {
  const Tensor a = Tensor::Of<int32_t>({2, 1}, {3, 1});
  const auto status = [&](const Tensor& b, const char* operation) {
    return RunOp("DenseToDenseSetOperation", {a, b}, {{"set_operation", operation}}, true).status;
  };
  EXPECT_THAT(status(a, "xor"), IsError(kInvalid, "Invalid set_operation xor"));
  EXPECT_THAT(status(Tensor::Vector<int32_t>({1}), "union"), IsError(kInvalid, "Invalid rank 1"));
  EXPECT_THAT(status(Tensor::Of<int32_t>({1, 1}, {3}), "union"),
              IsError(kInvalid, "Mismatched shapes [2] vs [1]"));
}

TEST(Sets, SizesCountDifferentValues) {
  EXPECT_THAT(Numbers(RunOpOrDie("SetSize", {Tensor::Of<int64_t>({3, 2}, {0, 0, 0, 1, 0, 2}),
                                             Tensor::Vector<int32_t>({5, 5, 6}), Sizes({2, 3})})),
              ElementsAre(2, 0));
}

}  // namespace
}  // namespace tenon::testing
