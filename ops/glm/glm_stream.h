// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/status.h"
#include "data/batch/random_sequence.h"
#include "data/table/table_shard.h"
#include "ops/glm/glm_batch.h"
#include "ops/glm/glm_design.h"

namespace tenon {

struct GlmStreamOptions {
  int64_t seed = 1;    // of the order; below 0: that of the files
  int64_t rows = 512;  // in a batch
  int64_t lanes = 1;
  double start = 0;  // what the offset has more
  double scale = 1;  // what offset and response are divided by
};

/// An epoch over the rows of a shard: batches, in random order, that have each row once. A batch is
/// made of short runs of rows that stand one after the other in a file, each from anywhere among
/// the rows in memory. The units that are parsed again give their blocks in turn, a few units at a
/// time, with a share of the rows in memory among them. Lanes give their batches independently:
/// each is called by one thread at a time, and its batches depend on the seed and the number of
/// lanes alone.
class GlmStream {
 public:
  /// `design` was checked, the shard was read and is not changed while this lives.
  GlmStream(std::shared_ptr<const TableShard> shard, GlmDesign design, GlmCoefficientParts parts,
            const GlmStreamOptions& options);
  ~GlmStream();

  int64_t num_lanes() const { return static_cast<int64_t>(lanes_.size()); }
  int64_t num_rows() const { return shard_->num_rows(); }
  int64_t num_parts() const { return parts_.num_parts(); }
  /// Calls `give(const GlmBatch&)`, which returns a Status, with the next batch of a lane; one that
  /// has read no rows is the end.
  template <typename F>
  Status Next(int64_t lane, const FileContext& context, F give) {
    Lane& own = *lanes_[lane];
    MutexLock lock(own.mu);
    TENON_ASSIGN_OR_RETURN(const GlmBatch* const batch, Fill(&own, context));
    return give(*batch);
  }

 private:
  /// Rows of a block, `run_rows_` of them from a multiple of that on.
  struct Run {
    const TableBlock* block;
    int64_t number;
  };
  struct Lane {
    Mutex mu;
    std::unique_ptr<GlmBatchMaker> maker ABSL_GUARDED_BY(mu);
    RandomSequence random ABSL_GUARDED_BY(mu){0};
    std::vector<Run> held ABSL_GUARDED_BY(mu);  // runs in memory, in their order
    size_t next_held ABSL_GUARDED_BY(mu) = 0;
    std::vector<int64_t> units ABSL_GUARDED_BY(mu);  // to be parsed, the last one first
    int64_t parsed_rows ABSL_GUARDED_BY(mu) = 0;     // of all of these
    std::vector<std::unique_ptr<TableShard::ParsedUnit>> open ABSL_GUARDED_BY(mu);
    std::vector<TableBlock> window ABSL_GUARDED_BY(mu);
    std::vector<Run> runs ABSL_GUARDED_BY(mu);  // of the window, and held ones among them
    size_t next ABSL_GUARDED_BY(mu) = 0;        // of the runs
  };

  void AddRunsOf(const TableBlock& block, std::vector<Run>* runs) const;
  void Prefetch(const Run& run) const;
  template <typename T>
  void Shuffle(RandomSequence* random, std::vector<T>* values) const;
  /// Has the lane have runs; false at the end of the epoch.
  StatusOr<bool> Refill(Lane* lane, const FileContext& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lane->mu);
  /// The next blocks of the units that are open.
  Status ReadWindow(Lane* lane, const FileContext& context) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lane->mu);
  StatusOr<const GlmBatch*> Fill(Lane* lane, const FileContext& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lane->mu);

  const std::shared_ptr<const TableShard> shard_;
  const GlmDesign design_;
  const GlmCoefficientParts parts_;
  const GlmStreamOptions options_;
  const int64_t run_rows_;
  size_t most_open_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace tenon
