// SPDX-License-Identifier: Apache-2.0
#include "data/checkpoint/v1_checkpoint.h"

#include <cstring>

#include "core/proto/proto_io_tensor.h"
#include "data/checkpoint/sstable.h"
#include "data/checkpoint/tensor_bundle_index.h"
#include "proto/saved_tensor_slice.pb.h"

namespace tenon {

Status WriteV1Checkpoint(const std::string& path, const std::vector<SavedPart>& parts,
                         const FileContext& context) {
  SavedTensorSlices index;
  index.mutable_meta()->mutable_versions()->set_producer(1);
  std::map<std::string, SavedSliceMeta*> tensors;
  std::map<std::string, std::string> values;
  for (const SavedPart& part : parts) {
    SavedSliceMeta*& tensor = tensors[part.name];
    TensorShapeProto shape;
    ShapeToProto(part.full_shape, &shape);
    const DataType type = DTypeToProto(part.value.dtype());
    if (tensor == nullptr) {
      tensor = index.mutable_meta()->add_tensor();
      tensor->set_name(part.name);
      tensor->set_type(type);
      *tensor->mutable_shape() = shape;
    } else if (tensor->type() != type ||
               tensor->shape().SerializeAsString() != shape.SerializeAsString()) {
      return InvalidArgument("the parts of tensor '", part.name, "' differ in type or shape");
    }
    SavedTensorSlices entry;
    SliceToProto(part.slice, tensor->add_slice());
    SliceToProto(part.slice, entry.mutable_data()->mutable_slice());
    entry.mutable_data()->set_name(part.name);
    TENON_RETURN_IF_ERROR(
        TensorToProto(part.value, entry.mutable_data()->mutable_data(), TensorEncoding::kTyped));
    std::string bytes;
    if (entry.ByteSizeLong() > INT32_MAX || !entry.SerializeToString(&bytes)) {
      return InvalidArgument("tensor '", part.name,
                             "' is too large for a checkpoint of this format");
    }
    if (!values.emplace(SliceKey(part.name, part.slice), std::move(bytes)).second) {
      return InvalidArgument("tensor '", part.name, "' is to be saved twice");
    }
    TENON_RETURN_IF_ERROR(context.CheckCancelled());
  }
  SstableEntries entries = {{"", index.SerializeAsString()}};
  entries.insert(entries.end(), std::make_move_iterator(values.begin()),
                 std::make_move_iterator(values.end()));
  TENON_ASSIGN_OR_RETURN(const std::string table, WriteSstable(entries));
  TENON_RETURN_IF_ERROR(MakeFolders(FolderOf(path), context));
  return WriteStringToFile(path, table, context);
}

StatusOr<V1Checkpoint> V1Checkpoint::Open(const std::vector<std::string>& paths,
                                          const FileContext& context) {
  V1Checkpoint checkpoint;
  for (const std::string& path : paths) {
    TENON_ASSIGN_OR_RETURN(const std::string content, ReadFileToString(path, context));
    TENON_ASSIGN_OR_RETURN(const SstableEntries entries, ReadSstable(content));
    SavedTensorSlices index;
    if (entries.empty() || !entries[0].first.empty() || !index.ParseFromString(entries[0].second)) {
      return DataLoss(path, " has no index of a checkpoint");
    }
    if (index.meta().versions().min_consumer() > 1) {
      return Unimplemented(path, " needs a reader of version ",
                           index.meta().versions().min_consumer());
    }
    for (const SavedSliceMeta& meta : index.meta().tensor()) {
      Saved saved;
      TENON_ASSIGN_OR_RETURN(saved.dtype, DTypeFromProto(meta.type()));
      TENON_ASSIGN_OR_RETURN(saved.shape, ShapeFromProto(meta.shape()));
      Saved& all = checkpoint.tensors_.try_emplace(meta.name(), saved).first->second;
      if (all.dtype != saved.dtype || all.shape != saved.shape) {
        return InvalidArgument("tensor '", meta.name(), "' has another type or shape in ", path);
      }
      for (const TensorSliceProto& slice : meta.slice()) {
        all.slices.push_back(SliceFromProto(slice));
        TENON_RETURN_IF_ERROR(all.slices.back().Resolve(saved.shape).status());
      }
    }
    for (size_t i = 1; i < entries.size(); ++i) {
      checkpoint.values_.insert_or_assign(entries[i].first, entries[i].second);
    }
  }
  return checkpoint;
}

StatusOr<Tensor> V1Checkpoint::ReadStored(std::string_view name, const Saved& saved,
                                          const TensorSlice& slice) const {
  const auto found = values_.find(SliceKey(name, slice));
  SavedTensorSlices entry;
  if (found == values_.end() || !entry.ParseFromString(found->second)) {
    return DataLoss("slice ", slice.ToString(), " of tensor '", name, "' is missing or unreadable");
  }
  // The file says type and shape only once, in the index.
  TensorProto* const data = entry.mutable_data()->mutable_data();
  data->set_dtype(DTypeToProto(saved.dtype));
  TENON_ASSIGN_OR_RETURN(const TensorSlice resolved, slice.Resolve(saved.shape));
  ShapeToProto(resolved.shape(), data->mutable_tensor_shape());
  return TensorFromProto(*data);
}

StatusOr<Tensor> V1Checkpoint::Read(std::string_view name, const std::optional<ShapeAndSlice>& part,
                                    DType wanted) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end())
    return NotFound("Tensor name \"", name, "\" not found in checkpoint files");
  const Saved& saved = it->second;
  if (saved.dtype != wanted) {
    return InvalidArgument("tensor '", name, "' is ", saved.dtype, ", wanted ", wanted);
  }
  if (part && part->full_shape != saved.shape) {
    return InvalidArgument("tensor '", name, "' has shape ", saved.shape, ", wanted ",
                           part->full_shape);
  }
  TENON_ASSIGN_OR_RETURN(
      const TensorSlice slice,
      (part ? part->slice : TensorSlice::Full(saved.shape.rank())).Resolve(saved.shape));
  TENON_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(CpuAllocator(), wanted, slice.shape()));
  if (IsPlain(wanted)) std::memset(out.raw_data(), 0, out.num_bytes());
  int64_t covered = 0;
  for (const TensorSlice& stored : saved.slices) {
    TENON_ASSIGN_OR_RETURN(const TensorSlice whole, stored.Resolve(saved.shape));
    const std::optional<TensorSlice> common = whole.Intersect(slice);
    if (!common) continue;
    TENON_ASSIGN_OR_RETURN(const Tensor value, ReadStored(name, saved, stored));
    CopySlice(*common, value, whole, &out, slice);
    covered += common->shape().num_elements();
  }
  if (covered < out.num_elements()) {
    return NotFound("only ", covered, " of the ", out.num_elements(), " elements of '", name,
                    "' are in the checkpoint");
  }
  return out;
}

}  // namespace tenon
