// SPDX-License-Identifier: Apache-2.0
#include "core/base/varint.h"
#include "data/checkpoint/tensor_bundle.h"
#include "data/checkpoint/tensor_bundle_index.h"
#include "data/files/crc32c.h"

namespace tenon {
namespace {

/// A checkpoint takes the place of another at the same prefix: the index of the old one stays good
/// until the new index replaces it, so that the new data files have names that it does not use.
class BundleReplacement {
 public:
  BundleReplacement(const std::string& prefix, int num_shards, const FileContext& context)
      : prefix_(prefix), context_(context) {
    const StatusOr<BundleIndex> old = ReadBundleIndex(prefix, context);
    if (old.ok()) old_shards_ = old->num_shards;
    num_shards_ = num_shards + (num_shards == old_shards_ ? 1 : 0);
  }

  /// The name of a new data file.
  std::string DataName(int shard) const { return BundleDataName(prefix_, shard, num_shards_); }

  /// Once the data files are there: makes the index refer to them, and removes the old ones.
  Status Finish(BundleIndex index) {
    if (index.num_shards != num_shards_) {
      TENON_RETURN_IF_ERROR(WriteStringToFile(DataName(index.num_shards), "", context_));
      index.num_shards = num_shards_;
    }
    TENON_RETURN_IF_ERROR(SyncFolder(FolderOf(prefix_), context_));
    TENON_RETURN_IF_ERROR(WriteBundleIndex(prefix_, index, context_));
    for (int i = 0; i < old_shards_; ++i) {
      RemoveFile(BundleDataName(prefix_, i, old_shards_), context_).IgnoreError();
    }
    return OkStatus();
  }

