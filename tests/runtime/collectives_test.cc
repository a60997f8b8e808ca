// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "runtime/collectives/reductions.h"
#include "tests/testing/ranks.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::RunRanks;

using Kind = Collective::Kind;

StatusOr<Tensor> OnHost(DType dtype, const Shape& shape) {
  return Tensor::Allocate(CpuAllocator(), dtype, shape);
}

Collective Sum(const std::string& name, Tensor data, Reduction reduction = Reduction::kSum) {
  return {.kind = Kind::kAllReduce, .name = name, .data = std::move(data), .reduction = reduction};
}

Collective GatherOf(const std::string& name, Tensor data) {
  Collective what{.kind = Kind::kAllGather, .name = name, .data = data};
  what.allocate = [dtype = data.dtype()](const Shape& shape) { return OnHost(dtype, shape); };
  return what;
}

void ExpectAllOk(const std::vector<Status>& ends) {
  for (size_t i = 0; i < ends.size(); ++i) EXPECT_TRUE(ends[i].ok()) << i << ": " << ends[i];
}

template <typename T>
void TestSums(int size, int64_t count) {
  std::vector<std::vector<T>> values(static_cast<size_t>(size));
  std::mt19937 draw(static_cast<unsigned>(size + count));
  for (auto& v : values) {
    for (int64_t i = 0; i < count; ++i) v.push_back(static_cast<T>(static_cast<float>(draw() % 7)));
  }
  for (const Reduction reduction :
       {Reduction::kSum, Reduction::kMin, Reduction::kMax, Reduction::kProduct}) {
    std::vector<float> wanted;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      float x = static_cast<float>(values[0][i]);
      for (size_t r = 1; r < values.size(); ++r) {
        const float y = static_cast<float>(values[r][i]);
        x = reduction == Reduction::kSum   ? x + y
            : reduction == Reduction::kMin ? std::min(x, y)
            : reduction == Reduction::kMax ? std::max(x, y)
                                           : x * y;
      }
      wanted.push_back(x);
    }
    ExpectAllOk(RunRanks(size, [&](Communicator& ranks) -> Status {
      const auto& own = values[static_cast<size_t>(ranks.rank())];
      TENON_ASSIGN_OR_RETURN(const CollectiveResult result,
                             ranks.Run(Sum("x", Tensor::Vector(own), reduction)));
      for (size_t i = 0; i < wanted.size(); ++i) {
        const float found = static_cast<float>(result.data.flat<T>()[i]);
        if (found != wanted[i]) return Internal(i, ": ", found, " for ", wanted[i]);
      }
      return OkStatus();
    }));
  }
}

TEST(CollectivesTest, Sums) {
  for (const int size : {1, 2, 3, 4, 7}) TestSums<float>(size, size == 3 ? 1 : 5);
  TestSums<float>(4, 1000);
  TestSums<float>(3, 300000);
  TestSums<double>(2, 17);
  TestSums<Half>(3, 17);
  TestSums<BFloat16>(2, 17);
  TestSums<int32_t>(4, 17);
  TestSums<int64_t>(2, 17);
  TestSums<int8_t>(2, 17);
  TestSums<uint8_t>(2, 17);
}

template <typename T>
void TestMeans(int size, int64_t count) {
  ExpectAllOk(RunRanks(size, [&](Communicator& ranks) -> Status {
    const std::vector<T> own(static_cast<size_t>(count), static_cast<T>(4.f * ranks.rank()));
    TENON_ASSIGN_OR_RETURN(const CollectiveResult result,
                           ranks.Run(Sum("x", Tensor::Vector(own), Reduction::kMean)));
    for (const T found : result.data.flat<T>()) {
      if (static_cast<float>(found) != 2.f * (size - 1)) return Internal("another mean");
    }
    return OkStatus();
  }));
}

TEST(CollectivesTest, Means) {
  for (const int size : {1, 2, 4}) TestMeans<float>(size, 5);
  TestMeans<float>(2, 300000);
  TestMeans<double>(4, 17);
  TestMeans<Half>(2, 17);
  TestMeans<BFloat16>(2, 17);
}

