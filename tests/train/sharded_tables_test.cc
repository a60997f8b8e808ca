// SPDX-License-Identifier: Apache-2.0
#include "train/allreduce/sharded_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/strings.h"
#include "data/files/file.h"
#include "tests/data/sample_files.h"
#include "tests/testing/ranks.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::RunRanks;

using Tables = std::vector<DistributedTable>;

const ShardedTablesOptions kOptions = {
    .tables = {{.file = "descriptors.tsv", .kind = ShardedTable::Kind::kMaster},
               {.file = "targets.tsv", .columns = {"target"}, .dtype = DType::kBool}}};

class ShardedTablesTest : public ::testing::Test {
 protected:
  void WriteShard(const std::string& shard, const std::string& descriptors,
                  const std::string& targets) {
    ASSERT_OK(MakeFolders(Path(shard)));
    folder_.Write(JoinPath(shard, "descriptors.tsv"), descriptors);
    folder_.Write(JoinPath(shard, "targets.tsv"), targets);
  }
  /// Shards a, b, ... of a row each, whose one number and ID are that of the shard.
  void WriteShards(int count) {
    for (int i = 0; i < count; ++i) {
      WriteShard(std::string(1, static_cast<char>('a' + i)), StrCat("ID\tx\nr", i, "\t", i, "\n"),
                 StrCat("ID\ttarget\nr", i, "\t", i % 2, "\n"));
    }
  }
  /// The tables of each rank; those of a rank with an error are empty.
  std::vector<Tables> Read(int size, const ShardedTablesOptions& options = kOptions) {
    std::vector<Tables> read(static_cast<size_t>(size));
    ends_ = RunRanks(size, [&](Communicator& ranks) -> Status {
      TENON_ASSIGN_OR_RETURN(read[static_cast<size_t>(ranks.rank())],
                             ReadShardedTables(ranks, folder_.path(), options));
      return OkStatus();
    });
    return read;
  }
  /// The one number of each row.
  static std::vector<float> Numbers(const DistributedTable& table) {
    const auto flat = table.rows.flat<float>();
    return {flat.begin(), flat.end()};
  }
  void ExpectError(StatusCode code, const std::string& text,
                   const ShardedTablesOptions& options = kOptions) {
    Read(2, options);
    for (const Status& end : ends_) EXPECT_THAT(end, IsError(code, text));
  }
  std::string Path(const std::string& name) const { return JoinPath(folder_.path(), name); }

  TemporaryFolder folder_;
  std::vector<Status> ends_;
};

TEST_F(ShardedTablesTest, LooksUpTheRowsOfTheMaster) {
  WriteShard("a", "ID\tx\ty\nr1\t1\t-10\nr2\t2\t20\n",
             "ID\tother\ttarget\nr3\t?\t0\nr2\t?\t1\nr1\t?\t0\n");
  WriteShard("b", "y\tID\tx\n30\tr4\t4\n", "target\tother\tID\n1\t?\tr4\n");
  const auto read = Read(1);
  ASSERT_OK(ends_[0]);
  const Tables& tables = read[0];
  EXPECT_THAT(tables[0].columns, ElementsAre("x", "y"));
  EXPECT_EQ(tables[0].rows.shape(), Shape({3, 2}));
  EXPECT_THAT(Numbers(tables[0]), ElementsAre(1, -10, 2, 20, 4, 30));
  EXPECT_THAT(Numbers(tables[1]), ElementsAre(0, 1, 1));
  EXPECT_THAT(tables[0].min, ElementsAre(1, -10));
  EXPECT_THAT(tables[0].max, ElementsAre(4, 30));
  EXPECT_THAT(tables[1].rows_of_ranks, ElementsAre(3));
  EXPECT_THAT(tables[1].shards_of_ranks, ElementsAre(2));
}

