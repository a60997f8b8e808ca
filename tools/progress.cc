// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_format.h"

namespace tenon::tools {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kPlainPause{60};
/// Where there are no percents.
constexpr std::chrono::seconds kUnknownPause{5};
constexpr size_t kBarWidth = 24, kNarrowestBar = 8;
constexpr size_t kUsualColumns = 80;
constexpr const char* kClearLine = "\r\033[K";

/// How wide the terminal is now: people change it.
size_t Columns() {
  winsize size = {};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

/// "1:05", "2:01:05"
std::string Duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::min(seconds, 1e9));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  return hours > 0 ? absl::StrFormat("%d:%02d:%02d", hours, minutes, whole % 60)
                   : absl::StrFormat("%d:%02d", minutes, whole % 60);
}

std::string Bar(double part, size_t width) {
  const auto full = static_cast<size_t>(part * static_cast<double>(width));
  return " [" + std::string(full, '=') + std::string(width - full, ' ') + "]";
}

}  // namespace

Progress::Progress(std::string what, int64_t total, int64_t done, bool plain_lines)
    : what_(std::move(what)),
      total_(total),
      begin_(done),
      terminal_(isatty(STDERR_FILENO) != 0),
      plain_lines_(plain_lines),
      start_(std::chrono::steady_clock::now()),
      next_(terminal_ ? start_ : start_ + PlainPause()),
      last_tenth_(total > 0 ? done * 10 / total : 0) {}

std::chrono::seconds Progress::PlainPause() const {
  return total_ < 0 ? kUnknownPause : kPlainPause;
}

std::string Progress::Line(int64_t done, const std::string& detail) const {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  const double rate = static_cast<double>(done - begin_) / std::max(passed.count(), 1e-9);
  const bool known = total_ > 0;
  const double part = known ? static_cast<double>(done) / static_cast<double>(total_) : 0;
  std::string figures;
  if (known) absl::StrAppendFormat(&figures, " %3d%%", static_cast<int>(part * 100));
  absl::StrAppendFormat(&figures, "  %d", done);
  if (known) absl::StrAppendFormat(&figures, "/%d", total_);
  figures += rate < 10 ? absl::StrFormat("  %.2g/s", rate) : absl::StrFormat("  %.0f/s", rate);
  if (known && rate > 0) {
    figures += "  " + Duration(static_cast<double>(total_ - done) / rate) + " left";
  }
  if (!detail.empty()) figures += "  " + detail;
  if (!terminal_) return what_ + figures;
  // In the last column some terminals begin a new line.
  const size_t room = Columns() - 1;
  const size_t taken = what_.size() + figures.size() + 3;
  const size_t width = room > taken ? std::min(kBarWidth, room - taken) : 0;
  const std::string line =
      what_ + (known && width >= kNarrowestBar ? Bar(part, width) : "") + figures;
  return line.substr(0, room);
}

bool Progress::IsDue(int64_t done, SteadyTime now) {
  if (terminal_) return now >= next_;
  const int64_t tenth = total_ > 0 ? done * 10 / total_ : 0;
  if (!plain_lines_ || (tenth <= last_tenth_ && now < next_)) return false;
  last_tenth_ = tenth;
  return true;
}

void Progress::Advance(int64_t done, absl::FunctionRef<std::string()> detail) {
  if (total_ > 0) done = std::min(done, total_);
  const auto now = std::chrono::steady_clock::now();
  if (!IsDue(done, now)) return;
  if (terminal_) {
    next_ = now + kRedraw;
    std::fprintf(stderr, "%s%s", kClearLine, Line(done, detail()).c_str());
  } else {
    next_ = now + PlainPause();
    std::printf("%s\n", Line(done, detail()).c_str());
    std::fflush(stdout);
  }
}

void Progress::Finish() {
  if (terminal_) std::fprintf(stderr, "%s", kClearLine);
}

}  // namespace tenon::tools