TEST(CollectivesTest, MeansOfIntegersAreRefused) {
  const auto ends = RunRanks(1, [](Communicator& ranks) {
    return ranks.Run(Sum("x", Tensor::Vector<int32_t>({1}), Reduction::kMean)).status();
  });
  EXPECT_EQ(Message(ends[0]), "AllReduce (mean) 'x' of int32[1]: means are of floats");
}

TEST(CollectivesTest, SumsOfNothing) {
  ExpectAllOk(RunRanks(3, [](Communicator& ranks) -> Status {
    TENON_ASSIGN_OR_RETURN(const CollectiveResult result,
                           ranks.Run(Sum("none", Tensor(DType::kFloat, {0, 4}))));
    return result.data.shape() == Shape({0, 4}) ? OkStatus() : Internal("another shape");
  }));
}

TEST(CollectivesTest, ANanStays) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Reduction reduction : {Reduction::kMin, Reduction::kMax}) {
    for (const auto& [a, b] : {std::pair{nan, 1.f}, std::pair{1.f, nan}}) {
      float out = 0;
      ReductionOf(DType::kFloat, reduction)(&out, &a, &b, 1);
      EXPECT_TRUE(std::isnan(out));
    }
  }
}

TEST(CollectivesTest, TensorsOfOthersAreNotWritten) {
  ExpectAllOk(RunRanks(2, [](Communicator& ranks) -> Status {
    const Tensor own = Tensor::Vector<float>({1, static_cast<float>(ranks.rank())});
    TENON_ASSIGN_OR_RETURN(const CollectiveResult sum, ranks.Run(Sum("x", own)));
    if (!sum.data.Equals(Tensor::Vector<float>({2, 1}))) return Internal(sum.data.ToString());
    return own.Equals(Tensor::Vector<float>({1, static_cast<float>(ranks.rank())}))
               ? OkStatus()
               : Internal(own.ToString());
  }));
}

TEST(CollectivesTest, TextsAreRefused) {
  const auto ends = RunRanks(
      1, [](Communicator& ranks) { return ranks.Run(Sum("x", Tensor::Scalar("text"))).status(); });
  EXPECT_EQ(Message(ends[0]), "AllReduce 'x' of string[]: wanted numbers in the host's memory");
}

TEST(CollectivesTest, BroadcastsOfEachRank) {
  ExpectAllOk(RunRanks(3, [](Communicator& ranks) -> Status {
    for (int root = 0; root < 3; ++root) {
      TENON_ASSIGN_OR_RETURN(const CollectiveResult result,
                             ranks.Run({.kind = Kind::kBroadcast,
                                        .name = "x",
                                        .data = Tensor::Vector<int64_t>({ranks.rank(), 5}),
                                        .root = root}));
      if (result.data.flat<int64_t>()[0] != root) return Internal(result.data.ToString());
    }
    return OkStatus();
  }));
}

TEST(CollectivesTest, GathersOfDifferentRows) {
  for (const int size : {1, 2, 4}) {
    ExpectAllOk(RunRanks(size, [size](Communicator& ranks) -> Status {
      const int rank = ranks.rank();
      Tensor own(DType::kInt32, {rank, 2});  // rank 0 has none
      std::fill_n(own.data<int32_t>(), own.num_elements(), rank);
      TENON_ASSIGN_OR_RETURN(const CollectiveResult result, ranks.Run(GatherOf("rows", own)));
      if (result.data.dim(0) != size * (size - 1) / 2) return Internal(result.data.ToString());
      int64_t row = 0;
      for (int r = 0; r < size; ++r) {
        for (int i = 0; i < r; ++i, ++row) {
          if (result.data.flat<int32_t>()[static_cast<size_t>(2 * row)] != r) {
            return Internal(result.data.ToString(99));
          }
        }
      }
      return OkStatus();
    }));
  }
}

