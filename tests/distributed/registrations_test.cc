// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/registrations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/strings.h"
#include "tests/testing/simulated_clock.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using testing::IsError;

class RegistrationsTest : public ::testing::Test {
 protected:
  /// A process that registers, at a port of its own; the answer in `response_`.
  Status Register(int process, const std::string& job = "", int task = -1, int num_ps = 1,
                  int num_workers = 2) {
    cluster::RegisterTaskRequest request;
    request.set_process(StrCat("process ", process));
    request.set_address(StrCat("10.0.0.1:", 4000 + process));
    request.set_num_ps(num_ps);
    request.set_num_workers(num_workers);
    request.set_job(job);
    if (task >= 0) request.set_task(task);
    response_.Clear();
    return registrations_.Register(request, &response_);
  }
  std::string Who() const { return StrCat(response_.job(), " ", response_.task()); }

  testing::SimulatedClock clock_;
  Registrations registrations_{clock_};
  cluster::RegisterTaskResponse response_;
};

TEST_F(RegistrationsTest, TasksAreNumberedAsTheyCome) {
  ASSERT_OK(Register(0));
  EXPECT_EQ(response_.registered(), 1);
  EXPECT_FALSE(response_.complete());
  ASSERT_OK(Register(0));
  EXPECT_EQ(response_.registered(), 1);
  ASSERT_OK(Register(1));
  ASSERT_OK(Register(2));
  EXPECT_TRUE(response_.complete());
  EXPECT_EQ(Who(), "worker 1");
  EXPECT_THAT(response_.ps_hosts(), ElementsAre("10.0.0.1:4000"));
  EXPECT_THAT(response_.worker_hosts(), ElementsAre("10.0.0.1:4001", "10.0.0.1:4002"));
  EXPECT_FALSE(registrations_.all_know());
  ASSERT_OK(Register(1));
  EXPECT_EQ(Who(), "worker 0");
  ASSERT_OK(Register(0));
  EXPECT_EQ(Who(), "ps 0");
  EXPECT_TRUE(registrations_.all_know());
}

TEST_F(RegistrationsTest, WishesComeBeforeTheOrder) {
  ASSERT_OK(Register(0));
  ASSERT_OK(Register(1, "worker"));
  ASSERT_OK(Register(2, "worker", 0));
  ASSERT_TRUE(response_.complete());
  EXPECT_EQ(Who(), "worker 0");
  EXPECT_THAT(response_.ps_hosts(), ElementsAre("10.0.0.1:4000"));
  EXPECT_THAT(response_.worker_hosts(), ElementsAre("10.0.0.1:4002", "10.0.0.1:4001"));
}

TEST_F(RegistrationsTest, ATaskThatIsGoneMakesRoom) {
  ASSERT_OK(Register(0));
  clock_.SleepFor(Registrations::kLease / 2);
  ASSERT_OK(Register(1));
  clock_.SleepFor(Registrations::kLease);
  ASSERT_OK(Register(1));
  EXPECT_EQ(response_.registered(), 1);
  ASSERT_OK(Register(2));
  EXPECT_FALSE(response_.complete());
  ASSERT_OK(Register(3));
  EXPECT_EQ(Who(), "worker 1");
  EXPECT_THAT(response_.ps_hosts(), ElementsAre("10.0.0.1:4001"));
  // Once all know where the others are, nobody is replaced.
  clock_.SleepFor(10 * Registrations::kLease);
  ASSERT_OK(Register(1));
  EXPECT_EQ(Who(), "ps 0");
}

TEST_F(RegistrationsTest, WhoContradictsIsTold) {
  constexpr auto kWrong = StatusCode::kInvalidArgument;
  EXPECT_THAT(Register(0, "", -1, 1, 0), IsError(kWrong, "found a job of 1 ps and 0 workers"));
  EXPECT_THAT(Register(0, "", -1, 2147483647, 2147483647), IsError(kWrong, "wanted 1 to 100000"));
  EXPECT_THAT(Register(0, "chief"), IsError(kWrong, "found job 'chief', wanted ps or worker"));
  EXPECT_THAT(Register(0, "worker", 2),
              IsError(kWrong, "this is task 2 of job worker, of which there are 2"));
  EXPECT_THAT(Register(0, "", 0), IsError(kWrong, "without the name of its process or job"));
  cluster::RegisterTaskRequest nothing;
  EXPECT_THAT(registrations_.Register(nothing, &response_), IsError(kWrong, "0 workers"));
  ASSERT_OK(Register(0, "worker", 1));
  EXPECT_THAT(Register(1, "", -1, 1, 3),
              IsError(kWrong,
                      "this task has --num_ps 1 and --num_workers 3, and the one at 10.0.0.1:4000 "
                      "has --num_ps 1 and --num_workers 2"));
  EXPECT_THAT(Register(1, "worker", 1),
              IsError(StatusCode::kAlreadyExists,
                      "/job:worker/replica:0/task:1 has registered already, at 10.0.0.1:4000"));
  ASSERT_OK(Register(1, "worker"));
  EXPECT_THAT(Register(2, "worker"),
              IsError(StatusCode::kFailedPrecondition, "job worker has 2 tasks, which have"));
  ASSERT_OK(Register(2));
  EXPECT_TRUE(response_.complete());
  EXPECT_THAT(Register(3), IsError(StatusCode::kFailedPrecondition,
                                   "all tasks of the job have registered already: 1 ps and 2 "
                                   "workers; this is one more"));
}

}  // namespace
}  // namespace tenon
