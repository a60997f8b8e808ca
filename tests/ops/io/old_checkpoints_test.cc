// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "data/files/file.h"
#include "tests/data/sample_files.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

OpResult Restore(const std::string& path, const char* name, DType type, const char* part = "") {
  return RunOp("RestoreSlice", {Tensor::Scalar(path), Tensor::Scalar(name), Tensor::Scalar(part)},
               {{"dt", type}});
}

TEST(OldCheckpointsTest, WhatTensorFlowWroteIsRead) {
  const std::string path = SamplePath("checkpoints/old_format");
  EXPECT_THAT(Restore(path, "w", DType::kFloat).outputs[0].flat<float>(),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(Restore(path, "w", DType::kFloat, "4 2 0,2:1,1").outputs[0].flat<float>(),
              ElementsAre(2, 4));
  EXPECT_THAT(Restore(path, "s", DType::kString).outputs[0].flat<TString>(), ElementsAre("a", ""));
  EXPECT_EQ(Restore(path, "w", DType::kDouble).status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Restore(path, "v", DType::kDouble).status.code(), StatusCode::kNotFound);
}

TEST(OldCheckpointsTest, TheNewOpReadsThemToo) {
  const auto restore = [](const std::string& path, std::vector<std::string> names) {
    return RunOp("RestoreV2",
                 {Tensor::Scalar(path), Tensor::Vector(names),
                  Tensor::Vector<std::string>({"", "4 2 0,2:1,1"})},
                 {{"dtypes", DTypeVector{DType::kString, DType::kFloat}}});
  };
  // Shards are given as a pattern.
  for (const char* path : {"checkpoints/old_format", "checkpoints/old_forma?"}) {
    const OpResult r = restore(SamplePath(path), {"s", "w"});
    ASSERT_OK(r.status);
    EXPECT_THAT(r.outputs[0].flat<TString>(), ElementsAre("a", ""));
    EXPECT_THAT(r.outputs[1].flat<float>(), ElementsAre(2, 4));
  }
  EXPECT_EQ(restore(SamplePath("checkpoints/old_format"), {"w", "w"}).status.code(),
            StatusCode::kInvalidArgument);
  EXPECT_THAT(restore(SamplePath("checkpoints/none"), {"s", "w"}).status,
              IsError(StatusCode::kNotFound, "none.index"));
}

TEST(OldCheckpointsTest, DamagedFilesAreErrors) {
  const std::string good = ReadFileToString(SamplePath("checkpoints/old_format")).value();
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 5);
    ASSERT_OK(WriteStringToFile(path, bad));
    const OpResult r = Restore(path, "w", DType::kFloat);
    if (r.status.ok()) EXPECT_EQ(r.outputs[0].num_elements(), 8);
  }
}

}  // namespace
}  // namespace tenon::testing
