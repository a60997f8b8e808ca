// SPDX-License-Identifier: Apache-2.0
// One of the ranks that an mpirun starts, for mpi_test.py: collective_ranks LIBRARY FOLDER SCENE.
// The ranks find each other in the folder, and each leaves there how it ended (FOLDER/end.RANK).
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <thread>

#include "core/base/half.h"
#include "core/base/strings.h"
#include "distributed/resolver/ranked_tasks.h"
#include "ops/array/array_ops.h"
#include "ops/collectives/collectives_ops.h"
#include "ops/register.h"
#include "runtime/collectives/collective_queue.h"
#include "runtime/collectives/reductions.h"
#include "runtime/device/machine_clock.h"
#include "runtime/session/local_session.h"

namespace tenon {
namespace {

using Kind = Collective::Kind;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return file ? text.str() : "";
}

/// A file a key, which appears as a whole.
class FolderStore final : public KeyValueStore {
 public:
  FolderStore(std::string folder, int rank) : folder_(std::move(folder)), rank_(rank) {}

  Status Put(const std::string& key, const std::string& value,
             std::chrono::milliseconds limit) override {
    const std::string there = ReadAll(PathOf(key));
    if (!there.empty() && there != value) return AlreadyExists(key);
    return Replace(key, value, limit);
  }
  Status Replace(const std::string& key, const std::string& value,
                 std::chrono::milliseconds) override {
    const std::string partial = StrCat(PathOf(key), ".of.", rank_);
    std::ofstream(partial, std::ios::binary) << value;
    std::rename(partial.c_str(), PathOf(key).c_str());
    return OkStatus();
  }
  StatusOr<std::string> Get(const std::string& key, std::chrono::milliseconds limit) override {
    const Clock::Time end = MachineClock().Now() + limit;
    while (true) {
      std::string value = ReadAll(PathOf(key));
      if (!value.empty()) return value;
      if (MachineClock().Now() >= end) {
        return DeadlineExceeded("it has not come within ", limit.count(), " ms");
      }
      MachineClock().SleepFor(std::chrono::milliseconds(2));
    }
  }

 private:
  std::string PathOf(std::string key) const {
    std::replace(key.begin(), key.end(), '/', '.');
    return StrCat(folder_, "/", key);
  }

  const std::string folder_;
  const int rank_;
};

struct Job {
  Communicator& ranks;
  int rank, size;
};

Collective SumOf(const std::string& name, Tensor data, Reduction reduction = Reduction::kSum) {
  return {.kind = Kind::kAllReduce, .name = name, .data = std::move(data), .reduction = reduction};
}

Status RunSum(Job& job, const std::string& name) {
  return job.ranks.Run(SumOf(name, Tensor::Scalar<float>(1))).status();
}

Collective WithRows(Kind kind, Tensor data) {
  Collective what{.kind = kind, .name = "rows", .data = data};
  what.allocate = [dtype = data.dtype()](const Shape& shape) {
    return Tensor::Allocate(CpuAllocator(), dtype, shape);
  };
  return what;
}

/// Bytes that each rank can compute for any other one.
Tensor Filled(DType dtype, const Shape& shape, int rank) {
  Tensor data(dtype, shape);
  auto* const bytes = static_cast<unsigned char*>(data.raw_data());
  uint32_t state = 12345u + static_cast<uint32_t>(rank) * 7919u;
  for (size_t i = 0; i < data.num_bytes(); ++i) {
    state = state * 1664525u + 1013904223u;
    // Floats of any width stay small and finite: the upper byte of each is one of a few.
    const bool is_upper = i % SizeOf(dtype) == SizeOf(dtype) - 1;
    bytes[i] = static_cast<unsigned char>(is_upper && SizeOf(dtype) > 1 ? 0x3c + (state >> 31)
                                                                        : state >> 24);
  }
  return data;
}

bool AreSame(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.raw_data(), b.raw_data(), a.num_bytes()) == 0;
}

