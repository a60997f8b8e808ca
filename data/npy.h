// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/tensor.h"
#include "data/zip.h"

// NumPy's array files: .npy holds one array (numpy.lib.format, versions 1 to 3), .npz is a ZIP
// archive of several.
//
// Numbers, booleans and complex numbers become tensors of the same dtype; big-endian and
// column-major arrays are converted. Arrays of fixed-length bytes (S) and text (U, made UTF-8)
// become string tensors, without the zeros NumPy fills them up with. Arrays of Python objects and
// structured ones are refused.

namespace tenon {

/// InvalidArgument for what cannot be a tensor, DataLoss when the size is not what the header says.
StatusOr<Tensor> ParseNpy(std::string_view content);

/// Strings are written as bytes of the longest one's length; InvalidArgument for a string that ends
/// with a zero byte, which NumPy would lose. bfloat16, which NumPy does not have, is written as
/// float32, quantized types as the integers they are.
StatusOr<std::string> FormatNpy(const Tensor& tensor);

/// Errors name the file.
StatusOr<Tensor> ReadNpy(const std::string& path);
Status WriteNpy(const std::string& path, const Tensor& tensor);

/// An .npz file. Thread-safe.
class NpzReader {
 public:
  static StatusOr<NpzReader> Open(const std::string& path);
  /// The names of the arrays, without ".npy", in the order of the file.
  std::vector<std::string> names() const;
  /// NotFound, listing what is there, when there is none of that name.
  StatusOr<Tensor> Read(std::string_view name) const;

 private:
  NpzReader(std::string path, ZipReader zip) : path_(std::move(path)), zip_(std::move(zip)) {}
  std::string path_;
  ZipReader zip_;
};

/// Writes arrays by name, deflated when `compress`.
Status WriteNpz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays,
                bool compress = false);

}  // namespace tenon
