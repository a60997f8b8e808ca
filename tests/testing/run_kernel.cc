// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/run_kernel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include "core/base/exceptions.h"

namespace tenon::testing {

Status RunKernel(const Kernel& kernel, KernelContext& context) {
  if (!kernel.is_async()) return CatchExceptions([&] { return kernel.Compute(context); });
  std::mutex mu;
  std::condition_variable cv;
  bool finished = false;
  Status status;
  kernel.ComputeAsync(context, [&](Status s) {
    std::lock_guard<std::mutex> lock(mu);
    status = std::move(s);
    finished = true;
    cv.notify_one();
  });
  std::unique_lock<std::mutex> lock(mu);
  if (!cv.wait_for(lock, std::chrono::seconds(20), [&] { return finished; })) {
    ADD_FAILURE() << kernel.op() << " did not end";
    std::abort();  // the kernel still refers to this frame
  }
  return status;
}

}  // namespace tenon::testing
