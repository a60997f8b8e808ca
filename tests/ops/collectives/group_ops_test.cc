// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "ops/array/constants.h"
#include "ops/collectives/collectives_ops.h"
#include "ops/math/operators.h"
#include "ops/register.h"
#include "runtime/collectives/run_groups.h"
#include "runtime/session/local_session.h"
#include "tests/testing/group_programs.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::GroupProgram;
using testing::GroupPrograms;
using ::testing::HasSubstr;

/// What a graph gives in a session with so many devices; `build` is called with the number of each.
StatusOr<std::vector<Tensor>> RunOnDevices(int devices, const std::function<Output(int i)>& build,
                                           std::chrono::milliseconds timeout = {}, int steps = 1) {
  Graph graph(AllOps());
  std::vector<Output> fetches;
  {
    const GraphBuilding building(graph);
    for (int i = 0; i < devices; ++i) {
      const DeviceScope at(StrCat("/cpu:", i));
      fetches.push_back(build(i));
    }
    TENON_RETURN_IF_ERROR(building.status());
  }
  LocalSessionOptions options;
  options.devices.cpus = devices;
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph, options));
  StatusOr<std::vector<Tensor>> values;
  for (int step = 0; step < steps; ++step) {
    values = session->Run({}, fetches, {}, {.timeout = timeout});
    if (!values.ok()) break;
  }
  return values;
}

/// A part in the sum of group 1.
Output Sum(int i, int size, int instance, float timeout_seconds = 0) {
  return CollectiveReduceV2(Const(std::vector<float>{1.f + i}), Const(size), Const(1),
                            Const(instance), {}, "Add", "Id", {.timeout_seconds = timeout_seconds});
}

TEST(GroupOpsTest, DevicesOfASession) {
  for (const int size : {1, 2, 3, 12}) {
    for (const GroupProgram& program : GroupPrograms(false)) {
      SCOPED_TRACE(StrCat(program.name, " of ", size));
      const auto found = RunOnDevices(
          size, [&](int i) { return program.build(i, size); }, {}, 3);
      ASSERT_OK(found);
      for (int i = 0; i < size; ++i) {
        EXPECT_TRUE((*found)[i].Equals(program.wanted(i, size)))
            << i << ": " << (*found)[i].ToString(99) << ", wanted "
            << program.wanted(i, size).ToString(99);
      }
    }
  }
}

TEST(GroupOpsTest, InstancesComeInAnyOrder) {
  const auto found = RunOnDevices(2, [](int i) {
    std::vector<Output> sums;
    for (int n = 0; n < 30; ++n) sums.push_back(Sum(i, 2, i == 0 ? n : 29 - n));
    Output total = sums[0];
    for (int n = 1; n < 30; ++n) total = total + sums[n];
    return total;
  });
  ASSERT_OK(found);
  EXPECT_EQ((*found)[0].data<float>()[0], 90);
  EXPECT_EQ((*found)[1].data<float>()[0], 90);
}

TEST(GroupOpsTest, PartsThatDoNotFitAreErrors) {
  const auto expect_error = [](const std::function<Output(int i)>& build, const char* text) {
    const auto found = RunOnDevices(2, build, std::chrono::seconds(20));
    EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument) << found.status();
    EXPECT_THAT(std::string(Message(found.status())), HasSubstr(text));
  };
  const auto reduce = [](const Tensor& data, int size, const char* merge) {
    return CollectiveReduceV2(Const(data), Const(size), Const(1), Const(2), {}, merge, "Id");
  };
  const Tensor x = Tensor::Vector<float>({1, 2});
  expect_error([&](int i) { return reduce(x, 2, i == 0 ? "Add" : "Max"); },
               "the members do not do the same in instance 2 of group 1");
  expect_error(
      [&](int i) {
        return reduce(i == 0 ? x : Tensor::Vector<float>({1, 2, 3}), 2, "Add");
      },
      "float[3]");
  expect_error(
      [&](int i) {
        return reduce(i == 0 ? x : Tensor::Vector<double>({1, 2}), 2, "Add");
      },
      "double[2]");
  expect_error([&](int i) { return reduce(x, 2 + i, "Add"); }, "as one of ");
  expect_error([&](int) { return reduce(x, 0, "Add"); }, "group 1 has 0 members");
  expect_error(
      [](int) {
        return CollectiveBcastRecvV2(Const(2), Const(1), Const(2), Const(std::vector<int32_t>{3}),
                                     DType::kFloat);
      },
      "none is the source");
  expect_error([&](int) { return CollectiveBcastSendV2(Const(x), Const(2), Const(1), Const(2)); },
               "two sources");
  expect_error(
      [&](int i) {
        if (i == 0) return CollectiveBcastSendV2(Const(x), Const(2), Const(1), Const(2));
        return CollectiveBcastRecvV2(Const(2), Const(1), Const(2), Const(std::vector<int32_t>{3}),
                                     DType::kFloat);
      },
      "float[3]");
  expect_error(
      [&](int) { return CollectiveAllToAllV2(Const(1.f), Const(2), Const(1), Const(2), {}); },
      "a scalar has no rows to deal");
  expect_error(
      [&](int) {
        return CollectiveAllToAllV2(Const(Tensor::Vector<float>({1, 2, 3})), Const(2), Const(1),
                                    Const(2), {});
      },
      "3 rows cannot be dealt to 2 devices");
  expect_error(
      [&](int) {
        return CollectiveReduceV3(Const(x),
                                  CollectiveInitializeCommunicator(Const(1), Const(2), Const(2)),
                                  Const(Tensor(DType::kInt32, Shape{0, 0})), "Add");
      },
      "rank 2 is not one of the 2");
  expect_error(
      [&](int) {
        return CollectiveReduceV3(Const(x),
                                  CollectiveInitializeCommunicator(Const(1), Const(0), Const(2)),
                                  Const(Tensor(DType::kInt32, Shape{0, 0})), "Add");
      },
      "are both rank 0");
}