TEST(CollectivesTest, RowsAreDealt) {
  ExpectAllOk(RunRanks(3, [](Communicator& ranks) -> Status {
    const int rank = ranks.rank();
    // Rank r has r + d rows for rank d, each 10 r + d.
    std::vector<int64_t> splits;
    std::vector<float> values;
    for (int d = 0; d < 3; ++d) {
      splits.push_back(rank + d);
      for (int i = 0; i < rank + d; ++i) values.push_back(static_cast<float>(10 * rank + d));
    }
    Collective what{
        .kind = Kind::kAllToAll, .name = "deal", .data = Tensor::Vector(values), .rows_to = splits};
    what.allocate = [](const Shape& shape) { return OnHost(DType::kFloat, shape); };
    TENON_ASSIGN_OR_RETURN(const CollectiveResult result, ranks.Run(std::move(what)));
    std::vector<float> wanted;
    std::vector<int64_t> from;
    for (int r = 0; r < 3; ++r) {
      from.push_back(r + rank);
      for (int i = 0; i < r + rank; ++i) wanted.push_back(static_cast<float>(10 * r + rank));
    }
    if (!result.data.Equals(Tensor::Vector(wanted))) return Internal(result.data.ToString(99));
    return result.rows_from == from ? OkStatus() : Internal(Join(result.rows_from, ","));
  }));
}

TEST(CollectivesTest, ManyUnderWay) {
  ExpectAllOk(RunRanks(2, [](Communicator& ranks) -> Status {
    constexpr int kMany = 500;
    std::atomic<int> done{0}, wrong{0};
    for (int i = 0; i < kMany; ++i) {
      ranks.Start(Sum(StrCat("x", i), Tensor::Scalar<float>(static_cast<float>(i))),
                  [&, i](const StatusOr<CollectiveResult>& result) {
                    wrong += !result.ok() || result->data.scalar<float>() != 2.f * i;
                    ++done;
                  });
    }
    TENON_RETURN_IF_ERROR(ranks.Run({.kind = Kind::kBarrier, .name = "all"}).status());
    return done == kMany && wrong == 0 ? OkStatus()
                                       : Internal(done.load(), " done, ", wrong.load(), " wrong");
  }));
}

TEST(CollectivesTest, OtherDimensionsAreNamed) {
  const auto ends = RunRanks(2, [](Communicator& ranks) {
    return ranks.Run(GatherOf("rows", Tensor(DType::kFloat, {2, 3 + ranks.rank()}))).status();
  });
  for (const Status& end : ends) {
    EXPECT_EQ(end.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(end)),
                AllOf(HasSubstr("AllGather 'rows'"), HasSubstr("only the first dimensions")));
  }
}

/// The ranks' errors when they do not do the same; how long it took is within the limit.
void ExpectDifference(const std::vector<Status>& ends, const std::string& own,
                      const std::string& other) {
  EXPECT_THAT(std::string(Message(ends[0])),
              AllOf(HasSubstr("the ranks do not do the same"), HasSubstr(own), HasSubstr(other)));
  for (const Status& end : ends) EXPECT_FALSE(end.ok());
}

TEST(CollectivesTest, OtherShapesAreFoundOutBeforeTheLimit) {
  const auto begin = MachineClock().Now();
  const auto ends = RunRanks(2, [](Communicator& ranks) {
    return ranks.Run(Sum("x", Tensor::Zeros(DType::kFloat, {2 + ranks.rank()}))).status();
  });
  ExpectDifference(ends, "AllReduce 'x' of float[2]", "rank 1 in AllReduce 'x' of float[3]");
  EXPECT_LT(MachineClock().Now() - begin, std::chrono::seconds(15));
}

TEST(CollectivesTest, AnotherOrderIsFoundOut) {
  const auto ends = RunRanks(2, [](Communicator& ranks) -> Status {
    const bool is_first = ranks.rank() == 0;
    TENON_RETURN_IF_ERROR(ranks.Run(Sum(is_first ? "a" : "b", Tensor::Scalar<float>(1))).status());
    return ranks.Run(Sum(is_first ? "b" : "a", Tensor::Scalar<float>(1))).status();
  });
  ExpectDifference(ends, "AllReduce 'a' of float[]", "rank 1 in AllReduce 'b' of float[]");
}

