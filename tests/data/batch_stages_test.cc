// SPDX-License-Identifier: Apache-2.0
#include "data/batch/batch_stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Rows of one column of text "0", "1", ..., `at_once` at a time, then a mistake if there is one.
class CountedTexts final : public BatchSource {
 public:
  CountedTexts(int64_t count, int64_t at_once, Status mistake = OkStatus())
      : count_(count), at_once_(at_once), mistake_(std::move(mistake)) {}
  const std::shared_ptr<const RowSchema>& schema() const override { return schema_; }
  StatusOr<bool> Next(int64_t most, RowBatch* batch) override {
    EXPECT_GE(most, 1);
    most_asked = std::max(most_asked, most);
    const int64_t rows = std::min({most, at_once_, count_ - next_});
    if (rows == 0) {
      TENON_RETURN_IF_ERROR(mistake_);
      return false;
    }
    Tensor texts(DType::kString, {rows});
    for (int64_t i = 0; i < rows; ++i) texts.data<TString>()[i] = TString(StrCat(next_ + i));
    next_ += rows;
    *batch = {schema_, {std::move(texts)}};
    return true;
  }
  int64_t most_asked = 0;

 private:
  const std::shared_ptr<const RowSchema> schema_ =
      std::make_shared<RowSchema>(RowSchema{{"text", DType::kString, PartialShape(Shape())}});
  const int64_t count_, at_once_;
  const Status mistake_;
  int64_t next_ = 0;
};

BatchSourcePtr Texts(int64_t count, int64_t at_once = 3) {
  return std::make_unique<CountedTexts>(count, at_once);
}

/// All numbers of a source of texts, asked for `most` at a time.
std::vector<int> All(BatchSource& source, int64_t most = 1000, Status* status = nullptr) {
  std::vector<int> numbers;
  RowBatch batch;
  while (true) {
    const StatusOr<bool> found = source.Next(most, &batch);
    if (found.ok() && !*found) {
      EXPECT_FALSE(*source.Next(most, &batch)) << "a source that has ended gives rows";
    }
    if (status != nullptr) *status = found.status();
    if (!found.ok() || !*found) {
      if (status == nullptr) EXPECT_TRUE(found.ok()) << found.status();
      return numbers;
    }
    EXPECT_GE(batch.num_rows(), 1);
    EXPECT_LE(batch.num_rows(), most);
    for (const TString& text : batch.columns[0].flat<TString>()) {
      numbers.push_back(std::stoi(std::string(std::string_view(text))));
    }
  }
}

std::vector<int> All(const BatchSourcePtr& source, int64_t most = 1000) {
  return All(*source, most);
}

std::vector<int> Counted(int from, int to, int step = 1) {
  std::vector<int> numbers;
  for (int i = from; i < to; i += step) numbers.push_back(i);
  return numbers;
}

TEST(BatchStagesTest, TakesAndSkipsRowsWhereverBatchesEnd) {
  for (const int64_t at_once : {1, 3, 100}) {
    for (const int64_t most : {1, 2, 1000}) {
      EXPECT_EQ(All(TakeRows(Texts(10, at_once), 4), most), Counted(0, 4));
      EXPECT_EQ(All(SkipRows(Texts(10, at_once), 4), most), Counted(4, 10));
      EXPECT_EQ(All(SkipRows(Texts(10, at_once), 11), most), Counted(0, 0));
      EXPECT_EQ(All(TakeRows(SkipRows(Texts(10, at_once), 4), 3), most), Counted(4, 7));
    }
  }
}

TEST(BatchStagesTest, TakeReadsNoMoreThanItGives) {
  auto source = std::make_unique<CountedTexts>(10, 100);
  const CountedTexts& asked = *source;
  const BatchSourcePtr taken = TakeRows(std::move(source), 4);
  EXPECT_EQ(All(taken), Counted(0, 4));
  EXPECT_EQ(asked.most_asked, 4);
}

TEST(BatchStagesTest, ShardsAreDisjointAndCoverAllRows) {
  for (const int64_t at_once : {1, 3, 100}) {
    for (const int64_t most : {1, 2, 1000}) {
      for (int shards = 1; shards <= 5; ++shards) {
        for (int i = 0; i < shards; ++i) {
          EXPECT_EQ(All(ShardRows(Texts(20, at_once), shards, i), most), Counted(i, 20, shards))
              << at_once << " " << most;
        }
      }
    }
  }
  EXPECT_EQ(All(ShardRows(Texts(20), INT64_MAX, 7)), Counted(7, 8));
}