Status Sums(Job& job) {
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16,
                            DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16,
                            DType::kInt32, DType::kUInt32, DType::kInt64, DType::kUInt64}) {
    for (const Reduction reduction : {Reduction::kSum, Reduction::kMin, Reduction::kMax,
                                      Reduction::kProduct, Reduction::kMean}) {
      if (reduction == Reduction::kMean && !IsFloating(dtype)) continue;
      for (const int64_t count : {0, 1, 5, 31, 63, 249, 1000, 65537}) {
        Tensor wanted = Filled(dtype, {count}, 0);
        for (int r = 1; r < job.size; ++r) {
          const Tensor next = Filled(dtype, {count}, r);
          ReductionOf(dtype, reduction)(wanted.raw_data(), wanted.raw_data(), next.raw_data(),
                                        static_cast<size_t>(count));
        }
        FinishReduction(reduction, dtype, wanted.raw_data(), static_cast<size_t>(count), job.size);
        TENON_ASSIGN_OR_RETURN(
            const CollectiveResult found,
            job.ranks.Run(SumOf("x", Filled(dtype, {count}, job.rank), reduction)));
        if (!AreSame(found.data, wanted)) {
          return Internal("another sum of ", ToString(dtype), " by ", static_cast<int>(reduction),
                          " of ", count);
        }
      }
    }
  }
  // Parts of 1 MiB a rank, and a rest that the ranks do not divide.
  const int64_t many = 3 * job.size * (int64_t{1} << 18) + 7;
  Tensor ones(DType::kFloat, {many});
  for (int64_t i = 0; i < many; ++i)
    ones.data<float>()[i] = static_cast<float>(i % 1000 + job.rank);
  TENON_ASSIGN_OR_RETURN(const CollectiveResult found, job.ranks.Run(SumOf("many", ones)));
  for (int64_t i = 0; i < many; ++i) {
    const auto wanted = static_cast<float>(job.size * (i % 1000) + job.size * (job.size - 1) / 2);
    if (found.data.data<float>()[i] != wanted) return Internal("another sum at ", i);
  }
  float nan = job.rank == 0 ? std::numeric_limits<float>::quiet_NaN() : 1.f;
  TENON_ASSIGN_OR_RETURN(const CollectiveResult least,
                         job.ranks.Run(SumOf("nan", Tensor::Scalar(nan), Reduction::kMin)));
  return std::isnan(least.data.scalar<float>()) ? OkStatus() : Internal("the NaN is gone");
}

Status Broadcasts(Job& job) {
  for (int root = 0; root < job.size; ++root) {
    for (const int64_t count : {0, 1, 31, 32, 5000, 3000000}) {
      TENON_ASSIGN_OR_RETURN(const CollectiveResult found,
                             job.ranks.Run({.kind = Kind::kBroadcast,
                                            .name = "x",
                                            .data = Filled(DType::kInt64, {count}, job.rank),
                                            .root = root}));
      if (!AreSame(found.data, Filled(DType::kInt64, {count}, root))) {
        return Internal("another tensor from ", root, " of ", count);
      }
    }
  }
  return OkStatus();
}

/// Rows of 5 floats; `scale` makes small messages and large ones.
Status Gathers(Job& job) {
  for (const int64_t scale : {0, 1, 4, 1000, 50000}) {
    const auto rows_of = [&](int r) { return scale * (r == 1 ? 0 : r + 1); };
    TENON_ASSIGN_OR_RETURN(
        const CollectiveResult found,
        job.ranks.Run(
            WithRows(Kind::kAllGather, Filled(DType::kFloat, {rows_of(job.rank), 5}, job.rank))));
    const auto* at = static_cast<const char*>(found.data.raw_data());
    for (int r = 0; r < job.size; ++r) {
      const Tensor wanted = Filled(DType::kFloat, {rows_of(r), 5}, r);
      if (std::memcmp(at, wanted.raw_data(), wanted.num_bytes()) != 0) {
        return Internal("other rows of ", r, " by ", scale);
      }
      at += wanted.num_bytes();
    }
  }
  return OkStatus();
}

