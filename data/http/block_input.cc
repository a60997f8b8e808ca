// SPDX-License-Identifier: Apache-2.0
#include "data/http/block_input.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "core/base/mutex.h"

namespace tenon {
namespace {

/// Each request costs a server about as much as a mebibyte that it sends.
constexpr int64_t kBlockBytes = 4 << 20;
/// How many blocks are asked for at once.
constexpr int64_t kMostFetched = 8;
/// The blocks that are kept: those being fetched, and two for a reader that goes back a bit.
constexpr size_t kMostBlocks = kMostFetched + 2;

/// A part of the file, which a thread fetches.
struct Block {
  bool done = false;
  Status status;
  std::string bytes;
  uint64_t used_at = 0;
};

/// The state that threads which fetch blocks share with the file, which may be gone before they
/// end.
struct Fetching {
  Mutex mu;
  CondVar changed;
  std::atomic<bool> cancelled{false};
  int running ABSL_GUARDED_BY(mu) = 0;
  std::map<int64_t, std::shared_ptr<Block>> blocks ABSL_GUARDED_BY(mu);
  uint64_t uses ABSL_GUARDED_BY(mu) = 0;
  int64_t last_read ABSL_GUARDED_BY(mu) = -1;  // the last block of the last read
  int64_t ahead ABSL_GUARDED_BY(mu) = 0;       // how many behind it were asked for
};

class BlockInput final : public InputFile {
 public:
  BlockInput(BlockInputOptions options, Workers& workers)
      : options_(std::move(options)), workers_(workers) {}
  ~BlockInput() override {
    fetching_->cancelled = true;
    MutexLock lock(fetching_->mu);
    while (fetching_->running > 0) fetching_->changed.Wait(fetching_->mu);
  }

  const std::string& path() const override { return options_.path; }
  int64_t size() const override { return options_.size; }

  StatusOr<size_t> ReadAt(int64_t offset, size_t size, char* out) const override {
    if (offset < 0)
      return InvalidArgument("cannot read '", options_.path, "' from byte ", offset, " on");
    if (offset >= options_.size) return size_t{0};
    size = std::min(size, static_cast<size_t>(options_.size - offset));
    const int64_t end = offset + static_cast<int64_t>(size);
    int64_t last = -1;
    size_t done = 0;
    while (done < size) {
      const int64_t at = offset + static_cast<int64_t>(done);
      std::string_view found;
      std::shared_ptr<Block> block;
      if (at < static_cast<int64_t>(options_.head.size())) {
        found = std::string_view(options_.head).substr(static_cast<size_t>(at));
      } else {
        const int64_t index = at / kBlockBytes;
        if (last < 0) last = LastWanted(index, (end - 1) / kBlockBytes);
        TENON_ASSIGN_OR_RETURN(block, Wait(index, last));
        found = std::string_view(block->bytes).substr(static_cast<size_t>(at % kBlockBytes));
      }
      const size_t step = std::min(size - done, found.size());
      std::memcpy(out + done, found.data(), step);
      done += step;
    }
    return done;
  }

 private:
  /// The last block to ask for in a read of the blocks `first` to `last`: more than these where it
  /// goes on from the read before, the more the longer that lasts. A single read, as that of a part
  /// of a table, asks for nothing else.
  int64_t LastWanted(int64_t first, int64_t last) const {
    MutexLock lock(fetching_->mu);
    const int64_t before = fetching_->last_read;
    int64_t& ahead = fetching_->ahead;
    if (first != before && first != before + 1) {
      ahead = 0;
    } else if (last > before) {
      ahead = std::min(std::max<int64_t>(2 * ahead, 1), kMostFetched);
    }
    fetching_->last_read = last;
    return std::min(last + ahead, (options_.size - 1) / kBlockBytes);
  }

  /// Block `index` once it is there; those behind it, up to block `last`, are asked for.
  StatusOr<std::shared_ptr<Block>> Wait(int64_t index, int64_t last) const {
    MutexLock lock(fetching_->mu);
    const std::shared_ptr<Block> block = Want(index);
    for (int64_t i = index + 1; i <= std::min(index + kMostFetched - 1, last); ++i) Want(i);
    block->used_at = ++fetching_->uses;
    DropOld(index);
    while (!block->done) fetching_->changed.Wait(fetching_->mu);
    if (!block->status.ok()) return block->status;
    return block;
  }

  /// The block, of which the fetching begins unless it has.
  std::shared_ptr<Block> Want(int64_t index) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(fetching_->mu) {
    std::shared_ptr<Block>& block = fetching_->blocks[index];
    const bool failed = block != nullptr && block->done && !block->status.ok();
    if (block != nullptr && !failed) return block;
    block = std::make_shared<Block>();
    block->used_at = ++fetching_->uses;
    ++fetching_->running;
    const Status started = workers_.Run([this, shared = fetching_, block, index] {
      StatusOr<std::string> bytes = Fetch(index, &shared->cancelled);
      MutexLock lock(shared->mu);
      block->done = true;
      block->status = bytes.status();
      if (bytes.ok()) block->bytes = *std::move(bytes);
      --shared->running;
      shared->changed.NotifyAll();
    });
    if (!started.ok()) {
      --fetching_->running;
      block->done = true;
      block->status = started;
    }
    return block;
  }

  /// Drops blocks where there are too many: first those behind who reads block `index`, then those
  /// that were not used for the longest time.
  void DropOld(int64_t index) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(fetching_->mu) {
    auto& blocks = fetching_->blocks;
    while (blocks.size() > kMostBlocks) {
      auto oldest = blocks.end();
      for (auto it = blocks.begin(); it != blocks.end(); ++it) {
        if (!it->second->done || it->first == index) continue;
        const bool older = oldest == blocks.end() || it->second->used_at < oldest->second->used_at;
        if (older) oldest = it;
        if (it->first < index) break;
      }
      if (oldest == blocks.end()) return;
      blocks.erase(oldest);
    }
  }

  StatusOr<std::string> Fetch(int64_t index, const std::atomic<bool>* cancelled) const {
    const int64_t begin = index * kBlockBytes;
    const int64_t end = std::min(begin + kBlockBytes, options_.size);
    TENON_ASSIGN_OR_RETURN(std::string bytes, options_.fetch(begin, end, cancelled));
    if (static_cast<int64_t>(bytes.size()) == end - begin) return bytes;
    return DataLoss("cannot read '", options_.path, "': found ", bytes.size(), " bytes from ",
                    begin, " on, wanted ", end - begin);
  }

  const BlockInputOptions options_;
  Workers& workers_;
  const std::shared_ptr<Fetching> fetching_ = std::make_shared<Fetching>();
};

}  // namespace

std::unique_ptr<InputFile> MakeBlockInput(BlockInputOptions options, Workers& workers) {
  return std::make_unique<BlockInput>(std::move(options), workers);
}

}  // namespace tenon