TEST(GroupOpsTest, AssignmentsOfCommunicators) {
  const auto run = [](const Tensor& assignment) {
    return RunOnDevices(1, [&](int) {
      return CollectiveReduceV3(Const(2.f),
                                CollectiveInitializeCommunicator(Const(1), Const(0), Const(1)),
                                Const(assignment), "Add");
    });
  };
  EXPECT_OK(run(*Tensor::Vector<int32_t>({0}).Reshaped(Shape{1, 1})));
  for (const Tensor& wrong : {Tensor::Scalar(0), Tensor::Vector<int32_t>({0}),
                              *Tensor::Vector<int32_t>({0, 1}).Reshaped(Shape{2, 1})}) {
    EXPECT_EQ(run(wrong).status().code(), StatusCode::kUnimplemented) << run(wrong).status();
  }
}

TEST(GroupOpsTest, RowsThatAreTooManyAreAnError) {
  const auto found = RunOnDevices(2, [](int) {
    return CollectiveGatherV2(Const(Tensor(DType::kFloat, Shape{int64_t{1} << 62, 0})), Const(2),
                              Const(1), Const(1), {});
  });
  EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument) << found.status();
}

TEST(GroupOpsTest, ADeviceTakesPartOnce) {
  const auto found = RunOnDevices(1, [](int i) { return Sum(i, 2, 1) + Sum(i, 2, 1); });
  EXPECT_THAT(std::string(Message(found.status())),
              HasSubstr("takes part in instance 1 of group 1 twice"));
}

TEST(GroupOpsTest, AMemberThatDoesNotComeIsFoundOut) {
  const auto late = RunOnDevices(2, [](int i) { return Sum(i, 3, 1, .2f); });
  EXPECT_EQ(late.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(Message(late.status())),
              HasSubstr("2 of the 3 members have come to instance 1 of group 1"));
  // The step's own limit.
  const auto cut = RunOnDevices(
      2, [](int i) { return Sum(i, 3, 1); }, std::chrono::milliseconds(200));
  EXPECT_EQ(cut.status().code(), StatusCode::kDeadlineExceeded) << cut.status();
}

TEST(GroupOpsTest, AssignGroup) {
  Graph graph(AllOps());
  std::vector<Output> fetches;
  {
    const GraphBuilding building(graph);
    const Output groups = Const(*Tensor::Vector<int32_t>({0, 1, 5, 2, 3, 4}).Reshaped(Shape{2, 3}));
    const auto assigned = CollectiveAssignGroupV2(groups, Const(3), Const(100));
    fetches = {assigned.group_size, assigned.group_key,
               CollectiveAssignGroupV2(groups, Const(9), Const(100)).group_key};
    ASSERT_OK(building.status());
  }
  const auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  const auto found = (*session)->Run({}, {fetches[0], fetches[1]}, {}, {});
  ASSERT_OK(found);
  EXPECT_EQ((*found)[0].data<int32_t>()[0], 3);
  EXPECT_EQ((*found)[1].data<int32_t>()[0], 101);
  EXPECT_THAT(std::string(Message((*session)->Run({}, {fetches[2]}, {}, {}).status())),
              HasSubstr("device_index 9 is not found"));
}

TEST(GroupOpsTest, AGraphTellsItsPartsOfGroups) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output x = Const(1.f);
  CollectiveReduce(x, 2, 3, 1, "Add", "Id", {0});
  CollectiveReduceV2(x, Const(2), Const(3), Const(2), {}, "Add", "Id");
  CollectiveBcastRecvV2(Const(2), Const(4), Const(3), Const(std::vector<int32_t>{1}),
                        DType::kFloat);
  const Output communicator = CollectiveInitializeCommunicator(Const(5), Const(0), Const(2));
  const Output nothing = Const(Tensor(DType::kInt32, Shape{0, 0}));
  CollectiveReduceV3(x, communicator, nothing, "Add");
  CollectiveReduceV3(x, communicator, nothing, "Add");
  // Whoever is to learn its number must wait for the run.
  CollectiveReduceV2(x, Const(2), Const(1) + Const(5), Const(4), {}, "Add", "Id");
  ASSERT_OK(building.status());
  EXPECT_EQ(CountGroupParts(graph), (GroupCounts{{3, 2}, {4, 1}, {5, 2}}));
}

}  // namespace
}  // namespace tenon