TEST_F(ShardedTablesTest, DealsShardsToRanks) {
  WriteShards(8);
  folder_.Write("a file", "");
  ASSERT_OK(MakeFolders(Path(".hidden")));
  ShardedTablesOptions options = kOptions;
  for (const auto& [partition, wanted] :
       {std::pair(ShardPartition::kMod,
                  std::vector<std::vector<float>>{{0, 3, 6}, {1, 4, 7}, {2, 5}}),
        std::pair(ShardPartition::kDiv,
                  std::vector<std::vector<float>>{{0, 1, 2}, {3, 4, 5}, {6, 7}})}) {
    options.partition = partition;
    const auto read = Read(3, options);
    for (size_t rank = 0; rank < 3; ++rank) {
      ASSERT_OK(ends_[rank]);
      EXPECT_EQ(Numbers(read[rank][0]), wanted[rank]) << rank;
      EXPECT_THAT(read[rank][0].min, ElementsAre(0));
      EXPECT_THAT(read[rank][0].max, ElementsAre(7));
      EXPECT_THAT(read[rank][0].rows_of_ranks, ElementsAre(3, 3, 2));
      EXPECT_THAT(read[rank][0].shards_of_ranks, ElementsAre(3, 3, 2));
    }
  }
}

TEST_F(ShardedTablesTest, RanksMayHaveFoldersOfTheirOwn) {
  for (const std::string shard : {"one/a", "one/b", "two/z"}) {
    const std::string number = shard == "two/z" ? "9" : "1";
    WriteShard(shard, StrCat("ID\tx\n", shard, "\t", number, "\n"),
               StrCat("ID\ttarget\n", shard, "\t1\n"));
  }
  std::vector<std::vector<float>> numbers(2);
  const auto read = [&](ShardPartition partition) {
    ShardedTablesOptions options = kOptions;
    options.partition = partition;
    ends_ = RunRanks(2, [&](Communicator& ranks) -> Status {
      TENON_ASSIGN_OR_RETURN(
          const Tables tables,
          ReadShardedTables(ranks, Path(ranks.rank() == 0 ? "one" : "two"), options));
      numbers[static_cast<size_t>(ranks.rank())] = Numbers(tables[0]);
      EXPECT_THAT(tables[0].max, ElementsAre(9));
      return OkStatus();
    });
  };
  read(ShardPartition::kOwn);
  ASSERT_OK(ends_[0]);
  EXPECT_THAT(numbers[0], ElementsAre(1, 1));
  EXPECT_THAT(numbers[1], ElementsAre(9));
  read(ShardPartition::kMod);
  for (const Status& end : ends_) {
    EXPECT_THAT(end, IsError(StatusCode::kFailedPrecondition,
                             StrCat("rank 1: '", Path("two"),
                                    "' has 1 shard, and 2 on rank 0; the first that differs is "
                                    "'z' here and 'a' on rank 0")));
  }
}

TEST_F(ShardedTablesTest, RefusesRanksWithoutRows) {
  ExpectError(StatusCode::kNotFound, "has no folders, wanted one for each shard");
  WriteShards(1);
  ExpectError(StatusCode::kFailedPrecondition, "rank 1: no shard is left for it");
  WriteShard("b", "ID\tx\n", "ID\ttarget\nr9\t1\n");
  ExpectError(StatusCode::kFailedPrecondition,
              StrCat("rank 1: it has no rows: there is none in 'descriptors.tsv' of its 1 shard, "
                     "the first of which is '",
                     Path("b"), "'"));
}