 private:
  const std::string prefix_;
  const FileContext context_;
  int old_shards_ = 0;
  int num_shards_ = 0;
};

}  // namespace

std::string BundleIndexName(std::string_view prefix) { return StrCat(prefix, ".index"); }

std::string BundleDataName(std::string_view prefix, int shard, int num_shards) {
  return StrCat(prefix, ".data-", absl::Dec(shard, absl::kZeroPad5), "-of-",
                absl::Dec(num_shards, absl::kZeroPad5));
}

BundleWriter::BundleWriter(std::string prefix, std::string temporary, const FileContext& context,
                           std::unique_ptr<OutputFile> data)
    : prefix_(std::move(prefix)),
      temporary_(std::move(temporary)),
      context_(context),
      data_(std::move(data)) {}

StatusOr<std::unique_ptr<BundleWriter>> BundleWriter::Create(const std::string& prefix,
                                                             const FileContext& context) {
  if (prefix.empty()) return InvalidArgument("the prefix of a checkpoint is empty");
  TENON_RETURN_IF_ERROR(MakeFolders(FolderOf(prefix), context));
  std::string temporary = context.files->WritesWhole(prefix)
                              ? BundleReplacement(prefix, 1, context).DataName(0)
                              : TemporaryName(BundleDataName(prefix, 0, 1));
  TENON_ASSIGN_OR_RETURN(auto data, OpenOutput(temporary, WriteMode::kTruncate, context));
  return std::unique_ptr<BundleWriter>(
      new BundleWriter(prefix, std::move(temporary), context, std::move(data)));
}

BundleWriter::~BundleWriter() {
  data_.reset();
  if (!finished_) RemoveFile(temporary_, context_).IgnoreError();
}

Status BundleWriter::Add(std::string_view name, const Tensor& value) {
  if (name.empty()) return InvalidArgument("a tensor of a checkpoint must have a name");
  return AddEntry(std::string(name), value);
}

Status BundleWriter::AddEntry(std::string key, const Tensor& value) {
  if (data_ == nullptr) return FailedPrecondition("the checkpoint '", prefix_, "' is finished");
  if (!value.valid()) return InvalidArgument("tensor '", key, "' has no value");
  if (!value.IsHostMemory()) return InvalidArgument("tensor '", key, "' is not in host memory");
  if (entries_.contains(key)) {
    return InvalidArgument("tensor '", key, "' is already in the checkpoint");
  }
  BundleEntry entry;
  entry.dtype = value.dtype();
  entry.shape = value.shape();
  entry.offset = offset_;
  if (value.dtype() == DType::kString) {
    TENON_RETURN_IF_ERROR(WriteStrings(value, &entry));
  } else if (IsPlain(value.dtype())) {
    TENON_RETURN_IF_ERROR(WritePlain(value, &entry));
  } else {
    return InvalidArgument("tensor '", key, "' is ", ToString(value.dtype()),
                           ", which cannot be stored in a checkpoint");
  }
  offset_ += entry.size;
  entries_.emplace(std::move(key), std::move(entry));
  return OkStatus();
}

Status BundleWriter::WritePlain(const Tensor& value, BundleEntry* entry) {
  const std::string_view bytes(static_cast<const char*>(value.raw_data()), value.num_bytes());
  entry->size = static_cast<int64_t>(bytes.size());
  entry->masked_crc = MaskCrc32c(Crc32c(bytes));
  return data_->Append(bytes);
}

Status BundleWriter::WriteStrings(const Tensor& value, BundleEntry* entry) {
  // The lengths as varints, a checksum of the lengths, the text. What is summed of a length is not
  // its varint but the number in 4 bytes, or 8 when it does not fit.
  std::string head;
  uint32_t crc = 0;
  for (const TString& s : value.flat<TString>()) {
    AppendVarint(&head, s.size());
    const uint64_t wide = s.size();
    const auto narrow = static_cast<uint32_t>(wide);
    crc = wide <= UINT32_MAX ? ExtendCrc32c(crc, &narrow, sizeof(narrow))
                             : ExtendCrc32c(crc, &wide, sizeof(wide));
  }
  const uint32_t masked = MaskCrc32c(crc);
  head.append(reinterpret_cast<const char*>(&masked), sizeof(masked));
  crc = ExtendCrc32c(crc, &masked, sizeof(masked));
  TENON_RETURN_IF_ERROR(data_->Append(head));
  entry->size = static_cast<int64_t>(head.size());
  for (const TString& s : value.flat<TString>()) {
    crc = ExtendCrc32c(crc, s.data(), s.size());
    TENON_RETURN_IF_ERROR(data_->Append(s));
    entry->size += static_cast<int64_t>(s.size());
  }
  entry->masked_crc = MaskCrc32c(crc);
  return OkStatus();
}

Status BundleWriter::AddSlice(std::string_view name, const Shape& full_shape,
                              const TensorSlice& slice, const Tensor& value) {
  TENON_ASSIGN_OR_RETURN(const TensorSlice resolved, slice.Resolve(full_shape));
  if (!(value.shape() == resolved.shape())) {
    return InvalidArgument("slice ", slice.ToString(), " of tensor '", name, "' has shape ",
                           resolved.shape().ToString(), ", found a value of shape ",
                           value.shape().ToString());
  }
  if (slice.IsFull(full_shape)) return Add(name, value);
  if (name.empty()) return InvalidArgument("a tensor of a checkpoint must have a name");
  const auto found = entries_.find(std::string(name));
  if (found != entries_.end()) {
    const BundleEntry& whole = found->second;
    if (whole.slices.empty()) {
      return InvalidArgument("tensor '", name, "' is already in the checkpoint");
    }
    if (whole.dtype != value.dtype() || !(whole.shape == full_shape)) {
      return InvalidArgument("tensor '", name, "' is ", ToString(whole.dtype),
                             whole.shape.ToString(), " by one of its slices and ",
                             ToString(value.dtype()), full_shape.ToString(), " by another");
    }
    for (const TensorSlice& other : whole.slices) {
      if (resolved.Intersect(*other.Resolve(full_shape))) {
        return InvalidArgument("slices ", other.ToString(), " and ", slice.ToString(),
                               " of tensor '", name, "' overlap");
      }
    }
  }
  TENON_RETURN_IF_ERROR(AddEntry(SliceKey(name, slice), value));
  BundleEntry& whole = entries_[std::string(name)];
  whole.dtype = value.dtype();
  whole.shape = full_shape;
  whole.slices.push_back(slice);
  return OkStatus();
}

Status BundleWriter::Finish() {
  if (data_ == nullptr) return FailedPrecondition("the checkpoint '", prefix_, "' is finished");
  TENON_RETURN_IF_ERROR(data_->Sync());
  TENON_RETURN_IF_ERROR(data_->Close());
  data_.reset();
  BundleReplacement replacement(prefix_, 1, context_);
  if (const std::string name = replacement.DataName(0); temporary_ != name) {
    TENON_RETURN_IF_ERROR(RenameFile(temporary_, name, context_));
  }
  finished_ = true;
  return replacement.Finish(BundleIndex{1, std::move(entries_)});
}

Status MergeBundles(const std::vector<std::string>& prefixes, const std::string& merged_prefix,
                    const MergeBundlesOptions& options) {
  BundleIndex merged;
  merged.num_shards = 0;
  std::vector<std::pair<std::string, int>> read;  // prefixes and their numbers of shards
  for (const std::string& prefix : prefixes) {
    TENON_RETURN_IF_ERROR(options.files.CheckCancelled());
    StatusOr<BundleIndex> index = ReadBundleIndex(prefix, options.files);
    if (options.allow_missing && index.status().code() == StatusCode::kNotFound) continue;
    if (!index.ok()) return index.status();
    if (index->num_shards > INT32_MAX - merged.num_shards) {
      return InvalidArgument("the checkpoints to merge have too many data files");
    }
    for (auto& [key, entry] : index->entries) {
      if (entry.slices.empty()) entry.shard += merged.num_shards;
      const auto [it, added] = merged.entries.emplace(key, entry);
      if (added) continue;
      BundleEntry& first = it->second;
      if (first.slices.empty() || entry.slices.empty()) {
        return InvalidArgument("tensor '", key, "' is in several of the checkpoints to merge, also",
                               " in '", prefix, "'");
      }
      if (first.dtype != entry.dtype || !(first.shape == entry.shape)) {
        return InvalidArgument("tensor '", key, "' is ", ToString(first.dtype),
                               first.shape.ToString(), " by some of its slices and ",
                               ToString(entry.dtype), entry.shape.ToString(), " in '", prefix, "'");
      }
      first.slices.insert(first.slices.end(), entry.slices.begin(), entry.slices.end());
    }
    read.emplace_back(prefix, index->num_shards);
    merged.num_shards += index->num_shards;
  }
  if (read.empty()) return InvalidArgument("there is no checkpoint to merge");
  TENON_RETURN_IF_ERROR(MakeFolders(FolderOf(merged_prefix), options.files));
  BundleReplacement replacement(merged_prefix, merged.num_shards, options.files);
  int shard = 0;
  for (const auto& [prefix, shards] : read) {
    for (int i = 0; i < shards; ++i, ++shard) {
      TENON_RETURN_IF_ERROR(RenameFile(BundleDataName(prefix, i, shards),
                                       replacement.DataName(shard), options.files));
    }
  }
  TENON_RETURN_IF_ERROR(replacement.Finish(std::move(merged)));
  for (const auto& [prefix, shards] : read) {
    if (prefix == merged_prefix) continue;
    TENON_RETURN_IF_ERROR(RemoveFile(BundleIndexName(prefix), options.files));
  }
  return OkStatus();
}

}  // namespace tenon
