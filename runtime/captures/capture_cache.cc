// SPDX-License-Identifier: Apache-2.0
#include "runtime/captures/capture_cache.h"

#include <algorithm>

namespace tenon {
namespace {

/// So many different runs are remembered, such as those with the last batch of an epoch.
constexpr size_t kMostKeys = 8;
/// Of a recording goes the memory of a whole step.
constexpr int kMostCaptures = 4;
/// A group whose recordings are not repeated is not worth more of them than that.
constexpr int kTries = 16;
/// So often a run is tried that cannot be recorded, perhaps because of what others did meanwhile.
constexpr int kTriesOfOne = 3;

CaptureCache::Choice Use(const std::shared_ptr<CachedCapture>& recording) {
  const auto let_go = [recording](void*) { recording->in_use.store(false); };
  return {CaptureCache::Action::kRepeat, recording, std::shared_ptr<void>(recording.get(), let_go)};
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
      evicted = std::move(oldest->recording);
      entries_.erase(oldest);
    }
    entries_.emplace_back().key = key;
    entries_.back().last_seen = ++now_;
    return {};
  }
  entry->last_seen = ++now_;
  if (entry->recording != nullptr) {
    if (entry->recording->in_use.exchange(true)) return {};
    ++repeats_;
    return Use(entry->recording);
  }
  if (entry->tries == kTriesOfOne) return {};
  ++entry->tries;
  ++made_;
  return {Action::kRecord, nullptr, nullptr};
}

CaptureCache::Choice CaptureCache::Keep(const std::string& key,
                                        std::shared_ptr<CachedCapture> recording) {
  if (recording == nullptr) return {};
  recording->in_use.store(true);
  const Choice choice = Use(recording);
  std::shared_ptr<CachedCapture> evicted;  // goes without the lock
  MutexLock lock(mu_);
  Entry* const entry = Find(key);
  if (entry == nullptr) return choice;
  entry->recording = std::move(recording);
  const auto kept = [](const Entry& e) { return e.recording != nullptr; };
  if (std::count_if(entries_.begin(), entries_.end(), kept) <= kMostCaptures) {
    return choice;
  }
  Entry* oldest = entry;
  for (Entry& e : entries_) {
    if (kept(e) && e.last_seen < oldest->last_seen) oldest = &e;
  }
  evicted = std::move(oldest->recording);
  oldest->tries = 0;
  return choice;
}

void CaptureCache::Drop(const std::string& key) {
  std::shared_ptr<CachedCapture> dropped;  // goes without the lock
  MutexLock lock(mu_);
  Entry* const entry = Find(key);
  if (entry == nullptr) return;
  dropped = std::move(entry->recording);
  entry->tries = 0;
}

}  // namespace tenon
