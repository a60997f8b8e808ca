// SPDX-License-Identifier: Apache-2.0
#include "train/sessions/signal_watch.h"

#include <csignal>
#include <cstdio>
#include <utility>
#include <vector>

#include "core/device/device_name.h"
#include "distributed/protocol/server.h"
#include "train/saver/checkpoint_state.h"
#include "train/sessions/stop_signal.h"

namespace tenon {
namespace {

constexpr std::chrono::milliseconds kLookPause{50};
/// What ends so soon after the signal needs no word.
constexpr std::chrono::milliseconds kSilentFor{300};

std::string SignalName(int signal) { return signal == SIGINT ? "SIGINT" : "SIGTERM"; }

}  // namespace

SignalWatch::SignalWatch(Options options) : options_(std::move(options)) {
  auto watcher = options_.threads->Start([this] { Watch(); });
  if (!watcher.ok()) {
    Say(StrCat("nobody watches what goes on after a signal: ", watcher.status().ToString()));
    return;
  }
  watcher_ = *std::move(watcher);
}

SignalWatch::~SignalWatch() {
  {
    MutexLock lock(mu_);
    end_ = true;
  }
  watcher_ = nullptr;
}

SignalWatch::Work::Work(SignalWatch* watch, std::string what, std::function<void()> give_up)
    : watch_(watch) {
  if (watch_ == nullptr) return;
  MutexLock lock(watch_->mu_);
  ++watch_->work_;
  watch_->working_ = true;
  watch_->given_up_ = false;
  watch_->what_ = std::move(what);
  watch_->give_up_ = std::move(give_up);
}

bool SignalWatch::Work::End() {
  SignalWatch* const watch = std::exchange(watch_, nullptr);
  if (watch == nullptr) return false;
  MutexLock lock(watch->mu_);
  while (watch->giving_up_) watch->changed_.Wait(watch->mu_);
  watch->working_ = false;
  watch->give_up_ = nullptr;
  return watch->given_up_;
}

bool SignalWatch::IsAt(int64_t number) const {
  MutexLock lock(mu_);
  return working_ && work_ == number;
}

bool SignalWatch::IsToEnd() const {
  MutexLock lock(mu_);
  return end_;
}

void SignalWatch::Say(const std::string& line) const {
  if (options_.notice) return options_.notice(line);
  std::fprintf(stderr, "%s\n", line.c_str());
}

std::string SignalWatch::Silent() const {
  if (options_.server == nullptr) return "";
  const auto own = DeviceName::Parse(options_.server->task());
  Mutex mu;
  std::vector<std::string> silent;
  {
    std::vector<std::unique_ptr<ThreadStarter::Work>> questions;
    for (const auto& [job, tasks] : options_.server->cluster().jobs()) {
      if (own.ok() && own->job == job) continue;
      for (const auto& [task, address] : tasks) {
        const auto ask = [&, job = job, task = task, address = address] {
          if (options_.server->AskIfAlive(job, task).ok()) return;
          MutexLock lock(mu);
          silent.push_back(StrCat(TaskName(job, task), " at ", address));
        };
        auto question = options_.threads->Start(ask);
        if (question.ok()) {
          questions.push_back(*std::move(question));
        } else {
          ask();  // takes longer, on this thread
        }
      }
    }
  }
  return Join(silent, ", ");
}

std::string SignalWatch::LeftBehind() const {
  if (options_.checkpoint_dir.empty()) return "nothing can be saved";
  const auto latest = LatestCheckpoint(options_.checkpoint_dir);
  return latest.ok() ? StrCat("nothing can be saved, but '", *latest, "' is there")
                     : "nothing can be saved, and there is no checkpoint";
}

void SignalWatch::Watch() {
  int64_t seen = 0;  // the work that the signal has met
  bool said = false;
  Clock& clock = *options_.clock;
  Clock::Time since;
  while (!IsToEnd()) {
    clock.SleepFor(kLookPause);
    const int signal = StopSignal::received();
    if (signal == 0) continue;
    std::string what;
    std::function<void()> give_up;
    {
      MutexLock lock(mu_);
      if (!working_ || given_up_) continue;
      if (std::exchange(seen, work_) != work_) {
        since = clock.Now();
        said = false;
      }
      what = what_;
      give_up = give_up_;
    }
    if (clock.Now() - since < kSilentFor) continue;
    if (!std::exchange(said, true)) {
      const std::string limit = StrCat(", ", options_.limit.count() / 1000.0, " s");
      Say(StrCat(SignalName(signal), ": waiting for ", what,
                 give_up                      ? limit + " at most"
                 : options_.server != nullptr ? limit + ", and for longer while all tasks answer"
                                              : "",
                 "; a second signal ends at once"));
    }
    const std::string silent = Silent();
    while (clock.Now() - since < options_.limit && IsAt(seen) && !IsToEnd()) {
      clock.SleepFor(kLookPause);
    }
    if (!IsAt(seen)) continue;
    if (!silent.empty()) {
      Say(StrCat("ended by ", SignalName(signal), " while waiting for ", what, ": no answer from ",
                 silent, "; ", LeftBehind()));
      StopSignal::DoAsBefore(signal);
      continue;  // a handler of the program's own has returned
    }
    if (!give_up) {
      since = clock.Now();
      said = false;
      continue;
    }
    {
      MutexLock lock(mu_);
      if (!working_ || work_ != seen) continue;
      giving_up_ = given_up_ = true;
    }
    give_up();
    MutexLock lock(mu_);
    giving_up_ = false;
    changed_.NotifyAll();
  }
}

}  // namespace tenon
