// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "core/op/op_registry.h"
#include "data/checkpoint/tensor_bundle.h"
#include "data/files/file.h"
#include "ops/arguments.h"
#include "ops/io/files_for.h"
#include "ops/io/old_checkpoints.h"

namespace tenon {
namespace {

StatusOr<std::string> ScalarText(const Tensor& t, std::string_view what) {
  if (t.num_elements() != 1) {
    return InvalidArgument(what, " must be a scalar, found shape ", t.shape());
  }
  return std::string(t.scalar<TString>());
}

StatusOr<absl::Span<const TString>> Texts(const Tensor& t, std::string_view what, int64_t n) {
  if (t.rank() != 1 || t.num_elements() != n) {
    return InvalidArgument(what, " must be a vector of ", n, " elements, found shape ", t.shape());
  }
  return t.flat<TString>();
}

Status ReadFileKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const std::string path, ScalarText(ctx.input(0), "filename"));
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  TENON_ASSIGN_OR_RETURN(std::string content, ReadFileToString(path, files));
  return ctx.Return(Tensor::Scalar(std::move(content)));
}

Status WriteFileKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const std::string path, ScalarText(ctx.input(0), "filename"));
  TENON_ASSIGN_OR_RETURN(const std::string content, ScalarText(ctx.input(1), "contents"));
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  TENON_RETURN_IF_ERROR(MakeFolders(FolderOf(path), files));
  return WriteStringToFile(path, content, files);
}

Status SaveKernel(KernelContext& ctx) {
  const int count = ctx.num_inputs() - 3;
  TENON_ASSIGN_OR_RETURN(const std::string prefix, ScalarText(ctx.input(0), "prefix"));
  TENON_ASSIGN_OR_RETURN(const auto names, Texts(ctx.input(1), "tensor_names", count));
  TENON_ASSIGN_OR_RETURN(const auto specs, Texts(ctx.input(2), "shape_and_slices", count));
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  TENON_ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(prefix, files));
  for (int i = 0; i < count; ++i) {
    TENON_RETURN_IF_ERROR(files.CheckCancelled());
    const Tensor& value = ctx.input(3 + i);
    if (specs[i].empty()) {
      TENON_RETURN_IF_ERROR(writer->Add(names[i], value));
      continue;
    }
    TENON_ASSIGN_OR_RETURN(const ShapeAndSlice part, ParseShapeAndSlice(specs[i]));
    TENON_ASSIGN_OR_RETURN(const TensorSlice slice, part.slice.Resolve(part.full_shape));
    if (slice.shape() != value.shape()) {
      return InvalidArgument("Slice in shape_and_slice specification ", specs[i],
                             " does not match the shape of the tensor to save: ", value.shape(),
                             ", tensor: ", names[i]);
    }
    TENON_RETURN_IF_ERROR(writer->AddSlice(names[i], part.full_shape, part.slice, value));
  }
  return writer->Finish();
}

StatusOr<Tensor> RestoreOne(const BundleReader& reader, std::string_view name,
                            std::string_view spec, DType wanted) {
  TENON_ASSIGN_OR_RETURN(const BundleEntry* entry, reader.Find(name));
  if (entry->dtype != wanted) {
    return InvalidArgument("tensor_name = ", name, "; expected dtype ", wanted,
                           " does not equal original dtype ", entry->dtype);
  }
  if (spec.empty()) return reader.Read(name);
  TENON_ASSIGN_OR_RETURN(const ShapeAndSlice part, ParseShapeAndSlice(spec));
  if (part.full_shape != entry->shape) {
    return InvalidArgument("tensor_name = ", name, "; shape in shape_and_slice spec ",
                           part.full_shape,
                           " does not match the shape stored in checkpoint: ", entry->shape);
  }
  return reader.ReadSlice(name, part.slice);
}

Status RestoreFromOld(KernelContext& ctx, const V1Checkpoint& checkpoint,
                      absl::Span<const TString> names, absl::Span<const TString> specs) {
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    std::optional<ShapeAndSlice> part;
    if (!specs[i].empty()) {
      TENON_ASSIGN_OR_RETURN(part, ParseShapeAndSlice(specs[i]));
    }
    TENON_ASSIGN_OR_RETURN(Tensor value, checkpoint.Read(names[i], part, ctx.output_type(i)));
    ctx.set_output(i, std::move(value));
  }
  return OkStatus();
}