TEST_F(ShardedTablesTest, SaysWhereIdsAreWrong) {
  WriteShards(2);
  WriteShard("b", "ID\tx\nb1\t1\n\nb2\t2\nb1\t3\n", "ID\ttarget\nb1\t1\nb2\t1\n");
  ExpectError(StatusCode::kInvalidArgument, StrCat("rank 1: '", Path("b/descriptors.tsv"),
                                                   "', line 5: ID 'b1' is that of line 2, too"));
  WriteShard("b", "ID\tx\nb1\t1\nb2\t2\n", "ID\ttarget\nb1\t1\nb3\t1\n");
  ExpectError(StatusCode::kInvalidArgument,
              StrCat("rank 1: '", Path("b/descriptors.tsv"), "', line 3: ID 'b2' has no row in '",
                     Path("b/targets.tsv"), "'"));
  WriteShard("b", "ID\tx\nb1\t1\n", "ID\ttarget\nb1\t1\nb1\t1\n");
  ExpectError(StatusCode::kInvalidArgument, StrCat("rank 1: '", Path("b/targets.tsv"),
                                                   "', line 3: ID 'b1' is that of line 2, too"));
  WriteShard("b", "ID\tx\n\t1\n", "ID\ttarget\nb1\t1\n");
  ExpectError(StatusCode::kInvalidArgument, StrCat("rank 1: '", Path("b/descriptors.tsv"),
                                                   "', line 2: column 'ID': found no value"));
  WriteShard("b", "ID\tx\nb1\t1\nr0\t2\n", "ID\ttarget\nb1\t1\nr0\t1\n");
  ExpectError(StatusCode::kInvalidArgument,
              StrCat("rank 1: '", Path("b/descriptors.tsv"),
                     "', line 3: ID 'r0' is that of a row of rank 0, too"));
  WriteShard("b", "ID\tx\nb1\t1\n", "ID\ttarget\nb1\t1\n");
  WriteShard("c", "ID\tx\nr0\t1\n", "ID\ttarget\nr0\t1\n");
  ExpectError(StatusCode::kInvalidArgument,
              StrCat("rank 0: '", Path("c/descriptors.tsv"), "', line 2: ID 'r0' is that of '",
                     Path("a/descriptors.tsv"), "', line 2, too"));
}

TEST_F(ShardedTablesTest, SaysWhereNumbersAreWrong) {
  WriteShards(2);
  for (const auto& [field, found] : {std::pair("nan", "found nan, wanted a finite number"),
                                     std::pair("1e99", "found inf, wanted a finite number"),
                                     std::pair("one", "found 'one', wanted float"),
                                     std::pair("", "found no value, wanted float")}) {
    WriteShard("b", StrCat("ID\tx\nb1\t1\nb2\t", field, "\n"), "ID\ttarget\nb1\t1\nb2\t0\n");
    ExpectError(StatusCode::kInvalidArgument,
                StrCat("rank 1: '", Path("b/descriptors.tsv"), "', line 3: column 'x': ", found));
  }
  WriteShard("b", "ID\tx\nb1\t1\n", "ID\ttarget\nb1\t2\n");
  ExpectError(StatusCode::kInvalidArgument, "line 2: column 'target': found '2', wanted bool");
}

TEST_F(ShardedTablesTest, SaysWhatIsNotThere) {
  WriteShards(2);
  ShardedTablesOptions options = kOptions;
  options.tables[0].columns = {"x", "z"};
  ExpectError(StatusCode::kNotFound,
              StrCat("rank 1: '", Path("b/descriptors.tsv"), "' has no column 'z'; it has ID, x"),
              options);
  options = kOptions;
  options.id = "Name";
  ExpectError(StatusCode::kNotFound, "has no column 'Name'; it has ID, x", options);
  folder_.Write("a/descriptors.tsv", "ID\nr0\n");
  ExpectError(StatusCode::kNotFound,
              StrCat("rank 0: '", Path("a/descriptors.tsv"), "' has no column beside 'ID'"));
  WriteShards(2);
  ASSERT_OK(RemoveFile(Path("b/targets.tsv")));
  ExpectError(StatusCode::kNotFound, StrCat("rank 1: cannot open '", Path("b/targets.tsv"), "'"));
}

TEST_F(ShardedTablesTest, RefusesSchemasThatCannotBe) {
  WriteShards(2);
  ShardedTablesOptions options = kOptions;
  options.tables[1].kind = ShardedTable::Kind::kMaster;
  ExpectError(StatusCode::kInvalidArgument, "found 2 master tables, wanted one", options);
  options = kOptions;
  options.tables[1].dtype = DType::kInt64;
  ExpectError(StatusCode::kInvalidArgument, "are int64, wanted float or bool", options);
  options = kOptions;
  options.tables[0].columns = {"x", "ID"};
  ExpectError(StatusCode::kInvalidArgument, "column 'ID' of descriptors.tsv has the IDs", options);
}

}  // namespace
}  // namespace tenon
