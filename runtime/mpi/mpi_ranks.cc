// SPDX-License-Identifier: Apache-2.0
#include "runtime/mpi/mpi_ranks.h"

#include <dlfcn.h>
#include <immintrin.h>
#include <sched.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/strings.h"
#include "runtime/device/machine_clock.h"

namespace tenon {
namespace {

/// A rank that waits lets other threads have the processor in between for so long, and sleeps for
/// longer and longer after that.
constexpr std::chrono::microseconds kYielding{2000}, kShortSleep{20}, kLongSleep{1000};
/// Ranks whose limits pass at about the same time all say so, and not that the first one has left.
constexpr std::chrono::milliseconds kGrace{200};
/// After a pause this long, so often it is asked who has left.
constexpr std::chrono::milliseconds kQuiet{1};
constexpr int kAsks = 5;
/// A pause of the processor takes as long as half of a greeting by memory does: the first polls are
/// without.
constexpr int kEagerPolls = 40;
/// A rank that waits for a greeting asks who has left at every so many polls: it takes longer than
/// a look into memory.
constexpr int kPollsPerAsk = 16;
/// Without a call there is nothing to leave.
constexpr int kNeverAsks = 0;
/// A rank that leaves sees to its own last messages for so long.
constexpr std::chrono::milliseconds kFarewell{100};

/// An mpirun ends all when a process ends without MPI's end: one that has not failed leaves others
/// so long to say why they have.
constexpr std::chrono::milliseconds kLastWords{2000};

/// The tag of greetings that nobody means.
constexpr uint32_t kNobody = 0;
constexpr int kLeaving = 1;  // the tag of messages to the ranks
/// The words of a rank that leaves: its generation, the calls that it has done, and whether it has
/// failed.
constexpr int kWords = 3;
using Words = std::array<int64_t, kWords>;
/// Greater exit codes are those of signals.
constexpr int kSignalled = 128;

/// Components of Open MPI find its library among the symbols of all.
Status ShowToAll() {
#if defined(OPEN_MPI)
  Dl_info library = {};
  if (dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &library) == 0 ||
      dlopen(library.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) == nullptr) {
    return FailedPrecondition("the library of Open MPI cannot be shown to its components");
  }
#endif
  return OkStatus();
}

std::string LibraryOfProcess() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text = {};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string_view all(text.data(), static_cast<size_t>(length));
  return std::string(all.substr(0, all.find('\n')));
}

}  // namespace

MpiRanks& MpiRanks::OfProcess() {
  static auto* const ranks = new MpiRanks;
  return *ranks;
}

Status MpiRanks::Join(const RankOptions& options) {
  const Status joined = JoinOnce(options);
  MutexLock lock(mu_);
  if (!joined.ok() && begun_) lost_ = true;
  return joined;
}

Status MpiRanks::JoinOnce(const RankOptions& options) {
  const Clock::Time end = MachineClock().Now() + options.start_limit;
  // MPI itself would wait for a rank without end, and say nothing.
  const auto key = [&](int rank) { return StrCat("mpi/", options.generation, "/", rank); };
  TENON_RETURN_IF_ERROR(options.store->Put(key(options.rank), "here", options.start_limit));
  for (int r = 0; r < options.size; ++r) {
    if (r == options.rank) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - MachineClock().Now());
    const Status came =
        options.store->Get(key(r), std::max(left, std::chrono::milliseconds(0))).status();
    if (came.code() == StatusCode::kDeadlineExceeded) {
      return DeadlineExceeded("rank ", r, ": it has not come within ", options.start_limit.count(),
                              " ms");
    }
    if (!came.ok()) return Annotate(came, StrCat("rank ", r));
  }
  MutexLock lock(mu_);
  if (joined_) return FailedPrecondition("this process is a rank of MPI already");
  if (lost_) return Unavailable("this process could not join by MPI before");
  if (!begun_) TENON_RETURN_IF_ERROR(Begin());
  Status own;
  if (rank_ != options.rank || size_ != options.size) {
    own = InvalidArgument("rank ", options.rank, " of ", options.size, " is number ", rank_,
                          " of the ", size_, " processes of MPI: ranks are counted as mpirun does");
  }
  TENON_RETURN_IF_ERROR(BeginAnew(end, own));
  generation_ = options.generation;
  heard_.assign(static_cast<size_t>(size_), Heard());
  told_ = failed_ = others_failed_ = false;
  aborted_ = aborted_by_error_ = false;
  joined_ = true;
  return OkStatus();
}

