// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "data/checkpoint/tensor_slice.h"
#include "data/files/file.h"

// Checkpoints in TensorFlow's format, byte for byte ("tensor bundle", checkpoint V2). A checkpoint
// is named by a prefix: <prefix>.index is a table (data/checkpoint/sstable.h) from tensor names to
// where each tensor is; <prefix>.data-00000-of-00001 and so on hold the elements. A tensor may be
// stored in slices, as partitioned variables are; readers do not see the difference.

namespace tenon {

/// What the index says of one tensor.
struct BundleEntry {
  DType dtype = DType::kInvalid;
  Shape shape;  // of the whole tensor
  int32_t shard = 0;
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t masked_crc = 0;
  /// Not empty: the elements are under keys of their own, one a slice.
  std::vector<TensorSlice> slices;
};

/// Writes one checkpoint of one data file. The files get their names when Finish succeeds; until
/// then, after any failure, and whatever dies meanwhile, there is at the prefix what was there
/// before: nothing, or a checkpoint, which is replaced in one step. That one's data files keep
/// their names until then, so that the new one has an empty data file more where they would be the
/// same. What Finish wrote outlives the machine. Used by one thread at a time.
///
///   TENON_ASSIGN_OR_RETURN(auto writer, BundleWriter::Create("/tmp/model.ckpt-1"));
///   TENON_RETURN_IF_ERROR(writer->Add("W", value));
///   TENON_RETURN_IF_ERROR(writer->Finish());
class BundleWriter {
 public:
  /// Makes the folder of `prefix` when it is not there. What `context` names must outlive the
  /// writer.
  static StatusOr<std::unique_ptr<BundleWriter>> Create(const std::string& prefix,
                                                        const FileContext& context = {});
  /// Removes the temporary file when Finish did not succeed.
  ~BundleWriter();

  /// Writes a tensor in host memory. InvalidArgument for a name used before or empty, and for
  /// resources and variants.
  Status Add(std::string_view name, const Tensor& value);
  /// Writes one slice of a tensor of `full_shape`; `value` has the slice's shape. The slices of a
  /// tensor must not overlap. InvalidArgument when shapes or dtypes contradict each other.
  Status AddSlice(std::string_view name, const Shape& full_shape, const TensorSlice& slice,
                  const Tensor& value);
  /// Writes the index and gives both files their names. Nothing may be added after.
  Status Finish();

 private:
  BundleWriter(std::string prefix, std::string temporary, const FileContext& context,
               std::unique_ptr<OutputFile> data);
  Status AddEntry(std::string key, const Tensor& value);
  Status WritePlain(const Tensor& value, BundleEntry* entry);
  Status WriteStrings(const Tensor& value, BundleEntry* entry);

  const std::string prefix_;
  const std::string temporary_;
  const FileContext context_;
  std::unique_ptr<OutputFile> data_;
  int64_t offset_ = 0;
  bool finished_ = false;
  std::map<std::string, BundleEntry> entries_;
};

/// Reads a checkpoint. Thread-safe.
class BundleReader {
 public:
  /// Reads the index. NotFound when there is none, DataLoss when it is damaged. What `context`
  /// names must outlive the reader.
  static StatusOr<std::unique_ptr<BundleReader>> Open(const std::string& prefix,
                                                      const FileContext& context = {});

  const std::string& prefix() const { return prefix_; }
  int num_shards() const { return num_shards_; }
  bool Contains(std::string_view name) const { return entries_.contains(name); }
  /// The names of the tensors, sorted.
  const std::vector<std::string>& names() const { return names_; }

  /// NotFound "Key W not found in checkpoint <prefix>" when there is none of that name.
  StatusOr<const BundleEntry*> Find(std::string_view name) const;
  /// The whole tensor. NotFound as above; DataLoss, naming the file and what was found, when data
  /// is missing, cut short or does not have the recorded checksum; ResourceExhausted, before it is
  /// read, when it is larger than the memory limit leaves.
  StatusOr<Tensor> Read(std::string_view name) const;
  /// A slice of it, with the shape of the slice, however it is stored. The errors of Read, and
  /// InvalidArgument for a slice that is not inside the tensor.
  StatusOr<Tensor> ReadSlice(std::string_view name, const TensorSlice& slice) const;

 private:
  BundleReader(std::string prefix, int num_shards, const FileContext& context)
      : prefix_(std::move(prefix)), num_shards_(num_shards), context_(context) {}
  /// Reads the bytes of an entry; DataLoss when the file ends first.
  Status ReadBytes(const InputFile& file, const BundleEntry& entry, char* out) const;
  StatusOr<const InputFile*> Shard(int32_t shard) const;
  /// The data file of an entry, once the entry is known to fit into it and its shape into it.
  StatusOr<const InputFile*> CheckedShard(const std::string& key, const BundleEntry& entry) const;
  StatusOr<Tensor> ReadStored(const std::string& key, const BundleEntry& entry) const;
  StatusOr<Tensor> ReadPlain(const InputFile& file, const BundleEntry& entry) const;
  StatusOr<Tensor> ReadStrings(const InputFile& file, const BundleEntry& entry) const;
  StatusOr<Tensor> ReadFromSlices(std::string_view name, const BundleEntry& entry,
                                  const TensorSlice& wanted) const;

  const std::string prefix_;
  const int num_shards_;
  const FileContext context_;
  StringMap<BundleEntry> entries_;
  std::vector<std::string> names_;
  mutable Mutex mu_;
  mutable flat_hash_map<int32_t, std::unique_ptr<InputFile>> files_ ABSL_GUARDED_BY(mu_);
};

struct MergeBundlesOptions {
  /// Passes over prefixes that have no index instead of failing.
  bool allow_missing = false;
  FileContext files = {};
};

/// Makes one checkpoint of several (MergeV2Checkpoints): data files are renamed, not copied, the
/// indexes become one and the old ones are removed. The slices of one tensor may be spread over the
/// prefixes. InvalidArgument when a whole tensor occurs twice, or the slices of one disagree in
/// dtype or shape; then nothing was changed. A checkpoint at `merged_prefix` is replaced as by
/// BundleWriter.
Status MergeBundles(const std::vector<std::string>& prefixes, const std::string& merged_prefix,
                    const MergeBundlesOptions& options = {});

/// "<prefix>.index" and "<prefix>.data-00000-of-00001".
std::string BundleIndexName(std::string_view prefix);
std::string BundleDataName(std::string_view prefix, int shard, int num_shards);

}  // namespace tenon
