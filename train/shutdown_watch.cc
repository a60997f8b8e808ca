// SPDX-License-Identifier: Apache-2.0
#include "train/shutdown_watch.h"

namespace tenon {

ShutdownWatch::ShutdownWatch(Server& server) : server_(server) {
  thread_ = std::thread([this] {
    server_.WaitForShutdown();
    told_ = true;
    MutexLock lock(mu_);
    if (session_ != nullptr) session_->Close().IgnoreError();
  });
}

ShutdownWatch::~ShutdownWatch() {
  SetSession(nullptr);
  server_.Shutdown();
  thread_.join();
}

Status ShutdownWatch::Check() const {
  return told_ ? Cancelled(server_.task(), " was told to end before it had finished") : OkStatus();
}

void ShutdownWatch::SetSession(Session* session) {
  MutexLock lock(mu_);
  session_ = session;
  if (told_ && session_ != nullptr) session_->Close().IgnoreError();
}

}  // namespace tenon
