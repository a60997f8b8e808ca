// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/local_rendezvous.h"

#include <algorithm>

namespace tenon {

LocalRendezvous::~LocalRendezvous() {
  // Most have nothing left, and need no reason.
  if (HasItems()) Abort(Cancelled("the step has ended"));
}

Status LocalRendezvous::Send(std::string_view key, Tensor value, bool dead) {
  RecvCallback receiver;
  {
    MutexLock lock(mu_);
    if (!aborted_.ok()) return aborted_;
    const auto [it, added] = items_.try_emplace(std::string(key));
    Item& item = it->second;
    if (item.sent) return Aborted("tensor sent twice in one step: ", key);
    if (added) {
      item.sent = true;
      item.dead = dead;
      item.value = std::move(value);
      return OkStatus();
    }
    receiver = std::move(item.receiver);
    items_.erase(it);
  }
  receiver(OkStatus(), std::move(value), dead);
  return OkStatus();
}

void LocalRendezvous::RecvAsync(std::string_view key, RecvCallback done) {
  Tensor value;
  bool dead = false;
  Status status;
  {
    MutexLock lock(mu_);
    status = aborted_;
    if (status.ok()) {
      const auto [it, added] = items_.try_emplace(std::string(key));
      Item& item = it->second;
      if (added) {
        item.receiver = std::move(done);
        return;
      }
      if (!item.sent) {
        status = Aborted("tensor asked for twice in one step: ", key);
      } else {
        value = std::move(item.value);
        dead = item.dead;
        items_.erase(it);
      }
    }
  }
  done(status, std::move(value), dead);
}

Status LocalRendezvous::Take(std::string_view key, Tensor* value, bool* dead) {
  MutexLock lock(mu_);
  if (!aborted_.ok()) return aborted_;
  const auto it = items_.find(key);
  if (it == items_.end() || !it->second.sent) {
    return NotFound("the step has not sent '", key, "'");
  }
  *value = std::move(it->second.value);
  *dead = it->second.dead;
  items_.erase(it);
  return OkStatus();
}

bool LocalRendezvous::HasItems() {
  MutexLock lock(mu_);
  return !items_.empty();
}

bool LocalRendezvous::HasUntaken() {
  MutexLock lock(mu_);
  return std::any_of(items_.begin(), items_.end(),
                     [](const auto& item) { return item.second.sent; });
}

std::vector<std::string> LocalRendezvous::Awaited() {
  MutexLock lock(mu_);
  std::vector<std::string> keys;
  for (const auto& [key, item] : items_) {
    if (item.receiver) keys.push_back(key);
  }
  return keys;
}

void LocalRendezvous::Abort(const Status& why) {
  StringMap<Item> items;
  {
    MutexLock lock(mu_);
    if (!aborted_.ok()) return;
    aborted_ = why;
    items.swap(items_);
  }
  for (auto& [key, item] : items) {
    if (item.receiver) item.receiver(why, Tensor(), false);
  }
}

}  // namespace tenon
