// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/denormals.h"
#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/collectives/collectives_ops.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/queues/queues_ops.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/ranks.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::RunRanks;

/// What a rank's graph gives; `build` is called with the rank's number.
StatusOr<std::vector<Tensor>> RunGraph(Communicator* ranks,
                                       const std::function<std::vector<Output>(int rank)>& build,
                                       std::chrono::milliseconds timeout = {}) {
  Graph graph(AllOps());
  std::vector<Output> fetches;
  {
    const GraphBuilding building(graph);
    fetches = build(ranks == nullptr ? 0 : ranks->rank());
    TENON_RETURN_IF_ERROR(building.status());
  }
  LocalSessionOptions options;
  options.communicator = ranks;
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph, options));
  return session->Run({}, fetches, {}, {.timeout = timeout});
}

void ExpectOk(const std::vector<Status>& ends) {
  for (const Status& end : ends) EXPECT_TRUE(end.ok()) << end;
}

Status Expect(const Tensor& found, const Tensor& wanted) {
  if (found.Equals(wanted)) return OkStatus();
  return Internal("found ", found.ToString(99), ", wanted ", wanted.ToString(99));
}

TEST(CollectiveOpsTest, AllReduce) {
  ExpectOk(RunRanks(3, [](Communicator& ranks) -> Status {
    TENON_ASSIGN_OR_RETURN(
        const std::vector<Tensor> found, RunGraph(&ranks, [](int rank) {
          const Output x = Const(std::vector<float>{1.f + rank, 6.f * rank});
          const Output n = Const(std::vector<int32_t>{7 * rank, -1});
          return std::vector<Output>{
              HorovodAllreduce(x),
              HorovodAllreduce(x, {.reduce_op = 0}),
              HorovodAllreduce(x, {.prescale_factor = 2, .postscale_factor = 0.5f}),
              HorovodAllreduce(x, {.reduce_op = 3}),
              HorovodAllreduce(x, {.reduce_op = 4}),
              HorovodAllreduce(n, {.reduce_op = 0}),
              HorovodAllreduce(Cast(x, DType::kHalf)),
              HorovodRank(),
              HorovodSize(),
              HorovodLocalRank(),
              HorovodLocalSize()};
        }));
    TENON_RETURN_IF_ERROR(Expect(found[0], Tensor::Vector<float>({6, 18})));
    TENON_RETURN_IF_ERROR(Expect(found[1], Tensor::Vector<float>({2, 6})));
    TENON_RETURN_IF_ERROR(Expect(found[2], Tensor::Vector<float>({6, 18})));
    TENON_RETURN_IF_ERROR(Expect(found[3], Tensor::Vector<float>({1, 0})));
    TENON_RETURN_IF_ERROR(Expect(found[4], Tensor::Vector<float>({3, 12})));
    TENON_RETURN_IF_ERROR(Expect(found[5], Tensor::Vector<int32_t>({7, -1})));
    TENON_RETURN_IF_ERROR(Expect(found[6], Tensor::Vector<Half>({Half(6.f), Half(18.f)})));
    TENON_RETURN_IF_ERROR(Expect(found[7], Tensor::Scalar<int32_t>(ranks.rank())));
    TENON_RETURN_IF_ERROR(Expect(found[8], Tensor::Scalar<int32_t>(3)));
    TENON_RETURN_IF_ERROR(Expect(found[9], Tensor::Scalar<int32_t>(ranks.rank())));
    return Expect(found[10], Tensor::Scalar<int32_t>(3));
  }));
}

/// The quotient of two and of three ranks is the sum's product with a double, rounded once.
TEST(CollectiveOpsTest, MeansAreRoundedOnce) {
  const std::vector<float> values = {1.f / 3, -7e-45f, 1e-45f, 3.4e38f, -0.1f, 16777215.f, 1e-38f};
  for (const int size : {2, 3, 4}) {
    ExpectOk(RunRanks(size, [&](Communicator& ranks) -> Status {
      TENON_ASSIGN_OR_RETURN(
          const std::vector<Tensor> found, RunGraph(&ranks, [&](int rank) {
            const Output x = Const(rank == 0 ? values : std::vector<float>(values.size(), 0.f));
            return std::vector<Output>{HorovodAllreduce(x, {.reduce_op = 0}),
                                       HorovodAllreduce(x, {.postscale_factor = 0.3f}),
                                       HorovodAllreduce(x, {.postscale_factor = 2})};
          }));
      const std::vector<double> factors = {1.0 / size, 0.3f, 2};
      const FlushDenormals flush;
      for (size_t i = 0; i < factors.size(); ++i) {
        std::vector<float> wanted;
        for (const float value : values)
          wanted.push_back(static_cast<float>((value + 0.f) * factors[i]));
        TENON_RETURN_IF_ERROR(Expect(found[i], Tensor::Of<float>({std::ssize(wanted)}, wanted)));
      }
      return OkStatus();
    }));
  }
}

