// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/tensor/resource.h"

namespace tenon {

/// The resources of one task, by container, kind and name (TensorFlow's ResourceMgr). Thread-safe.
/// A resource lives while it is in the store or a kernel holds it.
class ResourceStore {
 public:
  /// `default_container` is what an empty container name means: the job's name on a server,
  /// "localhost" in process.
  explicit ResourceStore(std::string default_container = "localhost")
      : default_container_(std::move(default_container)) {}

  const std::string& default_container() const { return default_container_; }

  /// The resource of that name, or NotFound "Resource <container>/<name>/<kind> does not exist".
  /// T must have `static constexpr std::string_view kKind`.
  template <typename T>
  StatusOr<std::shared_ptr<T>> Lookup(std::string_view container, std::string_view name) const {
    TENON_ASSIGN_OR_RETURN(std::shared_ptr<Resource> found, LookupAny(container, T::kKind, name));
    return std::static_pointer_cast<T>(std::move(found));
  }

  /// The resource of that name, made by `create` (() -> StatusOr<std::shared_ptr<T>>) when there is
  /// none. `create` runs under the store's lock: no two callers make the same resource.
  template <typename T, typename Create>
  StatusOr<std::shared_ptr<T>> LookupOrCreate(std::string_view container, std::string_view name,
                                              Create create) {
    TENON_ASSIGN_OR_RETURN(
        std::shared_ptr<Resource> found,
        LookupOrCreateAny(container, T::kKind, name,
                          [&]() -> StatusOr<std::shared_ptr<Resource>> { return create(); }));
    return std::static_pointer_cast<T>(std::move(found));
  }

  /// Removes one resource; NotFound when there is none.
  Status Delete(std::string_view container, std::string_view kind, std::string_view name);
  /// Removes everything in `container`; empty means the default one.
  void Clear(std::string_view container);
  /// For people: what each container holds.
  struct Usage {
    std::string container;
    int64_t resources = 0;
    int64_t bytes = 0;
  };
  std::vector<Usage> Usages() const;
  /// Grows whenever something is removed: who keeps what Lookup gave compares it to know that the
  /// name may mean something else now.
  uint64_t removals() const { return removals_.load(std::memory_order_acquire); }

 private:
  using Creator = std::function<StatusOr<std::shared_ptr<Resource>>()>;
  StatusOr<std::shared_ptr<Resource>> LookupAny(std::string_view container, std::string_view kind,
                                                std::string_view name) const;
  StatusOr<std::shared_ptr<Resource>> LookupOrCreateAny(std::string_view container,
                                                        std::string_view kind,
                                                        std::string_view name,
                                                        const Creator& create);
  std::string_view Container(std::string_view container) const {
    return container.empty() ? std::string_view(default_container_) : container;
  }

  const std::string default_container_;
  std::atomic<uint64_t> removals_{0};
  mutable Mutex mu_;
  /// Container -> "kind/name" -> resource.
  StringMap<StringMap<std::shared_ptr<Resource>>> containers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
