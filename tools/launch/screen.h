// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace tenon::tools {

/// The standard output of a process that must not wait for who reads it: lines are kept until the
/// output takes them, up to a limit beyond which nobody should add any. On a terminal there is a
/// line about the state, too, on the error stream, while nothing is printed. Not thread-safe.
class Screen {
 public:
  Screen();

  /// Adds a line; `text` comes without its end.
  void Print(std::string_view text);
  /// "[worker 0] <text>"
  void Print(std::string_view task, std::string_view text);

  /// Whether something waits for the output.
  bool has_pending() const { return written_ < pending_.size(); }
  /// Whether so much waits that no more should be added.
  bool is_full() const;
  /// Writes what the output takes now, without waiting.
  void WriteSome();
  /// Writes all, unless a signal comes meanwhile, and takes the line about the state away.
  void Finish();

  /// Shows the line about the state where nothing was printed for a second; twice a second at most.
  void ShowState(std::string_view text);

  /// Why nothing more can be written, such as that nobody reads it; what is printed then is lost.
  const Status& status() const { return status_; }
  bool is_broken() const { return broken_; }

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  void EraseState();
  bool IsReady(int timeout_ms) const;
  void WritePiece();

  std::string pending_;
  size_t written_ = 0;  // of pending_
  const bool is_terminal_, is_file_;
  Status status_;
  bool broken_ = false;  // nobody reads it
  std::string state_;    // as it is shown
  SteadyTime printed_at_, shown_at_;
};

}  // namespace tenon::tools
