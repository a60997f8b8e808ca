// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/glm_stream.h"

#include <algorithm>
#include <utility>

#include "core/base/interruption.h"

namespace tenon {
namespace {

/// Rows that stand together are alike in a file in order of date, so a batch has many short runs.
/// A run costs some lines of memory for each column, so rows alone would be slower.
constexpr int64_t kRunRows = 8, kRunsOfBatch = 64;
/// The memory of a run is asked for so many runs before it is read.
constexpr size_t kRunsAhead = 4;
/// Units that the lanes of a task have open together, each with its text: some 4 MB.
constexpr int64_t kOpenUnits = 16, kOpenUnitsOfLane = 4;

}  // namespace

GlmStream::GlmStream(std::shared_ptr<const TableShard> shard, GlmDesign design,
                     GlmCoefficientParts parts, const GlmStreamOptions& options)
    : shard_(std::move(shard)),
      design_(std::move(design)),
      parts_(std::move(parts)),
      options_(options),
      run_rows_(std::clamp<int64_t>(options.rows / kRunsOfBatch, 1, kRunRows)),
      most_open_(std::clamp<int64_t>(kOpenUnits / options.lanes, 1, kOpenUnitsOfLane)) {
  RandomSequence random(static_cast<uint64_t>(options.seed));
  std::vector<Run> held;
  std::vector<int64_t> parsed;
  for (int64_t u = 0; u < shard_->num_units(); ++u) {
    if (!shard_->is_held(u)) parsed.push_back(u);
    for (const TableBlock& block : shard_->blocks(u)) AddRunsOf(block, &held);
  }
  Shuffle(&random, &held);
  Shuffle(&random, &parsed);
  for (int64_t l = 0; l < options.lanes; ++l) {
    lanes_.push_back(std::make_unique<Lane>());
    Lane& lane = *lanes_.back();
    MutexLock lock(lane.mu);
    lane.maker = std::make_unique<GlmBatchMaker>(design_, parts_, options.rows);
    lane.random = RandomSequence(random.Next());
    for (size_t i = l; i < held.size(); i += options.lanes) lane.held.push_back(held[i]);
    for (size_t i = l; i < parsed.size(); i += options.lanes) {
      lane.units.push_back(parsed[i]);
      lane.parsed_rows += shard_->report(parsed[i]).num_rows;
    }
    std::reverse(lane.units.begin(), lane.units.end());
  }
}

GlmStream::~GlmStream() = default;

void GlmStream::AddRunsOf(const TableBlock& block, std::vector<Run>* runs) const {
  const int64_t count = (block.num_rows + run_rows_ - 1) / run_rows_;
  for (int64_t r = 0; r < count; ++r) runs->push_back({&block, r});
}

void GlmStream::Prefetch(const Run& run) const {
  const int64_t begin = run.number * run_rows_;
  const int64_t count = std::min(run_rows_, run.block->num_rows - begin);
  for (const PackedColumn& column : run.block->columns) column.Prefetch(begin, count);
}

template <typename T>
void GlmStream::Shuffle(RandomSequence* random, std::vector<T>* values) const {
  if (options_.seed < 0) return;
  for (size_t i = values->size(); i > 1; --i)
    std::swap((*values)[i - 1], (*values)[random->Below(i)]);
}

Status GlmStream::ReadWindow(Lane* lane, const FileContext& context) {
  lane->window.clear();
  while (lane->window.empty() && !(lane->open.empty() && lane->units.empty())) {
    while (lane->open.size() < most_open_ && !lane->units.empty()) {
      // The reader lives longer than the step that opens it.
      TENON_ASSIGN_OR_RETURN(auto unit,
                             shard_->Parse(lane->units.back(), {context.files, nullptr}));
      lane->open.push_back(std::move(unit));
      lane->units.pop_back();
    }
    std::vector<std::unique_ptr<TableShard::ParsedUnit>> still_open;
    for (auto& unit : lane->open) {
      TENON_RETURN_IF_ERROR(context.CheckCancelled());
      TableBlock block;
      TENON_ASSIGN_OR_RETURN(const bool found, unit->Next(&block));
      if (!found) continue;
      if (block.num_rows > 0) lane->window.push_back(std::move(block));
      still_open.push_back(std::move(unit));
    }
    lane->open = std::move(still_open);
  }
  return OkStatus();
}

StatusOr<bool> GlmStream::Refill(Lane* lane, const FileContext& context) {
  lane->runs.clear();
  lane->next = 0;
  TENON_RETURN_IF_ERROR(ReadWindow(lane, context));
  size_t share = lane->held.size() - lane->next_held;
  int64_t rows = 0;
  for (const TableBlock& block : lane->window) {
    AddRunsOf(block, &lane->runs);
    rows += block.num_rows;
  }
  if (rows > 0) {
    const double part = static_cast<double>(rows) / static_cast<double>(lane->parsed_rows);
    share = std::min(share, static_cast<size_t>(part * static_cast<double>(lane->held.size())) + 1);
  }
  const auto first = lane->held.begin() + static_cast<std::ptrdiff_t>(lane->next_held);
  lane->runs.insert(lane->runs.end(), first, first + static_cast<std::ptrdiff_t>(share));
  lane->next_held += share;
  if (rows > 0) Shuffle(&lane->random, &lane->runs);
  return !lane->runs.empty();
}

StatusOr<const GlmBatch*> GlmStream::Fill(Lane* lane, const FileContext& context) {
  GlmBatchMaker& maker = *lane->maker;
  maker.Begin();
  while (maker.num_read() < options_.rows) {
    if (Interrupted()) return Cancelled("a batch of rows was interrupted");
    if (lane->next == lane->runs.size()) {
      TENON_ASSIGN_OR_RETURN(const bool found, Refill(lane, context));
      if (!found) break;
    }
    if (lane->next + kRunsAhead < lane->runs.size()) Prefetch(lane->runs[lane->next + kRunsAhead]);
    const Run& run = lane->runs[lane->next++];
    const int64_t begin = run.number * run_rows_;
    maker.Add(*run.block, begin, std::min(run_rows_, run.block->num_rows - begin));
  }
  return &maker.End(options_.start, options_.scale);
}

}  // namespace tenon
