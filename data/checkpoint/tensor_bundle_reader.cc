// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "core/base/exceptions.h"
#include "core/base/varint.h"
#include "data/checkpoint/tensor_bundle.h"
#include "data/checkpoint/tensor_bundle_index.h"
#include "data/files/crc32c.h"
#include "data/files/memory_claim.h"

namespace tenon {
namespace {

Status Damaged(const InputFile& file, const BundleEntry& entry, std::string_view what) {
  return DataLoss("'", file.path(), "' at byte ", entry.offset, ": ", what);
}

Status WrongChecksum(const InputFile& file, const BundleEntry& entry, uint32_t masked) {
  return Damaged(
      file, entry,
      StrCat("found checksum ", absl::Hex(masked, absl::kZeroPad8), ", wanted ",
             absl::Hex(entry.masked_crc, absl::kZeroPad8), " over ", entry.size, " bytes"));
}

}  // namespace

Status BundleReader::ReadBytes(const InputFile& file, const BundleEntry& entry, char* out) const {
  TENON_ASSIGN_OR_RETURN(const size_t found, ReadAt(file, entry.offset, entry.size, out, context_));
  if (static_cast<int64_t>(found) == entry.size) return OkStatus();
  return Damaged(file, entry, StrCat("found ", found, " bytes, wanted ", entry.size));
}

StatusOr<std::unique_ptr<BundleReader>> BundleReader::Open(const std::string& prefix,
                                                           const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(BundleIndex index, ReadBundleIndex(prefix, context));
  std::unique_ptr<BundleReader> reader(new BundleReader(prefix, index.num_shards, context));
  reader->entries_.reserve(index.entries.size());
  for (auto& [key, entry] : index.entries) {
    if (!IsSliceKey(key)) reader->names_.push_back(key);
    reader->entries_.emplace(key, std::move(entry));
  }
  return reader;
}

StatusOr<const BundleEntry*> BundleReader::Find(std::string_view name) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) {
    return NotFound("Key ", name, " not found in checkpoint ", prefix_);
  }
  return &it->second;
}

StatusOr<const InputFile*> BundleReader::Shard(int32_t shard) const {
  MutexLock lock(mu_);
  auto& file = files_[shard];
  if (file == nullptr) {
    auto opened = OpenInput(BundleDataName(prefix_, shard, num_shards_), context_);
    if (!opened.ok()) {
      return Annotate(opened.status(), StrCat("data of checkpoint '", prefix_, "'"));
    }
    file = *std::move(opened);
  }
  return file.get();
}

StatusOr<const InputFile*> BundleReader::CheckedShard(const std::string& key,
                                                      const BundleEntry& entry) const {
  TENON_ASSIGN_OR_RETURN(const InputFile* file, Shard(entry.shard));
  if (entry.size > file->size() || entry.offset > file->size() - entry.size) {
    return Damaged(*file, entry,
                   StrCat("tensor '", key, "' of ", entry.size, " bytes ends after the file of ",
                          file->size(), " bytes"));
  }
  const int64_t n = entry.shape.num_elements();
  int64_t bytes;
  const bool overflows =
      __builtin_mul_overflow(n, static_cast<int64_t>(SizeOf(entry.dtype)), &bytes);
  const bool fits =
      entry.dtype == DType::kString ? n <= entry.size : !overflows && bytes == entry.size;
  if (!fits || (entry.dtype != DType::kString && !IsPlain(entry.dtype))) {
    return Damaged(*file, entry,
                   StrCat("a tensor ", ToString(entry.dtype), entry.shape.ToString(), " in ",
                          entry.size, " bytes"));
  }
  return file;
}

StatusOr<Tensor> BundleReader::ReadStored(const std::string& key, const BundleEntry& entry) const {
  TENON_ASSIGN_OR_RETURN(const InputFile* file, CheckedShard(key, entry));
  if (entry.dtype != DType::kString) return ReadPlain(*file, entry);
  return CatchExceptions([&] { return ReadStrings(*file, entry); });
}

StatusOr<Tensor> BundleReader::ReadPlain(const InputFile& file, const BundleEntry& entry) const {
  TENON_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(CpuAllocator(), entry.dtype, entry.shape));
  auto* bytes = static_cast<char*>(t.raw_data());
  TENON_RETURN_IF_ERROR(ReadBytes(file, entry, bytes));
  const uint32_t masked = MaskCrc32c(ExtendCrc32c(0, bytes, entry.size));
  if (masked != entry.masked_crc) return WrongChecksum(file, entry, masked);
  if (entry.dtype == DType::kBool) {
    // A C++ bool that is neither 0 nor 1 is undefined behaviour.
    std::transform(bytes, bytes + entry.size, bytes, [](char c) { return c != 0; });
  }
  return t;
}

