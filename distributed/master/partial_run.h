// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "distributed/master/cluster_program.h"
#include "runtime/compile/feed_dependencies.h"

namespace tenon {

/// One step that a client feeds and fetches in several calls (PartialRunSetup, then RunSteps with
/// its handle). Its partitions run from the first call to the last, which is the one that leaves
/// nothing to feed or fetch. An error of a step at work, or End, ends it before. Thread-safe.
class PartialRun {
 public:
  PartialRun(std::shared_ptr<ClusterProgram> program, const Signature& signature,
             std::shared_ptr<const FeedDependencies> dependencies);

  ClusterProgram& program() const { return *program_; }
  /// Ends the run when it is cancelled; outlives every call.
  Cancellation& cancellation() { return cancellation_; }

  /// Takes what `call` feeds and fetches off what is pending. InvalidArgument, and nothing is
  /// taken, for a feed or fetch that was not set up or has had its turn, a feed of another dtype or
  /// shape than it must have, and a fetch whose feeds are not there yet. When the run has ended:
  /// why.
  Status BeginCall(const ClientCall& call, CallShare* share);
  /// A call that has begun is over. True when the run is, too: the workers have been told.
  bool EndCall(const Status& status);
  /// Ends the run, with `why` for the calls that wait.
  void End(const Status& why);

 private:
  /// The feeds, or the fetches, and which of them have had their turn.
  struct Tensors {
    explicit Tensors(const std::vector<std::string>& names);
    /// The number of `name`, which has its turn now. InvalidArgument when there is none, or it has
    /// been `taken` before.
    StatusOr<int> Take(const char* what, const std::string& name, const char* taken);
    StringMap<int> numbers;  // by name with output
    std::vector<bool> done;
    size_t left;
  };

  const std::shared_ptr<ClusterProgram> program_;
  const std::vector<std::string> feed_names_;
  const std::shared_ptr<const FeedDependencies> dependencies_;
  const int64_t step_id_;
  Cancellation cancellation_;
  Mutex mu_;
  Tensors feeds_ ABSL_GUARDED_BY(mu_);
  Tensors fetches_ ABSL_GUARDED_BY(mu_);
  int calls_ ABSL_GUARDED_BY(mu_) = 0;  // under way
  bool begun_ ABSL_GUARDED_BY(mu_) = false;
  bool over_ ABSL_GUARDED_BY(mu_) = false;
};

/// The partial runs of one session, by handle. Thread-safe.
class PartialRuns {
 public:
  /// Keeps it and gives its handle. ResourceExhausted when there are too many; after EndAll: why.
  StatusOr<std::string> Add(std::shared_ptr<PartialRun> run);
  /// InvalidArgument when there is none of that handle.
  StatusOr<std::shared_ptr<PartialRun>> Find(const std::string& handle);
  /// A run that has ended need not be found any more.
  void Forget(const std::shared_ptr<PartialRun>& run);
  /// Ends those that there are, and refuses later ones.
  void EndAll(const Status& why);

 private:
  Mutex mu_;
  Status ended_ ABSL_GUARDED_BY(mu_);
  StringMap<std::shared_ptr<PartialRun>> runs_ ABSL_GUARDED_BY(mu_);
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tenon
