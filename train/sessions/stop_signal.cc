// SPDX-License-Identifier: Apache-2.0
#include "train/sessions/stop_signal.h"

#include <unistd.h>

#include <csignal>
#include <ctime>

#include <atomic>

#include <string_view>

#include "core/base/mutex.h"

namespace tenon {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

std::atomic<int> stop_signal_received{0};
Mutex stop_signal_mu;
std::atomic<int> stop_signal_users{0};  // changed with the lock only
struct sigaction stop_signal_before[2];

/// A signal to a process and its group comes twice: so soon, the second one is the first.
constexpr int64_t kGrace = 1'000'000'000;  // ns
std::atomic<int64_t> stop_signal_time{0};

int64_t Nanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kGrace + now.tv_nsec;
}

std::atomic<int> stop_signal_waits{0};

void TakeStopSignal(int number) {
  if (stop_signal_received == 0) {
    stop_signal_received = number;
    stop_signal_time = Nanoseconds();
    if (stop_signal_waits == 0) return;
    constexpr std::string_view kLine =
        "ended by a signal while no session was open: nothing was to be saved\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kLine.data(), kLine.size());
  } else if (Nanoseconds() - stop_signal_time < kGrace) {
    return;
  }
  StopSignal::DoAsBefore(number);
}

}  // namespace

StopSignal::StopSignal() {
  MutexLock lock(stop_signal_mu);
  if (stop_signal_users++ > 0) return;
  stop_signal_received = 0;
  struct sigaction action = {};
  action.sa_handler = TakeStopSignal;
  // Calls that it interrupts go on: steps run to their end.
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &action, &stop_signal_before[i]);
}

StopSignal::~StopSignal() {
  MutexLock lock(stop_signal_mu);
  if (--stop_signal_users > 0) return;
  for (int i = 0; i < 2; ++i) {
    struct sigaction now = {};
    sigaction(kSignals[i], nullptr, &now);
    if (now.sa_handler == TakeStopSignal) sigaction(kSignals[i], &stop_signal_before[i], nullptr);
  }
}

int StopSignal::last_received() { return stop_signal_received; }

void StopSignal::DoAsBefore(int number) {
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &stop_signal_before[i], nullptr);
  std::raise(number);
}

StopSignal::EndsAtOnce::EndsAtOnce() {
  ++stop_signal_waits;
  // One that came a moment before it lived.
  if (const int number = received(); number != 0) DoAsBefore(number);
}
StopSignal::EndsAtOnce::~EndsAtOnce() { --stop_signal_waits; }

int StopSignal::received() { return stop_signal_users > 0 ? stop_signal_received.load() : 0; }

}  // namespace tenon
