// SPDX-License-Identifier: Apache-2.0
#include "data/checkpoint/tensor_bundle_index.h"

#include "core/proto/proto_io_tensor.h"
#include "data/checkpoint/ordered_code.h"
#include "data/checkpoint/sstable.h"
#include "proto/tensor_bundle.pb.h"
#include "proto/tensor_slice.pb.h"

namespace tenon {
namespace {

/// The number of a data file is written with five digits.
constexpr int kMaxShards = 100000;

StatusOr<BundleEntry> EntryFromProto(const BundleEntryProto& proto, int num_shards) {
  BundleEntry entry;
  TENON_ASSIGN_OR_RETURN(entry.dtype, DTypeFromProto(proto.dtype()));
  TENON_ASSIGN_OR_RETURN(entry.shape, ShapeFromProto(proto.shape()));
  entry.shard = proto.shard_id();
  entry.offset = proto.offset();
  entry.size = proto.size();
  entry.masked_crc = proto.crc32c();
  if (entry.shard < 0 || entry.shard >= num_shards) {
    return InvalidArgument("it is in data file ", entry.shard, " of ", num_shards);
  }
  if (entry.offset < 0 || entry.size < 0) {
    return InvalidArgument("it has ", entry.size, " bytes at offset ", entry.offset);
  }
  for (const auto& slice : proto.slices()) {
    entry.slices.push_back(SliceFromProto(slice));
    TENON_RETURN_IF_ERROR(entry.slices.back().Resolve(entry.shape).status());
  }
  return entry;
}

std::string EntryToProto(const BundleEntry& entry) {
  BundleEntryProto proto;
  proto.set_dtype(DTypeToProto(entry.dtype));
  ShapeToProto(entry.shape, proto.mutable_shape());
  proto.set_shard_id(entry.shard);
  proto.set_offset(entry.offset);
  proto.set_size(entry.size);
  proto.set_crc32c(entry.masked_crc);
  for (const TensorSlice& slice : entry.slices) SliceToProto(slice, proto.add_slices());
  return proto.SerializeAsString();
}

StatusOr<BundleIndex> ParseIndex(const std::string& content) {
  TENON_ASSIGN_OR_RETURN(const SstableEntries table, ReadSstable(content));
  BundleHeaderProto header;
  if (table.empty() || !table[0].first.empty() || !header.ParseFromString(table[0].second)) {
    return DataLoss("it has no header of a checkpoint");
  }
  if (header.endianness() != BundleHeaderProto::LITTLE) {
    return Unimplemented("it was written in big-endian byte order");
  }
  if (header.version().min_consumer() > 1) {
    return Unimplemented("it needs a reader of version ", header.version().min_consumer());
  }
  BundleIndex index;
  index.num_shards = header.num_shards();
  if (index.num_shards < 0 || index.num_shards > kMaxShards) {
    return DataLoss("its header says ", index.num_shards, " data files");
  }
  for (size_t i = 1; i < table.size(); ++i) {
    BundleEntryProto proto;
    if (!proto.ParseFromString(table[i].second)) {
      return DataLoss("the entry of '", table[i].first, "' is unreadable");
    }
    auto entry = EntryFromProto(proto, index.num_shards);
    if (!entry.ok()) {
      return DataLoss("the entry of '", table[i].first, "' is wrong: ", Message(entry.status()));
    }
    index.entries.emplace_hint(index.entries.end(), table[i].first, *std::move(entry));
  }
  return index;
}

}  // namespace

TensorSlice SliceFromProto(const TensorSliceProto& proto) {
  std::vector<TensorSlice::Extent> extents;
  for (const auto& e : proto.extent()) {
    const bool full = e.has_length_case() == TensorSliceProto::Extent::HAS_LENGTH_NOT_SET;
    extents.push_back({e.start(), full ? TensorSlice::kFull : e.length()});
  }
  return TensorSlice(std::move(extents));
}

void SliceToProto(const TensorSlice& slice, TensorSliceProto* out) {
  for (int i = 0; i < slice.rank(); ++i) {
    auto* extent = out->add_extent();
    if (slice.extent(i).length == TensorSlice::kFull) continue;
    extent->set_start(slice.extent(i).start);
    extent->set_length(slice.extent(i).length);
  }
}

std::string SliceKey(std::string_view name, const TensorSlice& slice) {
  std::string key;
  AppendOrderedNumber(&key, 0);
  AppendOrderedString(&key, name);
  AppendOrderedNumber(&key, slice.rank());
  for (int i = 0; i < slice.rank(); ++i) {
    AppendOrderedSigned(&key, slice.extent(i).start);
    AppendOrderedSigned(&key, slice.extent(i).length);
  }
  return key;
}

StatusOr<BundleIndex> ReadBundleIndex(const std::string& prefix, const FileContext& context) {
  const std::string path = BundleIndexName(prefix);
  TENON_ASSIGN_OR_RETURN(const std::string content, ReadFileToString(path, context));
  StatusOr<BundleIndex> index = ParseIndex(content);
  if (!index.ok()) return Annotate(index.status(), StrCat("'", path, "' is no checkpoint index"));
  return index;
}

Status WriteBundleIndex(const std::string& prefix, const BundleIndex& index,
                        const FileContext& context) {
  BundleHeaderProto header;
  header.set_num_shards(index.num_shards);
  header.mutable_version()->set_producer(1);
  SstableEntries table = {{"", header.SerializeAsString()}};
  for (const auto& [key, entry] : index.entries) table.emplace_back(key, EntryToProto(entry));
  TENON_ASSIGN_OR_RETURN(const std::string content, WriteSstable(table));
  return WriteStringToFile(BundleIndexName(prefix), content, context);
}

}  // namespace tenon
