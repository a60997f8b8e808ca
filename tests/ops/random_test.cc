// SPDX-License-Identifier: Apache-2.0
#include "ops/random_ops.h"

#include <gtest/gtest.h>

#include "data/npy.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "runtime/local_session.h"
#include "tests/testing/registry.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::AllOps;
using testing::IsError;

constexpr int64_t kSeed = 87654321, kSeed2 = -5;

/// Half and bfloat16 are kept as float32 in the file.
Output Widened(const Scope& s, Output x) {
  return SizeOf(x.dtype()) == 2 ? Cast(s, x, DType::kFloat) : x;
}

TEST(RandomTest, TwoRunsInARowAreTensorFlowsBitForBit) {
  const auto golden = NpzReader::Open("tests/data/tf/random.npz");
  ASSERT_OK(golden);
  const Scope root = Scope::Root(AllOps());
  const Output shape = Const(root, {37});
  std::vector<std::string> names;
  std::vector<Output> outputs;
  const auto add = [&](const std::string& op, NodeBuilder node, DType dtype) {
    const Output x = node.Attr("seed", kSeed).Attr("seed2", kSeed2).Output();
    outputs.push_back(Widened(root, x));
    const std::string dtype_name = dtype == DType::kFloat    ? "float32"
                                   : dtype == DType::kDouble ? "float64"
                                   : dtype == DType::kHalf   ? "float16"
                                                             : ToString(dtype);
    names.push_back(StrCat(op, "/", dtype_name));
  };
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16}) {
    for (const char* op : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
      add(op, root.Op(op).Input(shape).Attr("dtype", dtype), dtype);
    }
  }
  add("RandomUniformInt",
      root.Op("RandomUniformInt").Input(shape).Input(Const(root, -7)).Input(Const(root, 1000003)),
      DType::kInt32);
  add("RandomUniformInt",
      root.Op("RandomUniformInt")
          .Input(shape)
          .Input(Const(root, int64_t{-7}))
          .Input(Const(root, int64_t{1000003})),
      DType::kInt64);
  add("RandomShuffle",
      root.Op("RandomShuffle").Input(Range(root, Const(root, 0), Const(root, 37), Const(root, 1))),
      DType::kInt32);
  ASSERT_OK(root.status());
  auto session = MakeLocalSession(root.graph());
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
          << names[i] << " run " << run << "\nfound  " << (*values)[i].ToString()
          << "\nwanted " << expected->ToString();
    }
  }
}

TEST(RandomTest, ANewSessionRestartsTheStream) {
  const Scope root = Scope::Root(AllOps());
  root.SetSeed(1);
  RandomUniform(root.WithName("x"), Const(root, {4}), DType::kFloat);
  auto first = MakeLocalSession(root.graph()), second = MakeLocalSession(root.graph());
  ASSERT_OK(first);
  const auto a = (*first)->Run({}, {"x"}), b = (*second)->Run({}, {"x"});
  ASSERT_OK(a);
  EXPECT_TRUE((*a)[0].Equals((*b)[0]));
  EXPECT_FALSE((*a)[0].Equals((*(*first)->Run({}, {"x"}))[0]));
}

TEST(RandomTest, WithoutSeedsTheValuesDiffer) {
  const Scope root = Scope::Root(AllOps());
  RandomUniform(root.WithName("x"), Const(root, {4}), DType::kFloat);
  RandomUniform(root.WithName("y"), Const(root, {4}), DType::kFloat);
  auto session = MakeLocalSession(root.graph());
  ASSERT_OK(session);
  const auto xy = (*session)->Run({}, {"x", "y"});
  ASSERT_OK(xy);
  EXPECT_FALSE((*xy)[0].Equals((*xy)[1]));
}

TEST(RandomTest, AnEmptyRangeOfIntegersIsAnError) {
  const Scope root = Scope::Root(AllOps());
  RandomUniformInt(root.WithName("x"), Const(root, {4}), Const(root, 3), Const(root, 3));
  auto session = MakeLocalSession(root.graph());
  ASSERT_OK(session);
  EXPECT_THAT((*session)->Run({}, {"x"}),
              IsError(StatusCode::kInvalidArgument, "Need minval < maxval, got 3 >= 3"));
}

}  // namespace
}  // namespace tenon