Status MpiRanks::Begin() {
  const std::string library = LibraryOfProcess();
  if (!library.starts_with(kMpiLibrary)) {
    return FailedPrecondition("this process has another MPI: found ", library, ", wanted ",
                              kMpiLibrary);
  }
  int begun = 0, ended = 0, threads = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  if (ended != 0) return FailedPrecondition("this process has ended MPI");
  if (begun == 0) {
    TENON_RETURN_IF_ERROR(ShowToAll());
    TENON_RETURN_IF_ERROR(
        StatusOfMpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads)));
    owned_ = true;
    on_exit([](int exit_code, void*) { OfProcess().End(exit_code); }, nullptr);
    if (threads < MPI_THREAD_SERIALIZED) {
      return FailedPrecondition(library, " takes the calls of one thread alone");
    }
  } else if (MPI_Query_thread(&threads); threads < MPI_THREAD_MULTIPLE) {
    return FailedPrecondition(
        "the program has begun MPI for fewer threads than it has: wanted MPI_THREAD_MULTIPLE");
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  begun_ = true;
  for (MPI_Comm* const own : {&calls_, &control_}) {
    TENON_RETURN_IF_ERROR(StatusOfMpi(MPI_Comm_dup(MPI_COMM_WORLD, own)));
    MPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN);
  }
  TENON_ASSIGN_OR_RETURN(greetings_, Greetings::Make(calls_));
  MPI_Comm neighbours = MPI_COMM_NULL;
  TENON_RETURN_IF_ERROR(StatusOfMpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_,
                                                        MPI_INFO_NULL, &neighbours)));
  int ranks_here = 1;
  MPI_Comm_size(neighbours, &ranks_here);
  MPI_Comm_free(&neighbours);
  // Whoever is waited for may itself wait for this core.
  if (ranks_here > get_nprocs()) quick_polls_ = 0;
  return OkStatus();
}

Status MpiRanks::BeginAnew(Clock::Time end, const Status& own) {
  constexpr int kCount = 3;
  static std::array<int64_t, kCount> most;  // outlives a call that fails
  static std::array<int64_t, kCount> sent;
  sent = {greetings_->count(), moving_ ? 1 : 0, own.ok() ? 0 : 1};
  MPI_Request request = MPI_REQUEST_NULL;
  TENON_RETURN_IF_ERROR(StatusOfMpi(
      MPI_Iallreduce(sent.data(), most.data(), kCount, MPI_INT64_T, MPI_MAX, control_, &request)));
  const Status agreed = Poll([&] { return IsDone(&request); }, end, kNeverAsks);
  TENON_RETURN_IF_ERROR(own);
  TENON_RETURN_IF_ERROR(agreed);
  if (most[2] != 0) return InvalidArgument("a rank has another number than mpirun has for it");
  if (most[1] != 0) {
    return Unavailable(
        "a rank has failed in the middle of a collective, after which MPI has no "
        "others: the job has to be started again");
  }
  TENON_RETURN_IF_ERROR(FinishGreeting(end, /*is_call=*/false));
  if (greetings_->count() < most[0]) {
    TENON_RETURN_IF_ERROR(greetings_->Begin(kNobody, nullptr, 0));
    TENON_RETURN_IF_ERROR(FinishGreeting(end, /*is_call=*/false));
  }
  return OkStatus();
}

void MpiRanks::Leave() {
  Abort(/*has_failed=*/false);
  MutexLock lock(mu_);
  joined_ = false;
}

Status MpiRanks::FinishGreeting(Clock::Time end, bool is_call) {
  return Poll([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return greetings_->Advance(); }, end,
              is_call ? kPollsPerAsk : kNeverAsks);
}

Status MpiRanks::Greet(const CollectiveCall& call, const void* data, size_t bytes) {
  if (failed_) return Unavailable("a collective by MPI has failed before");
  const Clock::Time now = MachineClock().Now();
  // Words that have come meanwhile are found by asking again: MPI works while it is asked.
  for (int i = 0; now - greeted_ > kQuiet && i < kAsks; ++i) HearOthers();
  greeted_ = now;
  if (const std::optional<int> who = WhoIsKnownToMiss(greetings_->count() + 1)) {
    failed_ = true;
    return Gone(*who);
  }
  end_ = now + call.limit;
  Status status = greetings_->Begin(call.tag, data, bytes);
  if (status.ok()) status = FinishGreeting(end_, /*is_call=*/true);
  for (int r = 0; status.ok() && r < size_; ++r) {
    if (greetings_->TagOf(r) == call.tag) continue;
    status = Unavailable("rank ", r, " is in another collective");
  }
  failed_ = !status.ok();
  return status;
}

Status MpiRanks::Wait(MPI_Request request, const CollectiveCall& call) {
  const Status status = Poll([&] { return IsDone(&request); }, end_, /*polls_per_ask=*/1);
  return status.ok() ? status : Lose(status, call);
}

Status MpiRanks::Lose(const Status& why, const CollectiveCall& call) {
  failed_ = moving_ = true;
  kept_ = {call.in, call.out};
  return why;
}

