// SPDX-License-Identifier: Apache-2.0
#include "runtime/captures/capture_cache.h"

#include <algorithm>

namespace tenon {
namespace {

/// So many different runs are remembered, such as those with the last batch of an epoch.
constexpr size_t kMostKeys = 8;
/// A capture keeps the memory of a whole step, so that few are kept.
constexpr int kMostCaptures = 4;
/// So many captures are made of kernels that turn out not to repeat them.
constexpr int kTries = 16;
/// So often a run is tried again that could not be captured, perhaps because of other steps.
constexpr int kTriesOfOne = 3;

CaptureCache::Choice Use(const std::shared_ptr<CachedCapture>& capture) {
  const auto let_go = [capture](void*) { capture->in_use.store(false); };
  return {CaptureCache::Action::kRepeat, capture, std::shared_ptr<void>(capture.get(), let_go)};
}

}  // namespace

CaptureCache::Entry* CaptureCache::Find(const std::string& key) {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
  return found == entries_.end() ? nullptr : &*found;
}

CaptureCache::Choice CaptureCache::Choose(const std::string& key) {
  std::shared_ptr<CachedCapture> evicted;  // goes without the lock
  MutexLock lock(mu_);
  if (made_ > kTries && repeats_ < made_) return {};
  Entry* const entry = Find(key);
  if (entry == nullptr) {
    if (entries_.size() == kMostKeys) {
      const auto oldest = std::min_element(
          entries_.begin(), entries_.end(),
          [](const Entry& a, const Entry& b) { return a.last_seen < b.last_seen; });
      evicted = std::move(oldest->capture);
      entries_.erase(oldest);
    }
    entries_.emplace_back().key = key;
    entries_.back().last_seen = ++now_;
    return {};
  }
  entry->last_seen = ++now_;
  if (entry->capture != nullptr) {
    if (entry->capture->in_use.exchange(true)) return {};
    ++repeats_;
    return Use(entry->capture);
  }
  if (entry->tries == kTriesOfOne) return {};
  ++entry->tries;
  ++made_;
  return {Action::kCapture, nullptr, nullptr};
}

CaptureCache::Choice CaptureCache::Keep(const std::string& key,
                                        std::shared_ptr<CachedCapture> capture) {
  if (capture == nullptr) return {};
  capture->in_use.store(true);
  const Choice choice = Use(capture);
  std::shared_ptr<CachedCapture> evicted;  // goes without the lock
  MutexLock lock(mu_);
  Entry* const entry = Find(key);
  if (entry == nullptr) return choice;
  entry->capture = std::move(capture);
  const auto kept = [](const Entry& e) { return e.capture != nullptr; };
  if (std::count_if(entries_.begin(), entries_.end(), kept) <= kMostCaptures) {
    return choice;
  }
  Entry* oldest = entry;
  for (Entry& e : entries_) {
    if (kept(e) && e.last_seen < oldest->last_seen) oldest = &e;
  }
  evicted = std::move(oldest->capture);
  oldest->tries = 0;
  return choice;
}

void CaptureCache::Drop(const std::string& key) {
  std::shared_ptr<CachedCapture> dropped;  // goes without the lock
  MutexLock lock(mu_);
  Entry* const entry = Find(key);
  if (entry == nullptr) return;
  dropped = std::move(entry->capture);
  entry->tries = 0;
}

}  // namespace tenon
