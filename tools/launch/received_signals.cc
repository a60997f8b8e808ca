// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/received_signals.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace tenon::tools {
namespace {

std::atomic<int> first_signal{0}, signal_count{0};
std::atomic<bool> suspension{false};
std::atomic<int> child_ends{-1};  // an eventfd

void CountSignal(int number) {
  int none = 0;
  first_signal.compare_exchange_strong(none, number);
  ++signal_count;
}

void NoteChildEnd(int) {
  const int error = errno;
  eventfd_write(child_ends, 1);
  errno = error;
}

/// A caught signal does in a child, after exec, what it does by default; an ignored one would stay
/// ignored there.
void Catch(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigaction(number, &action, nullptr);
}

bool IsIgnored(int number) {
  struct sigaction action = {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

void CatchSignals() {
  Catch(SIGINT, CountSignal);
  Catch(SIGTERM, CountSignal);
  if (!IsIgnored(SIGHUP)) Catch(SIGHUP, CountSignal);
  if (!IsIgnored(SIGTSTP)) Catch(SIGTSTP, [](int) { suspension = true; });
  if (!IsIgnored(SIGPIPE)) Catch(SIGPIPE, [](int) {});
  child_ends = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (child_ends >= 0) Catch(SIGCHLD, NoteChildEnd);
}

int ChildEnds() { return child_ends; }

void ForgetChildEnds() {
  eventfd_t count = 0;
  eventfd_read(child_ends, &count);
}

int ReceivedSignals() { return signal_count; }
int FirstReceivedSignal() { return first_signal; }
bool TakeSuspension() { return suspension.exchange(false); }

}  // namespace tenon::tools