Status MpiRanks::Poll(absl::FunctionRef<StatusOr<bool>()> is_done, Clock::Time end,
                      int polls_per_ask) {
  std::optional<Clock::Time> since;
  std::optional<int> who;
  Clock::Time last = end;
  for (int polls = 0;; ++polls) {
    TENON_ASSIGN_OR_RETURN(const bool has_ended, is_done());
    if (has_ended) return OkStatus();
    if (polls < quick_polls_ && !aborted_) {
      if (polls >= kEagerPolls) _mm_pause();
      continue;
    }
    const Clock::Time now = MachineClock().Now();
    if (!since) since = now;
    if (polls_per_ask != kNeverAsks && !who && (aborted_ || (polls + 1) % polls_per_ask == 0)) {
      who = WhoMisses(greetings_->count());
      if (who) last = std::min(end, now + kGrace);
    }
    if (now >= last) {
      return now < end ? Gone(*who) : Status(DeadlineExceeded("MPI waits for a rank"));
    }
    Pause(*since, now);
  }
}

void MpiRanks::Pause(Clock::Time since, Clock::Time now) {
  if (now - since < kYielding) {
    sched_yield();
    return;
  }
  const auto pause = std::chrono::duration_cast<std::chrono::microseconds>(now - since) / 8;
  MachineClock().SleepFor(std::clamp(pause, kShortSleep, kLongSleep));
}

std::optional<int> MpiRanks::WhoMisses(int64_t call) {
  if (!aborted_) HearOthers();
  return WhoIsKnownToMiss(call);
}

std::optional<int> MpiRanks::WhoIsKnownToMiss(int64_t call) {
  if (aborted_) {
    failed_ = failed_ || aborted_by_error_ || greetings_->under_way();
    TellOthers(call - 1);
    return rank_;
  }
  for (size_t r = 0; r < heard_.size(); ++r) {
    if (heard_[r].has_left && heard_[r].calls < call) return static_cast<int>(r);
  }
  return std::nullopt;
}

void MpiRanks::HearOthers() {
  while (true) {
    int has_come = 0;
    MPI_Status from;
    if (MPI_Iprobe(MPI_ANY_SOURCE, kLeaving, control_, &has_come, &from) != MPI_SUCCESS) return;
    if (has_come == 0) return;
    Words words = {};
    MPI_Recv(words.data(), kWords, MPI_INT64_T, from.MPI_SOURCE, kLeaving, control_,
             MPI_STATUS_IGNORE);
    // Words of an earlier generation are old news.
    if (words[0] != generation_) continue;
    heard_[static_cast<size_t>(from.MPI_SOURCE)] = {true, words[1]};
    if (words[2] != 0) others_failed_ = true;
  }
}

void MpiRanks::TellOthers(int64_t calls) {
  if (told_) return;
  told_ = true;
  static auto* const words = new Words;  // outlives messages that nobody takes
  *words = {generation_, calls, failed_ ? 1 : 0};
  std::vector<MPI_Request> sends(static_cast<size_t>(size_), MPI_REQUEST_NULL);
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    MPI_Isend(words->data(), kWords, MPI_INT64_T, r, kLeaving, control_,
              &sends[static_cast<size_t>(r)]);
  }
  const Clock::Time end = MachineClock().Now() + kFarewell;
  int is_done = 0;
  while (is_done == 0 && MachineClock().Now() < end) {
    MPI_Testall(size_, sends.data(), &is_done, MPI_STATUSES_IGNORE);
    if (is_done == 0) sched_yield();
  }
}

Status MpiRanks::Gone(int who) const {
  if (who == rank_) return Unavailable("this rank has ended its collectives");
  return Unavailable("rank ", who, " has gone");
}

void MpiRanks::Abort(bool has_failed) {
  if (has_failed) aborted_by_error_ = true;
  aborted_ = true;
  MutexLock lock(mu_);
  // No call is under way: the last one has come to its end, unless it has failed.
  if (joined_) WhoMisses(greetings_->count() + (failed_ ? 0 : 1));
}

void MpiRanks::End(int exit_code) {
  // A thread that is in a call still would be waited for in vain.
  if (!mu_.TryLock()) return;
  int ended = 0;
  MPI_Finalized(&ended);
  // A process that a signal ends in good order has such a code, too.
  const bool is_error = exit_code != 0 && exit_code <= kSignalled;
  const bool can_end = ended == 0 && owned_ && !is_error && !failed_ && !lost_ && !moving_ &&
                       !joined_ && greetings_ != nullptr && !greetings_->under_way();
  // MPI waits for all ranks at its end, and complains of words that nobody has taken; the mpirun of
  // Open MPI may itself fail where a rank ends so and another one by an error.
  if (can_end && told_) {
    heard_[static_cast<size_t>(rank_)].has_left = true;
    const auto has_left = [](const Heard& heard) { return heard.has_left; };
    while (HearOthers(), !std::all_of(heard_.begin(), heard_.end(), has_left)) {
      MachineClock().SleepFor(kLongSleep);
    }
  }
  const bool ends_well = can_end && !others_failed_;
  if (ends_well) greetings_ = nullptr;
  mu_.Unlock();
  if (ends_well) {
    MPI_Finalize();
  } else if (can_end) {
    MachineClock().SleepFor(kLastWords);
  }
}

}  // namespace tenon
