// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "runtime/collectives/collective_backend.h"
#include "runtime/mpi/greetings.h"
#include "runtime/mpi/mpi_library.h"

namespace tenon {

/// The ranks of an mpirun, as this process sees them. MPI is begun when the process first joins
/// and ended with the process, by who has begun it; but not after a failure, of this rank or
/// another one, which the launcher sees and ends them all.
///
/// MPI has no way to give up a collective, and does not tell different ones apart. So each begins
/// with a greeting, in which every rank learns what all others are about to do: until they have all
/// come to the same, no memory of a caller's is in MPI's hands.
class MpiRanks {
 public:
  /// The ones that this process is among; they live until it ends.
  static MpiRanks& OfProcess();

  /// Waits for all ranks, and begins MPI or the next generation.
  Status Join(const RankOptions& options);
  void Leave();

  /// Holds MPI for a call, which is one thread's at a time.
  Mutex& mutex() ABSL_LOCK_RETURNED(mu_) { return mu_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm communicator() const { return calls_; }

  /// Tells all ranks the call's tag with up to Greetings::kPayload bytes, and returns when those of
  /// all have come. Unavailable where a rank has another tag or has left.
  Status Greet(const CollectiveCall& call, const void* data, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// The bytes that came with a rank's last greeting, aligned for numbers.
  const void* PayloadOf(int rank) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return greetings_->PayloadOf(rank);
  }

  /// Waits for MPI to have done `request`, which moves memory of the call's. After a failure that
  /// memory stays, and nothing else can be done with these ranks.
  Status Wait(MPI_Request request, const CollectiveCall& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  /// Ends a call that cannot go on with `why`: MPI may have requests on its memory.
  Status Lose(const Status& why, const CollectiveCall& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  /// Fails the calls of all ranks, soon; see CollectiveBackend. From any thread, also during a
  /// call.
  void Abort(bool has_failed);

 private:
  MpiRanks() = default;

  /// A rank, as far as this one has heard.
  struct Heard {
    bool has_left = false;
    int64_t calls = 0;  // that it has done to their ends before
  };

  Status JoinOnce(const RankOptions& options);
  Status Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Ends the greetings that some ranks began before they failed, with those who did not. The error
  /// of any rank, such as `own`, is one on all.
  Status BeginAnew(Clock::Time end, const Status& own) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Returns at once where none has begun.
  Status FinishGreeting(Clock::Time end, bool is_call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Waits until `is_done`, but no longer than until `end`, or than all ranks take part: which is
  /// asked at every so many polls, or never where that is 0.
  Status Poll(absl::FunctionRef<StatusOr<bool>()> is_done, Clock::Time end, int polls_per_ask)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// The rank, perhaps this one, that has left before the end of the call with this number; null
  /// while there is none.
  std::optional<int> WhoMisses(int64_t call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// The same of what has been heard already.
  std::optional<int> WhoIsKnownToMiss(int64_t call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void HearOthers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// That this rank leaves after so many calls, and whether it has failed.
  void TellOthers(int64_t calls) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status Gone(int who) const;
  /// Lets others have the processor, the longer the longer it waits.
  static void Pause(Clock::Time since, Clock::Time now);
  /// At the end of the process, which has this exit code.
  void End(int exit_code);

  Mutex mu_;
  /// Set while the process is a rank; read by Abort.
  std::atomic<bool> aborted_{false}, aborted_by_error_{false};
  bool begun_ ABSL_GUARDED_BY(mu_) = false;
  bool owned_ ABSL_GUARDED_BY(mu_) = false;          // begun here, and not by the program
  bool joined_ ABSL_GUARDED_BY(mu_) = false;         // has a backend
  bool failed_ ABSL_GUARDED_BY(mu_) = false;         // a call or the job has, since it joined
  bool lost_ ABSL_GUARDED_BY(mu_) = false;           // it could not join, and never will
  bool moving_ ABSL_GUARDED_BY(mu_) = false;         // MPI has memory of a call that has failed
  std::array<Tensor, 2> kept_ ABSL_GUARDED_BY(mu_);  // that memory
  int rank_ = 0, size_ = 1;
  int quick_polls_ = 100;  // so often a rank that waits looks again at once
  MPI_Comm calls_ = MPI_COMM_NULL, control_ = MPI_COMM_NULL;

  std::unique_ptr<Greetings> greetings_ ABSL_GUARDED_BY(mu_);  // one a call

  Clock::Time greeted_ ABSL_GUARDED_BY(mu_);  // when the last call began
  Clock::Time end_ ABSL_GUARDED_BY(mu_);      // when its limit is

  int64_t generation_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Heard> heard_ ABSL_GUARDED_BY(mu_);
  bool others_failed_ ABSL_GUARDED_BY(mu_) = false;  // one of those that have left
  bool told_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace tenon