Status Exchanges(Job& job) {
  for (const int64_t scale : {0, 1, 1000, 70000}) {
    // Rank r has r + d rows for rank d, each 10 r + d.
    Collective what;
    std::vector<int64_t> splits, from;
    std::vector<int32_t> values, wanted;
    for (int d = 0; d < job.size; ++d) {
      splits.push_back(scale * (job.rank + d));
      from.push_back(scale * (job.rank + d));
      values.insert(values.end(), static_cast<size_t>(splits.back()), 10 * job.rank + d);
      wanted.insert(wanted.end(), static_cast<size_t>(from.back()), 10 * d + job.rank);
    }
    what = WithRows(Kind::kAllToAll, Tensor::Vector(values));
    what.rows_to = splits;
    TENON_ASSIGN_OR_RETURN(const CollectiveResult found, job.ranks.Run(std::move(what)));
    if (!found.data.Equals(Tensor::Vector(wanted)) || found.rows_from != from) {
      return Internal("other rows by ", scale);
    }
  }
  return OkStatus();
}

Status Values(Job& job) {
  TENON_RETURN_IF_ERROR(Sums(job));
  TENON_RETURN_IF_ERROR(Broadcasts(job));
  TENON_RETURN_IF_ERROR(Gathers(job));
  TENON_RETURN_IF_ERROR(Exchanges(job));
  for (int i = 0; i < 1000; ++i) {
    TENON_RETURN_IF_ERROR(job.ranks.Run({.kind = Kind::kBarrier, .name = "all"}).status());
  }
  return OkStatus();
}

/// Messages beyond the ints of MPI: 3 GiB in all.
Status Large(Job& job) {
  const int64_t each = (int64_t{3} << 30) / job.size;
  Tensor own(DType::kUInt8, {each});
  std::memset(own.raw_data(), job.rank + 1, static_cast<size_t>(each));
  TENON_ASSIGN_OR_RETURN(CollectiveResult found, job.ranks.Run(WithRows(Kind::kAllGather, own)));
  own = Tensor();
  for (int r = 0; r < job.size; ++r) {
    const auto* const begin = found.data.data<uint8_t>() + r * each;
    if (std::count(begin, begin + each, r + 1) != each) return Internal("other rows of ", r);
  }
  Collective what = WithRows(Kind::kAllToAll, std::move(found.data));
  what.rows_to.assign(static_cast<size_t>(job.size), 0);
  const int next = (job.rank + 1) % job.size;
  what.rows_to[static_cast<size_t>(next)] = each * job.size;
  TENON_ASSIGN_OR_RETURN(found, job.ranks.Run(std::move(what)));
  const auto* const all = found.data.data<uint8_t>();
  for (int r = 0; r < job.size; ++r) {
    if (std::count(all + r * each, all + (r + 1) * each, r + 1) != each) return Internal("others");
  }
  return job.ranks
      .Run({.kind = Kind::kBroadcast, .name = "large", .data = std::move(found.data), .root = 1})
      .status();
}

/// Rank 1 does another thing.
Status Different(Job& job) {
  TENON_RETURN_IF_ERROR(RunSum(job, "first"));
  if (job.rank == 1) {
    return job.ranks
        .Run({.kind = Kind::kBroadcast, .name = "x", .data = Tensor::Zeros(DType::kFloat, {3})})
        .status();
  }
  return job.ranks.Run(SumOf("x", Tensor::Zeros(DType::kFloat, {2}))).status();
}

Status OtherShape(Job& job) {
  return job.ranks.Run(SumOf("x", Tensor::Zeros(DType::kFloat, {200000 + job.rank}))).status();
}

Status Late(Job& job) {
  TENON_RETURN_IF_ERROR(RunSum(job, "first"));
  if (job.rank == job.size - 1) MachineClock().SleepFor(std::chrono::milliseconds(4000));
  return RunSum(job, "loss");
}

Status Leaves(Job& job) {
  TENON_RETURN_IF_ERROR(RunSum(job, "first"));
  if (job.rank == 1) return OkStatus();
  return RunSum(job, "second");
}

Status Aborts(Job& job) {
  if (job.rank == 0) {
    std::jthread end([&] {
      MachineClock().SleepFor(std::chrono::milliseconds(300));
      job.ranks.Abort(InvalidArgument("row 7 has 3 fields"));
    });
    return RunSum(job, "never");
  }
  if (job.rank == 1) MachineClock().SleepFor(std::chrono::milliseconds(1200));
  return RunSum(job, "never");
}

