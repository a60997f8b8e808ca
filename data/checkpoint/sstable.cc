// SPDX-License-Identifier: Apache-2.0
#include "data/checkpoint/sstable.h"

#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>
#include <snappy.h>

#include <cstring>

#include "core/base/varint.h"
#include "data/files/crc32c.h"
#include "data/files/memory_claim.h"

// LevelDB's own reader trusts the lengths in a block once its checksum is right, and allocates what
// a handle says; a file from elsewhere may have been made to abuse that. So only its writer is
// used, and the reader here checks every length against the bytes that are there.

namespace tenon {
namespace {

constexpr size_t kFooterBytes = 48;
constexpr uint64_t kTableMagic = 0xdb4775248b80fb57ull;
/// After each block: its compression and its checksum.
constexpr size_t kTrailerBytes = 5;
/// Prefix compression lets a small file spell out very long keys; no real table grows as much.
constexpr size_t kMaxGrowth = 256;
/// Snappy cannot make more of a byte than this: three bytes stand for 64 at most.
constexpr size_t kMaxSnappyRatio = 22;

class StringSink final : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    content.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }

  std::string content;
};

uint32_t Fixed32(const char* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

/// Where a block is.
struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;
};

StatusOr<BlockHandle> TakeHandle(std::string_view* in) {
  BlockHandle handle;
  if (!TakeVarint(in, &handle.offset) || !TakeVarint(in, &handle.size)) {
    return DataLoss("the table has an unreadable block handle");
  }
  return handle;
}

/// The content of a block, its checksum verified; `storage` holds it when it was compressed, and
/// `claim` counts that.
StatusOr<std::string_view> ReadBlock(std::string_view file, const BlockHandle& handle,
                                     std::string* storage, MemoryClaim* claim) {
  const uint64_t limit = file.size() - kFooterBytes;
  if (handle.offset > limit || handle.size > limit - handle.offset ||
      limit - handle.offset - handle.size < kTrailerBytes) {
    return DataLoss("a block of the table at byte ", handle.offset, " of ", handle.size,
                    " bytes is outside the file of ", file.size());
  }
  const std::string_view block = file.substr(handle.offset, handle.size);
  const char* trailer = block.data() + block.size();
  if (Fixed32(trailer + 1) != MaskCrc32c(Crc32c(file.substr(handle.offset, handle.size + 1)))) {
    return DataLoss("the block of the table at byte ", handle.offset, " has a wrong checksum");
  }
  if (*trailer == 0) return block;
  size_t length = 0;
  if (*trailer != 1 || !snappy::GetUncompressedLength(block.data(), block.size(), &length) ||
      length > block.size() * kMaxSnappyRatio) {
    return DataLoss("the block of the table at byte ", handle.offset, " cannot be decompressed");
  }
  TENON_RETURN_IF_ERROR(claim->GrowTo(length));
  if (!snappy::Uncompress(block.data(), block.size(), storage)) {
    return DataLoss("the block of the table at byte ", handle.offset, " cannot be decompressed");
  }
  return std::string_view(*storage);
}

/// Calls `entry(key, value)` for each entry of a block.
template <typename Fn>
Status ForEachEntry(std::string_view block, Fn entry) {
  const Status damaged = DataLoss("a block of the table has unreadable entries");
  if (block.size() < 4) return damaged;
  const uint64_t restarts = Fixed32(block.data() + block.size() - 4);
  if (restarts > (block.size() - 4) / 4) return damaged;
  std::string_view rest = block.substr(0, block.size() - 4 - 4 * restarts);
  std::string key;
  while (!rest.empty()) {
    uint64_t shared, added, value_size;
    if (!TakeVarint(&rest, &shared) || !TakeVarint(&rest, &added) ||
        !TakeVarint(&rest, &value_size) || shared > key.size() || added > rest.size() ||
        value_size > rest.size() - added) {
      return damaged;
    }
    key.resize(shared);
    key.append(rest.substr(0, added));
    TENON_RETURN_IF_ERROR(entry(key, rest.substr(added, value_size)));
    rest.remove_prefix(added + value_size);
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::string> WriteSstable(const SstableEntries& entries) {
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i - 1].first >= entries[i].first) {
      return InvalidArgument("the keys of a table must be in order; '", entries[i].first,
                             "' comes after '", entries[i - 1].first, "'");
    }
  }
  leveldb::Options options;
  options.compression = leveldb::kNoCompression;
  options.block_size = 262144;
  options.block_restart_interval = 16;
  StringSink sink;
  leveldb::TableBuilder builder(options, &sink);
  for (const auto& [key, value] : entries) builder.Add(key, value);
  const leveldb::Status status = builder.Finish();
  if (!status.ok()) return Internal("cannot make a table: ", status.ToString());
  return std::move(sink.content);
}

StatusOr<SstableEntries> ReadSstable(std::string_view content) {
  if (content.size() < kFooterBytes) {
    return DataLoss("a table has at least ", kFooterBytes, " bytes, found ", content.size());
  }
  std::string_view footer = content.substr(content.size() - kFooterBytes);
  const uint64_t magic =
      Fixed32(footer.data() + 40) | static_cast<uint64_t>(Fixed32(footer.data() + 44)) << 32;
  if (magic != kTableMagic) return DataLoss("it does not end as a table does");
  TENON_RETURN_IF_ERROR(TakeHandle(&footer).status());  // of the meta index, which holds nothing
  TENON_ASSIGN_OR_RETURN(const BlockHandle index, TakeHandle(&footer));

  SstableEntries entries;
  size_t total = 0;
  uint64_t end = 0;  // of the block before
  std::string index_storage, storage;
  MemoryClaim index_claim, block_claim, entries_claim;
  TENON_ASSIGN_OR_RETURN(const std::string_view blocks,
                         ReadBlock(content, index, &index_storage, &index_claim));
  Status status = ForEachEntry(blocks, [&](std::string_view, std::string_view value) -> Status {
    TENON_ASSIGN_OR_RETURN(const BlockHandle handle, TakeHandle(&value));
    // A block that is named again and again would cost its checksum each time.
    if (handle.offset < end) return DataLoss("the blocks of the table are not in order");
    TENON_ASSIGN_OR_RETURN(const std::string_view block,
                           ReadBlock(content, handle, &storage, &block_claim));
    end = handle.offset + handle.size + kTrailerBytes;
    return ForEachEntry(block, [&](const std::string& key, std::string_view text) -> Status {
      total += key.size() + text.size();
      if (total > kMaxGrowth * content.size()) return DataLoss("the table is unreasonably large");
      constexpr size_t kEntryBytes = sizeof(SstableEntries::value_type);
      TENON_RETURN_IF_ERROR(entries_claim.GrowTo(total + 2 * kEntryBytes * entries.size()));
      if (!entries.empty() && entries.back().first >= key) {
        return DataLoss("the keys of the table are not in order");
      }
      entries.emplace_back(key, text);
      return OkStatus();
    });
  });
  if (!status.ok()) return status;
  return entries;
}

}  // namespace tenon
