// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "core/base/strings.h"
#include "tools/launch/received_signals.h"

namespace tenon::tools {
namespace {

constexpr size_t kFull = size_t{1} << 20;
constexpr std::chrono::milliseconds kQuiet{1000}, kRedraw{500};
constexpr std::string_view kClearLine = "\r\033[K";

bool IsRegularOutput() {
  struct stat info = {};
  return fstat(STDOUT_FILENO, &info) == 0 && S_ISREG(info.st_mode);
}

/// A line that is wider than the terminal could not be taken away.
size_t TerminalColumns() {
  winsize size = {};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

void WriteError(std::string_view text) {
  // A line about the state may be lost.
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

Screen::Screen()
    : is_terminal_(isatty(STDOUT_FILENO) != 0 && isatty(STDERR_FILENO) != 0),
      is_file_(IsRegularOutput()),
      printed_at_(std::chrono::steady_clock::now()),
      shown_at_(printed_at_) {}

void Screen::Print(std::string_view text) {
  if (status_.ok()) StrAppend(&pending_, text, "\n");
}

void Screen::Print(std::string_view task, std::string_view text) {
  if (status_.ok()) StrAppend(&pending_, "[", task, "] ", text, "\n");
}

bool Screen::is_full() const { return pending_.size() - written_ > kFull; }

bool Screen::IsReady(int timeout_ms) const {
  pollfd output = {STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, timeout_ms) > 0;
}

void Screen::WritePiece() {
  // An output that is ready takes so much of a pipe without waiting.
  const size_t piece = is_file_ ? kFull : PIPE_BUF;
  const size_t left = pending_.size() - written_;
  const ssize_t n = write(STDOUT_FILENO, pending_.data() + written_, std::min(piece, left));
  if (n >= 0) {
    written_ += static_cast<size_t>(n);
  } else if (errno != EINTR && errno != EAGAIN) {
    broken_ = errno == EPIPE;
    status_ = Unavailable("cannot write to the standard output: ", std::strerror(errno));
    written_ = pending_.size();
  }
  if (written_ == pending_.size()) {
    pending_.clear();
    written_ = 0;
  } else if (written_ > kFull) {
    pending_.erase(0, written_);
    written_ = 0;
  }
}

void Screen::WriteSome() {
  if (!has_pending()) return;
  EraseState();
  printed_at_ = std::chrono::steady_clock::now();
  while (has_pending() && IsReady(0)) WritePiece();
}

void Screen::Finish() {
  EraseState();
  // A signal that comes now, or the second one, is of who does not want to wait for the reader.
  const int signals = ReceivedSignals();
  while (has_pending() && signals < 2 && ReceivedSignals() == signals) {
    if (IsReady(100)) WritePiece();
  }
  WriteSome();
}

void Screen::ShowState(std::string_view text) {
  if (!is_terminal_ || has_pending() || state_ == text) return;
  const SteadyTime now = std::chrono::steady_clock::now();
  if (now - printed_at_ < kQuiet || now - shown_at_ < kRedraw) return;
  EraseState();
  WriteError(text.substr(0, TerminalColumns() - 1));
  state_ = text;
  shown_at_ = now;
}

void Screen::EraseState() {
  if (state_.empty()) return;
  WriteError(kClearLine);
  state_.clear();
}

}  // namespace tenon::tools
