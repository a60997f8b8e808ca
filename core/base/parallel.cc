// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "core/base/interruption.h"
#include "core/base/loop_team.h"

extern "C" void kmp_set_blocktime(int ms);  // libomp's; a compiler's own omp.h may lack it

namespace tenon {
namespace {

/// The least work of one thread in a loop.
constexpr double kMinShareNs = 30e3;
/// The least work of one thread in an OpenMP team, and of a whole team whose threads are woken:
/// that takes tens of microseconds, on a virtual machine a hundred.
constexpr double kMinTeamShareNs = 100e3, kLeastTeamNs = 300e3;
/// What a thread does at most, about, before it looks whether the kernel is interrupted. Guesses of
/// costs are often ten times too low.
constexpr double kChunkNs = 5e6;

std::atomic<int>& Limit() {
  static std::atomic<int> limit{std::max(1, omp_get_num_procs())};
  return limit;
}

std::atomic<int> busy{0};   // threads that hold a BusyThread
std::atomic<int> extra{0};  // threads lent to loops

/// Members of an OpenMP team must not spin between two loops, as libomp lets them for 200 ms: every
/// thread that ever started a team has its own, and other processes want the cores too.
void LetTeamSleep() {
  static thread_local const bool done = (kmp_set_blocktime(0), true);
  static_cast<void>(done);
}

/// Whether the calling thread is within a loop that others may share.
thread_local bool in_loop = false;

int WantedExtra(double total_ns, double least_ns, double min_share_ns) {
  if (total_ns < least_ns || in_loop || omp_in_parallel()) return 0;
  return static_cast<int>(std::min(total_ns / min_share_ns, 1e6)) - 1;
}

int WantedTeam(double total_ns) {
  const int wanted = WantedExtra(total_ns, kLeastTeamNs, kMinTeamShareNs);
  if (wanted > 0) LetTeamSleep();
  return wanted;
}

/// While it lives, the calling thread works on a part of a loop. A helper, which does nothing else,
/// starts no OpenMP team from then on; others see to that for the whole loop.
class InLoop {
 public:
  explicit InLoop(const Cancellation* interruption)
      : interruption_(interruption), before_(std::exchange(in_loop, true)) {
    if (omp_get_max_threads() != 1) omp_set_num_threads(1);
  }
  ~InLoop() { in_loop = before_; }
  InLoop(const InLoop&) = delete;
  InLoop& operator=(const InLoop&) = delete;

 private:
  const InterruptibleBy interruption_;
  const bool before_;
};

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
  LetTeamSleep();  // of a library that `fn` calls
  const double total_ns = cost_ns * static_cast<double>(n);
  const int wanted = WantedExtra(total_ns, kLeastNs, kMinShareNs);
  const ExtraThreads threads(static_cast<int>(std::min<int64_t>(n - 1, wanted)));
  if (threads.count() == 0) return RunRange(0, n, cost_ns, fn);
  const OpenMpTeam alone(0);
  const Cancellation* const interruption = CurrentInterruption();
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // of whoever set `failed`
  // Two parts for each thread: a thread that comes late gets fewer.
  const int64_t parts = std::min<int64_t>(n, int64_t{2} * (1 + threads.count()));
  const int64_t share = n / parts, rest = n % parts;
  RunParts(static_cast<int>(parts), threads.count(), total_ns / static_cast<double>(parts),
           [&](int part) {
             const InLoop scope(interruption);
             const int64_t begin = part * share + std::min<int64_t>(part, rest);
             // An exception must not leave the thread that meets it.
             try {
               RunRange(begin, begin + share + (part < rest ? 1 : 0), cost_ns, fn);
             } catch (...) {
               if (!failed.exchange(true)) error = std::current_exception();
             }
           });
  if (error != nullptr) std::rethrow_exception(error);
}

OpenMpTeam::OpenMpTeam(double total_ns)
    : extra_(WantedTeam(total_ns)), before_(omp_get_max_threads()) {
  if (before_ != size()) omp_set_num_threads(size());
}

OpenMpTeam::~OpenMpTeam() {
  if (before_ != size()) omp_set_num_threads(before_);
}

}  // namespace tenon
