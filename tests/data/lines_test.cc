// SPDX-License-Identifier: Apache-2.0
#include "data/records/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/records/record_file.h"
#include "data/records/record_rows.h"
#include "tests/data/sample_files.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> All(BatchSource& source, Status* status) {
  std::vector<std::string> texts;
  RowBatch batch;
  while (true) {
    const StatusOr<bool> found = source.Next(1000000, &batch);
    *status = found.status();
    if (!found.ok() || !*found) return texts;
    for (const TString& text : batch.columns[0].flat<TString>()) texts.emplace_back(text);
  }
}

TEST(LinesTest, LinesEndWithLfOrCrLfOrTheFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteStringToFile(folder / "a", "one\r\ntwo\n\nthr\ree").ok());
  ASSERT_TRUE(WriteStringToFile(folder / "b", "four\n").ok());
  ASSERT_TRUE(WriteStringToFile(folder / "empty", "").ok());
  Status status;
  EXPECT_THAT(All(*ReadLines({folder / "a", folder / "empty", folder / "b"}), &status),
              ElementsAre("one", "two", "", "thr\ree", "four"));
  EXPECT_TRUE(status.ok());
  EXPECT_THAT(All(*ReadLines({folder / "a", folder / "none"}), &status).size(), 4u);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
}

TEST(LinesTest, LongLinesAndManyAreReadWhole) {
  const TemporaryFolder folder;
  std::string content;
  std::vector<std::string> lines;
  for (int i = 0; i < 20000; ++i) {
    lines.push_back(std::string(i % 100, 'x') + StrCat(i));
    StrAppend(&content, lines.back(), "\n");
  }
  lines.emplace_back(1 << 20, 'y');
  ASSERT_TRUE(WriteStringToFile(folder / "f", content + lines.back()).ok());
  Status status;
  EXPECT_EQ(All(*ReadLines({folder / "f"}), &status), lines);
}

TEST(RecordRowsTest, RecordsOfFilesFollowOneAnotherUntilTheDamage) {
  const TemporaryFolder folder;
  const std::string file = folder / "r";
  auto writer = *RecordWriter::Create(file);
  for (const char* record : {"one", "", "three"}) ASSERT_TRUE(writer->Write(record).ok());
  ASSERT_TRUE(writer->Close().ok());
  Status status;
  EXPECT_THAT(All(*ReadRecords({file, file}), &status),
              ElementsAre("one", "", "three", "one", "", "three"));
  const std::string bytes = *ReadFileToString(file);
  ASSERT_TRUE(WriteStringToFile(file, bytes.substr(0, bytes.size() - 1)).ok());
  EXPECT_THAT(All(*ReadRecords({file}), &status), ElementsAre("one", ""));
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("the record at byte 35 is damaged"));
}

}  // namespace
}  // namespace tenon
