// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/task_output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/strings.h"

namespace tenon::tools {
namespace {

/// A piece is so small that a task that prints without end does not hold up the others.
constexpr size_t kPiece = 16384;
constexpr size_t kLongestLine = 65536;
constexpr size_t kLastLines = 20, kLongestLastLine = 1000;
/// More than a pipe holds.
constexpr int kMostPiecesOfRest = 128;

}  // namespace

TaskOutput::TaskOutput(std::string name, std::string log_path, bool is_printed, Screen* screen)
    : name_(std::move(name)),
      log_path_(std::move(log_path)),
      is_printed_(is_printed),
      screen_(screen) {}

TaskOutput::~TaskOutput() {
  if (pipe_ >= 0) close(pipe_);
}

Status TaskOutput::OpenLog() {
  if (log_path_.empty()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(log_, OpenOutput(log_path_, WriteMode::kAppend));
  return OkStatus();
}

void TaskOutput::Attach(int pipe) {
  if (pipe_ >= 0) Close();
  pipe_ = pipe;
  last_lines_.clear();
}

void TaskOutput::Read() {
  char piece[kPiece];
  const ssize_t n = read(pipe_, piece, sizeof(piece));
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n > 0) {
    Take(std::string_view(piece, static_cast<size_t>(n)));
  } else {
    Close();
  }
}

void TaskOutput::ReadRest() {
  for (int i = 0; i < kMostPiecesOfRest && pipe_ >= 0; ++i) {
    pollfd output = {pipe_, POLLIN, 0};
    const int ready = poll(&output, 1, 0);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    Read();
    screen_->WriteSome();
  }
  if (pipe_ >= 0) Close();
}

void TaskOutput::Take(std::string_view bytes) {
  WriteLog(bytes);
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, std::min(end, kLongestLine - line_.size()));
    const bool is_whole = part.size() == end;
    bytes.remove_prefix(part.size() + (is_whole ? 1 : 0));
    if (is_whole && line_.empty()) {
      EndLine(part);
      continue;
    }
    line_.append(part);
    if (!is_whole && line_.size() < kLongestLine) continue;
    EndLine(line_);
    line_.clear();
  }
}

void TaskOutput::EndLine(std::string_view line) {
  if (is_printed_) screen_->Print(name_, line);
  if (last_lines_.size() == kLastLines) last_lines_.pop_front();
  const bool is_long = line.size() > kLongestLastLine;
  last_lines_.push_back(StrCat(line.substr(0, kLongestLastLine), is_long ? " ..." : ""));
}

void TaskOutput::WriteLog(std::string_view bytes) {
  if (log_ == nullptr) return;
  // Whoever follows the file sees it at once, and it is there whatever dies.
  log_status_ = log_->Append(bytes);
  if (log_status_.ok()) log_status_ = log_->Flush();
  if (log_status_.ok()) return;
  screen_->Print(name_, StrCat(Message(log_status_), "; what it prints comes here alone"));
  is_printed_ = true;
  log_ = nullptr;
}

void TaskOutput::Close() {
  if (!line_.empty()) EndLine(line_);
  line_.clear();
  close(pipe_);
  pipe_ = -1;
}

}  // namespace tenon::tools