/// Sums that go on until some rank gives up in the midst of them.
Status AbortsAtWork(Job& job) {
  std::jthread end;
  if (job.rank == 0) {
    end = std::jthread([&] {
      MachineClock().SleepFor(std::chrono::milliseconds(500));
      job.ranks.Abort(Cancelled("the user has had enough"));
    });
  }
  while (true) {
    TENON_RETURN_IF_ERROR(
        job.ranks.Run(SumOf("gradients", Tensor::Zeros(DType::kFloat, {3000000}))).status());
  }
}

/// Epochs of ranks that have different numbers of batches.
Status Anew(Job& job) {
  for (int epoch = 0; epoch < 5; ++epoch) {
    const int batches = 3 + (job.rank + epoch) % job.size;
    Status end;
    int made = 0;
    for (int i = 0; end.ok(); ++i) {
      if (i == batches) {
        end = OutOfRange("no more rows");
        break;
      }
      Tensor data = Tensor::Zeros(DType::kFloat, {i % 2 == 0 ? 1 : 100000});
      end = job.ranks.Run(SumOf(StrCat("step", i), data)).status();
      made += end.ok();
    }
    if (end.code() != StatusCode::kOutOfRange) return end;
    if (made != 3) return Internal(made, " steps in epoch ", epoch);
    TENON_RETURN_IF_ERROR(job.ranks.BeginAnew(end));
    TENON_ASSIGN_OR_RETURN(const CollectiveResult sum,
                           job.ranks.Run(SumOf("metric", Tensor::Scalar<float>(1))));
    if (sum.data.scalar<float>() != static_cast<float>(job.size)) return Internal("another sum");
  }
  return OkStatus();
}

/// Rank 0's error has nothing to do with collectives, and the others are busy.
Status FailsAlone(Job& job) {
  TENON_RETURN_IF_ERROR(RunSum(job, "first"));
  if (job.rank == 0) return DataLoss("the disk is full");
  MachineClock().SleepFor(std::chrono::seconds(60));
  return OkStatus();
}

/// The last rank stands still again and again until it has ended, in its last sums and while it
/// leaves, as in a machine that is short of memory.
Status HeldUp(Job& job) {
  for (int i = 0; i < 20; ++i) TENON_RETURN_IF_ERROR(RunSum(job, StrCat("sum", i)));
  if (job.rank == job.size - 1) {
    const pid_t own = getpid();
    if (fork() == 0) {
      while (getppid() == own) {
        kill(own, SIGSTOP);
        usleep(200000);
        kill(own, SIGCONT);
        usleep(50000);
      }
      std::_Exit(0);
    }
  }
  for (int i = 0; i < 200; ++i) TENON_RETURN_IF_ERROR(RunSum(job, StrCat("last", i)));
  return OkStatus();
}

/// Dies at once, as by a signal.
Status Dies(Job& job) {
  TENON_RETURN_IF_ERROR(RunSum(job, "first"));
  if (job.rank == 1) std::_Exit(9);
  return RunSum(job, "second");
}

/// The rounds of a measurement, each of calls in a row.
struct Series {
  int32_t floats;
  int rounds, calls;
};

/// The time of a call in the median round, in microseconds; all ranks begin a round together.
template <typename Call>
StatusOr<double> MedianOf(Job& job, const Series& series, const Call& call) {
  constexpr int kWarm = 2;
  std::vector<double> times;
  for (int i = -kWarm; i < series.rounds; ++i) {
    TENON_RETURN_IF_ERROR(job.ranks.Run({.kind = Kind::kBarrier, .name = "begin"}).status());
    const Clock::Time begin = MachineClock().Now();
    for (int c = 0; c < series.calls; ++c) TENON_RETURN_IF_ERROR(call());
    const std::chrono::duration<double, std::micro> took = MachineClock().Now() - begin;
    if (i >= 0) times.push_back(took.count() / series.calls);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// A step that makes so many floats, and has them added up where that is asked for.
StatusOr<double> StepTime(Job& job, const Series& series, bool sums) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output x = Fill(Placeholder(DType::kInt32, {1}, {.name = "count"}), 1.f);
  const Output y = sums ? HorovodAllreduce(x, {.reduce_op = 1}) : x;
  const Output last = Slice(y, {0}, {1});
  TENON_RETURN_IF_ERROR(building.status());
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph, {.communicator = &job.ranks}));
  TENON_ASSIGN_OR_RETURN(const auto step, session->Prepare({"count"}, {last.name()}, {}));
  const std::vector<Tensor> fed = {Tensor::Vector<int32_t>({series.floats})};
  std::vector<Tensor> fetched;
  return MedianOf(job, series, [&] { return step->Run(fed, &fetched); });
}