TEST(CollectiveOpsTest, InputsAreNotChanged) {
  ExpectOk(RunRanks(2, [](Communicator& ranks) -> Status {
    TENON_ASSIGN_OR_RETURN(
        const std::vector<Tensor> found, RunGraph(&ranks, [](int rank) {
          const Output x = Const(std::vector<float>{1.f + rank});
          const Output y = x + 0.f;
          return std::vector<Output>{HorovodAllreduce(y), y, x, HorovodBroadcast(x, 1)};
        }));
    const Tensor own = Tensor::Vector<float>({1.f + ranks.rank()});
    TENON_RETURN_IF_ERROR(Expect(found[0], Tensor::Vector<float>({3})));
    TENON_RETURN_IF_ERROR(Expect(found[1], own));
    TENON_RETURN_IF_ERROR(Expect(found[2], own));
    return Expect(found[3], Tensor::Vector<float>({2}));
  }));
}

TEST(CollectiveOpsTest, RowsOfAllRanks) {
  ExpectOk(RunRanks(2, [](Communicator& ranks) -> Status {
    TENON_ASSIGN_OR_RETURN(
        const std::vector<Tensor> found, RunGraph(&ranks, [](int rank) {
          const Output mine = Fill(Const(std::vector<int32_t>{rank + 1, 2}), rank + 5);
          const auto dealt = HorovodAlltoall(Const(std::vector<int64_t>{10 * rank, 10 * rank + 1}),
                                             Const(std::vector<int32_t>{}));
          return std::vector<Output>{HorovodAllgather(mine), dealt.output, dealt.received_splits,
                                     HorovodReducescatter(Const(std::vector<float>{1, 2, 3}))};
        }));
    TENON_RETURN_IF_ERROR(Expect(found[0], Tensor::Of<int32_t>({3, 2}, {5, 5, 6, 6, 6, 6})));
    const int64_t own = ranks.rank();
    TENON_RETURN_IF_ERROR(Expect(found[1], Tensor::Vector<int64_t>({own, 10 + own})));
    TENON_RETURN_IF_ERROR(Expect(found[2], Tensor::Vector<int32_t>({1, 1})));
    return Expect(found[3], own == 0 ? Tensor::Vector<float>({2, 4}) : Tensor::Vector<float>({6}));
  }));
}

/// Ranks that make the same nodes in different orders, with names that sort otherwise, still run
/// them in one order.
TEST(CollectiveOpsTest, OneOrderOnAllRanks) {
  ExpectOk(RunRanks(2, [](Communicator& ranks) -> Status {
    for (int step = 0; step < 20; ++step) {
      TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> found, RunGraph(&ranks, [](int rank) {
                               std::vector<Output> sums(8);
                               for (int k = 0; k < 8; ++k) {
                                 const int i = rank == 0 ? k : 7 - k;
                                 sums[static_cast<size_t>(i)] =
                                     HorovodAllreduce(Const(static_cast<float>(i)),
                                                      {.name = StrCat("sum", (i * 5) % 8)});
                               }
                               // One that is later on its path.
                               sums.push_back(HorovodAllreduce(sums[3] + 1.f, {.name = "a"}));
                               return sums;
                             }));
      for (size_t i = 0; i < 8; ++i) {
        TENON_RETURN_IF_ERROR(Expect(found[i], Tensor::Scalar<float>(2.f * static_cast<float>(i))));
      }
      TENON_RETURN_IF_ERROR(Expect(found[8], Tensor::Scalar<float>(14)));
    }
    return OkStatus();
  }));
}

