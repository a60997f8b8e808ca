// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <random>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "data/http/http_client.h"

namespace tenon {

/// How often, and after what pauses, a request is sent again. A pause is twice the one before it,
/// of which a random part, up to a half, is left out, so that many processes do not come back at
/// once.
struct RetryPolicy {
  int attempts = 10;
  int attempts_to_connect = 4;  // where nobody listens
  Clock::Duration first_pause = std::chrono::milliseconds(100);
  Clock::Duration longest_pause = std::chrono::seconds(10);
};

/// Whether another try may end better: connections that broke or timed out, and the statuses 408,
/// 429, 500, 502, 503 and 504. REQUIRES: requests that may be sent twice.
bool IsTransient(const StatusOr<HttpResponse>& response);

/// The tries of one request. Used by one thread at a time.
class Retries {
 public:
  Retries(const RetryPolicy& policy, Clock& clock, uint64_t seed = std::random_device()())
      : policy_(policy), clock_(clock), random_(seed) {}

  /// Waits before the next try, as long as the server asks for by Retry-After where that is not
  /// longer than the longest pause. False, at once, when there is to be none, or soon after
  /// `cancelled` has become true.
  bool Wait(const StatusOr<HttpResponse>& response, const std::atomic<bool>* cancelled = nullptr);
  /// The tries that are over.
  int attempts() const { return attempts_; }

 private:
  const RetryPolicy policy_;
  Clock& clock_;
  std::mt19937_64 random_;
  int attempts_ = 0;
};

/// Sends a request that may be sent twice until its response is not transient or the policy ends;
/// the last response or error.
StatusOr<HttpResponse> SendPatiently(HttpClient& client, const HttpRequest& request,
                                     const RetryPolicy& policy, Clock& clock);

}  // namespace tenon
