// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/collectives/collectives_ops.h"
#include "ops/cuda/device_kind.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/register.h"
#include "tests/testing/ranks.h"
#include "tests/testing/simulated_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::RunRanks;
using testing::SharedSimulatedDriver;

/// The rank's simulated device.
StreamDevice* DeviceOf(int rank) {
  static auto* const devices = [] {
    auto* made = new std::vector<std::unique_ptr<StreamDevice>>;
    for (const int i : {0, 1}) {
      made->push_back(std::make_unique<StreamDevice>(StrCat("/device:GPU:", i), kCuda,
                                                     SharedSimulatedDriver(i), int64_t{1} << 30,
                                                     std::make_shared<ResourceStore>()));
    }
    return made;
  }();
  return (*devices)[static_cast<size_t>(rank)].get();
}

/// Counts what stays on devices.
class WatchedRank final : public Communicator {
 public:
  explicit WatchedRank(Communicator& ranks) : ranks_(ranks) {}
  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  int local_rank() const override { return ranks_.local_rank(); }
  int local_size() const override { return ranks_.local_size(); }
  const Allocator* device_memory() const override { return ranks_.device_memory(); }
  void Start(Collective what, Done done) override {
    if (what.on_device) ++on_device_;
    ranks_.Start(std::move(what), std::move(done));
  }
  void Abort(const Status& why) override { ranks_.Abort(why); }
  Status BeginAnew(const Status& why) override { return ranks_.BeginAnew(why); }

  int on_device() const { return on_device_; }

 private:
  Communicator& ranks_;
  std::atomic<int> on_device_{0};
};

using Build = std::function<std::vector<Output>(int rank)>;

/// The fetched values of the rank's graph on its device, or on `device`. An error where one of
/// `steps` steps gives others than the first.
StatusOr<std::vector<Tensor>> RunOn(Communicator& ranks, const Build& build,
                                    const std::string& device = "", int steps = 3) {
  Graph graph(AllOps());
  std::vector<Output> fetches;
  {
    const GraphBuilding building(graph);
    const DeviceScope scope(device.empty() ? StrCat("/device:GPU:", ranks.rank()) : device);
    fetches = build(ranks.rank());
    TENON_RETURN_IF_ERROR(building.status());
  }
  LocalSessionOptions options;
  options.communicator = &ranks;
  TENON_ASSIGN_OR_RETURN(const auto session, testing::MakeSimulatedSession(graph, options));
  std::vector<Tensor> first;
  for (int step = 0; step < steps; ++step) {
    TENON_ASSIGN_OR_RETURN(std::vector<Tensor> found, session->Run({}, fetches, {}));
    for (size_t i = 0; i < first.size(); ++i) {
      if (!found[i].Equals(first[i])) return Internal("step ", step, " gives something else");
    }
    if (step == 0) first = std::move(found);
  }
  return first;
}

/// Values that ranks reduce exactly, and that kernels of the device make.
Output Values(int rank, DType dtype) {
  const Output x = Const(std::vector<float>{1, -2, 3, 4.5f, 8}) * (2.f + 2 * rank);
  return Cast(Reshape(ConcatV2({x, x + 1.f}, 0), {2, 5}), dtype);
}

std::vector<Output> Everything(int rank) {
  std::vector<Output> all;
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16,
                            DType::kInt32, DType::kInt64}) {
    const Output x = Values(rank, dtype);
    for (const int64_t op : {0, 1, 3, 4, 5}) all.push_back(HorovodAllreduce(x, {.reduce_op = op}));
    all.push_back(x);  // as it was
  }
  const Output x = Values(rank, DType::kFloat);
  all.push_back(HorovodAllreduce(x, {.prescale_factor = 0.5f, .postscale_factor = 3}));
  all.push_back(HorovodAllreduce(Sum(x)));
  all.push_back(HorovodBroadcast(x, 1));
  all.push_back(HorovodReducescatter(x + 0.f, {.reduce_op = 0}));
  all.push_back(HorovodAllgather(Slice(x, {0, 0}, {rank, 5})));
  all.push_back(HorovodAllgather(Greater(x, 4.f)));
  const auto dealt = HorovodAlltoall(x, Const(std::vector<int32_t>{2 * rank, 2 - 2 * rank}));
  all.push_back(dealt.output * 2.f);
  all.push_back(dealt.received_splits);
  return all;
}

