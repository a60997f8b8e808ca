// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/exceptions.h"
#include "data/batch/batch_stages.h"
#include "data/batch/random_sequence.h"

namespace tenon {
namespace {

/// How many rows are read ahead of the one that is needed, where the input has them at once.
constexpr int64_t kReadAhead = 256;
constexpr int64_t kFirstSlots = 64;

class ShuffleStage final : public BatchSource {
 public:
  ShuffleStage(BatchSourcePtr from, int64_t buffer_size, uint64_t seed, uint64_t repetition)
      : from_(std::move(from)), buffer_size_(buffer_size), random_(seed) {
    // Another sequence for each repetition, far from those of seeds nearby.
    for (int i = 0; i < 2; ++i) random_ = RandomSequence(random_.Next() ^ repetition);
  }
  const std::shared_ptr<const RowSchema>& schema() const override { return from_->schema(); }

  StatusOr<bool> Next(int64_t most, RowBatch* batch) override {
    return CatchExceptions(
        [&]() -> StatusOr<bool> { return Draw(std::min(most, kReadAhead), batch); });
  }

 private:
  StatusOr<bool> Draw(int64_t most, RowBatch* batch) {
    TENON_RETURN_IF_ERROR(Fill());
    if (held_.empty()) return false;
    *batch = {schema(), {}};
    for (const Tensor& slots : slots_) {
      DimVector dims(slots.shape().dims().begin(), slots.shape().dims().end());
      dims[0] = most;
      TENON_ASSIGN_OR_RETURN(Tensor out,
                             Tensor::Allocate(CpuAllocator(), slots.dtype(), Shape(dims)));
      batch->columns.push_back(std::move(out));
    }
    int64_t rows = 0;
    while (true) {
      std::swap(held_[random_.Below(held_.size())], held_.back());
      const int64_t slot = held_.back();
      held_.pop_back();
      for (size_t c = 0; c < slots_.size(); ++c) {
        MoveRow(&slots_[c], slot, &batch->columns[c], rows);
      }
      free_.push_back(slot);
      if (++rows == most) break;
      if (const Status filled = Fill(); !filled.ok()) {
        // The rows that were drawn come first, and the error with the next call.
        mistake_ = filled;
        break;
      }
      if (held_.empty()) break;
    }
    if (rows < most) *batch = batch->Slice(0, rows);
    return true;
  }

  /// Holds as many rows as wanted, or all that are left.
  Status Fill() {
    TENON_RETURN_IF_ERROR(mistake_);
    while (!ended_ && static_cast<int64_t>(held_.size()) < buffer_size_) {
      if (incoming_.num_rows() == 0) {
        RowBatch more;
        TENON_ASSIGN_OR_RETURN(const bool found, from_->Next(kReadAhead, &more));
        ended_ = !found;
        if (!found) break;
        TENON_RETURN_IF_ERROR(CheckIsAlike(more));
        incoming_ = std::move(more);
      }
      TENON_ASSIGN_OR_RETURN(const int64_t slot, FreeSlot());
      for (size_t c = 0; c < slots_.size(); ++c) {
        CopyRow(incoming_.columns[c], next_, &slots_[c], slot);
      }
      held_.push_back(slot);
      // An element that is given on later must be held by nobody else.
      if (++next_ == incoming_.num_rows()) {
        incoming_.columns.clear();
        next_ = 0;
      }
    }
    return OkStatus();
  }

  Status CheckIsAlike(const RowBatch& more) const {
    for (size_t c = 0; c < slots_.size(); ++c) {
      const Shape held = slots_[c].shape().WithoutDim(0);
      const Shape found = more.columns[c].shape().WithoutDim(0);
      if (held == found) continue;
      return InvalidArgument("rows of shape ", found, " cannot be shuffled with those of shape ",
                             held);
    }
    return OkStatus();
  }

  StatusOr<int64_t> FreeSlot() {
    if (free_.empty()) TENON_RETURN_IF_ERROR(AddSlots());
    const int64_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  /// Doubles the memory for rows, up to the buffer's size.
  Status AddSlots() {
    const int64_t before = slots_.empty() ? 0 : slots_[0].dim(0);
    const int64_t after = std::min(std::max(2 * before, kFirstSlots), buffer_size_);
    std::vector<Tensor> slots;
    for (const Tensor& column : incoming_.columns) {
      DimVector dims(column.shape().dims().begin(), column.shape().dims().end());
      dims[0] = after;
      TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
      TENON_ASSIGN_OR_RETURN(Tensor more, Tensor::Allocate(CpuAllocator(), column.dtype(), shape));
      for (int64_t i = 0; i < before; ++i) MoveRow(&slots_[slots.size()], i, &more, i);
      slots.push_back(std::move(more));
    }
    slots_ = std::move(slots);
    for (int64_t slot = after; slot-- > before;) free_.push_back(slot);
    return OkStatus();
  }

  const BatchSourcePtr from_;
  const int64_t buffer_size_;
  RandomSequence random_;
  RowBatch incoming_;
  int64_t next_ = 0;  // of the incoming rows
  bool ended_ = false;
  Status mistake_;
  std::vector<Tensor> slots_;  // memory for the rows that are held, a tensor a column
  std::vector<int64_t> held_;  // slots
  std::vector<int64_t> free_;
};

}  // namespace

BatchSourcePtr ShuffleRows(BatchSourcePtr from, int64_t buffer_size, uint64_t seed,
                           uint64_t repetition) {
  return std::make_unique<ShuffleStage>(std::move(from), buffer_size, seed, repetition);
}

}  // namespace tenon
