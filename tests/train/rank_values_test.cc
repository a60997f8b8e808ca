// SPDX-License-Identifier: Apache-2.0
#include "train/allreduce/rank_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/strings.h"
#include "tests/testing/ranks.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsError;
using testing::RunRanks;

using Texts = std::vector<std::string>;

void ExpectAllOk(const std::vector<Status>& ends) {
  for (const Status& end : ends) EXPECT_TRUE(end.ok()) << end;
}

TEST(RankValuesTest, ReducesNumbers) {
  for (const int size : {1, 3}) {
    ExpectAllOk(RunRanks(size, [&](Communicator& ranks) -> Status {
      const Tensor own = Tensor::Vector<int64_t>({ranks.rank() + 1, -ranks.rank()});
      TENON_ASSIGN_OR_RETURN(const Tensor sum, ReduceOverRanks(ranks, "sum", own));
      TENON_ASSIGN_OR_RETURN(const Tensor least,
                             ReduceOverRanks(ranks, "least", own, Reduction::kMin));
      TENON_ASSIGN_OR_RETURN(const Tensor greatest,
                             ReduceOverRanks(ranks, "greatest", own, Reduction::kMax));
      EXPECT_THAT(sum.flat<int64_t>(), ElementsAre(size == 1 ? 1 : 6, size == 1 ? 0 : -3));
      EXPECT_THAT(least.flat<int64_t>(), ElementsAre(1, 1 - size));
      EXPECT_THAT(greatest.flat<int64_t>(), ElementsAre(size, 0));
      EXPECT_THAT(own.flat<int64_t>(), ElementsAre(ranks.rank() + 1, -ranks.rank()));
      return OkStatus();
    }));
  }
}

TEST(RankValuesTest, GathersRowsOfDifferentNumbers) {
  ExpectAllOk(RunRanks(3, [](Communicator& ranks) -> Status {
    const std::vector<float> own(static_cast<size_t>(2 * ranks.rank()),
                                 static_cast<float>(ranks.rank()));
    TENON_ASSIGN_OR_RETURN(
        const Tensor all,
        GatherRows(ranks, "rows", Tensor::Of<float>({ranks.rank(), 2}, absl::MakeConstSpan(own))));
    EXPECT_EQ(all.shape(), Shape({3, 2}));
    EXPECT_THAT(all.flat<float>(), ElementsAre(1, 1, 2, 2, 2, 2));
    return OkStatus();
  }));
}

TEST(RankValuesTest, GathersTextsOfAnyBytes) {
  const std::vector<Texts> given = {{"a", "", std::string("b\0\n", 3)}, {}, {"", "\xff"}};
  ExpectAllOk(RunRanks(3, [&](Communicator& ranks) -> Status {
    TENON_ASSIGN_OR_RETURN(const auto all,
                           GatherTexts(ranks, "texts", given[static_cast<size_t>(ranks.rank())]));
    EXPECT_EQ(all, given);
    return OkStatus();
  }));
  ExpectAllOk(RunRanks(1, [&](Communicator& ranks) -> Status {
    TENON_ASSIGN_OR_RETURN(const auto all, GatherTexts(ranks, "texts", given[0]));
    EXPECT_THAT(all, ElementsAre(given[0]));
    TENON_ASSIGN_OR_RETURN(const auto none, GatherTexts(ranks, "texts", {}));
    EXPECT_THAT(none, ElementsAre(Texts()));
    return OkStatus();
  }));
}

TEST(RankValuesTest, AllGoOnWhereAllAreWell) {
  ExpectAllOk(RunRanks(2, [](Communicator& ranks) {
    const Status status = OkOnAllRanks(ranks, "reading", OkStatus());
    EXPECT_FALSE(IsOfAllRanks(status));
    return status;
  }));
}

TEST(RankValuesTest, AnErrorOfOneIsThatOfAll) {
  const auto ends = RunRanks(3, [](Communicator& ranks) {
    Status own;
    if (ranks.rank() == 1) own = NotFound("no 'b'");
    return OkOnAllRanks(ranks, "reading", own);
  });
  for (const Status& end : ends) {
    EXPECT_THAT(end, IsError(StatusCode::kNotFound, "rank 1: no 'b'"));
    EXPECT_TRUE(IsOfAllRanks(end));
    EXPECT_TRUE(IsOfAllRanks(Annotate(end, "in b: ")));
  }
}

TEST(RankValuesTest, EqualErrorsAreToldOnce) {
  const auto ends = RunRanks(4, [](Communicator& ranks) {
    Status own = InvalidArgument("no 'a'");
    if (ranks.rank() == 2) own = NotFound("no 'b'");
    return OkOnAllRanks(ranks, "reading", own);
  });
  for (const Status& end : ends) {
    EXPECT_THAT(end,
                IsError(StatusCode::kInvalidArgument, "ranks 0, 1, 3: no 'a'; rank 2: no 'b'"));
  }
  const auto all = RunRanks(
      2, [](Communicator& ranks) { return OkOnAllRanks(ranks, "reading", NotFound("none")); });
  EXPECT_THAT(all[1], IsError(StatusCode::kNotFound, "all ranks: none"));
}

TEST(RankValuesTest, ManyErrorsAreCounted) {
  const auto ends = RunRanks(6, [](Communicator& ranks) {
    return OkOnAllRanks(ranks, "reading", NotFound("no ", ranks.rank()));
  });
  EXPECT_EQ(Message(ends[0]),
            "rank 0: no 0; rank 1: no 1; rank 2: no 2; rank 3: no 3; and 2 other errors of ranks");
}

TEST(RankValuesTest, TheOnlyRankKeepsItsError) {
  const auto ends = RunRanks(
      1, [](Communicator& ranks) { return OkOnAllRanks(ranks, "reading", NotFound("none")); });
  EXPECT_EQ(ends[0], NotFound("none"));
  EXPECT_FALSE(IsOfAllRanks(ends[0]));
}

TEST(RankValuesTest, ARankThatIsGoneIsNamed) {
  const auto ends = RunRanks(2, [](Communicator& ranks) {
    if (ranks.rank() == 1) return Internal("left");
    return OkOnAllRanks(ranks, "reading", OkStatus());
  });
  EXPECT_THAT(std::string(Message(ends[0])), HasSubstr("rank 1"));
  EXPECT_FALSE(IsOfAllRanks(ends[0]));
}

}  // namespace
}  // namespace tenon