TEST(BatchStagesTest, RepetitionsAreOpenedOneAfterTheOther) {
  std::vector<int64_t> opened;
  const auto open = [&](int64_t repetition) -> StatusOr<BatchSourcePtr> {
    opened.push_back(repetition);
    return Texts(2);
  };
  EXPECT_THAT(All(RepeatRows(Texts(2), open, 3)), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(opened, ElementsAre(1, 2));
  EXPECT_THAT(All(TakeRows(RepeatRows(Texts(2), open, -1), 5)), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THAT(All(RebatchRows(RepeatRows(Texts(2), open, 2), 3, false)), ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(All(RepeatRows(Texts(2), open, 0)), Counted(0, 0));
  EXPECT_EQ(All(RepeatRows(Texts(0), open, -1)), Counted(0, 0));
}

TEST(BatchStagesTest, RebatchingFillsBatches) {
  std::vector<int64_t> sizes;
  const auto sizes_of = [](const BatchSourcePtr& source) {
    std::vector<int64_t> found;
    RowBatch batch;
    while (*source->Next(4, &batch)) found.push_back(batch.num_rows());
    return found;
  };
  EXPECT_THAT(sizes_of(RebatchRows(Texts(10, 3), 4, false)), ElementsAre(4, 4, 2));
  EXPECT_THAT(sizes_of(RebatchRows(Texts(10, 3), 4, true)), ElementsAre(4, 4));
  EXPECT_EQ(All(RebatchRows(Texts(10, 3), 4, false), 4), Counted(0, 10));
}

TEST(BatchStagesTest, ShufflingGivesEachRowOnceFromABufferOfNearbyOnes) {
  for (const int64_t at_once : {1, 3, 1000}) {
    std::vector<int> numbers = All(ShuffleRows(Texts(500, at_once), 20, 3, 0));
    for (int i = 0; i < 500; ++i) EXPECT_LT(numbers[i], i + 20);
    EXPECT_NE(numbers, Counted(0, 500));
    std::sort(numbers.begin(), numbers.end());
    EXPECT_EQ(numbers, Counted(0, 500));
  }
}

TEST(BatchStagesTest, TheOrderIsThatOfTheSeedHoweverRowsAreRead) {
  const std::vector<int> order = All(ShuffleRows(Texts(300, 1), 100, 7, 0), 1);
  EXPECT_EQ(All(ShuffleRows(Texts(300, 50), 100, 7, 0), 64), order);
  EXPECT_EQ(All(PrefetchRows(ShuffleRows(Texts(300, 50), 100, 7, 0), 10), 7), order);
  EXPECT_NE(All(ShuffleRows(Texts(300, 50), 100, 8, 0)), order);
  EXPECT_NE(All(ShuffleRows(Texts(300, 50), 100, 7, 1)), order);
}

TEST(BatchStagesTest, PrefetchingKeepsRowsAndOrder) {
  for (const int64_t count : {1, 5, 1000}) {
    EXPECT_EQ(All(PrefetchRows(Texts(50, 7), count), 3), Counted(0, 50));
  }
  // The thread ends with the source, whatever it is doing.
  PrefetchRows(Texts(1 << 20, 7), 3);
}

TEST(BatchStagesTest, RowsBeforeAMistakeComeFirst) {
  const auto broken = [] {
    return std::make_unique<CountedTexts>(10, 4, DataLoss("the file ends"));
  };
  const auto check = [](const BatchSourcePtr& source, size_t rows) {
    Status status;
    EXPECT_EQ(All(*source, 1000, &status).size(), rows);
    EXPECT_THAT(std::string(Message(status)), HasSubstr("the file ends"));
  };
  check(SkipRows(broken(), 2), 8);
  check(ShardRows(broken(), 2, 0), 5);
  check(PrefetchRows(broken(), 3), 10);
  check(RepeatRows(broken(), nullptr, 2), 10);
  // A full buffer gives a row for each that comes.
  check(ShuffleRows(broken(), 4, 1, 0), 7);
}

TEST(ConcatenateRowsTest, ASingleTensorComesBackWhateverItsRank) {
  const auto scalar = ConcatenateRows({Tensor::Scalar(2.5f)}, "a value");
  ASSERT_TRUE(scalar.ok()) << scalar.status();
  EXPECT_EQ(scalar->rank(), 0);
  EXPECT_EQ(scalar->scalar<float>(), 2.5f);
}

TEST(BatchTest, RowsThatDifferAreNotPutTogether) {
  const Tensor pair(DType::kFloat, {1, 2}), triple(DType::kFloat, {1, 3});
  const Status status = ConcatenateRows({pair, triple}, "column 'x'").status();
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("column 'x' has rows of float[2] and then of float[3]"));
}

TEST(BatchTest, NumbersAreCounted) {
  RowBatch batch;
  const BatchSourcePtr numbers = NumberRows(5000);
  int64_t next = 0;
  while (*numbers->Next(4999, &batch)) {
    for (const int64_t n : batch.columns[0].flat<int64_t>()) EXPECT_EQ(n, next++);
  }
  EXPECT_EQ(next, 5000);
}

}  // namespace
}  // namespace tenon
