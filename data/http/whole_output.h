// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "data/files/file_system.h"

namespace tenon {

/// A file at a server that appears as a whole, at Close, Sync and Flush. The first error stays:
/// what was lost with it is lacking in all that follows.
class WholeOutput : public OutputFile {
 public:
  Status Append(std::string_view data) final;
  /// One that comes less than 10 s after the last one waits for another, or for Sync or Close.
  Status Flush() final;
  Status Sync() final;
  Status Close() final;

 protected:
  /// The clock outlives the file; errors say `path`.
  WholeOutput(Clock& clock, std::string path) : clock_(clock), path_(std::move(path)) {}

  /// Sends the data, or keeps them for Put.
  virtual Status Add(std::string_view data) = 0;
  /// Makes the file what has been added so far.
  virtual Status Put() = 0;

  const std::string& path() const { return path_; }
  /// Whether no error came.
  bool is_sound() const { return status_.ok(); }
  /// Others see the file as it is, so that nothing need be put before something is added.
  void HasAppeared() { changed_ = false; }

 private:
  Status Check() const;
  Status Keep(const Status& status);
  Status Appear();

  Clock& clock_;
  const std::string path_;
  Status status_;
  bool changed_ = true;  // a file that is empty has to be made, too
  bool closed_ = false;
  std::optional<Clock::Time> put_at_;
};

}  // namespace tenon
