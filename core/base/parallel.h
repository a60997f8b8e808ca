// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"

// Parallel loops inside kernels, and the one number of threads that everything in the process
// shares: the executor's pool, the threads of these loops, oneDNN's teams.

namespace tenon {

namespace parallel_internal {
/// With less work than this, one thread is done as soon as several.
inline constexpr double kLeastNs = 60e3;

/// ParallelFor for more work than that.
void Divide(int64_t n, double cost_ns, absl::FunctionRef<void(int64_t begin, int64_t end)> fn);
}  // namespace parallel_internal

/// How many threads may compute at once in this process. The default is the number of cores that
/// the process may run on. Takes effect for work that starts afterwards. REQUIRES: n >= 1.
void SetThreadBudget(int n);
int ThreadBudget();

/// Marks the calling thread as computing while it lives, so that parallel loops elsewhere take one
/// thread less. The executor's pool holds one in each thread that runs kernels.
class BusyThread {
 public:
  BusyThread();
  ~BusyThread();
  BusyThread(const BusyThread&) = delete;
  BusyThread& operator=(const BusyThread&) = delete;
};

/// Threads beside the calling one, taken out of the budget until the object dies. May get fewer
/// than asked for, also none.
class ExtraThreads {
 public:
  explicit ExtraThreads(int wanted);
  ~ExtraThreads();
  ExtraThreads(const ExtraThreads&) = delete;
  ExtraThreads& operator=(const ExtraThreads&) = delete;
  int count() const { return count_; }

 private:
  int count_ = 0;
};

/// Calls `fn(begin, end)` for disjoint ranges that cover [0, n), perhaps from several threads (see
/// loop_team.h), and returns when all are done. `cost_ns` is a guess of what one item costs: work
/// below about 60 us runs on the calling thread, as does a loop inside a loop. A long loop
/// comes in chunks of some ms and stops between two of them when the kernel is interrupted (see
/// interruption.h): the rest is then not done. An exception of `fn` ends up in the caller.
inline void ParallelFor(int64_t n, double cost_ns,
                        absl::FunctionRef<void(int64_t begin, int64_t end)> fn) {
  if (n <= 0) return;
  if (cost_ns * static_cast<double>(n) < parallel_internal::kLeastNs) return fn(0, n);
  parallel_internal::Divide(n, cost_ns, fn);
}

/// The same on the calling thread alone, in ascending order.
void SerialFor(int64_t n, double cost_ns, absl::FunctionRef<void(int64_t begin, int64_t end)> fn);

/// For a library that starts an OpenMP team by itself: while it lives, teams that the calling
/// thread starts have at most as many threads as the budget leaves for work of `total_ns`. Threads
/// of such teams sleep between two loops, and all are waited for: work below 300 us gets none.
class OpenMpTeam {
 public:
  explicit OpenMpTeam(double total_ns);
  ~OpenMpTeam();
  int size() const { return 1 + extra_.count(); }

 private:
  ExtraThreads extra_;
  const int before_;
};

}  // namespace tenon
