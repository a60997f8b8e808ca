// SPDX-License-Identifier: Apache-2.0
#include "ops/io/old_checkpoints.h"

#include <algorithm>

#include "core/base/interruption.h"
#include "core/op/op_registry.h"
#include "data/files/match_files.h"
#include "ops/arguments.h"
#include "ops/io/files_for.h"

namespace tenon {
namespace {

Status MatchingFilesKernel(KernelContext& ctx, const Tensor& patterns) {
  TENON_RETURN_IF_ERROR(CheckRank(patterns, std::min(patterns.rank(), 1), "pattern"));
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  std::vector<std::string> found;
  for (const TString& pattern : patterns.flat<TString>()) {
    TENON_ASSIGN_OR_RETURN(const std::vector<std::string> matches, MatchFiles(pattern, files));
    found.insert(found.end(), matches.begin(), matches.end());
  }
  std::sort(found.begin(), found.end());
  return ctx.Return(Tensor::Vector(found));
}

/// The kernel for (file, names, data...), or (file, names, slices, data...).
template <bool kSlices>
Status SaveOldKernel(KernelContext& ctx) {
  const int first = kSlices ? 3 : 2, count = ctx.num_inputs() - first;
  for (int i = 1; i < first; ++i) {
    if (ctx.input(i).rank() == 1 && ctx.input(i).dim(0) == count) continue;
    return InvalidArgument(i == 1 ? "tensor_names" : "shapes_and_slices", " must be a vector of ",
                           count, " elements, found shape ", ctx.input(i).shape());
  }
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  std::vector<SavedPart> parts;
  for (int i = 0; i < count; ++i) {
    const Tensor& value = ctx.input(first + i);
    SavedPart part{.name = std::string(ctx.input(1).data<TString>()[i]),
                   .full_shape = value.shape(),
                   .slice = TensorSlice::Full(value.rank()),
                   .value = value};
    if (kSlices && !ctx.input(2).data<TString>()[i].empty()) {
      TENON_ASSIGN_OR_RETURN(ShapeAndSlice spec,
                             ParseShapeAndSlice(ctx.input(2).data<TString>()[i]));
      TENON_ASSIGN_OR_RETURN(const TensorSlice resolved, spec.slice.Resolve(spec.full_shape));
      if (resolved.shape() != value.shape()) {
        return InvalidArgument("Slice in shape_and_slice specification ", resolved.ToString(),
                               " does not match the shape of the tensor to save: ", value.shape(),
                               ", tensor: ", part.name);
      }
      part.full_shape = spec.full_shape;
      part.slice = std::move(spec.slice);
    }
    parts.push_back(std::move(part));
  }
  return WriteV1Checkpoint(std::string(ctx.input(0).scalar<TString>()), parts, files);
}

template <bool kSlice>
Status RestoreOldKernel(KernelContext& ctx) {
  const char* const names[] = {"file_pattern", "tensor_name", "shape_and_slice"};
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if (ctx.input(i).num_elements() == 1) continue;
    return InvalidArgument(names[i], " must be one text, found shape ", ctx.input(i).shape());
  }
  const std::string pattern(ctx.input(0).scalar<TString>());
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  TENON_ASSIGN_OR_RETURN(const V1Checkpoint checkpoint, OpenOldCheckpoint(pattern, files));
  std::optional<ShapeAndSlice> part;
  if (kSlice && !ctx.input(2).scalar<TString>().empty()) {
    TENON_ASSIGN_OR_RETURN(part, ParseShapeAndSlice(ctx.input(2).scalar<TString>()));
  }
  return ctx.Return(checkpoint.Read(ctx.input(1).scalar<TString>(), part, ctx.output_type(0)));
}

}  // namespace

StatusOr<V1Checkpoint> OpenOldCheckpoint(const std::string& pattern, const FileContext& files) {
  TENON_ASSIGN_OR_RETURN(const std::vector<std::string> paths, MatchFiles(pattern, files));
  if (paths.empty()) return NotFound("Failed to find any matching files for ", pattern);
  return V1Checkpoint::Open(paths, files);
}

void RegisterOldCheckpoints(OpRegistry& ops) {
  const auto get = [&ops](std::string_view name, ShapeFn shape) {
    return ops.Get(name).Shape(shape).NoExample(
        "reads or writes files; old_checkpoints_test covers it");
  };
  get("MatchingFiles", [](ShapeContext& c) {
    return c.Return(PartialShape{-1});
  }).Kernel(kCpu, MatchingFilesKernel);
  get("Save", NoOutputShape).Kernel(kCpu, SaveOldKernel<false>);
  get("SaveSlices", NoOutputShape).Kernel(kCpu, SaveOldKernel<true>);
  get("Restore", UnknownShape).Kernel(kCpu, RestoreOldKernel<false>);
  get("RestoreSlice", UnknownShape).Kernel(kCpu, RestoreOldKernel<true>);
}

}  // namespace tenon