TEST(CollectivesTest, WhoDoesNotComeIsNamedAfterTheLimit) {
  const auto begin = MachineClock().Now();
  std::atomic<int> ended{0};
  const auto ends = RunRanks(
      3,
      [&](Communicator& ranks) -> Status {
        if (ranks.rank() == 2) {  // it stays, and does nothing
          while (ended < 2) MachineClock().SleepFor(std::chrono::milliseconds(10));
          return OkStatus();
        }
        const Status end = ranks.Run(Sum("loss", Tensor::Scalar<float>(1))).status();
        ++ended;
        return end;
      },
      std::chrono::milliseconds(1000));
  for (int r = 0; r < 2; ++r) {
    EXPECT_THAT(std::string(Message(ends[static_cast<size_t>(r)])),
                AllOf(HasSubstr("AllReduce 'loss' of float[]"), HasSubstr("rank 2")));
  }
  EXPECT_LT(MachineClock().Now() - begin, std::chrono::seconds(20));
}

TEST(CollectivesTest, WhoHasGoneIsNamedAtOnce) {
  const auto begin = MachineClock().Now();
  const auto ends = RunRanks(4, [&](Communicator& ranks) -> Status {
    TENON_RETURN_IF_ERROR(ranks.Run(Sum("first", Tensor::Scalar<float>(1))).status());
    if (ranks.rank() == 1) return OkStatus();
    return ranks.Run(Sum("second", Tensor::Scalar<float>(1))).status();
  });
  for (const int r : {0, 2, 3}) {
    EXPECT_THAT(std::string(Message(ends[static_cast<size_t>(r)])),
                AllOf(HasSubstr("'second'"), HasSubstr("rank 1 has gone")));
  }
  EXPECT_LT(MachineClock().Now() - begin, std::chrono::seconds(20));
}

TEST(CollectivesTest, AbortEndsAllRanks) {
  std::atomic<bool> aborted{false};
  const auto ends = RunRanks(3, [&](Communicator& ranks) -> Status {
    if (ranks.rank() == 0) {
      std::jthread end([&] {
        MachineClock().SleepFor(std::chrono::milliseconds(200));
        ranks.Abort(Cancelled("the user has had enough"));
        aborted = true;
      });
      return ranks.Run(Sum("never", Tensor::Scalar<float>(1))).status();
    }
    if (ranks.rank() == 1) return ranks.Run(Sum("never", Tensor::Scalar<float>(1))).status();
    while (!aborted) MachineClock().SleepFor(std::chrono::milliseconds(10));
    MachineClock().SleepFor(std::chrono::milliseconds(1300));
    return ranks.Run(Sum("never", Tensor::Scalar<float>(1))).status();
  });
  EXPECT_EQ(Message(ends[0]), "the user has had enough");
  EXPECT_FALSE(ends[1].ok());
  EXPECT_FALSE(ends[2].ok());
}

/// Batches of ranks that have different numbers of them, in epochs: each ends for all with the
/// first rank's end, and afterwards the ranks add up again.
TEST(CollectivesTest, DataThatEndOnOneRankEndThoseOfAll) {
  constexpr int kEpochs = 3;
  for (const int size : {1, 2, 4}) {
    std::vector<int> made(static_cast<size_t>(size));
    ExpectAllOk(RunRanks(size, [&](Communicator& ranks) -> Status {
      for (int epoch = 0; epoch < kEpochs; ++epoch) {
        // Another rank has the fewest in each epoch.
        const int batches = 3 + (ranks.rank() + epoch) % size;
        Status end;
        for (int i = 0; end.ok(); ++i) {
          if (i == batches) {
            end = OutOfRange("no more rows");
            break;
          }
          end = ranks.Run(Sum(StrCat("step", i), Tensor::Scalar<float>(1))).status();
          made[static_cast<size_t>(ranks.rank())] += end.ok();
        }
        if (end.code() != StatusCode::kOutOfRange) return end;
        if (!Message(end).ends_with("no more rows")) return Internal(Message(end));
        TENON_RETURN_IF_ERROR(ranks.BeginAnew(end));
        TENON_ASSIGN_OR_RETURN(const CollectiveResult sum,
                               ranks.Run(Sum("metric", Tensor::Scalar<float>(1))));
        if (sum.data.scalar<float>() != static_cast<float>(size)) return Internal("another sum");
      }
      return OkStatus();
    }));
    EXPECT_EQ(made, std::vector<int>(static_cast<size_t>(size), 3 * kEpochs));
  }
}