TEST(DeviceCollectivesTest, WhatTheHostsMemoryGives) {
  std::vector<std::vector<Tensor>> by_host(2), by_device(2);
  std::vector<int> stayed(2);
  const auto keep = [&](std::vector<std::vector<Tensor>>* found) {
    return [&stayed, found](Communicator& ranks) -> Status {
      WatchedRank watched(ranks);
      const auto rank = static_cast<size_t>(ranks.rank());
      TENON_ASSIGN_OR_RETURN((*found)[rank], RunOn(watched, Everything));
      stayed[rank] = watched.on_device();
      return OkStatus();
    };
  };
  for (const Status& end : RunRanks(2, keep(&by_host))) ASSERT_TRUE(end.ok()) << end;
  EXPECT_THAT(stayed, ::testing::Each(0));
  const auto limit = std::chrono::seconds(30);
  for (const Status& end : RunRanks(2, keep(&by_device), limit, {}, DeviceOf)) {
    ASSERT_TRUE(end.ok()) << end;
  }
  // All but the means of integers, and what is scaled.
  const int kinds = static_cast<int>(by_host[0].size()) - 6 - 1 - 2 - 1;
  EXPECT_THAT(stayed, ::testing::Each(3 * kinds));
  for (const size_t rank : {0, 1}) {
    for (size_t i = 0; i < by_host[rank].size(); ++i) {
      EXPECT_TRUE(by_device[rank][i].Equals(by_host[rank][i]))
          << "rank " << rank << ", " << i << ": " << by_device[rank][i].ToString(20)
          << ", by the host " << by_host[rank][i].ToString(20);
    }
    EXPECT_TRUE(SharedSimulatedDriver(static_cast<int>(rank)).status().ok())
        << SharedSimulatedDriver(static_cast<int>(rank)).status();
  }
}

TEST(DeviceCollectivesTest, DataInDifferentMemoriesAreFoundOut) {
  const Build sum = [](int) { return std::vector<Output>{HorovodAllreduce(Const(1.f) * 2.f)}; };
  const Build rows = [](int) {
    return std::vector<Output>{HorovodAllgather(Fill(Const(std::vector<int32_t>{2}), 1.f))};
  };
  for (const Build& build : {sum, rows}) {
    const auto ends = RunRanks(
        2,
        [&](Communicator& ranks) {
          return RunOn(ranks, build, ranks.rank() == 1 ? "/cpu:0" : "").status();
        },
        std::chrono::seconds(30), {}, DeviceOf);
    for (const Status& end : ends) {
      EXPECT_THAT(Message(end), HasSubstr("the ranks do not do the same"));
      EXPECT_THAT(Message(end), HasSubstr("in a GPU's memory 'Horovod"));
    }
  }
}

/// The others do not wait in the devices' library until their limit.
TEST(DeviceCollectivesTest, ARankWithoutMemoryEndsTheOthers) {
  const auto ends = RunRanks(
      2,
      [&](Communicator& ranks) -> Status {
        StreamDevice& device = *DeviceOf(ranks.rank());
        Collective rows = {.kind = Collective::Kind::kAllGather, .name = "rows", .on_device = true};
        TENON_ASSIGN_OR_RETURN(rows.data, device.CopyToDevice(Tensor::Vector<float>({1, 2})));
        TENON_RETURN_IF_ERROR(device.Wait());
        rows.allocate = [&](const Shape& shape) -> StatusOr<Tensor> {
          if (ranks.rank() == 1) return ResourceExhausted("no more memory");
          return Tensor::Allocate(device.allocator(), DType::kFloat, shape);
        };
        const Clock::Time begin = MachineClock().Now();
        const Status end = ranks.Run(std::move(rows)).status();
        if (MachineClock().Now() - begin > std::chrono::seconds(10)) return Internal("too late");
        return end;
      },
      std::chrono::seconds(30), {}, DeviceOf);
  EXPECT_THAT(ends[1], testing::IsError(StatusCode::kResourceExhausted, "no more memory"));
  EXPECT_THAT(ends[0], testing::IsError(StatusCode::kUnavailable, "in a GPU's memory 'rows'"));
}

TEST(DeviceCollectivesTest, ARankThatDoesNotComeIsNamed) {
  const Build sum = [](int) { return std::vector<Output>{HorovodAllreduce(Const(1.f) * 2.f)}; };
  std::atomic<bool> ended{false};
  const auto ends = RunRanks(
      2,
      [&](Communicator& ranks) -> Status {
        if (ranks.rank() == 0) {
          const Status end = RunOn(ranks, sum).status();
          ended = true;
          return end;
        }
        // The rank stays, and does nothing.
        while (!ended) MachineClock().SleepFor(std::chrono::milliseconds(10));
        return OkStatus();
      },
      std::chrono::milliseconds(500), {}, DeviceOf);
  EXPECT_THAT(ends[0],
              testing::IsError(StatusCode::kDeadlineExceeded, "rank 1 did not come within 500 ms"));
}

}  // namespace
}  // namespace tenon
