// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/thread_pool.h"

#include "core/base/denormals.h"

namespace tenon {
namespace {

/// The tasks that this thread has submitted while it handled an event: it runs the first itself.
thread_local int tasks_of_event = 0;
thread_local const ThreadPool* watched_pool = nullptr;

}  // namespace

ThreadPool::ThreadPool(int num_threads) : num_threads_(num_threads) {
  threads_.reserve(num_threads + 1);
  for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { Work(); });
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(mu_);
    closing_ = true;
  }
  wake_.NotifyAll();
  for (std::thread& t : threads_) t.join();
}

void ThreadPool::Submit(std::function<void()> task) {
  {
    auto busy = std::make_unique<BusyThread>();
    MutexLock lock(mu_);
    tasks_.push_back({std::move(task), std::move(busy)});
  }
  WakeForTask();
}

bool ThreadPool::SubmitIfFree(std::function<void()>& task) {
  {
    auto busy = std::make_unique<BusyThread>();
    MutexLock lock(mu_);
    if (!tasks_.empty() || running_ >= num_threads_) return false;
    tasks_.push_back({std::move(task), std::move(busy)});
  }
  WakeForTask();
  return true;
}

void ThreadPool::WakeForTask() {
  if (watched_pool == this && tasks_of_event++ == 0) return;
  wake_.NotifyOne();
}

int64_t ThreadPool::num_waiting() {
  MutexLock lock(mu_);
  return static_cast<int64_t>(tasks_.size());
}

void ThreadPool::StartWatching(Watch watch) {
  MutexLock lock(mu_);
  threads_.emplace_back([this] { Work(); });  // which the system may refuse
  watched_.push_back({std::move(watch)});
}

void ThreadPool::WaitUntilWatched() {
  MutexLock lock(mu_);
  while (!watched_.empty()) all_watched_.Wait(mu_);
}

void ThreadPool::Work() {
  const FlushDenormals flush;
  mu_.Lock();
  while (true) {
    if (!tasks_.empty() && running_ < num_threads_) {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      ++running_;
      if (Unwatched() != nullptr) wake_.NotifyOne();  // somebody else watches now
      mu_.Unlock();
      task.run();
      task = {};  // what it holds dies outside the lock
      mu_.Lock();
      --running_;
    } else if (Watched* const watched = Unwatched()) {
      WatchUntilTask(watched);
    } else if (closing_ && tasks_.empty()) {
      wake_.NotifyAll();  // one that waited for a task to end, to run the next, has nothing to do
                          // now
      break;
    } else {
      wake_.Wait(mu_);
    }
  }
  mu_.Unlock();
}

ThreadPool::Watched* ThreadPool::Unwatched() {
  for (Watched& watched : watched_) {
    if (!watched.busy) return &watched;
  }
  return nullptr;
}

void ThreadPool::WatchUntilTask(Watched* watched) {
  watched->busy = true;
  watched_pool = this;
  const Watch& watch = watched->watch;
  bool more = true;
  while (more && (tasks_of_event == 0 || tasks_.empty() || running_ == num_threads_)) {
    tasks_of_event = 0;
    mu_.Unlock();
    more = watch();
    mu_.Lock();
  }
  tasks_of_event = 0;
  watched_pool = nullptr;
  watched->busy = false;
  if (!more) {
    watched_.remove_if([&](const Watched& one) { return &one == watched; });
    all_watched_.NotifyAll();
  }
}

}  // namespace tenon
