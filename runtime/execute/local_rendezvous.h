// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/device/rendezvous.h"

namespace tenon {

/// A Rendezvous for the partitions of one step in one process: a table of values waiting for their
/// receivers and receivers waiting for their values.
class LocalRendezvous final : public Rendezvous {
 public:
  LocalRendezvous() = default;
  /// Receivers that still wait get Cancelled.
  ~LocalRendezvous() override;

  Status Send(std::string_view key, Tensor value, bool dead) override;
  void RecvAsync(std::string_view key, RecvCallback done) override;
  void Abort(const Status& why) override;

  /// Takes a tensor that has been sent; NotFound when it has not.
  Status Take(std::string_view key, Tensor* value, bool* dead);
  /// Whether a tensor was sent that nobody has received.
  bool HasUntaken();
  /// The keys of the receives that wait.
  std::vector<std::string> Awaited();

 private:
  bool HasItems();

  struct Item {
    bool sent = false;
    bool dead = false;
    Tensor value;
    RecvCallback receiver;
  };
  Mutex mu_;
  Status aborted_ ABSL_GUARDED_BY(mu_);
  StringMap<Item> items_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
