// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "core/mutex.h"

namespace tenon {

/// The threads that run the nodes of every step of a process or session. Tasks must not block for
/// long: what waits is an asynchronous kernel. Thread-safe.
class ThreadPool {
 public:
  /// `num_threads` >= 0; with 0 threads Submit is never to be called: callers run everything
  /// themselves.
  explicit ThreadPool(int num_threads);
  /// Runs what was submitted, then ends the threads.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(threads_.size()); }
  void Submit(std::function<void()> task);

 private:
  void Work();

  Mutex mu_;
  CondVar wake_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mu_);
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace tenon
