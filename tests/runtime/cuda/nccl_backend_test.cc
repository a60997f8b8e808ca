// SPDX-License-Identifier: Apache-2.0
//
// Collectives by NCCL, on fakes of it and of CUDA's runtime: what is queued, what is waited for,
// and how it ends when something fails.
#include "runtime/cuda/nccl_backend.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "core/base/strings.h"
#include "core/tensor/tensor.h"
#include "runtime/device/machine_clock.h"
#include "tests/runtime/cuda/fake_nccl.h"
#include "tests/runtime/cuda/fake_runtime.h"
#include "tests/testing/ranks.h"
#include "tests/testing/status_matchers.h"

namespace tenon::cuda {
namespace {

using ::testing::HasSubstr;
using testing::IsError;
using testing::MemoryStore;

constexpr std::chrono::seconds kLong{30};
constexpr std::chrono::milliseconds kShort{300};

/// The GPUs of the ranks, which take turns.
CudaDriver& GpuOf(int rank) {
  static auto* const drivers =
      new std::vector<CudaDriver*>{CudaDriver::Make(0, "first", {}).value().release(),
                                   CudaDriver::Make(1, "second", {}).value().release()};
  return *(*drivers)[static_cast<size_t>(rank) % drivers->size()];
}

/// A rank with memory of its GPU.
struct Rank {
  CollectiveBackend& backend;
  int number, size;
  CudaDriver& gpu;

