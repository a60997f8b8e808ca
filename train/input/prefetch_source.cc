// SPDX-License-Identifier: Apache-2.0
#include "train/input/prefetch_source.h"

namespace tenon {

PrefetchSource::PrefetchSource(std::unique_ptr<InputSource> from, int64_t count)
    : from_(std::move(from)), count_(count), thread_([this] { Fill(); }) {}

PrefetchSource::~PrefetchSource() {
  {
    MutexLock lock(mu_);
    stop_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void PrefetchSource::Fill() {
  while (true) {
    InputElement element;
    const StatusOr<bool> found = from_->Next(&element);
    MutexLock lock(mu_);
    if (!found.ok() || !*found) {
      status_ = found.status();
      ended_ = true;
      changed_.NotifyAll();
      return;
    }
    ready_.push_back(std::move(element));
    changed_.NotifyAll();
    while (!stop_ && static_cast<int64_t>(ready_.size()) >= count_) changed_.Wait(mu_);
    if (stop_) return;
  }
}

StatusOr<bool> PrefetchSource::Next(InputElement* element) {
  MutexLock lock(mu_);
  while (ready_.empty() && !ended_) changed_.Wait(mu_);
  if (ready_.empty()) {
    TENON_RETURN_IF_ERROR(status_);
    return false;
  }
  *element = std::move(ready_.front());
  ready_.pop_front();
  changed_.NotifyAll();
  return true;
}

}  // namespace tenon
