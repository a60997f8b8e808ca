// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/own_address.h"

#include <algorithm>

#include "core/base/mutex.h"
#include "distributed/grpc/job_reports.h"
#include "distributed/grpc/rpc/host_address.h"

namespace tenon {

void AwaitName(const ServerOptions& options, const std::string& address) {
  constexpr std::chrono::milliseconds kPause{500};
  constexpr int kPausesOfNotice = 10;
  Clock& clock = *options.clock;
  const Clock::Time deadline = clock.Now() + options.start_up_deadline;
  Mutex mu;
  CondVar never;
  for (int tries = 0;; ++tries) {
    const auto found = ResolveHost(HostOf(address));
    if (found.ok() || clock.Now() >= deadline) return;
    if (options.notice && tries % kPausesOfNotice == 0) {
      options.notice(StrCat("waiting for the name ", HostOf(address),
                            " of this machine: ", Message(found.status())));
    }
    MutexLock lock(mu);
    clock.WaitUntil(never, mu, std::min(deadline, clock.Now() + kPause));
  }
}

Status CheckListening(const ServerOptions& options, const std::string& address) {
  if (!options.credentials.empty() || options.insecure || IsLoopback(address)) return OkStatus();
  const Status known = ResolveHost(HostOf(address)).status();
  if (!known.ok()) return Unavailable("cannot listen at ", address, ": ", Message(known));
  return FailedPrecondition(
      "whoever reaches ", address,
      " could run what they like as this account: listening beyond "
      "loopback needs a TLS certificate (--tls_cert, --tls_key, --tls_ca), a job token "
      "(--token_file), or --insecure where the network lets nobody else in");
}

void NoticeHiddenHost(const ServerOptions& options, const std::string& address) {
  if (!options.notice || options.port >= 0) return;
  for (const auto& [job, tasks] : options.cluster.jobs()) {
    for (const auto& [task, other] : tasks) {
      if (HostOf(other) == HostOf(address) || IsLoopback(other)) continue;
      options.notice(
          StrCat(HostOf(address), " is a loopback address on this machine, perhaps by /etc/hosts: ",
                 TaskName(job, task), " at ", other, " cannot reach it if that is another one"));
      return;
    }
  }
}

Status WithOccupant(const Status& why, const ServerOptions& options) {
  const std::string address = *options.cluster.Address(options.job, options.task);
  constexpr std::chrono::milliseconds kDeadline{5000};
  const auto there = AskForTask(address, kDeadline, options.credentials);
  if (!there.ok()) return why;
  const std::string own = TaskName(options.job, options.task);
  std::string text = StrCat(Message(why), ": ", *there, " answers there, in another process");
  if (*there != own) return WithMessage(why, text);
  StrAppend(&text, " that was started with this --job_name and --task_index");
  std::string silent;
  for (const auto& [task, other] : options.cluster.jobs().at(options.job)) {
    if (task == options.task) continue;
    if (AskForTask(other, kDeadline, options.credentials).ok()) continue;
    StrAppend(&silent, silent.empty() ? "" : ", ", task);
  }
  if (!silent.empty()) {
    StrAppend(&text, "; nobody is ", options.job, " ", silent,
              " yet: each process has a --task_index of its own");
  }
  return WithMessage(why, text);
}

}  // namespace tenon