/// A branch that is not taken does not take what comes after it along.
TEST(CollectiveOpsTest, BranchesThatAreNotTaken) {
  ExpectOk(RunRanks(2, [](Communicator& ranks) -> Status {
    TENON_ASSIGN_OR_RETURN(
        const std::vector<Tensor> found, RunGraph(&ranks, [](int) {
          const Output x = Const(1.f);
          const Output chosen = Cond(
              HorovodSize() < 1, [&] { return HorovodAllreduce(x, {.name = "a"}); },
              [&] { return x * 5.f; });
          return std::vector<Output>{chosen, HorovodAllreduce(chosen, {.name = "b"}),
                                     HorovodAllreduce(x * 3.f, {.name = "c"})};
        }));
    TENON_RETURN_IF_ERROR(Expect(found[0], Tensor::Scalar<float>(5)));
    TENON_RETURN_IF_ERROR(Expect(found[1], Tensor::Scalar<float>(10)));
    return Expect(found[2], Tensor::Scalar<float>(6));
  }));
}

/// Several collectives in a branch, beside others that need nothing of it and one that does; both
/// branches, many times, as another order on a rank would be found by chance alone.
TEST(CollectiveOpsTest, OneOrderInBranches) {
  for (const bool taken : {true, false}) {
    ExpectOk(RunRanks(3, [&](Communicator& ranks) -> Status {
      for (int i = 0; i < 20; ++i) {
        TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> found, RunGraph(&ranks, [&](int rank) {
                                 const auto sum_of = [](const Output& x) {
                                   return HorovodAllreduce(x, {.reduce_op = 1});
                                 };
                                 const Output x = Const(static_cast<float>(rank + 1));
                                 std::vector<Output> outside;
                                 for (int k = 0; k < 4; ++k)
                                   outside.push_back(sum_of(x * Const(1.f + k)));
                                 const Output chosen = Cond(
                                     HorovodSize() > (taken ? 0 : 9),
                                     [&] {
                                       std::vector<Output> parts;
                                       for (int k = 0; k < 6; ++k)
                                         parts.push_back(sum_of(x + Const(1.f * k)));
                                       return AddN(parts);
                                     },
                                     [&] { return sum_of(sum_of(x)); });
                                 outside.push_back(sum_of(chosen));
                                 return std::vector<Output>{AddN(outside)};
                               }));
        // 6 (1 + 2 + 3 + 4), and three times what the branch gives on each rank.
        const float branch = taken ? 6 * 6 + 3 * 15 : 18;
        TENON_RETURN_IF_ERROR(Expect(found[0], Tensor::Scalar<float>(60 + 3 * branch)));
      }
      return OkStatus();
    }));
  }
}

/// Two Conds that need nothing of each other, with collectives in all branches, beside others.
TEST(CollectiveOpsTest, OneOrderOfConds) {
  ExpectOk(RunRanks(2, [&](Communicator& ranks) -> Status {
    for (int i = 0; i < 20; ++i) {
      TENON_ASSIGN_OR_RETURN(
          const std::vector<Tensor> found, RunGraph(&ranks, [&](int rank) {
            const Output x = Const(static_cast<float>(rank + 1));
            const auto sums = [&](int count) {
              std::vector<Output> parts;
              for (int k = 0; k < count; ++k) parts.push_back(HorovodAllreduce(x + Const(1.f * k)));
              return AddN(parts);
            };
            std::vector<Output> all;
            for (const bool taken : {true, false, true}) {
              const Output size = HorovodSize() + Const(taken ? 0 : -9);
              all.push_back(Cond(
                  size > 0, [&] { return sums(3); }, [&] { return sums(2); }));
              all.push_back(HorovodAllreduce(x));
            }
            // A Cond that needs what another one gives.
            all.push_back(Cond(
                all[0] > 0.f, [&] { return HorovodAllreduce(all[2]); }, [&] { return x; }));
            return all;
          }));
      const float wanted[] = {15, 3, 8, 3, 15, 3, 16};
      for (size_t k = 0; k < 7; ++k) {
        TENON_RETURN_IF_ERROR(Expect(found[k], Tensor::Scalar<float>(wanted[k])));
      }
    }
    return OkStatus();
  }));
}

