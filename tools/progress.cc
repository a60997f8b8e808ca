// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_format.h"

namespace tenon::tools {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr int kBarWidth = 24;
constexpr const char* kClearLine = "\r\033[K";

}  // namespace

Progress::Progress(std::string what, int64_t total)
    : what_(std::move(what)),
      total_(total),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()),
      next_(start_) {}

std::string Progress::Line(int64_t done, const std::string& detail) const {
  const double part = static_cast<double>(done) / static_cast<double>(total_);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  std::string bar;
  if (terminal_) {
    const int full = static_cast<int>(part * kBarWidth);
    bar = " [" + std::string(full, '=') + std::string(kBarWidth - full, ' ') + "]";
  }
  return absl::StrFormat("%s%s %3.0f%%  %d/%d  %.0f/s  %s", what_, bar, part * 100, done, total_,
                         static_cast<double>(done) / passed.count(), detail);
}

void Progress::Advance(int64_t done, absl::FunctionRef<std::string()> detail) {
  if (!terminal_) {
    const int64_t tenth = done * 10 / total_;
    if (tenth == last_tenth_) return;
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
