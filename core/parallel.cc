// SPDX-License-Identifier: Apache-2.0
#include "core/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>

extern "C" void kmp_set_blocktime(int ms);  // libomp's; a compiler's own omp.h may lack it

namespace tenon {
namespace {

/// The threads of a team sleep between two loops. To wake them costs tens of microseconds, on a
/// virtual machine a hundred: with less work than this, one thread is done sooner.
constexpr double kMinParallelNs = 300e3;
/// What one thread should at least have to do.
constexpr double kMinShareNs = 100e3;

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
  if (total_ns < kMinParallelNs || omp_in_parallel()) return 0;
  LetTeamSleep();
  const double shares = std::min(total_ns / kMinShareNs, 1e6);
  return static_cast<int>(shares) - 1;
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

void ParallelFor(int64_t n, double cost_ns,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> fn) {
  if (n <= 0) return;
  const int wanted =
      static_cast<int>(std::min<int64_t>(n - 1, WantedExtra(cost_ns * static_cast<double>(n))));
  const ExtraThreads threads(wanted);
  if (threads.count() == 0) {
    fn(0, n);
    return;
  }
#pragma omp parallel num_threads(1 + threads.count())
  {
    const int64_t team = omp_get_num_threads(), rank = omp_get_thread_num();
    const int64_t share = n / team, rest = n % team;
    const int64_t begin = rank * share + std::min(rank, rest);
    const int64_t end = begin + share + (rank < rest ? 1 : 0);
    if (begin < end) fn(begin, end);
  }
}

OpenMpTeam::OpenMpTeam(double total_ns)
    : extra_(WantedExtra(total_ns)), before_(omp_get_max_threads()) {
  if (before_ != size()) omp_set_num_threads(size());
}

OpenMpTeam::~OpenMpTeam() {
  if (before_ != size()) omp_set_num_threads(before_);
}

}  // namespace tenon
