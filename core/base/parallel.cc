// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>

#include "core/base/interruption.h"

extern "C" void kmp_set_blocktime(int ms);  // libomp's; a compiler's own omp.h may lack it

namespace tenon {
namespace {

/// What one thread should at least have to do.
constexpr double kMinShareNs = 100e3;
/// What a thread does at most, about, before it looks whether the kernel is interrupted. Guesses of
/// costs are often ten times too low.
constexpr double kChunkNs = 5e6;

std::atomic<int>& Limit() {
  static std::atomic<int> limit{std::max(1, omp_get_num_procs())};
  return limit;
}

std::atomic<int> busy{0};   // threads that hold a BusyThread
std::atomic<int> extra{0};  // threads lent to loops

/// Members of a team must not spin between two loops, as libomp lets them for 200 ms: every thread
/// that ever started a loop has a team of its own, and other processes want the cores too.
void LetTeamSleep() {
  static thread_local const bool done = (kmp_set_blocktime(0), true);
  static_cast<void>(done);
}

int WantedExtra(double total_ns) {
  if (total_ns < parallel_internal::kLeastNs || omp_in_parallel()) return 0;
  LetTeamSleep();
  const double shares = std::min(total_ns / kMinShareNs, 1e6);
  return static_cast<int>(shares) - 1;
}

void RunRange(int64_t begin, int64_t end, double cost_ns,
              absl::FunctionRef<void(int64_t begin, int64_t end)> fn) {
  if (begin >= end) return;
  if (cost_ns * static_cast<double>(end - begin) <= kChunkNs || CurrentInterruption() == nullptr) {
    return fn(begin, end);
  }
  const int64_t chunk = std::max<int64_t>(1, static_cast<int64_t>(kChunkNs / cost_ns));
  for (; begin < end && !Interrupted(); begin += std::min(chunk, end - begin)) {
    fn(begin, begin + std::min(chunk, end - begin));
  }
}

}  // namespace

void SetThreadBudget(int n) { Limit() = std::max(1, n); }
int ThreadBudget() { return Limit(); }

BusyThread::BusyThread() { busy.fetch_add(1, std::memory_order_relaxed); }
BusyThread::~BusyThread() { busy.fetch_sub(1, std::memory_order_relaxed); }

ExtraThreads::ExtraThreads(int wanted) {
  if (wanted <= 0) return;
  // A caller outside the executor is not registered, but computes all the same.
  const int left = Limit() - std::max(1, busy.load(std::memory_order_relaxed));
  int lent = extra.load(std::memory_order_relaxed);
  do {
    count_ = std::clamp(left - lent, 0, wanted);
  } while (count_ > 0 && !extra.compare_exchange_weak(lent, lent + count_));
}

ExtraThreads::~ExtraThreads() {
  if (count_ > 0) extra.fetch_sub(count_);
}

void SerialFor(int64_t n, double cost_ns, absl::FunctionRef<void(int64_t begin, int64_t end)> fn) {
  RunRange(0, n, cost_ns, fn);
}

void parallel_internal::Divide(int64_t n, double cost_ns,
                               absl::FunctionRef<void(int64_t begin, int64_t end)> fn) {
  const int wanted =
      static_cast<int>(std::min<int64_t>(n - 1, WantedExtra(cost_ns * static_cast<double>(n))));
  const ExtraThreads threads(wanted);
  if (threads.count() == 0) return RunRange(0, n, cost_ns, fn);
  const Cancellation* const interruption = CurrentInterruption();
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // of whoever set `failed`
#pragma omp parallel num_threads(1 + threads.count())
  {
    const InterruptibleBy scope(interruption);
    const int64_t team = omp_get_num_threads(), rank = omp_get_thread_num();
    const int64_t share = n / team, rest = n % team;
    const int64_t begin = rank * share + std::min(rank, rest);
    // An exception must not leave the team's region.
    try {
      RunRange(begin, begin + share + (rank < rest ? 1 : 0), cost_ns, fn);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }
  if (error != nullptr) std::rethrow_exception(error);
}

OpenMpTeam::OpenMpTeam(double total_ns)
    : extra_(WantedExtra(total_ns)), before_(omp_get_max_threads()) {
  if (before_ != size()) omp_set_num_threads(size());
}

OpenMpTeam::~OpenMpTeam() {
  if (before_ != size()) omp_set_num_threads(before_);
}

}  // namespace tenon