/// A rank that comes to its end while another is far from a collective, and one that ends during
/// its own.
TEST(CollectivesTest, LateRanksHearOfTheEnd) {
  std::atomic<bool> aborted{false};
  ExpectAllOk(RunRanks(3, [&aborted](Communicator& ranks) -> Status {
    TENON_RETURN_IF_ERROR(ranks.Run(Sum("first", Tensor::Scalar<float>(1))).status());
    Status end;
    if (ranks.rank() == 0) {
      std::jthread aborts([&] {
        ranks.Abort(OutOfRange("the file is at its end"));
        aborted = true;
      });
      end = ranks.Run(Sum("second", Tensor::Scalar<float>(1))).status();
    } else {
      if (ranks.rank() == 2) {
        while (!aborted) MachineClock().SleepFor(std::chrono::milliseconds(10));
        MachineClock().SleepFor(std::chrono::milliseconds(700));
      }
      end = ranks.Run(Sum("second", Tensor::Scalar<float>(1))).status();
      if (Message(end) != "rank 0: the file is at its end") return end;
    }
    TENON_RETURN_IF_ERROR(ranks.BeginAnew(end));
    return ranks.Run(Sum("third", Tensor::Scalar<float>(1))).status();
  }));
}

TEST(CollectivesTest, TheReasonOfARankIsTold) {
  const auto ends = RunRanks(3, [](Communicator& ranks) -> Status {
    if (ranks.rank() == 1) {
      ranks.Abort(InvalidArgument("row 7 has 3 fields"));
      return OkStatus();
    }
    const Status end = ranks.Run(Sum("x", Tensor::Scalar<float>(1))).status();
    // A failure is no end, after which ranks could begin anew.
    EXPECT_EQ(ranks.BeginAnew(OutOfRange("no more rows")), end);
    return end;
  });
  for (const int r : {0, 2}) {
    EXPECT_EQ(ends[static_cast<size_t>(r)].code(), StatusCode::kUnavailable);
    EXPECT_THAT(std::string(Message(ends[static_cast<size_t>(r)])),
                AllOf(HasSubstr("AllReduce 'x' of float[] on rank"), HasSubstr("rank 1 has failed"),
                      HasSubstr("row 7 has 3 fields")));
  }
}

TEST(CollectivesTest, WhoDoesNotBeginAnewIsNamed) {
  const auto ends = RunRanks(
      2,
      [](Communicator& ranks) -> Status {
        const Status end = ranks.BeginAnew(OutOfRange("no more rows"));
        return ranks.rank() == 0 ? ranks.BeginAnew(OutOfRange("no more rows")) : end;
      },
      std::chrono::milliseconds(3000));
  EXPECT_TRUE(ends[1].ok()) << ends[1];
  EXPECT_EQ(ends[0].code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(Message(ends[0])), HasSubstr("rank 1"));
}

TEST(CollectivesTest, ARankThatNeverJoinsIsNamed) {
  testing::MemoryStore store;
  const auto joined = JoinByGloo(
      {.rank = 0, .size = 2, .store = &store, .start_limit = std::chrono::milliseconds(300)});
  EXPECT_EQ(joined.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(Message(joined.status())), HasSubstr("rank 1"));
}

TEST(CollectivesTest, WrongSplitsAreNamed) {
  const auto ends = RunRanks(1, [](Communicator& ranks) {
    return ranks
        .Run({.kind = Kind::kAllToAll,
              .name = "deal",
              .data = Tensor::Vector<float>({1, 2}),
              .rows_to = {3}})
        .status();
  });
  EXPECT_EQ(Message(ends[0]), "the splits [3] do not deal 2 rows to 1 ranks");
}

}  // namespace
}  // namespace tenon
