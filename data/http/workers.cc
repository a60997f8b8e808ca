// SPDX-License-Identifier: Apache-2.0
#include "data/http/workers.h"

#include <system_error>
#include <utility>

namespace tenon {

Workers::~Workers() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mu_);
    ending_ = true;
    changed_.NotifyAll();
    threads = std::move(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

Status Workers::Run(std::function<void()> work) {
  MutexLock lock(mu_);
  if (idle_ <= queue_.size() && threads_.size() < most_) {
    try {
      threads_.emplace_back([this] { Loop(); });
    } catch (const std::system_error& e) {
      // The threads that there are do it, one after another.
      if (threads_.empty()) return ResourceExhausted("the system gives no thread: ", e.what());
    }
  }
  queue_.push_back(std::move(work));
  changed_.NotifyOne();
  return OkStatus();
}

void Workers::Loop() {
  while (true) {
    std::function<void()> work;
    {
      MutexLock lock(mu_);
      ++idle_;
      while (queue_.empty() && !ending_) changed_.Wait(mu_);
      --idle_;
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace tenon
