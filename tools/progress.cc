// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_format.h"

namespace tenon::tools {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr int kBarWidth = 24;
constexpr const char* kClearLine = "\r\033[K";

}  // namespace

Progress::Progress(std::string what, int64_t total, int64_t done)
    : what_(std::move(what)),
      total_(total),
      begin_(done),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()),
      next_(start_),
      last_tenth_(total > 0 ? done * 10 / total : 0) {}

std::string Progress::Line(int64_t done, const std::string& detail) const {
  const double part = static_cast<double>(done) / static_cast<double>(total_);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  std::string bar;
  if (terminal_) {
    const int full = static_cast<int>(part * kBarWidth);
    bar = " [" + std::string(full, '=') + std::string(kBarWidth - full, ' ') + "]";
  }
  const double rate = static_cast<double>(done - begin_) / std::max(passed.count(), 1e-9);
  const auto left = static_cast<int64_t>(static_cast<double>(total_ - done) / std::max(rate, 1e-9));
  return absl::StrFormat("%s%s %3.0f%%  %d/%d  %.0f/s  %d:%02d left  %s", what_, bar, part * 100,
                         done, total_, rate, left / 60, left % 60, detail);
}

void Progress::Advance(int64_t done, absl::FunctionRef<std::string()> detail) {
  if (!terminal_) {
    const int64_t tenth = done * 10 / total_;
    if (tenth <= last_tenth_) return;
    last_tenth_ = tenth;
    std::printf("%s\n", Line(done, detail()).c_str());
    std::fflush(stdout);
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kRedraw;
  std::fprintf(stderr, "%s%s", kClearLine, Line(done, detail()).c_str());
}

void Progress::Finish() {
  if (terminal_) std::fprintf(stderr, "%s", kClearLine);
}

}  // namespace tenon::tools
