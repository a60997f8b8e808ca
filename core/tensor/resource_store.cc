// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/resource_store.h"

namespace tenon {
namespace {

/// Valid until the thread's next call. Kernels of loops look their stacks and arrays up for each
/// value, and a string of its own would cost as much as the look.
const std::string& Key(std::string_view kind, std::string_view name) {
  thread_local std::string key;
  key.assign(kind).append("/").append(name);
  return key;
}

/// TensorFlow's error for a container that is not there says that instead.
Status Missing(std::string_view container, std::string_view kind, std::string_view name,
               bool has_container) {
  return NotFound("Resource ", container, "/", name, "/", kind, " does not exist.",
                  has_container ? "" : StrCat(" Container ", container, " does not exist."));
}

}  // namespace

StatusOr<std::shared_ptr<Resource>> ResourceStore::LookupAny(std::string_view container,
                                                             std::string_view kind,
                                                             std::string_view name) const {
  MutexLock lock(mu_);
  const auto c = containers_.find(Container(container));
  if (c != containers_.end()) {
    const auto r = c->second.find(Key(kind, name));
    if (r != c->second.end()) return r->second;
  }
  return Missing(Container(container), kind, name, c != containers_.end());
}

StatusOr<std::shared_ptr<Resource>> ResourceStore::LookupOrCreateAny(std::string_view container,
                                                                     std::string_view kind,
                                                                     std::string_view name,
                                                                     const Creator& create) {
  MutexLock lock(mu_);
  auto& resources = containers_[std::string(Container(container))];
  const auto found = resources.find(Key(kind, name));
  if (found != resources.end()) return found->second;
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<Resource> created, create());
  resources.emplace(Key(kind, name), created);
  return created;
}

Status ResourceStore::Delete(std::string_view container, std::string_view kind,
                             std::string_view name) {
  std::shared_ptr<Resource> dying;  // destroyed after the lock is released
  MutexLock lock(mu_);
  const auto c = containers_.find(Container(container));
  if (c != containers_.end()) {
    const auto r = c->second.find(Key(kind, name));
    if (r != c->second.end()) {
      dying = std::move(r->second);
      c->second.erase(r);
      removals_.fetch_add(1, std::memory_order_release);
      return OkStatus();
    }
  }
  return Missing(Container(container), kind, name, c != containers_.end());
}

std::vector<ResourceStore::Usage> ResourceStore::Usages() const {
  std::vector<std::pair<std::string, std::vector<std::shared_ptr<Resource>>>> held;
  {
    MutexLock lock(mu_);
    for (const auto& [container, resources] : containers_) {
      auto& list = held.emplace_back(container, std::vector<std::shared_ptr<Resource>>()).second;
      for (const auto& [key, resource] : resources) list.push_back(resource);
    }
  }
  std::vector<Usage> usages;
  for (const auto& [container, resources] : held) {
    Usage& usage = usages.emplace_back(Usage{container, 0, 0});
    usage.resources = static_cast<int64_t>(resources.size());
    for (const auto& resource : resources) usage.bytes += resource->num_bytes();
  }
  return usages;
}

void ResourceStore::Clear(std::string_view container) {
  StringMap<std::shared_ptr<Resource>> dying;
  MutexLock lock(mu_);
  const auto c = containers_.find(Container(container));
  if (c == containers_.end()) return;
  dying = std::move(c->second);
  containers_.erase(c);
  removals_.fetch_add(1, std::memory_order_release);
}

}  // namespace tenon
