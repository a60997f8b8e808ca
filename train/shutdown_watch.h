// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <thread>

#include "core/mutex.h"
#include "core/status.h"
#include "distributed/server.h"
#include "runtime/session.h"

namespace tenon {

/// Ends the work of a program whose server is told to end, as `tenon stop` does: the session is
/// closed, so that its steps fail, and Check says why. Thread-safe.
///
///   ShutdownWatch watch(*server);
///   watch.SetSession(session.get());
///   while (...) { TENON_RETURN_IF_ERROR(watch.Check()); ... }
///   watch.SetSession(nullptr);
class ShutdownWatch {
 public:
  explicit ShutdownWatch(Server& server);
  /// Shuts the server down.
  ~ShutdownWatch();
  ShutdownWatch(const ShutdownWatch&) = delete;
  ShutdownWatch& operator=(const ShutdownWatch&) = delete;

  /// Cancelled once the server was told to end.
  Status Check() const;
  /// The session to close when that happens, at once when it has; null for none. After return the
  /// session before is not used any more.
  void SetSession(Session* session);

 private:
  Server& server_;
  std::atomic<bool> told_{false};
  Mutex mu_;
  Session* session_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::thread thread_;
};

}  // namespace tenon