/// Reads both formats: graphs restore by this op whatever their checkpoint is.
Status RestoreKernel(KernelContext& ctx) {
  const int count = ctx.num_outputs();
  TENON_ASSIGN_OR_RETURN(const std::string prefix, ScalarText(ctx.input(0), "prefix"));
  TENON_ASSIGN_OR_RETURN(const auto names, Texts(ctx.input(1), "tensor_names", count));
  TENON_ASSIGN_OR_RETURN(const auto specs, Texts(ctx.input(2), "shape_and_slices", count));
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  const auto reader = BundleReader::Open(prefix, files);
  if (reader.status().code() == StatusCode::kNotFound) {
    const StatusOr<V1Checkpoint> old = OpenOldCheckpoint(prefix, files);
    if (old.status().code() != StatusCode::kNotFound) {
      TENON_RETURN_IF_ERROR(old.status());
      return RestoreFromOld(ctx, *old, names, specs);
    }
  }
  TENON_RETURN_IF_ERROR(reader.status());
  for (int i = 0; i < count; ++i) {
    TENON_RETURN_IF_ERROR(files.CheckCancelled());
    TENON_ASSIGN_OR_RETURN(Tensor value,
                           RestoreOne(**reader, names[i], specs[i], ctx.output_type(i)));
    ctx.set_output(i, std::move(value));
  }
  return OkStatus();
}

/// A whole tensor's shape is not known before the file is read; a slice's is.
Status RestoreShape(ShapeContext& c) {
  const Tensor* specs = c.constant(2);
  if (specs == nullptr || specs->dtype() != DType::kString ||
      specs->num_elements() != c.num_outputs()) {
    return OkStatus();
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    const TString& spec = specs->data<TString>()[i];
    if (spec.empty()) continue;
    TENON_ASSIGN_OR_RETURN(const ShapeAndSlice part, ParseShapeAndSlice(spec));
    TENON_ASSIGN_OR_RETURN(const TensorSlice slice, part.slice.Resolve(part.full_shape));
    c.set_output(i, slice.shape());
  }
  return OkStatus();
}

/// The folders that held the parts; one that still holds something else stays.
void RemoveEmptyFolders(const std::vector<std::string>& prefixes, const std::string& keep,
                        const FileContext& files) {
  std::set<std::string> folders;
  for (const std::string& p : prefixes) folders.insert(FolderOf(p));
  for (const std::string& folder : folders) {
    if (folder.empty() || folder == keep) continue;
    const auto content = ListFolder(folder, files);
    if (content.ok() && content->empty()) RemoveFile(folder, files).IgnoreError();
  }
}

Status MergeCheckpointsKernel(KernelContext& ctx, bool delete_old_dirs, bool allow_missing_files) {
  const Tensor& list = ctx.input(0);
  TENON_RETURN_IF_ERROR(CheckRank(list, 1, "checkpoint_prefixes"));
  TENON_ASSIGN_OR_RETURN(const std::string merged, ScalarText(ctx.input(1), "destination_prefix"));
  const auto texts = list.flat<TString>();
  const std::vector<std::string> prefixes(texts.begin(), texts.end());
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  TENON_RETURN_IF_ERROR(
      MergeBundles(prefixes, merged, {.allow_missing = allow_missing_files, .files = files}));
  if (delete_old_dirs) RemoveEmptyFolders(prefixes, FolderOf(merged), files);
  return OkStatus();
}

}  // namespace

void RegisterFilesAndCheckpoints(OpRegistry& ops) {
  const auto get = [&ops](std::string_view name, ShapeFn shape) {
    return ops.Get(name).Shape(shape).NoExample("reads or writes files; io_ops_test covers it");
  };
  get("ReadFile", ScalarShape).Kernel(kCpu, ReadFileKernel);
  get("WriteFile", NoOutputShape).Kernel(kCpu, WriteFileKernel);
  get("SaveV2", NoOutputShape).Kernel(kCpu, SaveKernel);
  get("RestoreV2", RestoreShape).Kernel(kCpu, RestoreKernel);
  get("MergeV2Checkpoints", NoOutputShape)
      .Kernel(kCpu, MergeCheckpointsKernel, {.attrs = {"delete_old_dirs", "allow_missing_files"}});
}

}  // namespace tenon
