// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash_map.h"
#include "core/base/status.h"
#include "data/checkpoint/tensor_slice.h"
#include "data/files/file.h"

// Checkpoints in TensorFlow's first format: files that are each one table
// (data/checkpoint/sstable.h). Its empty key has the names, types, shapes and slices of the
// tensors, and each slice's key its elements, as proto/saved_tensor_slice.proto says.

namespace tenon {

/// A tensor, or a part of one, to be written.
struct SavedPart {
  std::string name;
  Shape full_shape;
  TensorSlice slice;
  Tensor value;  // of the slice's shape, in host memory
};

/// Writes a file, whole or not at all. The parts of one tensor have the same name. InvalidArgument
/// when they contradict each other, and for resources and variants.
Status WriteV1Checkpoint(const std::string& path, const std::vector<SavedPart>& parts,
                         const FileContext& context = {});

/// The tensors of one checkpoint, which may be spread over files. Thread-safe.
class V1Checkpoint {
 public:
  /// Reads the files. DataLoss when one is damaged, InvalidArgument when they contradict each
  /// other.
  static StatusOr<V1Checkpoint> Open(const std::vector<std::string>& paths,
                                     const FileContext& context = {});

  /// The tensor `name`, or a part of it. NotFound when it is not there, or not all of it;
  /// InvalidArgument when it is of another type, or the part is not inside it.
  StatusOr<Tensor> Read(std::string_view name, const std::optional<ShapeAndSlice>& part,
                        DType wanted) const;

 private:
  struct Saved {
    DType dtype;
    Shape shape;
    std::vector<TensorSlice> slices;
  };
  StatusOr<Tensor> ReadStored(std::string_view name, const Saved& saved,
                              const TensorSlice& slice) const;

  StringMap<Saved> tensors_;
  std::map<std::string, std::string> values_;  // by the key of a slice
};

}  // namespace tenon