StatusOr<Tensor> BundleReader::ReadStrings(const InputFile& file, const BundleEntry& entry) const {
  const int64_t n = entry.shape.num_elements();
  MemoryClaim claim;  // for the bytes; lengths and texts count by themselves
  if (Status s = claim.GrowTo(static_cast<uint64_t>(entry.size)); !s.ok()) {
    return Annotate(s, StrCat("cannot read '", file.path(), "'"));
  }
  std::string bytes(entry.size, '\0');
  TENON_RETURN_IF_ERROR(ReadBytes(file, entry, bytes.data()));
  std::string_view rest = bytes;
  CountedVector<uint64_t> lengths(n);
  uint64_t total = 0;
  uint32_t crc = 0;
  for (uint64_t& length : lengths) {
    if (!TakeVarint(&rest, &length) || length > bytes.size()) {
      return Damaged(file, entry, "unreadable string lengths");
    }
    total += length;
    if (total > bytes.size()) return Damaged(file, entry, "unreadable string lengths");
    const auto narrow = static_cast<uint32_t>(length);
    crc = length <= UINT32_MAX ? ExtendCrc32c(crc, &narrow, sizeof(narrow))
                               : ExtendCrc32c(crc, &length, sizeof(length));
  }
  if (rest.size() != total + sizeof(uint32_t)) {
    return Damaged(file, entry,
                   StrCat("found ", rest.size(), " bytes of text and checksum, wanted ",
                          total + sizeof(uint32_t)));
  }
  const uint32_t masked = MaskCrc32c(ExtendCrc32c(crc, rest.data(), rest.size()));
  if (masked != entry.masked_crc) return WrongChecksum(file, entry, masked);
  rest.remove_prefix(sizeof(uint32_t));
  TENON_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(CpuAllocator(), DType::kString, entry.shape));
  TString* text = t.data<TString>();
  for (const uint64_t length : lengths) {
    text++->assign(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return t;
}

StatusOr<Tensor> BundleReader::ReadFromSlices(std::string_view name, const BundleEntry& entry,
                                              const TensorSlice& wanted) const {
  struct Part {
    std::string key;
    const BundleEntry* stored;
    TensorSlice slice;   // what is stored
    TensorSlice common;  // what of it is wanted
  };
  // Everything is checked before memory is taken for what the index claims.
  std::vector<Part> parts;
  int64_t covered = 0;
  for (const TensorSlice& slice : entry.slices) {
    TENON_ASSIGN_OR_RETURN(const TensorSlice resolved, slice.Resolve(entry.shape));
    auto common = resolved.Intersect(wanted);
    if (!common) continue;
    std::string key = SliceKey(name, slice);
    TENON_ASSIGN_OR_RETURN(const BundleEntry* stored, Find(key));
    if (stored->dtype != entry.dtype || !(stored->shape == resolved.shape()) ||
        !stored->slices.empty()) {
      return DataLoss("slice ", slice.ToString(), " of tensor '", name, "' in checkpoint ", prefix_,
                      " is ", ToString(stored->dtype), stored->shape.ToString(), ", wanted ",
                      ToString(entry.dtype), resolved.shape().ToString());
    }
    TENON_RETURN_IF_ERROR(CheckedShard(key, *stored));
    if (__builtin_add_overflow(covered, common->shape().num_elements(), &covered)) {
      return DataLoss("the slices of tensor '", name, "' in checkpoint ", prefix_, " overlap");
    }
    parts.push_back({std::move(key), stored, resolved, *std::move(common)});
  }
  const Shape shape = wanted.shape();
  if (covered != shape.num_elements()) {
    return DataLoss("the slices of tensor '", name, "' in checkpoint ", prefix_, " hold ", covered,
                    " of the ", shape.num_elements(), " elements of ", wanted.ToString());
  }
  TENON_ASSIGN_OR_RETURN(Tensor whole, Tensor::Allocate(CpuAllocator(), entry.dtype, shape));
  // Slices of a damaged index may overlap and leave gaps, which must not show old memory.
  if (IsPlain(entry.dtype)) std::memset(whole.raw_data(), 0, whole.num_bytes());
  for (const Part& part : parts) {
    TENON_RETURN_IF_ERROR(context_.CheckCancelled());
    TENON_ASSIGN_OR_RETURN(const Tensor value, ReadStored(part.key, *part.stored));
    CopySlice(part.common, value, part.slice, &whole, wanted);
  }
  return whole;
}

StatusOr<Tensor> BundleReader::Read(std::string_view name) const {
  TENON_ASSIGN_OR_RETURN(const BundleEntry* entry, Find(name));
  return ReadSlice(name, TensorSlice::Full(entry->shape.rank()));
}

StatusOr<Tensor> BundleReader::ReadSlice(std::string_view name, const TensorSlice& slice) const {
  TENON_ASSIGN_OR_RETURN(const BundleEntry* entry, Find(name));
  StatusOr<TensorSlice> resolved = slice.Resolve(entry->shape);
  if (!resolved.ok()) return Annotate(resolved.status(), StrCat("tensor '", name, "'"));
  if (!entry->slices.empty()) return ReadFromSlices(name, *entry, *resolved);
  TENON_ASSIGN_OR_RETURN(Tensor whole, ReadStored(std::string(name), *entry));
  if (slice.IsFull(entry->shape)) return whole;
  TENON_ASSIGN_OR_RETURN(Tensor part,
                         Tensor::Allocate(CpuAllocator(), entry->dtype, resolved->shape()));
  if (part.num_elements() > 0) {
    CopySlice(*resolved, whole, *TensorSlice::Full(entry->shape.rank()).Resolve(entry->shape),
              &part, *resolved);
  }
  return part;
}

}  // namespace tenon
