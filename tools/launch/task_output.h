// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "data/files/file.h"
#include "tools/launch/screen.h"

namespace tenon::tools {

/// The output of a task, over all processes that it has one after the other: its lines, with its
/// name before them, on the screen, all of it in a file, and the last lines in memory. Memory is
/// bounded whatever is printed. Not thread-safe.
class TaskOutput {
 public:
  /// Without a log, `log_path` is empty. The screen must outlive this.
  TaskOutput(std::string name, std::string log_path, bool is_printed, Screen* screen);
  ~TaskOutput();
  TaskOutput(const TaskOutput&) = delete;
  TaskOutput& operator=(const TaskOutput&) = delete;

  /// Opens the log, to which is added.
  Status OpenLog();

  /// From now on the output comes from this end of a pipe, which is the object's to close. What was
  /// printed before is no longer among the last lines.
  void Attach(int pipe);
  /// The end of the pipe; -1 when the output has ended.
  int pipe() const { return pipe_; }

  /// Takes a piece of the output; to be called when there is some, or when it has ended.
  void Read();
  /// Takes what is there already, and no more from this pipe.
  void ReadRest();

  /// Takes bytes that came by another way than the pipe.
  void Take(std::string_view bytes);

  /// Up to 20 lines, long ones cut.
  const std::deque<std::string>& last_lines() const { return last_lines_; }
  const std::string& log_path() const { return log_path_; }
  /// The first error of the log, or OK.
  const Status& log_status() const { return log_status_; }

 private:
  void EndLine(std::string_view line);
  void WriteLog(std::string_view bytes);
  void Close();

  const std::string name_, log_path_;
  bool is_printed_;
  Screen* const screen_;
  std::unique_ptr<OutputFile> log_;
  Status log_status_;
  int pipe_ = -1;
  std::string line_;  // what came since the last newline
  std::deque<std::string> last_lines_;
};

}  // namespace tenon::tools
