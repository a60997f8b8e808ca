// SPDX-License-Identifier: Apache-2.0
//
// Seeded mutations of the sample graphs are imported and run: each must end in time, within its
// memory, with a value or a Status. A crash prints TENON_SEED=<seed>, which runs that mutant alone;
// TENON_SEED=<first>-<last> runs a range.
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <map>
#include <thread>

#include "core/base/sanitizers.h"
#include "core/memory/memory_limit.h"
#include "tests/fuzz/sample_graphs.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::ImportAndRun;
using testing::MutantSteps;
using testing::Random;
using testing::SampleGraph;

constexpr int kMutants = kSanitized ? 10000 : 100000;
constexpr int kThreads = 2;
constexpr int64_t kMemory = int64_t{256} << 20;
constexpr std::chrono::seconds kTooLong{20};

/// What each thread works on, for the handler and the watch.
std::atomic<uint64_t> current_seed[kThreads];
thread_local int this_thread = 0;

void PrintSeed(int signal) {
  char text[64];
  const int n = snprintf(text, sizeof(text), "TENON_SEED=%llu\n",
                         static_cast<unsigned long long>(current_seed[this_thread].load()));
  if (write(STDERR_FILENO, text, n) < 0) _exit(1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

Status RunMutant(const std::vector<SampleGraph>& samples, uint64_t seed) {
  Random random(seed);
  // Most mutants are of the small graphs, which take the least time.
  static const std::vector<int> choices = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1,
                                           2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 4};
  const SampleGraph& sample = samples[random.OneOf(choices)];
  GraphDef graph;
  if (random.Chance(20)) {
    std::string bytes = sample.bytes;
    MutateBytes(&bytes, random);
    if (!graph.ParseFromString(bytes)) return InvalidArgument("not a graph");
  } else {
    graph = sample.graph;
    MutateMessage(&graph, random);
  }
  MutantSteps steps = sample.steps;
  if (random.Chance(20) && graph.node_size() > 0) {
    steps.fetches.push_back(graph.node(random.Below(graph.node_size())).name());
  }
  return ImportAndRun(graph, steps);
}

TEST(GraphMutationTest, MutantsOfTheSampleGraphsDoNoHarm) {
  google::protobuf::SetLogHandler(nullptr);
  SetCpuMemoryLimit(kMemory);
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) {
    std::signal(signal, PrintSeed);
  }
  const std::vector<SampleGraph>& samples = testing::SampleGraphs();
  const std::vector<uint64_t> seeds = testing::SeedsToTest(kMutants);
  std::atomic<size_t> next{0};
  std::atomic<int> running{kThreads};
  std::map<StatusCode, int> codes[kThreads];
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      this_thread = t;
      for (size_t i; (i = next.fetch_add(1)) < seeds.size();) {
        current_seed[t] = seeds[i];
        const auto start = std::chrono::steady_clock::now();
        const Status status = RunMutant(samples, seeds[i]);
        ++codes[t][status.code()];
        // A broken invariant of our own would be an Internal error.
        EXPECT_NE(status.code(), StatusCode::kInternal)
            << "TENON_SEED=" << seeds[i] << ": " << status;
        EXPECT_LT(std::chrono::steady_clock::now() - start, kTooLong)
            << "TENON_SEED=" << seeds[i] << ": " << status;
      }
      --running;
    });
  }
  uint64_t watched[kThreads] = {};
  std::chrono::steady_clock::time_point since[kThreads];
  while (running > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (int t = 0; t < kThreads; ++t) {
      const auto now = std::chrono::steady_clock::now();
      if (current_seed[t] != watched[t]) watched[t] = current_seed[t], since[t] = now;
      if (running == kThreads && now - since[t] > 2 * kTooLong) {
        std::fprintf(stderr, "TENON_SEED=%llu does not end\n",
                     static_cast<unsigned long long>(watched[t]));
        std::abort();
      }
    }
  }
  for (std::thread& thread : threads) thread.join();
  std::map<StatusCode, int> total;
  for (const auto& of_thread : codes) {
    for (const auto& [code, count] : of_thread) total[code] += count;
  }
  for (const auto& [code, count] : total) {
    std::printf("%s: %d\n", absl::StatusCodeToString(code).c_str(), count);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("peak memory: %ld MiB\n", usage.ru_maxrss >> 10);
  if (!kSanitized) EXPECT_LT(usage.ru_maxrss, 4 * (kMemory >> 10));
}

}  // namespace
}  // namespace tenon
