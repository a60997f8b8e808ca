// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "distributed/protocol/credentials.h"

namespace grpc {
class Channel;
}

namespace tenon {

/// A task that is to be told something about the end of a job.
struct TaskToTell {
  std::string name;  // for people
  std::string address;
  /// While nobody listens there, it is waited for; else it is given up at once.
  bool may_still_start = false;
  std::chrono::milliseconds limit{0};
  std::shared_ptr<grpc::Channel> channel = {};  // connected already; null: a new one is made
};

struct TellOptions {
  /// The clock by which notices are given.
  Clock& clock;
  Credentials credentials = {};
  /// Gets a line every few seconds while tasks are waited for; may be null.
  std::function<void(const std::string& line)> notice = {};
  /// Asked all the time; when it says true, no task is waited for any more that may still start.
  /// May be null.
  std::function<bool()> give_up = {};
};

/// Tells all of `tasks` at once that /job:`job`/task:`task` has ended, and how. Blocks until all
/// have answered or been given up.
void TellTaskEnded(const std::vector<TaskToTell>& tasks, const std::string& job, int task,
                   const Status& end, const TellOptions& options);

/// Asks the servers of all of `tasks` at once to end, for `reason`. Blocks as above.
void TellShutdown(const std::vector<TaskToTell>& tasks, const std::string& reason,
                  const TellOptions& options);

/// Which task answers at `address`; the error of the connection, DeadlineExceeded after `limit`.
StatusOr<std::string> AskForTask(const std::string& address, std::chrono::milliseconds limit,
                                 const Credentials& credentials);

}  // namespace tenon
