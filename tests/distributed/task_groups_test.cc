// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "distributed/client/remote_session.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/collectives/collectives_ops.h"
#include "ops/math/operators.h"
#include "ops/register.h"
#include "tests/testing/group_programs.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"

namespace tenon {
namespace {

using ::testing::AnyOf;
using testing::GroupProgram;
using testing::GroupPrograms;
using ::testing::HasSubstr;
using testing::TestCluster;
using Build = std::function<Output(int i)>;

std::string WorkerDevice(int task, int cpu) {
  return StrCat("/job:worker/task:", task, "/device:CPU:", cpu);
}

/// A session at worker `master` of a graph with what `build` makes for each of the devices.
class Client {
 public:
  Client(TestCluster& cluster, int master, const std::vector<std::string>& devices,
         const Build& build) {
    {
      const GraphBuilding building(graph_);
      for (size_t i = 0; i < devices.size(); ++i) {
        const DeviceScope at(devices[i]);
        fetches_.push_back(build(static_cast<int>(i)));
      }
      EXPECT_OK(building.status());
    }
    auto session = MakeRemoteSession(cluster.at("worker", master).target(), graph_);
    EXPECT_OK(session);
    session_ = *std::move(session);
  }
  StatusOr<std::vector<Tensor>> Run(std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    return session_->Run({}, fetches_, {}, {.timeout = timeout});
  }

