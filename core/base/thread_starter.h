// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "core/base/status.h"

namespace tenon {

/// Starts what runs beside its owner for long: signs of life, saves in the background. The
/// machine's gives each work a thread; a simulation takes them in turns. Thread-safe.
class ThreadStarter {
 public:
  /// Work that has been started. The destructor waits for its end.
  class Work {
   public:
    virtual ~Work() = default;
  };

  virtual ~ThreadStarter() = default;
  /// Runs `work`, which must throw nothing. ResourceExhausted where the system gives no thread.
  virtual StatusOr<std::unique_ptr<Work>> Start(std::function<void()> work) = 0;
};

}  // namespace tenon
