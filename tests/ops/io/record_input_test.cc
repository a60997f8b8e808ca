// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "data/records/record_file.h"
#include "ops/io/io_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

/// Files of 0, 3, 6, ... records.
class RecordInputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "tenon_records_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(int files, Compression compression = Compression::kNone) {
    for (int i = 0; i < files; ++i) {
      auto writer = RecordWriter::Create(StrCat(folder_, "/part", i), compression);
      ASSERT_OK(writer);
      for (int k = 0; k < 3 * i; ++k) {
        all_.push_back(StrCat("record ", k, " of ", i));
        ASSERT_OK((*writer)->Write(all_.back()));
      }
      ASSERT_OK((*writer)->Close());
    }
  }
  std::string Pattern() const { return folder_ + "/part*"; }
  /// The records of the next batch.
  std::vector<std::string> Next(GraphSession& s, const Output& records) {
    std::vector<std::string> batch;
    const Tensor values = s.Value(records);
    for (const TString& r : values.flat<TString>()) batch.emplace_back(r);
    return batch;
  }

  std::string folder_;
  std::vector<std::string> all_;
};

TEST_F(RecordInputTest, EveryRecordComesOnceInARoundInAnotherOrder) {
  Write(4);
  ASSERT_THAT(all_, SizeIs(18));
  for (const int64_t buffer : {1, 5, 100}) {
    for (const int64_t parallelism : {1, 2, 16}) {
      GraphSession s;
      const Output records = RecordInput(
          Pattern(),
          {.file_buffer_size = buffer, .file_parallelism = parallelism, .batch_size = 18});
      std::set<std::vector<std::string>> orders;
      for (int round = 0; round < 3; ++round) {
        const std::vector<std::string> batch = Next(s, records);
        EXPECT_THAT(batch, UnorderedElementsAreArray(all_));
        orders.insert(batch);
      }
      EXPECT_GT(orders.size(), 1u) << buffer << " " << parallelism;
    }
  }
}

TEST_F(RecordInputTest, BatchesGoOnWithTheNextRound) {
  Write(3, Compression::kGzip);
  GraphSession s;
  const Output records = RecordInput(Pattern(), {.batch_size = 6, .compression_type = "GZIP"});
  std::vector<std::string> both;
  for (int i = 0; i < 3; ++i) {
    for (std::string& r : Next(s, records)) both.push_back(std::move(r));
  }
  std::vector<std::string> twice = all_;
  twice.insert(twice.end(), all_.begin(), all_.end());
  EXPECT_THAT(both, UnorderedElementsAreArray(twice));
}

TEST_F(RecordInputTest, TheSeedTellsTheOrder) {
  Write(4);
  const auto order = [&](int64_t seed) {
    GraphSession s;
    return Next(s, RecordInput(Pattern(), {.file_random_seed = seed, .batch_size = 18}));
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

TEST_F(RecordInputTest, FilesThatGiveNothingAreAnError) {
  GraphSession s;
  const Output records = RecordInput(Pattern());
  EXPECT_THAT(s.Run({records}).status(), IsError(StatusCode::kNotFound, "Found no files at"));
  Write(1);
  EXPECT_THAT(s.Run({records}).status(), IsError(StatusCode::kOutOfRange, "have no records"));
  GraphSession wrong;
  const Output none = RecordInput(Pattern(), {.batch_size = 0});
  EXPECT_THAT(wrong.Run({none}).status(),
              IsError(StatusCode::kInvalidArgument, "must be positive"));
}

}  // namespace
}  // namespace tenon::testing
