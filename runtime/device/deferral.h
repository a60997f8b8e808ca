// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace tenon {

/// While a thread is in a scope, what it gives to Defer waits for the end of the outermost scope:
/// messages of one burst leave together then.
class DeferralScope {
 public:
  DeferralScope();
  ~DeferralScope();
  DeferralScope(const DeferralScope&) = delete;
  DeferralScope& operator=(const DeferralScope&) = delete;

  /// Whether this thread has put nothing off.
  static bool Empty();
  /// Runs what this thread has put off, because it is about to be busy for long.
  static void RunNow();
};

/// Runs `task` at the end of the thread's outermost scope; at once where there is none. Tasks run
/// in the order in which they came.
void Defer(std::function<void()> task);

}  // namespace tenon
