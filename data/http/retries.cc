// SPDX-License-Identifier: Apache-2.0
#include "data/http/retries.h"

#include <algorithm>

#include "absl/strings/numbers.h"

namespace tenon {
namespace {

/// How soon a cancelled wait ends.
constexpr auto kSlice = std::chrono::milliseconds(50);

}  // namespace

bool IsTransient(const StatusOr<HttpResponse>& response) {
  if (!response.ok()) {
    const StatusCode code = response.status().code();
    return code == StatusCode::kUnavailable || code == StatusCode::kFailedPrecondition;
  }
  switch (response->status) {
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return true;
    default:
      return false;
  }
}

bool Retries::Wait(const StatusOr<HttpResponse>& response, const std::atomic<bool>* cancelled) {
  ++attempts_;
  const bool unconnected = response.status().code() == StatusCode::kFailedPrecondition;
  if (attempts_ >= (unconnected ? policy_.attempts_to_connect : policy_.attempts)) return false;
  const double factor = static_cast<double>(uint64_t{1} << std::min(attempts_ - 1, 30));
  const double part = std::uniform_real_distribution<double>(0.5, 1)(random_);
  const auto wanted = std::chrono::duration<double>(policy_.first_pause) * factor;
  const auto longest = std::chrono::duration<double>(policy_.longest_pause);
  Clock::Duration pause =
      std::chrono::duration_cast<Clock::Duration>(std::min(wanted, longest) * part);
  int seconds = 0;
  if (response.ok() && absl::SimpleAtoi(response->Header("retry-after"), &seconds) &&
      seconds >= 0 && std::chrono::seconds(seconds) <= policy_.longest_pause) {
    pause = std::max<Clock::Duration>(pause, std::chrono::seconds(seconds));
  }
  const Clock::Time end = clock_.Now() + pause;
  while (clock_.Now() < end) {
    if (cancelled != nullptr && cancelled->load()) return false;
    clock_.SleepUntil(std::min<Clock::Time>(end, clock_.Now() + kSlice));
  }
  return true;
}

StatusOr<HttpResponse> SendPatiently(HttpClient& client, const HttpRequest& request,
                                     const RetryPolicy& policy, Clock& clock) {
  Retries retries(policy, clock);
  while (true) {
    StatusOr<HttpResponse> response = client.Send(request);
    if (!IsTransient(response) || !retries.Wait(response)) return response;
  }
}

}  // namespace tenon
