// SPDX-License-Identifier: Apache-2.0
#include "ops/random/random_ops.h"

#include <gtest/gtest.h>

#include "data/arrays/npy.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

constexpr int64_t kSeed = 87654321, kSeed2 = -5;

/// Half and bfloat16 are kept as float32 in the file.
Output Widened(Output x) { return SizeOf(x.dtype()) == 2 ? Cast(x, DType::kFloat) : x; }

TEST(RandomTest, TwoRunsInARowAreTensorFlowsBitForBit) {
  const auto golden = NpzReader::Open("tests/data/tf/random.npz");
  ASSERT_OK(golden);
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output shape = Const({37});
  std::vector<std::string> names;
  std::vector<Output> outputs;
  const auto add = [&](const std::string& op, NodeBuilder node, DType dtype) {
    const Output x = node.Attr("seed", kSeed).Attr("seed2", kSeed2).Output();
    outputs.push_back(Widened(x));
    const std::string dtype_name = dtype == DType::kFloat    ? "float32"
                                   : dtype == DType::kDouble ? "float64"
                                   : dtype == DType::kHalf   ? "float16"
                                                             : ToString(dtype);
    names.push_back(StrCat(op, "/", dtype_name));
  };
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16}) {
    for (const char* op : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
      add(op, NodeBuilder(op).Input(shape).Attr("dtype", dtype), dtype);
    }
  }
  add("RandomUniformInt",
      NodeBuilder("RandomUniformInt").Input(shape).Input(Const(-7)).Input(Const(1000003)),
      DType::kInt32);
  add("RandomUniformInt",
      NodeBuilder("RandomUniformInt")
          .Input(shape)
          .Input(Tensor::Scalar<int64_t>(-7))
          .Input(Tensor::Scalar<int64_t>(1000003)),
      DType::kInt64);
  add("RandomShuffle", NodeBuilder("RandomShuffle").Input(Range(Const(0), Const(37), Const(1))),
      DType::kInt32);
  ASSERT_OK(graph.error());
  auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  std::vector<std::string> fetches;
  for (const Output& o : outputs) fetches.push_back(o.name());
  for (int run = 0; run < 2; ++run) {
    const auto values = (*session)->Run({}, fetches);
    ASSERT_OK(values);
    for (size_t i = 0; i < names.size(); ++i) {
      const auto expected = golden->Read(StrCat(names[i], "/", run));
      ASSERT_OK(expected);
      EXPECT_TRUE((*values)[i].Equals(*expected))
          << names[i] << " run " << run << "\nfound  " << (*values)[i].ToString() << "\nwanted "
          << expected->ToString();
    }
  }
}

TEST(RandomTest, ANewSessionRestartsTheStream) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  SetRandomSeed(1);
  RandomUniform(Const({4}), DType::kFloat, {.name = "x"});
  auto first = MakeLocalSession(graph), second = MakeLocalSession(graph);
  ASSERT_OK(first);
  const auto a = (*first)->Run({}, {"x"}), b = (*second)->Run({}, {"x"});
  ASSERT_OK(a);
  EXPECT_TRUE((*a)[0].Equals((*b)[0]));
  EXPECT_FALSE((*a)[0].Equals((*(*first)->Run({}, {"x"}))[0]));
}

TEST(RandomTest, WithoutSeedsTheValuesDiffer) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  RandomUniform(Const({4}), DType::kFloat, {.name = "x"});
  RandomUniform(Const({4}), DType::kFloat, {.name = "y"});
  auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  const auto xy = (*session)->Run({}, {"x", "y"});
  ASSERT_OK(xy);
  EXPECT_FALSE((*xy)[0].Equals((*xy)[1]));
}

TEST(RandomTest, AnEmptyRangeOfIntegersIsAnError) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  RandomUniformInt(Const({4}), Const(3), Const(3), {.name = "x"});
  auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  EXPECT_THAT((*session)->Run({}, {"x"}),
              IsError(StatusCode::kInvalidArgument, "Need minval < maxval, got 3 >= 3"));
}

}  // namespace
}  // namespace tenon