/// Loops that need nothing of each other, whose iterations have collectives that need nothing of
/// those before, some of them in a branch; beside others.
TEST(CollectiveOpsTest, OneOrderInLoops) {
  ExpectOk(RunRanks(2, [&](Communicator& ranks) -> Status {
    for (int round = 0; round < 10; ++round) {
      TENON_ASSIGN_OR_RETURN(
          const std::vector<Tensor> found, RunGraph(&ranks, [&](int rank) {
            const Output x = Const(static_cast<float>(rank + 1));
            const auto loop = [&](float factor) {
              return WhileLoop(
                  {Const(0), Const(0.f)}, [](const auto& v) { return v[0] < 12; },
                  [&](const auto& v) {
                    const Output own = x * Const(factor);
                    const Output odd = Cond(
                        Equal(FloorMod(v[0], Const(2)), Const(1)),
                        [&] { return HorovodAllreduce(own) + HorovodAllreduce(own * 2.f); },
                        [&] { return own * 0.f; });
                    const Output sum =
                        HorovodAllreduce(own * Cast(v[0], DType::kFloat)) + HorovodAllreduce(own);
                    return std::vector<Output>{v[0] + 1, v[1] + odd + sum};
                  });
            };
            const auto first = loop(1), second = loop(10);
            return std::vector<Output>{first[1],
                                       HorovodAllreduce(x),
                                       second[1],
                                       HorovodAllreduce(first[1]),
                                       HorovodAllreduce(x * 5.f),
                                       Gradients({first[1]}, {x})[0]};
          }));
      // An odd iteration adds 3 (1 + 2), each one 3 i and 3.
      const float loop = 6 * 9 + 3 * 66 + 12 * 3;
      const float wanted[] = {loop, 3, 10 * loop, 2 * loop, 15, 2 * loop / 3};
      for (size_t k = 0; k < 6; ++k) {
        TENON_RETURN_IF_ERROR(Expect(found[k], Tensor::Scalar<float>(wanted[k])));
      }
    }
    return OkStatus();
  }));
}

TEST(CollectiveOpsTest, GradientsAreSumsToo) {
  ExpectOk(RunRanks(2, [](Communicator& ranks) -> Status {
    TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> found, RunGraph(&ranks, [](int rank) {
                             const Output x = Const(2.f + rank);
                             const Output y = HorovodAllreduce(x) * (3.f + rank);
                             return std::vector<Output>{Gradients({y}, {x})[0]};
                           }));
    return Expect(found[0], Tensor::Scalar<float>(7));  // 3 + 4
  }));
}

TEST(CollectiveOpsTest, GradientsOfRowsAndOfOneForAll) {
  ExpectOk(RunRanks(3, [](Communicator& ranks) -> Status {
    TENON_ASSIGN_OR_RETURN(
        const std::vector<Tensor> found, RunGraph(&ranks, [](int rank) {
          // Rank r has r + 1 rows; rank s uses row i with the weight (s + 1) i.
          const Output x = Fill(Const(std::vector<int32_t>{rank + 1}), 1.f);
          const Output weights = Const(std::vector<float>{0, 1, 2, 3, 4, 5}) * (1.f + rank);
          const Output rows = HorovodAllgather(x) * weights;
          const Output y = Const(1.f + rank);
          const Output same = HorovodBroadcast(y, 1) * (1.f + rank);
          return std::vector<Output>{Gradients({rows}, {x})[0], Gradients({same}, {y})[0]};
        }));
    const std::vector<std::vector<float>> wanted = {{0}, {6, 12}, {18, 24, 30}};
    TENON_RETURN_IF_ERROR(
        Expect(found[0], Tensor::Vector(wanted[static_cast<size_t>(ranks.rank())])));
    return Expect(found[1], Tensor::Scalar<float>(ranks.rank() == 1 ? 6 : 0));
  }));
}

TEST(CollectiveOpsTest, WhoIsNoRankIsToldSo) {
  const auto found =
      RunGraph(nullptr, [](int) { return std::vector<Output>{HorovodAllreduce(Const(1.f))}; });
  EXPECT_EQ(found.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(found.status())), HasSubstr("this process is no rank of a job"));
}

TEST(CollectiveOpsTest, AloneASumIsTheValue) {
  ExpectOk(RunRanks(1, [](Communicator& ranks) -> Status {
    TENON_ASSIGN_OR_RETURN(
        const std::vector<Tensor> found, RunGraph(&ranks, [](int) {
          const Output x = Const(std::vector<float>{4, 5});
          return std::vector<Output>{HorovodAllreduce(x, {.reduce_op = 0}), HorovodAllgather(x)};
        }));
    TENON_RETURN_IF_ERROR(Expect(found[0], Tensor::Vector<float>({4, 5})));
    return Expect(found[1], Tensor::Vector<float>({4, 5}));
  }));
}

