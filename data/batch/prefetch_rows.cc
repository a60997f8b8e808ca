// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

#include "core/base/exceptions.h"
#include "core/base/mutex.h"
#include "data/batch/batch_stages.h"

namespace tenon {
namespace {

/// How many rows are asked for at once: the first ones should not wait for all.
constexpr int64_t kMostAtOnce = 256;

class PrefetchStage final : public BatchSource {
 public:
  PrefetchStage(BatchSourcePtr from, int64_t count)
      : from_(std::move(from)),
        schema_(from_->schema()),
        count_(count),
        thread_([this] { Fill(); }) {}
  ~PrefetchStage() override {
    {
      MutexLock lock(mu_);
      stop_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }
  const std::shared_ptr<const RowSchema>& schema() const override { return schema_; }

  StatusOr<bool> Next(int64_t most, RowBatch* batch) override {
    MutexLock lock(mu_);
    while (ready_.empty() && !ended_) changed_.Wait(mu_);
    if (ready_.empty()) {
      TENON_RETURN_IF_ERROR(status_);
      return false;
    }
    RowBatch& front = ready_.front();
    const int64_t rows = front.num_rows();
    if (rows <= most) {
      *batch = std::move(front);
      ready_.pop_front();
      rows_ -= rows;
    } else {
      *batch = front.Slice(0, most);
      front = front.Slice(most, rows);
      rows_ -= most;
    }
    changed_.NotifyAll();
    return true;
  }

 private:
  void Fill() {
    int64_t wanted = std::min(count_, kMostAtOnce);
    while (true) {
      RowBatch batch;
      const StatusOr<bool> found = CatchExceptions([&] { return from_->Next(wanted, &batch); });
      MutexLock lock(mu_);
      if (!found.ok() || !*found) {
        status_ = found.status();
        ended_ = true;
        changed_.NotifyAll();
        return;
      }
      rows_ += batch.num_rows();
      ready_.push_back(std::move(batch));
      changed_.NotifyAll();
      while (!stop_ && rows_ >= count_) changed_.Wait(mu_);
      if (stop_) return;
      wanted = std::min(count_ - rows_, kMostAtOnce);
    }
  }

  const BatchSourcePtr from_;  // of the thread
  const std::shared_ptr<const RowSchema> schema_;
  const int64_t count_;
  Mutex mu_;
  CondVar changed_;
  std::deque<RowBatch> ready_ ABSL_GUARDED_BY(mu_);
  int64_t rows_ ABSL_GUARDED_BY(mu_) = 0;  // that are ready
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  Status status_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace

BatchSourcePtr PrefetchRows(BatchSourcePtr from, int64_t count) {
  return std::make_unique<PrefetchStage>(std::move(from), count);
}

}  // namespace tenon
