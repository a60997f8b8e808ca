// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "distributed/grpc/rpc/rpc_server.h"
#include "distributed/protocol/credentials.h"
#include "runtime/collectives/key_value_store.h"

namespace tenon {

/// The texts that a server keeps for the ranks of its job (key_value_service.proto). Thread-safe.
class JobValues {
 public:
  /// They may have so many bytes together.
  static constexpr size_t kMostBytes = size_t{64} << 20;

  /// Answers calls of the service; must outlive the server.
  void Serve(RpcServer& server);

  /// AlreadyExists for a key that has another value, unless it is replaced; ResourceExhausted
  /// beyond kMostBytes.
  Status Put(const std::string& key, const std::string& value, bool replace);
  /// False when it is not there.
  bool Get(const std::string& key, std::string* value) const;

 private:
  mutable Mutex mu_;
  StringMap<std::string> values_ ABSL_GUARDED_BY(mu_);
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

/// The store that the server at `address` keeps. `clock` must outlive it.
std::unique_ptr<KeyValueStore> OpenJobStore(const std::string& address,
                                            const Credentials& credentials, Clock& clock);

}  // namespace tenon
