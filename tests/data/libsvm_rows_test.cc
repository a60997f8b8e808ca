// SPDX-License-Identifier: Apache-2.0
#include "data/csv/libsvm_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/files/byte_stream.h"
#include "tests/data/sample_files.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

class LibsvmRowsTest : public ::testing::Test {
 protected:
  /// All rows as text, a line each, "label: feature feature"; then the mistake.
  static std::string Read(const std::vector<std::string>& paths, int64_t num_features) {
    auto rows = ReadLibsvm(paths, num_features);
    if (!rows.ok()) return std::string(Message(rows.status()));
    std::string text;
    RowBatch batch;
    while (true) {
      const StatusOr<bool> found = (*rows)->Next(1000, &batch);
      if (!found.ok()) {
        EXPECT_EQ((*rows)->Next(1000, &batch).status(), found.status());
        return text + std::string(Message(found.status()));
      }
      if (!*found) return text;
      EXPECT_EQ(batch.columns[0].shape(), Shape({batch.num_rows(), num_features}));
      EXPECT_EQ(batch.columns[1].shape(), Shape({batch.num_rows()}));
      const float* feature = batch.columns[0].data<float>();
      for (const float label : batch.columns[1].flat<float>()) {
        StrAppend(&text, label, ":");
        for (int64_t f = 0; f < num_features; ++f) StrAppend(&text, " ", *feature++);
        text += "\n";
      }
    }
  }
  std::string Read(const std::string& content, int64_t num_features) {
    return Read(std::vector<std::string>{folder_.Write("f.svm", content)}, num_features);
  }

  const TemporaryFolder folder_;
};

TEST_F(LibsvmRowsTest, GapsAreZeros) {
  EXPECT_EQ(Read("+1 1:0.5 3:-2\n-1 2:1e3\n0.25\n2 4:7", 4),
            "1: 0.5 0 -2 0\n-1: 0 1000 0 0\n0.25: 0 0 0 0\n2: 0 0 0 7\n");
  EXPECT_EQ(Read("", 4), "");
}

TEST_F(LibsvmRowsTest, CommentsBlanksAndEmptyLinesArePassedOver) {
  EXPECT_EQ(Read("# 1 1:1\n\n1 1:2 # 2:3\r\n \t\r\n\t3\t 2:4 \t\n  # end", 2), "1: 2 0\n3: 0 4\n");
  EXPECT_EQ(Read("1 1:2#3\n", 1), "1: 2\n");
  EXPECT_EQ(Read("#\n#\n", 1), "");
  EXPECT_EQ(Read("\xef\xbb\xbf"
                 "1 1:2\n",
                 1),
            "1: 2\n");
}

TEST_F(LibsvmRowsTest, FilesFollowOneAnotherUntilTheMistake) {
  const std::string a = folder_.Write("a", "1 1:2"), empty = folder_.Write("empty", ""),
                    b = folder_.Write("b", "3\n");
  EXPECT_EQ(Read({a, empty, b}, 1), "1: 2\n3: 0\n");
  EXPECT_THAT(Read({a, folder_ / "none", b}, 1), AllOf(HasSubstr("1: 2\n"), HasSubstr("none")));
}

TEST_F(LibsvmRowsTest, MistakesNameFileLineFoundAndWanted) {
  EXPECT_THAT(Read("# x\n1 1:1\n\nyes 1:1\n2\n", 2),
              AllOf(HasSubstr("1: 1 0\n"),
                    HasSubstr("f.svm', line 4: found 'yes', wanted a number as the label")));
  EXPECT_THAT(Read("1:2 2:3\n", 2), HasSubstr("found '1:2', wanted a number as the label"));
  for (const char* pair :
       {"1", ":", "1:", ":1", "x:1", "1:x", "1.5:1", "1:2:3", "1:0x1", "qid:1"}) {
    EXPECT_THAT(Read(StrCat("1\n2 ", pair, " 2:1\n"), 2),
                HasSubstr(StrCat("f.svm', line 2: found '", pair, "', wanted index:value")));
  }
  for (const char* index : {"0", "-1", "3", "4294967297"}) {
    EXPECT_THAT(Read(StrCat("1 ", index, ":1\n"), 2),
                HasSubstr(StrCat("line 1: found the index ", index, ", wanted one from 1 to 2")));
  }
  EXPECT_THAT(Read("1 2:1 1:1\n", 2),
              HasSubstr("line 1: found the index 1 behind 2, wanted ascending ones"));
  EXPECT_THAT(Read("1 2:1 2:1\n", 2), HasSubstr("found the index 2 behind 2"));
}

TEST_F(LibsvmRowsTest, ANumberOfFeaturesThatCannotBeIsRefused) {
  EXPECT_THAT(Read(std::vector<std::string>{"none.svm"}, 0),
              HasSubstr("need at least 1 feature, found 0"));
  const std::string file = folder_.Write("f.svm", "1 1:1\n");
  for (const int64_t features : {int64_t{1} << 48, INT64_MAX}) {
    auto rows = ReadLibsvm({file}, features);
    ASSERT_TRUE(rows.ok());
    RowBatch batch;
    EXPECT_FALSE((*rows)->Next(1, &batch).ok());
  }
}

TEST_F(LibsvmRowsTest, LargeFilesAreReadInBlocksAndTheFirstMistakeCounts) {
  std::string content, expected;
  for (int i = 0; i < 50000; ++i) {
    StrAppend(&content, i, " ", i % 3 + 1, ":", i, i % 7 == 0 ? "\n# comment\n" : "\n");
    StrAppend(&expected, i, ":");
    for (int f = 0; f < 3; ++f) StrAppend(&expected, " ", f == i % 3 ? i : 0);
    expected += "\n";
  }
  EXPECT_EQ(Read(content, 3), expected);
  EXPECT_EQ(Read(content + "oops\noops too\n", 3),
            expected + "'" + folder_ / "f.svm" +
                "', line 57144: found 'oops', wanted a number as the label");
}

TEST_F(LibsvmRowsTest, GzippedFilesAreRead) {
  auto file = OpenOutput(folder_ / "f.gz");
  auto gzip = MakeCompressor(*std::move(file), Compression::kGzip);
  ASSERT_TRUE(gzip->Append("1 2:3\n").ok() && gzip->Close().ok());
  EXPECT_EQ(Read(std::vector<std::string>{folder_ / "f.gz"}, 2), "1: 0 3\n");
}

}  // namespace
}  // namespace tenon