 private:
  Graph graph_{AllOps()};
  std::vector<Output> fetches_;
  std::unique_ptr<Session> session_;
};

Output Sum(int i, int size, int group, int instance, float timeout_seconds = 0) {
  return CollectiveReduceV2(Const(std::vector<float>{1.f + i}), Const(size), Const(group),
                            Const(instance), {}, "Add", "Id", {.timeout_seconds = timeout_seconds});
}

/// Returns when a step runs at the server, and has had time to come to its collective.
void WaitForAStep(Server& server) {
  for (int i = 0; i < 1000 && server.Describe().find("; steps: 0;") != std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

/// Runs `build` once on the first device of each worker, by one session.
StatusOr<std::vector<Tensor>> RunOnWorkers(TestCluster& cluster, int workers, const Build& build) {
  std::vector<std::string> devices;
  for (int task = 0; task < workers; ++task) devices.push_back(WorkerDevice(task, 0));
  return Client(cluster, 0, devices, build).Run();
}

TEST(TaskGroupsTest, DevicesOfTasks) {
  TestCluster cluster(0, 3, {}, 2);
  cluster.StartAll();
  // Two members in the first task, one in the second, two in the third.
  const std::vector<std::string> devices = {WorkerDevice(0, 0), WorkerDevice(0, 1),
                                            WorkerDevice(1, 1), WorkerDevice(2, 0),
                                            WorkerDevice(2, 1)};
  const int size = static_cast<int>(devices.size());
  for (const GroupProgram& program : GroupPrograms(true)) {
    SCOPED_TRACE(program.name);
    Client client(cluster, 1, devices, [&](int i) { return program.build(i, size); });
    for (int step = 0; step < 3; ++step) {
      const auto found = client.Run();
      ASSERT_OK(found);
      for (int i = 0; i < size; ++i) {
        EXPECT_TRUE((*found)[i].Equals(program.wanted(i, size)))
            << i << ": " << (*found)[i].ToString(99) << ", wanted "
            << program.wanted(i, size).ToString(99);
      }
    }
  }
}

/// Each worker has a client with a graph of its own part, as training between graphs has.
TEST(TaskGroupsTest, SessionsOfDifferentMasters) {
  constexpr int kWorkers = 3, kSteps = 40;
  TestCluster cluster(0, kWorkers);
  cluster.StartAll();
  std::vector<Status> ends(kWorkers);
  {
    std::vector<std::jthread> clients;
    for (int task = 0; task < kWorkers; ++task) {
      clients.emplace_back([&, task] {
        Client client(cluster, task, {WorkerDevice(task, 0)}, [&](int) {
          Output total = Sum(task, kWorkers, 4, 0);
          for (int n = 1; n < 10; ++n) {
            total = total + Sum(task, kWorkers, 4, task == 0 ? n : 10 - n);
          }
          return total;
        });
        for (int step = 0; step < kSteps && ends[task].ok(); ++step) {
          const auto found = client.Run();
          ends[task] = found.status();
          if (found.ok()) EXPECT_EQ((*found)[0].data<float>()[0], 60);
        }
      });
    }
  }
  for (const Status& end : ends) EXPECT_OK(end);
}

TEST(TaskGroupsTest, AGroupThatHasFailedIsMadeAnew) {
  TestCluster cluster(0, 2);
  cluster.StartAll();
  for (int round = 0; round < 3; ++round) {
    const auto wrong = RunOnWorkers(cluster, 2, [](int i) {
      return CollectiveReduceV2(Const(std::vector<float>(2 + i)), Const(2), Const(1), Const(1), {},
                                "Add", "Id");
    });
    EXPECT_EQ(wrong.status().code(), StatusCode::kInvalidArgument) << wrong.status();
    EXPECT_THAT(std::string(Message(wrong.status())), HasSubstr("do not do the same"));
    const auto late = RunOnWorkers(cluster, 1, [](int i) { return Sum(i, 2, 1, 1, .3f); });
    EXPECT_EQ(late.status().code(), StatusCode::kDeadlineExceeded) << late.status();
    const auto found = RunOnWorkers(cluster, 2, [](int i) { return Sum(i, 2, 1, 1); });
    ASSERT_OK(found);
    EXPECT_EQ((*found)[1].data<float>()[0], 3);
  }
  // Another program with the same number.
  const auto alone = RunOnWorkers(cluster, 1, [](int i) { return Sum(i, 1, 1, 1); });
  ASSERT_OK(alone);
  EXPECT_EQ((*alone)[0].data<float>()[0], 1);
}

/// The end of a step of each worker's own client; the last one begins some time after the others.
std::vector<Status> EndsOfClients(TestCluster& cluster, int workers, const Build& build) {
  std::vector<Status> ends(workers);
  {
    std::vector<std::jthread> clients;
    for (int task = 0; task < workers; ++task) {
      if (task == workers - 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
      clients.emplace_back([&, task] {
        ends[task] =
            Client(cluster, task, {WorkerDevice(task, 0)}, [&](int) { return build(task); })
                .Run()
                .status();
      });
    }
  }
  return ends;
}

TEST(TaskGroupsTest, WhoDoesAnotherThingIsAnErrorOfAll) {
  TestCluster cluster(0, 3);
  cluster.StartAll();
  for (int round = 0; round < 5; ++round) {
    const std::vector<Status> ends = EndsOfClients(cluster, 3, [](int task) {
      return CollectiveReduceV2(Const(std::vector<float>{1, 2}), Const(3), Const(1), Const(1), {},
                                task == 2 ? "Max" : "Add", "Id");
    });
    for (const Status& end : ends) {
      EXPECT_EQ(end.code(), StatusCode::kInvalidArgument) << end;
      EXPECT_THAT(std::string(Message(end)), HasSubstr("do not do the same"));
    }
  }
}

/// The last member fails when it has asked to join, and the leader tells the others that all are
/// there.
TEST(TaskGroupsTest, WhoFailsWhileItJoinsIsAnErrorOfAll) {
  TestCluster cluster(0, 2);
  cluster.StartAll();
  for (int round = 0; round < 10; ++round) {
    const std::vector<Status> ends = EndsOfClients(cluster, 2, [](int task) {
      const Output sum = Sum(task, 2, 1, 1, 2);
      return task == 0 ? sum : sum + Sum(task, 2, 1, 1, 2);
    });
    if (ends[0].ok()) {
      // The first sum was made before the second one began, for which nobody else comes, or while
      // that was refused.
      EXPECT_THAT(ends[1].code(),
                  AnyOf(StatusCode::kDeadlineExceeded, StatusCode::kInvalidArgument))
          << ends[1];
    } else {
      EXPECT_EQ(ends[0].code(), StatusCode::kInvalidArgument) << ends[0];
      EXPECT_EQ(ends[1].code(), StatusCode::kInvalidArgument) << ends[1];
    }
  }
}

TEST(TaskGroupsTest, MoreDevicesThanMembersAreAnError) {
  TestCluster cluster(0, 2, {}, 3);
  cluster.StartAll();
  Client client(cluster, 0, {WorkerDevice(1, 0), WorkerDevice(1, 1), WorkerDevice(1, 2)},
                [](int i) { return Sum(i, 2, 1, 1); });
  const Status end = client.Run().status();
  EXPECT_NE(end.code(), StatusCode::kDeadlineExceeded) << end;
  EXPECT_FALSE(end.ok());
}

TEST(TaskGroupsTest, OtherMembersMakeAGroupAnew) {
  TestCluster cluster(0, 3);
  cluster.StartAll();
  const auto run = [&](int first, int second) {
    Client client(cluster, 0, {WorkerDevice(first, 0), WorkerDevice(second, 0)},
                  [](int i) { return Sum(i, 2, 1, 1); });
    // A member may hear only in its step that the other one has left, or is still to leave.
    Status end = client.Run().status();
    for (int tries = 0; tries < 20 && !end.ok(); ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      end = client.Run().status();
    }
    return end;
  };
  EXPECT_OK(run(0, 1));
  EXPECT_OK(run(0, 2));
  EXPECT_OK(run(2, 1));
  EXPECT_OK(run(0, 1));
}

TEST(TaskGroupsTest, ATaskThatComesTooLateIsNamed) {
  TestCluster cluster(0, 2);
  cluster.StartAll();
  ASSERT_OK(RunOnWorkers(cluster, 2, [](int i) { return Sum(i, 2, 1, 1); }));
  const auto late = RunOnWorkers(cluster, 1, [](int i) { return Sum(i, 2, 1, 1, .3f); });
  EXPECT_EQ(late.status().code(), StatusCode::kDeadlineExceeded) << late.status();
  EXPECT_THAT(
      std::string(Message(late.status())),
      HasSubstr("instance 1 of group 1 waits for /job:worker/replica:0/task:1 since 300 ms"));
}

TEST(TaskGroupsTest, ADeathEndsTheOthersStep) {
  TestCluster cluster(0, 2);
  cluster.StartAll();
  const auto step = [&](int task) {
    return Client(cluster, task, {WorkerDevice(task, 0)}, [=](int) { return Sum(task, 2, 1, 1); })
        .Run()
        .status();
  };
  const auto both = [&] {
    Status first;
    std::jthread client([&] { first = step(0); });
    const Status second = step(1);
    client.join();
    EXPECT_OK(first);
    EXPECT_OK(second);
  };
  both();
  Status end;
  {
    const std::jthread client([&] { end = step(0); });
    WaitForAStep(cluster.at("worker", 0));
    cluster.Stop("worker", 1);
  }
  EXPECT_FALSE(end.ok());
  EXPECT_NE(end.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(Message(end)), HasSubstr("/job:worker/replica:0/task:1"));
  cluster.StartOne("worker", 1);
  both();
}

TEST(TaskGroupsTest, AFailureBeforeItsPartEndsTheOthersStep) {
  TestCluster cluster(0, 2);
  cluster.StartAll();
  const auto run = [&](int task, bool fails) {
    const auto build = [&](int) {
      const Output x = Const(std::vector<float>{1.f + task});
      return CollectiveReduceV2(fails ? x + Placeholder(DType::kFloat) : x, Const(2), Const(1),
                                Const(1), {}, "Add", "Id");
    };
    return Client(cluster, task, {WorkerDevice(task, 0)}, build).Run();
  };
  const auto both = [&](bool fails) {
    Status patient;
    Status other;
    {
      const std::jthread client([&] { patient = run(0, false).status(); });
      if (fails) WaitForAStep(cluster.at("worker", 0));
      other = run(1, fails).status();
    }
    EXPECT_EQ(patient.code(), other.code()) << patient << ", " << other;
    return patient;
  };
  for (int round = 0; round < 3; ++round) {
    EXPECT_OK(both(false));
    const Status end = both(true);
    EXPECT_EQ(end.code(), StatusCode::kInvalidArgument) << end;
    EXPECT_THAT(std::string(Message(end)), HasSubstr("task:1 has left group 1: "));
  }
}

TEST(TaskGroupsTest, ALimitOfOneStepEndsTheOthers) {
  TestCluster cluster(0, 3);
  cluster.StartAll();
  ASSERT_OK(RunOnWorkers(cluster, 3, [](int i) { return Sum(i, 3, 1, 1); }));
  Status patient;
  {
    const auto part = [&](int task) {
      return Client(cluster, task, {WorkerDevice(task, 0)},
                    [=](int) { return Sum(task, 3, 1, 1); });
    };
    const std::jthread client([&] { patient = part(0).Run().status(); });
    const auto cut = part(1).Run(std::chrono::milliseconds(500));
    EXPECT_EQ(cut.status().code(), StatusCode::kDeadlineExceeded) << cut.status();
  }
  EXPECT_FALSE(patient.ok());
  EXPECT_THAT(std::string(Message(patient)), HasSubstr("task:1 has left group 1"));
}

}  // namespace
}  // namespace tenon