/// Prints, on the first rank, BYTES and the microseconds of Run and of what the op adds to a step.
Status Times(Job& job) {
  for (const Series& series :
       {Series{1, 50, 100}, {100000, 20, 10}, {3274634, 10, 1}, {25000000, 5, 1}}) {
    Tensor data = Tensor::Zeros(DType::kFloat, {series.floats});
    TENON_ASSIGN_OR_RETURN(const double of_run, MedianOf(job, series, [&]() -> Status {
                             TENON_ASSIGN_OR_RETURN(CollectiveResult sum,
                                                    job.ranks.Run(SumOf("x", std::move(data))));
                             data = std::move(sum.data);
                             return OkStatus();
                           }));
    TENON_ASSIGN_OR_RETURN(const double with, StepTime(job, series, true));
    TENON_ASSIGN_OR_RETURN(const double without, StepTime(job, series, false));
    if (job.rank == 0) std::printf("%d %.2f %.2f\n", series.floats * 4, of_run, with - without);
  }
  return OkStatus();
}

/// How a scene ends on this rank. Of the scenes without a body, "absent" is one that a rank does
/// not come to, and in "swapped" the first two ranks take each other's number.
Status RunScene(const std::string& library, const std::string& scene, int rank, int size,
                FolderStore& store) {
  static const std::map<std::string, Status (*)(Job&)> scenes = {
      {"values", Values}, {"large", Large},   {"different", Different}, {"shape", OtherShape},
      {"late", Late},     {"leaves", Leaves}, {"aborts", Aborts},       {"work", AbortsAtWork},
      {"anew", Anew},     {"dies", Dies},     {"times", Times},         {"alone", FailsAlone},
      {"held", HeldUp}};
  if (scene == "absent" && rank == 1) return OkStatus();
  const int number = scene == "swapped" && rank < 2 ? 1 - rank : rank;
  const auto limit = std::chrono::milliseconds(scene == "late" ? 1000 : 60000);
  const auto join = [&](int64_t generation) -> StatusOr<CollectiveBackends> {
    CollectiveBackends joined;
    TENON_ASSIGN_OR_RETURN(joined.host, JoinBy(library, {.rank = number,
                                                         .size = size,
                                                         .store = &store,
                                                         .generation = generation,
                                                         .start_limit = std::chrono::milliseconds(
                                                             scene == "absent" ? 1000 : 30000)}));
    return joined;
  };
  TENON_ASSIGN_OR_RETURN(auto backend, join(0));
  const auto found = scenes.find(scene);
  if (found == scenes.end()) return InvalidArgument("there is no scene ", scene);
  CollectiveQueue queue(std::move(backend),
                        {.rank = rank,
                         .size = size,
                         .local_rank = rank,
                         .local_size = size,
                         .limit = limit,
                         .store = std::shared_ptr<KeyValueStore>(&store, [](KeyValueStore*) {}),
                         .join = join,
                         .clock = &MachineClock()});
  Job job{queue, rank, size};
  return found->second(job);
}

int Main(const std::string& library, const std::string& folder, const std::string& scene) {
  const auto tasks = FindRankedTasks(Environment::OfProcess());
  if (!tasks.ok() || !*tasks) {
    std::fprintf(stderr, "no mpirun of several processes has started this one\n");
    return 2;
  }
  const int rank = (*tasks)->rank, size = (*tasks)->size;
  FolderStore store(folder, rank);
  const Status end = RunScene(library, scene, rank, size, store);
  const auto limit = std::chrono::seconds(20);
  store.Replace(StrCat("end/", rank), end.ToString(), limit).IgnoreError();
  // An mpirun ends all when the first of them fails.
  if (!end.ok() && scene != "alone") {
    for (int r = 0; r < size; ++r) store.Get(StrCat("end/", r), limit).status().IgnoreError();
  }
  return end.ok() ? 0 : 1;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: collective_ranks LIBRARY FOLDER SCENE\n");
    return 2;
  }
  return tenon::Main(argv[1], argv[2], argv[3]);
}
