// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/device/communicator.h"
#include "runtime/collectives/key_value_store.h"

namespace tenon {

/// The knowledge of ranks that wait about each other.
struct RankFindings {
  std::vector<int> missing;            // ranks that have left no note
  std::vector<std::string> of_others;  // "rank 1 is in AllReduce 'a' of float[2]"
};

/// The notes that ranks leave for each other in the job's store, about what they wait in and why
/// they have failed: collectives themselves only show that a rank does not come. Thread-safe, but
/// for BeginAnew.
class RankNotes {
 public:
  /// `store` may be null where there is one rank, and nothing but BeginAnew is called.
  RankNotes(int rank, int size, std::shared_ptr<KeyValueStore> store, Clock* clock);

  /// How often the ranks have begun anew; notes of before do not count.
  int64_t generation() const { return generation_; }
  void BeginAnew() { ++generation_; }

  /// Leaves a note about a collective, the `sequence`-th, and reads those of the others, for which
  /// it waits up to `patience`. The errors of the store.
  StatusOr<RankFindings> Compare(const Collective& what, int64_t sequence,
                                 std::chrono::milliseconds patience) const;
  /// Says why this rank fails. The first reason of all ranks stays: AlreadyExists for another one.
  Status LeaveReason(const Status& why, std::chrono::milliseconds limit);
  /// The reason of another rank: OutOfRange where its data have come to their end, else
  /// Unavailable; none where none was left, or the store does not answer.
  std::optional<Status> ReasonOfOthers() const;

 private:
  /// The note of a rank, as soon as it is about that collective or a later one, or what there is at
  /// `end`: perhaps an empty one.
  StatusOr<std::string> NoteOf(int rank, int64_t sequence, Clock::Time end) const;

  const int rank_, size_;
  const std::shared_ptr<KeyValueStore> store_;
  Clock& clock_;
  std::atomic<int64_t> generation_{0};
};

}  // namespace tenon
