// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/rank_notes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "core/base/strings.h"

namespace tenon {
namespace {

constexpr std::chrono::milliseconds kNotePause{20};

/// The words of a rank that waits about itself: "12 AllReduce 'x' of float[2]".
struct Note {
  int64_t sequence = 0;
  std::string what;

  std::string ToString() const { return StrCat(sequence, " ", what); }
  static Note Parse(const std::string& text) {
    const size_t space = text.find(' ');
    return {std::atoll(text.c_str()), space == std::string::npos ? "" : text.substr(space + 1)};
  }
};

/// The words of a rank about why it has failed: "1 11 no more rows", its number and a code's first.
struct Reason {
  int rank = 0;
  Status status;

  std::string ToString() const {
    constexpr size_t kLongest = 2000;
    return StrCat(rank, " ", static_cast<int>(status.code()), " ",
                  std::string(Message(status)).substr(0, kLongest));
  }
  static std::optional<Reason> Parse(const std::string& text) {
    Reason reason;
    int code = 0, length = 0;
    if (std::sscanf(text.c_str(), "%d %d %n", &reason.rank, &code, &length) != 2 || code == 0) {
      return std::nullopt;
    }
    reason.status = Status(static_cast<StatusCode>(code), text.substr(static_cast<size_t>(length)));
    return reason;
  }
};

std::string ReasonKey(int64_t generation) { return StrCat("failed/", generation); }

std::string NoteKey(int64_t generation, int rank) {
  return StrCat("waits/", generation, "/", rank);
}

}  // namespace

RankNotes::RankNotes(int rank, int size, std::shared_ptr<KeyValueStore> store, Clock* clock)
    : rank_(rank), size_(size), store_(std::move(store)), clock_(*clock) {}

Status RankNotes::LeaveReason(const Status& why, std::chrono::milliseconds limit) {
  return store_->Put(ReasonKey(generation_), Reason{rank_, why}.ToString(), limit);
}

std::optional<Status> RankNotes::ReasonOfOthers() const {
  const StatusOr<std::string> text =
      store_->Get(ReasonKey(generation_), std::chrono::milliseconds(0));
  const std::optional<Reason> reason = text.ok() ? Reason::Parse(*text) : std::nullopt;
  if (!reason || reason->rank == rank_) return std::nullopt;
  const Status& why = reason->status;
  if (why.code() == StatusCode::kOutOfRange) {
    return OutOfRange("rank ", reason->rank, ": ", Message(why));
  }
  return Unavailable("rank ", reason->rank, " has failed: ", why.ToString());
}

StatusOr<std::string> RankNotes::NoteOf(int rank, int64_t sequence, Clock::Time end) const {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock_.Now());
    const auto limit = std::max(left, std::chrono::milliseconds(0));
    StatusOr<std::string> note = store_->Get(NoteKey(generation_, rank), limit);
    if (!note.ok() && note.status().code() == StatusCode::kDeadlineExceeded) return std::string();
    const bool is_old = note.ok() && Note::Parse(*note).sequence < sequence;
    if (!is_old || left < kNotePause) return note;
    clock_.SleepFor(kNotePause);
  }
}

StatusOr<RankFindings> RankNotes::Compare(const Collective& what, int64_t sequence,
                                          std::chrono::milliseconds patience) const {
  const std::string own = what.ToString();
  TENON_RETURN_IF_ERROR(
      store_->Replace(NoteKey(generation_, rank_), Note{sequence, own}.ToString(), patience));
  const bool has_rows =
      what.kind == Collective::Kind::kAllGather || what.kind == Collective::Kind::kAllToAll;
  const Clock::Time end = clock_.Now() + patience;
  RankFindings findings;
  std::vector<int> behind;
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    TENON_ASSIGN_OR_RETURN(const std::string theirs, NoteOf(r, sequence, end));
    const Note note = Note::Parse(theirs);
    if (note.sequence < sequence) findings.missing.push_back(r);
    if (note.sequence == sequence - 1) behind.push_back(r);
    // Who is ahead has got what this rank still waits for.
    if (note.sequence != sequence) continue;
    // The rows of a gather may differ, and its shapes are compared by the ranks themselves.
    const bool is_same =
        has_rows ? note.what.substr(0, note.what.find("' of ")) == own.substr(0, own.find("' of "))
                 : note.what == own;
    if (!is_same) findings.of_others.push_back(StrCat("rank ", r, " in ", note.what));
  }
  // A rank that waits in the collective before is not to blame when another one does not wait.
  if (behind.size() < findings.missing.size()) {
    std::erase_if(findings.missing, [&](int r) {
      return std::find(behind.begin(), behind.end(), r) != behind.end();
    });
  }
  return findings;
}

}  // namespace tenon