  template <typename T>
  Tensor OnGpu(const std::vector<T>& values) const {
    Tensor t =
        Tensor::Allocate(gpu.memory(), kDTypeOf<T>, {static_cast<int64_t>(values.size())}).value();
    std::copy(values.begin(), values.end(), static_cast<T*>(t.raw_data()));
    return t;
  }
  CollectiveCall Call(std::chrono::milliseconds limit = kLong) const {
    return {.tag = 7, .limit = limit};
  }
};

template <typename T>
std::vector<T> ValuesOf(const Tensor& t) {
  const auto* const values = static_cast<const T*>(t.raw_data());
  return {values, values + t.num_elements()};
}

template <typename T>
Status Expect(const Tensor& found, const std::vector<T>& wanted) {
  if (ValuesOf<T>(found) == wanted) return OkStatus();
  return Internal("found ", Join(ValuesOf<T>(found), ", "), ", wanted ", Join(wanted, ", "));
}

/// How `body` ends on each of so many ranks.
std::vector<Status> RunByNccl(int size, const std::function<Status(const Rank&)>& body,
                              std::chrono::milliseconds start_limit = kLong, int missing = -1) {
  MemoryStore store;
  std::vector<Status> ends(static_cast<size_t>(size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    if (rank == missing) continue;
    threads.emplace_back([&, rank] {
      auto joined =
          JoinByNccl({.rank = rank, .size = size, .store = &store, .start_limit = start_limit},
                     GpuOf(rank), fake::FakeNccl());
      Status& end = ends[static_cast<size_t>(rank)];
      end = joined.ok() ? body({**joined, rank, size, GpuOf(rank)}) : joined.status();
    });
  }
  threads.clear();
  return ends;
}

class NcclBackendTest : public ::testing::Test {
 protected:
  ~NcclBackendTest() override {
    fake::FailConnections(NcclResult::kSuccess);
    fake::FailJoining(NcclResult::kSuccess);
    EXPECT_EQ(fake::OpenCommunicators(), 0);
  }
  void ExpectOk(const std::vector<Status>& ends) const {
    for (const Status& end : ends) EXPECT_TRUE(end.ok()) << end;
    EXPECT_EQ(fake::AbortedCommunicators(), aborted_);
  }
  const int aborted_ = fake::AbortedCommunicators();
};

TEST_F(NcclBackendTest, AllReduce) {
  for (const int size : {1, 2, 4}) {
    ExpectOk(RunByNccl(size, [](const Rank& rank) -> Status {
      const auto n = static_cast<float>(rank.size);
      const auto reduce = [&](Tensor data, Reduction reduction) {
        return rank.backend.AllReduce(data.raw_data(), data.num_elements(), data.dtype(), reduction,
                                      rank.Call());
      };
      Tensor x = rank.OnGpu<float>({1, static_cast<float>(rank.number)});
      TENON_RETURN_IF_ERROR(reduce(x, Reduction::kSum));
      TENON_RETURN_IF_ERROR(Expect<float>(x, {n, n * (n - 1) / 2}));
      Tensor least = rank.OnGpu<int64_t>({rank.number - 5});
      TENON_RETURN_IF_ERROR(reduce(least, Reduction::kMin));
      TENON_RETURN_IF_ERROR(Expect<int64_t>(least, {-5}));
      Tensor greatest = rank.OnGpu<uint8_t>({static_cast<uint8_t>(200 + rank.number)});
      TENON_RETURN_IF_ERROR(reduce(greatest, Reduction::kMax));
      TENON_RETURN_IF_ERROR(Expect<uint8_t>(greatest, {static_cast<uint8_t>(199 + rank.size)}));
      Tensor product = rank.OnGpu<double>({rank.number + 1.0});
      TENON_RETURN_IF_ERROR(reduce(product, Reduction::kProduct));
      TENON_RETURN_IF_ERROR(Expect<double>(product, {std::tgamma(rank.size + 1.0)}));
      TENON_RETURN_IF_ERROR(reduce(rank.OnGpu<float>({}), Reduction::kSum));
      const Status refused = reduce(rank.OnGpu<int16_t>({1}), Reduction::kSum);
      if (refused.code() != StatusCode::kUnimplemented) return Internal(refused.ToString());
      return rank.backend.Barrier(rank.Call());
    }));
  }
}

TEST_F(NcclBackendTest, RowsOfDifferentNumbers) {
  ExpectOk(RunByNccl(3, [](const Rank& rank) -> Status {
    // The second rank has nothing, and the last one two.
    const std::vector<int64_t> sizes = {4, 0, 8};
    std::vector<int32_t> own(static_cast<size_t>(sizes[static_cast<size_t>(rank.number)]) / 4);
    std::iota(own.begin(), own.end(), 10 * rank.number);
    Tensor in = rank.OnGpu(own), out = rank.OnGpu<int32_t>({0, 0, 0});
    TENON_RETURN_IF_ERROR(
        rank.backend.AllGather(in.raw_data(), out.raw_data(), sizes, rank.Call()));
    TENON_RETURN_IF_ERROR(Expect<int32_t>(out, {0, 20, 21}));
    Tensor data = rank.OnGpu<int32_t>({rank.number, 5});
    TENON_RETURN_IF_ERROR(rank.backend.Broadcast(data.raw_data(), 8, 2, rank.Call()));
    return Expect<int32_t>(data, {2, 5});
  }));
}

TEST_F(NcclBackendTest, AllToAll) {
  ExpectOk(RunByNccl(2, [](const Rank& rank) -> Status {
    // The first rank keeps one and gives two; the second one gives one, and keeps none.
    const bool is_first = rank.number == 0;
    Tensor in = is_first ? rank.OnGpu<int32_t>({1, 2, 3}) : rank.OnGpu<int32_t>({4});
    Tensor out = rank.OnGpu<int32_t>({0, 0});
    const std::vector<int64_t> sent =
        is_first ? std::vector<int64_t>{4, 8} : std::vector<int64_t>{4, 0};
    const std::vector<int64_t> received =
        is_first ? std::vector<int64_t>{4, 4} : std::vector<int64_t>{8, 0};
    TENON_RETURN_IF_ERROR(
        rank.backend.AllToAll(in.raw_data(), sent, out.raw_data(), received, rank.Call()));
    return is_first ? Expect<int32_t>(out, {1, 4}) : Expect<int32_t>(out, {2, 3});
  }));
}

TEST_F(NcclBackendTest, KernelsThatUseTheResultsMemoryComeFirst) {
  ExpectOk(RunByNccl(1, [](const Rank& rank) -> Status {
    Tensor in = rank.OnGpu<int32_t>({1, 2}), out = rank.OnGpu<int32_t>({0, 0});
    fake::Gate kernel(static_cast<cudaStream_t>(rank.gpu.Native(Stream::kCompute)));
    bool opened = false;
    std::jthread opens([&] {
      MachineClock().SleepFor(std::chrono::milliseconds(20));
      opened = true;
      kernel.Open();
    });
    // A sum in place has its memory for itself, and waits for no kernel.
    TENON_RETURN_IF_ERROR(
        rank.backend.AllReduce(in.raw_data(), 2, DType::kInt32, Reduction::kSum, rank.Call()));
    TENON_RETURN_IF_ERROR(rank.backend.AllGather(in.raw_data(), out.raw_data(), {8}, rank.Call()));
    opens.join();
    if (!opened) return Internal("it has not waited");
    return Expect<int32_t>(out, {1, 2});
  }));
}

TEST_F(NcclBackendTest, WhoDoesNotComeEndsTheOthersAtTheirLimit) {
  std::atomic<int> at_limit{0};
  for (const Status& end : RunByNccl(3, [&](const Rank& rank) -> Status {
         if (rank.number == 1) {  // it stays, and does nothing
           MachineClock().SleepFor(3 * kShort);
           return OkStatus();
         }
         Tensor x = rank.OnGpu<float>({1});
         const Status late = rank.backend.AllReduce(x.raw_data(), 1, DType::kFloat, Reduction::kSum,
                                                    rank.Call(kShort));
         // The second one may hear first that the other has given up.
         if (late.code() == StatusCode::kDeadlineExceeded) {
           ++at_limit;
         } else if (late.code() != StatusCode::kUnavailable) {
           return Internal(late.ToString());
         }
         const Status next = rank.backend.Barrier(rank.Call());
         return next.code() == StatusCode::kUnavailable ? OkStatus() : Internal(next.ToString());
       })) {
    EXPECT_TRUE(end.ok()) << end;
  }
  EXPECT_GE(at_limit, 1);
}

TEST_F(NcclBackendTest, WhoNeverJoins) {
  const std::vector<Status> ends = RunByNccl(
      3, [](const Rank&) { return OkStatus(); }, kShort, /*missing=*/2);
  for (const int rank : {0, 1}) {
    EXPECT_THAT(ends[static_cast<size_t>(rank)],
                IsError(StatusCode::kDeadlineExceeded, "not all of 3 ranks have joined by NCCL"));
  }
  const std::vector<Status> without_first = RunByNccl(
      2, [](const Rank&) { return OkStatus(); }, kShort, /*missing=*/0);
  EXPECT_THAT(without_first[1], IsError(StatusCode::kDeadlineExceeded, "rank 0"));
}

TEST_F(NcclBackendTest, ConnectionsThatFail) {
  for (const Status& end : RunByNccl(2, [](const Rank& rank) -> Status {
         TENON_RETURN_IF_ERROR(rank.backend.Barrier(rank.Call()));
         if (rank.number == 1) {
           MachineClock().SleepFor(kShort);
           fake::FailConnections(NcclResult::kRemoteError);
         }
         Tensor x = rank.OnGpu<float>({1});
         return rank.backend.AllReduce(x.raw_data(), 1, DType::kFloat, Reduction::kSum,
                                       rank.Call());
       })) {
    EXPECT_THAT(end, IsError(StatusCode::kUnavailable, "remote process exited: the last words"));
  }
}

TEST_F(NcclBackendTest, OneGpuForTwoRanks) {
  fake::FailJoining(NcclResult::kInvalidUsage);
  const std::vector<Status> ends = RunByNccl(2, [](const Rank&) { return OkStatus(); });
  EXPECT_THAT(ends[0], IsError(StatusCode::kFailedPrecondition, "invalid usage: the last words"));
  EXPECT_THAT(ends[1], IsError(StatusCode::kUnavailable, "rank 0 cannot be joined by NCCL"));
}

TEST_F(NcclBackendTest, AbortEndsACall) {
  const std::vector<Status> ends = RunByNccl(2, [](const Rank& rank) -> Status {
    if (rank.number == 1) return rank.backend.Barrier(rank.Call());
    std::jthread aborts([&] {
      MachineClock().SleepFor(std::chrono::milliseconds(20));
      rank.backend.Abort(/*has_failed=*/true);
    });
    Tensor x = rank.OnGpu<float>({1});
    TENON_RETURN_IF_ERROR(rank.backend.Barrier(rank.Call()));
    return rank.backend.AllReduce(x.raw_data(), 1, DType::kFloat, Reduction::kSum, rank.Call());
  });
  EXPECT_THAT(ends[0], IsError(StatusCode::kUnavailable, "let go of each other"));
  EXPECT_TRUE(ends[1].ok()) << ends[1];
}

/// Only where there is one: what of its interface needs no GPU.
TEST(NcclTest, TheLibraryOfThisHost) {
  void* const library = dlopen("libnccl.so.2", RTLD_NOW);
  if (library == nullptr) GTEST_SKIP() << dlerror();
  const StatusOr<Nccl> found = LoadNccl([&](const char* symbol) -> StatusOr<void*> {
    void* const address = dlsym(library, symbol);
    if (address == nullptr) return NotFound(dlerror());
    return address;
  });
  ASSERT_TRUE(found.ok()) << found.status();
  const Nccl& nccl = *found;
  int version = 0;
  EXPECT_EQ(nccl.GetVersion(&version), NcclResult::kSuccess);
  EXPECT_GE(version, 21400);
  NcclId first = {}, second = {};
  EXPECT_EQ(nccl.GetUniqueId(&first), NcclResult::kSuccess);
  EXPECT_EQ(nccl.GetUniqueId(&second), NcclResult::kSuccess);
  EXPECT_NE(std::string(first.bytes, sizeof(first.bytes)),
            std::string(second.bytes, sizeof(second.bytes)));
  EXPECT_THAT(nccl.GetErrorString(NcclResult::kInvalidUsage), HasSubstr("invalid usage"));
}

}  // namespace
}  // namespace tenon::cuda
