// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "data/arrays/npy_format.h"
#include "data/arrays/zip.h"
#include "data/files/byte_stream.h"
#include "data/files/file.h"

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
StatusOr<Tensor> ReadNpy(const std::string& path, const FileContext& context = {});
Status WriteNpy(const std::string& path, const Tensor& tensor, const FileContext& context = {});

/// An array of an .npy file, rows of its first dimension at a time: memory holds no more of it than
/// was asked for. Used by one thread at a time.
class NpyRows {
 public:
  /// InvalidArgument for what ParseNpy refuses and for a scalar, which has no rows; DataLoss when
  /// the file's size is not what its header says. Errors name the file.
  static StatusOr<NpyRows> Open(const std::string& path, const FileContext& context = {});
  /// From bytes that come but once, such as a pipe's, which errors call `name`. InvalidArgument
  /// also for a column-major array, whose rows do not lie together.
  static StatusOr<NpyRows> FromStream(std::unique_ptr<ByteSource> source, std::string name);

  DType dtype() const { return header_.dtype; }
  /// The shape of the whole array.
  const Shape& shape() const { return header_.shape; }
  /// The next rows, at most `most`; fewer at the end, none after it. DataLoss when the bytes end
  /// too early, or a stream has more; ResourceExhausted when memory is out.
  StatusOr<Tensor> Next(int64_t most);

 private:
  NpyRows(std::string name, NpyHeader header, uint64_t begin)
      : name_(std::move(name)), header_(std::move(header)), offset_(begin) {}
  StatusOr<Tensor> Read(int64_t rows);
  Status ReadBytes(size_t size, char* out);
  Status ReadColumns(int64_t rows, int64_t columns, char* out);

  std::string name_;
  NpyHeader header_;
  std::unique_ptr<InputFile> file_;  // or
  std::unique_ptr<ByteSource> stream_;
  uint64_t offset_;  // of the next bytes; of a column-major array, of its first ones
  int64_t next_ = 0;
};

/// Writes an array to an .npy file of this machine, rows of its first dimension at a time. After
/// each Append, and whatever happens then, the file is a whole array of the rows so far. Used by
/// one thread at a time.
class NpyWriter {
 public:
  /// Replaces the file at the first Append. InvalidArgument for what is no regular file,
  /// Unimplemented for a path of another file system.
  static StatusOr<std::unique_ptr<NpyWriter>> Create(const std::string& path);
  ~NpyWriter();
  /// Adds `rows`, whose dimensions but the first, and dtype, are those of all rows. InvalidArgument
  /// when they are not, for a scalar, and for strings, whose longest one a file must know before.
  Status Append(const Tensor& rows);
  /// The shape of the array so far; of no rank before the first Append.
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  /// Closes the file, which is whole before, and says what went wrong.
  Status Close();

 private:
  NpyWriter(std::string path, int file) : path_(std::move(path)), file_(file) {}
  Status WriteAt(uint64_t offset, std::string_view data);

  const std::string path_;
  int file_;
  DType dtype_ = DType::kInvalid;
  Shape shape_;
  uint64_t end_ = 0;
};

/// An .npz file, of which memory holds what is read alone. Thread-safe.
class NpzReader {
 public:
  /// The files and the cancellation of `context` outlive the reader.
  static StatusOr<NpzReader> Open(const std::string& path, const FileContext& context = {});
  /// The names of the arrays, without ".npy", in the order of the file.
  std::vector<std::string> names() const;
  /// NotFound, listing what is there, when there is none of that name; DataLoss when the bytes are
  /// not those that were written.
  StatusOr<Tensor> Read(std::string_view name) const;

 private:
  NpzReader(std::string path, ZipReader zip, const FileContext& context)
      : path_(std::move(path)), zip_(std::move(zip)), context_(context) {}
  std::string path_;
  ZipReader zip_;
  FileContext context_;
};

/// Writes arrays by name, deflated when `compress`.
Status WriteNpz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays,
                bool compress = false, const FileContext& context = {});

}  // namespace tenon
