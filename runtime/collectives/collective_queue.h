// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/device/communicator.h"
#include "runtime/collectives/collective_backend.h"
#include "runtime/collectives/rank_notes.h"

namespace tenon {

struct CollectiveQueueOptions {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;
  /// How long a collective may take, from this rank's start of it: a rank that is gone, late or
  /// does something else ends the others' steps after that at most.
  std::chrono::milliseconds limit{std::chrono::minutes(5)};
  /// Gets a line for people when ranks are waited for long; from any thread, and must not block.
  /// May be null.
  std::function<void(const std::string& line)> notice = {};
  /// Null where there is one rank.
  std::shared_ptr<KeyValueStore> store = {};
  /// Joins the ranks once more, for BeginAnew; blocks until all have come. May be null where there
  /// is one rank.
  std::function<StatusOr<CollectiveBackends>(int64_t generation)> join = {};
  /// The memory of the device, where there is a library for it.
  const Allocator* device_memory = nullptr;
  /// The clock outlives the queue.
  Clock* clock = nullptr;
};

/// The collectives of a rank, one after the other, on a thread of their own.
///
/// Ranks that do not start the same collective are found out, not waited for until the limit: each
/// rank that waits for some seconds leaves a note in the store about what it has started, and reads
/// those of the others. What ranks do in the memory of devices begins with a word by the library of
/// the host's: that one has limits of its own, and finds out who does not come.
class CollectiveQueue final : public Communicator {
 public:
  CollectiveQueue(CollectiveBackends backends, CollectiveQueueOptions options);
  /// Fails what has not ended.
  ~CollectiveQueue() override;

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  int local_rank() const override { return options_.local_rank; }
  int local_size() const override { return options_.local_size; }
  const Allocator* device_memory() const override;
  void Start(Collective what, Done done) override;
  /// On the caller's thread where nothing else is under way, and to its end: part of a sum, that a
  /// cancelled step had left off, would be the other ranks' result.
  StatusOr<CollectiveResult> Run(Collective what) override;
  void Abort(const Status& why) override;
  Status BeginAnew(const Status& why) override;

 private:
  struct Entry {
    Collective what;
    Done done;
  };
  /// Fails everything here, and lets the connections go.
  void Break(const Status& why);
  /// Tells the other ranks why this one fails, before it lets the connections go.
  void Tell(const Status& why);
  /// Whether it can be done, and makes its data its own.
  Status Check(Collective* what) const;
  void Work();
  /// Says that this one is under way, and gives its number.
  int64_t Begin(const Collective& what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// The one under way; its failure fails all. `ends_well`: ends it where it has not failed.
  StatusOr<CollectiveResult> Do(Collective& what, int64_t sequence, bool ends_well);
  /// Lets another one begin.
  void End() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Watch();
  StatusOr<CollectiveResult> Execute(Collective& what, int64_t sequence);
  /// The part that needs other ranks of what is done in place, and of barriers.
  Status ExecuteInPlace(Collective& what, int64_t sequence);
  CollectiveBackend& LibraryFor(const Collective& what) {
    return what.on_device ? *on_device_ : *backend_;
  }
  StatusOr<CollectiveResult> Gather(Collective& what, int64_t sequence);
  StatusOr<CollectiveResult> Exchange(Collective& what, int64_t sequence);
  /// The rows and dtypes of all ranks, of which all dimensions but the first must agree.
  Status ShareShapes(const Collective& what, int64_t sequence, absl::Span<const int64_t> rows,
                     std::vector<int64_t>* all_rows);
  /// Waits for the ranks by the library of the host's memory, where what follows is by the devices'
  /// own: one that has failed meanwhile, such as for lack of memory, is noticed here.
  Status MeetBeforeDevices(const Collective& what, int64_t sequence) {
    return what.on_device ? backend_->Barrier(CallOf(what, sequence, 2)) : OkStatus();
  }
  CollectiveCall CallOf(const Collective& what, int64_t sequence, int part) const;
  /// The error of a collective that fails for a reason which another rank has left.
  Status OfOthers(const Collective& what, const Status& told) const;
  /// Why a collective has failed, with the ranks that are the cause as far as they are known.
  Status Explain(const Collective& what, int64_t sequence, const Status& error);

  // Others only while nothing is under way.
  std::shared_ptr<CollectiveBackend> backend_, on_device_;
  const CollectiveQueueOptions options_;
  Clock& clock_;
  RankNotes notes_;
  mutable Mutex mu_;
  CondVar changed_, ends_, idle_;
  std::deque<Entry> waiting_ ABSL_GUARDED_BY(mu_);
  /// The collective that the thread is at, its number, and since when.
  std::optional<Collective> current_ ABSL_GUARDED_BY(mu_);
  int64_t sequence_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t next_ ABSL_GUARDED_BY(mu_) = 1;  // the number of the next one
  Clock::Time since_ ABSL_GUARDED_BY(mu_);
  bool busy_ ABSL_GUARDED_BY(mu_) = false;  // from the taking of a collective until it is done
  Status broken_ ABSL_GUARDED_BY(mu_);
  /// The reason that the other ranks have not been told yet.
  std::optional<Status> untold_ ABSL_GUARDED_BY(mu_);
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::jthread worker_, watcher_;
};

}  // namespace tenon
