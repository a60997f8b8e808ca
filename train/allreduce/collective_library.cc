// SPDX-License-Identifier: Apache-2.0
#include "train/allreduce/collective_library.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>

#include "absl/strings/numbers.h"
#include "core/base/strings.h"
#include "distributed/resolver/ranked_tasks.h"
#include "runtime/device/machine_clock.h"

namespace tenon {
namespace {

constexpr char kAgreed[] = "collectives";
/// Words before what a rank leaves to the others, and before the code and the text of an error.
constexpr std::string_view kAuto = "auto ", kError = "error ";
/// An error is decided on after the first rank has waited: others wait for so much longer. The
/// first rank, which keeps it, waits as long for them to have heard.
constexpr std::chrono::milliseconds kHearing{2000};

std::string WishKey(int rank) { return StrCat("collectives/wanted/", rank); }
std::string HeardKey(int rank) { return StrCat("collectives/heard/", rank); }

std::string Written(const Status& error) {
  return StrCat(kError, static_cast<int>(error.code()), " ", Message(error));
}

std::optional<Status> ErrorIn(std::string_view text) {
  if (!text.starts_with(kError)) return std::nullopt;
  text.remove_prefix(kError.size());
  const size_t end = text.find(' ');
  int code = 0;
  if (end == std::string_view::npos || !absl::SimpleAtoi(ToAbsl(text.substr(0, end)), &code)) {
    return Internal("an error that cannot be read: ", text);
  }
  return Status(static_cast<StatusCode>(code), ToAbsl(text.substr(end + 1)));
}

/// The name of MPI's plugin for what has started this process, which has to be these ranks.
StatusOr<std::string> PluginOfMpirun(const RankOptions& own) {
  TENON_ASSIGN_OR_RETURN(const std::optional<RankedTasks> tasks,
                         FindRankedTasks(Environment::OfProcess()));
  if (!tasks || !tasks->is_mpi) {
    return FailedPrecondition(
        "collectives by MPI are between processes that an mpirun has started, and rank ", own.rank,
        " was started by ", tasks ? tasks->launcher : "none");
  }
  if (tasks->rank != own.rank || tasks->size != own.size) {
    return InvalidArgument("rank ", own.rank, " of ", own.size, " is number ", tasks->rank,
                           " of the ", tasks->size, " processes of ", tasks->launcher,
                           ": ranks are counted as mpirun does");
  }
  return std::string(tasks->launcher == "Open MPI" ? "openmpi" : "mpich");
}

/// The library that this rank wants, and can load, as the others read it.
StatusOr<std::string> Wish(const std::string& wanted, const RankOptions& own,
                           const std::function<void(const std::string&)>& notice) {
  if (wanted != "gloo" && wanted != "mpi" && wanted != "auto") {
    return InvalidArgument("no library of collectives is called '", wanted,
                           "'; there are: auto, gloo, mpi, nccl");
  }
  const StatusOr<std::string> mpi = PluginOfMpirun(own);
  std::string library = wanted == "gloo" || (wanted == "auto" && !mpi.ok()) ? "gloo" : "";
  if (library.empty()) {
    TENON_ASSIGN_OR_RETURN(library, mpi);
    const Status loaded = LoadCollectives(library).status();
    if (wanted == "mpi") TENON_RETURN_IF_ERROR(loaded);
    if (!loaded.ok()) {
      if (notice && own.rank == 0) notice(StrCat("collectives are by Gloo: ", Message(loaded)));
      library = "gloo";
    }
  }
  TENON_RETURN_IF_ERROR(LoadCollectives(library).status());
  return wanted == "auto" ? StrCat(kAuto, library) : library;
}

Status NotCome(int rank, const RankOptions& own) {
  return DeadlineExceeded("rank ", rank, ": it has not come within ", own.start_limit.count(),
                          " ms");
}

/// On the first rank: the library of all.
StatusOr<std::string> Decide(const RankOptions& own) {
  std::optional<int> who;  // wants just this one
  std::string library;
  const Clock::Time end = MachineClock().Now() + own.start_limit;
  for (int rank = 0; rank < own.size; ++rank) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - MachineClock().Now());
    const StatusOr<std::string> found =
        own.store->Get(WishKey(rank), std::max(left, std::chrono::milliseconds(0)));
    if (found.status().code() == StatusCode::kDeadlineExceeded) return NotCome(rank, own);
    TENON_RETURN_IF_ERROR(found.status());
    if (const std::optional<Status> error = ErrorIn(*found)) return *error;
    const bool is_open = found->starts_with(kAuto);
    const std::string wish = is_open ? found->substr(kAuto.size()) : *found;
    if (is_open) {
      if (rank == 0) library = wish;
      // Gloo is there for ranks that have different ones.
      if (!who && wish != library) library = "gloo";
      continue;
    }
    if (who && wish != library) {
      return InvalidArgument("rank ", rank, " wants collectives by ", wish, ", and rank ", *who,
                             " by ", library, ": all ranks take the same");
    }
    if (!who) who = rank;
    library = wish;
  }
  return library;
}

/// On another rank, where the first one has not decided yet: who is waited for.
int Missing(const RankOptions& own) {
  for (int rank = 0; rank < own.size; ++rank) {
    if (!own.store->Get(WishKey(rank), std::chrono::milliseconds(0)).ok()) return rank;
  }
  return 0;
}

}  // namespace

StatusOr<std::string> AgreeOnLibrary(const std::string& wanted, const RankOptions& own,
                                     const std::function<void(const std::string&)>& notice) {
  KeyValueStore& store = *own.store;
  const StatusOr<std::string> wish = Wish(wanted, own, notice);
  TENON_RETURN_IF_ERROR(
      store.Put(WishKey(own.rank), wish.ok() ? *wish : Written(wish.status()), own.start_limit));
  if (own.rank != 0) {
    const StatusOr<std::string> agreed = store.Get(kAgreed, own.start_limit + kHearing);
    if (agreed.status().code() == StatusCode::kDeadlineExceeded) return NotCome(Missing(own), own);
    TENON_RETURN_IF_ERROR(agreed.status());
    const std::optional<Status> error = ErrorIn(*agreed);
    if (!error) return agreed;
    store.Put(HeardKey(own.rank), "yes", kHearing).IgnoreError();
    return *error;
  }
  StatusOr<std::string> agreed = Decide(own);
  TENON_RETURN_IF_ERROR(
      store.Put(kAgreed, agreed.ok() ? *agreed : Written(agreed.status()), own.start_limit));
  for (int rank = 1; !agreed.ok() && rank < own.size; ++rank) {
    if (!store.Get(HeardKey(rank), kHearing).ok()) break;  // it may be the one that never comes
  }
  return agreed;
}

}  // namespace tenon
