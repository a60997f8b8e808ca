// SPDX-License-Identifier: Apache-2.0
#include "train/allreduce/collective_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/testing/ranks.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;
using testing::MemoryStore;

/// The library, or the error, that each rank is told. A rank that wants "" does not come.
std::vector<StatusOr<std::string>> Agree(const std::vector<std::string>& wanted) {
  MemoryStore store;
  std::vector<StatusOr<std::string>> told(wanted.size(), std::string("did not come"));
  std::vector<std::jthread> threads;
  for (size_t rank = 0; rank < wanted.size(); ++rank) {
    if (wanted[rank].empty()) continue;
    threads.emplace_back([&, rank] {
      told[rank] = AgreeOnLibrary(wanted[rank], {.rank = static_cast<int>(rank),
                                                 .size = static_cast<int>(wanted.size()),
                                                 .store = &store,
                                                 .start_limit = std::chrono::milliseconds(300)});
    });
  }
  threads.clear();
  return told;
}

/// Builds of the test programs alone have no plugins.
class CollectiveLibraryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status found = LoadCollectives("gloo").status();
    if (!found.ok()) GTEST_SKIP() << found;
  }
};

TEST_F(CollectiveLibraryTest, OutsideOfAnMpirunIsGloo) {
  for (const auto& wanted : std::vector<std::vector<std::string>>{
           {"auto", "auto", "auto"}, {"gloo", "auto", "gloo"}, {"auto", "gloo"}, {"gloo"}}) {
    for (const auto& library : Agree(wanted)) {
      ASSERT_TRUE(library.ok()) << library.status();
      EXPECT_EQ(*library, "gloo");
    }
  }
}

TEST_F(CollectiveLibraryTest, TheErrorOfOneIsThatOfAll) {
  for (const auto& wanted : std::vector<std::vector<std::string>>{
           {"auto", "mpi", "auto"}, {"auto", "mpi", "gloo"}, {"gloo", "mpi"}}) {
    for (const auto& library : Agree(wanted)) {
      EXPECT_THAT(library.status(), IsError(StatusCode::kFailedPrecondition,
                                            "collectives by MPI are between processes that an "
                                            "mpirun has started, and rank 1 was started by none"));
    }
  }
  for (const auto& library : Agree({"rccl", "auto"})) {
    EXPECT_THAT(
        library.status(),
        IsError(StatusCode::kInvalidArgument,
                "no library of collectives is called 'rccl'; there are: auto, gloo, mpi, nccl"));
  }
}

TEST_F(CollectiveLibraryTest, OneThatNeverComesIsNamedByAll) {
  const auto told = Agree({"auto", "auto", "", "auto"});
  for (const size_t rank : {0, 1, 3}) {
    EXPECT_THAT(told[rank].status(), IsError(StatusCode::kDeadlineExceeded, "rank 2: "));
  }
}

}  // namespace
}  // namespace tenon
