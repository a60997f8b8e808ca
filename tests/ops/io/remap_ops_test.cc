// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

class RemapOpsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "tenon_remap_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Tensor File(const std::string& name, const std::string& content) {
    std::ofstream(folder_ + "/" + name) << content;
    return Tensor::Scalar(folder_ + "/" + name);
  }
  std::string folder_;
};

TEST_F(RemapOpsTest, WordsAreFoundAgain) {
  const Tensor now = File("new", "a\nb\nc\n"), before = File("old", "c\nx\na");
  const auto remap = [&](int64_t offset, int64_t count, int64_t size) {
    return RunOp(
        "GenerateVocabRemapping", {now, before},
        {{"new_vocab_offset", offset}, {"num_new_vocab", count}, {"old_vocab_size", size}});
  };
  const OpResult all = remap(0, 3, -1);
  ASSERT_OK(all.status);
  EXPECT_THAT(all.outputs[0].flat<int64_t>(), ElementsAre(2, -1, 0));
  EXPECT_EQ(all.outputs[1].scalar<int32_t>(), 2);
  EXPECT_THAT(remap(2, 1, 1).outputs[0].flat<int64_t>(), ElementsAre(0));
  EXPECT_THAT(remap(2, 2, -1).status, IsError(StatusCode::kInvalidArgument, "3 lines"));
  EXPECT_THAT(remap(0, 1, 4).status, IsError(StatusCode::kInvalidArgument, "wanted 4"));
  EXPECT_FALSE(remap(std::numeric_limits<int64_t>::max(), 1, -1).status.ok());
}

TEST_F(RemapOpsTest, RowsAndColumnsInAnotherOrder) {
  const Tensor prefix = Tensor::Scalar(folder_ + "/model"), name = Tensor::Scalar("w");
  const auto matrix = Tensor::Of<float>({4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  ASSERT_OK(RunOp("SaveV2", {prefix, Tensor::Vector<std::string>({"w"}),
                             Tensor::Vector<std::string>({""}), matrix})
                .status);
  const auto load = [&](const std::vector<int64_t>& rows, const std::vector<int64_t>& columns,
                        const std::vector<float>& fill, int64_t most = -1) {
    const int64_t width = columns.empty() ? 3 : static_cast<int64_t>(columns.size());
    return RunOp(
        "LoadAndRemapMatrix",
        {prefix, name, Tensor::Vector(rows), Tensor::Vector(columns), Tensor::Vector(fill)},
        {{"num_rows", static_cast<int64_t>(rows.size())},
         {"num_cols", width},
         {"max_rows_in_memory", most}});
  };
  for (const int64_t most : {-1, 1, 2}) {
    const OpResult r = load({3, -1, 1}, {2, -1}, {0.5f, 1.5f, 2.5f, 3.5f}, most);
    ASSERT_OK(r.status);
    EXPECT_THAT(r.outputs[0].flat<float>(), ElementsAre(11, 0.5f, 1.5f, 2.5f, 5, 3.5f));
  }
  EXPECT_THAT(load({3}, {}, {}).outputs[0].flat<float>(), ElementsAre(9, 10, 11));
  const auto with_prefix = [&](const Tensor& some) {
    const Tensor rows = Tensor::Vector<int64_t>({3});
    return RunOp("LoadAndRemapMatrix",
                 {some, name, rows, Tensor(DType::kInt64, {0}), Tensor(DType::kFloat, {0})},
                 {{"num_rows", 1}, {"num_cols", 3}});
  };
  const std::string path(prefix.scalar<TString>());
  EXPECT_OK(with_prefix(Tensor::Vector<std::string>({path})).status);
  EXPECT_THAT(with_prefix(Tensor::Vector<std::string>({path, path})).status,
              IsError(StatusCode::kInvalidArgument, "exactly one element, got tensor of shape"));
  EXPECT_THAT(load({3}, {}, {1}).status, IsError(StatusCode::kInvalidArgument, "wanted 0"));
  EXPECT_THAT(load({4}, {}, {}).status, IsError(StatusCode::kInvalidArgument, "[0, 4)"));
  EXPECT_THAT(load({0}, {3}, {}).status, IsError(StatusCode::kInvalidArgument, "[0, 3)"));
  EXPECT_THAT(load({1, 1}, {}, {}).status, IsError(StatusCode::kUnimplemented, "Old ID 1"));
}

}  // namespace
}  // namespace tenon::testing