/// A rank alone, which counts how its collectives come.
class CountingRank final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  void Start(Collective what, Done done) override {
    ++started;
    done(CollectiveResult{std::move(what.data), {}});
  }
  StatusOr<CollectiveResult> Run(Collective what) override {
    ran_here = ran_here && std::this_thread::get_id() == caller;
    ++ran;
    return CollectiveResult{std::move(what.data), {}};
  }
  void Abort(const Status&) override {}
  Status BeginAnew(const Status& why) override { return why; }

  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> started = 0, ran = 0;
  std::atomic<bool> ran_here = true;
};

TEST(CollectiveOpsTest, TheCallersThreadDoesWhatTheStepHasToWaitFor) {
  CountingRank rank;
  EXPECT_OK(RunGraph(&rank, [](int) {
    const DeviceScope one("/cpu:0");
    const Output first = HorovodAllreduce(Const(1.f));
    return std::vector<Output>{HorovodAllreduce(first + 1.f)};
  }));
  EXPECT_EQ(rank.ran, 2);
  EXPECT_EQ(rank.started, 0);
  EXPECT_TRUE(rank.ran_here);
}

/// A value is taken from a queue as well, and comes there after the sum.
TEST(CollectiveOpsTest, AStepGoesOnBesideItsCollectives) {
  CountingRank rank;
  EXPECT_OK(RunGraph(&rank, [](int) {
    const Output queue = FIFOQueueV2({DType::kFloat});
    const Output taken = QueueDequeueV2(queue, {DType::kFloat})[0];
    const Output sum = HorovodAllreduce(Const(1.f));
    const ControlDependencies after({QueueEnqueueV2(queue, {sum})});
    return std::vector<Output>{taken, Identity(sum)};
  }));
  EXPECT_EQ(rank.started, 1);
  EXPECT_EQ(rank.ran, 0);
}

/// A step that times out on one rank ends the step of the others.
TEST(CollectiveOpsTest, ACancelledStepEndsTheOthers) {
  std::atomic<bool> timed_out{false};
  Clock::Time late;
  const auto ends = RunRanks(2, [&](Communicator& ranks) -> Status {
    if (ranks.rank() == 1) {
      while (!timed_out) MachineClock().SleepFor(std::chrono::milliseconds(10));
      late = MachineClock().Now();
      return ranks.Run({.kind = Collective::Kind::kBarrier, .name = "late"}).status();
    }
    const Status end =
        RunGraph(
            &ranks, [](int) { return std::vector<Output>{HorovodAllreduce(Const(1.f))}; },
            std::chrono::milliseconds(300))
            .status();
    timed_out = true;
    return end;
  });
  EXPECT_EQ(ends[0].code(), StatusCode::kDeadlineExceeded) << ends[0];
  EXPECT_FALSE(ends[1].ok());
  // The ranks' limit is 30 s.
  EXPECT_LT(MachineClock().Now() - late, std::chrono::seconds(15));
}

TEST(CollectiveOpsTest, WrongUses) {
  const auto error = [](const std::function<Output()>& build) {
    std::string text;
    RunRanks(1, [&](Communicator& ranks) {
      text = std::string(
          Message(RunGraph(&ranks, [&](int) { return std::vector<Output>{build()}; }).status()));
      return OkStatus();
    });
    return text;
  };
  EXPECT_THAT(error([] { return HorovodAllreduce(Const(1.f), {.reduce_op = 2}); }),
              HasSubstr("reduce_op must be 0, 1, 3, 4 or 5, found 2"));
  EXPECT_THAT(error([] { return HorovodAllreduce(Const(1.f), {.process_set_id = 3}); }),
              HasSubstr("process sets are not supported, found number 3"));
  EXPECT_THAT(error([] { return HorovodBroadcast(Const(1.f), 1); }),
              HasSubstr("there is no rank 1 among 1"));
  EXPECT_THAT(error([] { return HorovodAllgather(Placeholder(DType::kFloat)); }),
              HasSubstr("Placeholder"));
  EXPECT_THAT(error([] {
                return HorovodAlltoall(Const(std::vector<float>{1, 2}),
                                       Const(std::vector<int32_t>{1}))
                    .output;
              }),
              HasSubstr("the splits [1] do not deal 2 rows to 1 ranks"));
}

}  // namespace
}  // namespace tenon
