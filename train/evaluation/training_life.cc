// SPDX-License-Identifier: Apache-2.0
#include "train/evaluation/training_life.h"

#include <utility>

#include "core/base/strings.h"
#include "distributed/protocol/server.h"

namespace tenon {
namespace {

constexpr std::chrono::milliseconds kAnswersWithin{3000};

}  // namespace

TrainingLife::TrainingLife(TrainingLifeOptions options)
    : options_(std::move(options)), clock_(*options_.clock), silent_since_(clock_.Now()) {}

StatusOr<bool> TrainingLife::GoesOn() {
  const Status life =
      TaskAt(StrCat("grpc://", options_.chief), options_.credentials, kAnswersWithin).status();
  const Clock::Time now = clock_.Now();
  if (life.ok() || life.code() == StatusCode::kDeadlineExceeded) {
    has_come_ = true;
    silent_since_ = now;
    return true;
  }
  if (life.code() != StatusCode::kUnavailable) return life;
  if (now - silent_since_ < (has_come_ ? options_.patience : options_.start_up_deadline)) {
    return true;
  }
  if (!has_come_ && options_.notice) {
    options_.notice(StrCat("the chief has not come within ",
                           options_.start_up_deadline.count() / 1000.0, " s: ", Message(life)));
  }
  return false;
}

}  // namespace tenon
