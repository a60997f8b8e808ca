// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "data/files/byte_stream.h"

namespace tenon::tools {

/// Values as text has them, a row a line: numbers, or true and false, between commas, semicolons,
/// tabs or spaces; of strings, a line each. Empty lines, those that begin with '#', and a first
/// one that has no number (the names of columns) are passed over. Used by one thread at a time.
class TextRows {
 public:
  /// Reads values of `dtype` for a tensor of `wanted`, whose dimensions after the first are those
  /// of a row, when they are known. `name` is what errors call the text.
  TextRows(std::unique_ptr<ByteSource> source, std::string name, DType dtype, PartialShape wanted)
      : source_(std::move(source)),
        name_(std::move(name)),
        dtype_(dtype),
        wanted_(std::move(wanted)) {}

  DType dtype() const { return dtype_; }
  /// The next rows, at most `most`; fewer at the end, and none after it. InvalidArgument, with the
  /// line, for what is no value of the dtype, and for lines of different lengths.
  StatusOr<Tensor> Next(int64_t most);
  /// All of it, as the shape that is wanted: one value may be a scalar, one line a vector.
  /// InvalidArgument also for a text without rows.
  StatusOr<Tensor> All();

 private:
  /// The next line that has values; false at the end.
  StatusOr<bool> NextLine(std::string* line);
  StatusOr<bool> ReadLine(std::string* line);
  template <typename T>
  Status ParseRow(const std::string& line, std::vector<T>* values);
  template <typename T>
  StatusOr<Tensor> Read(int64_t most);
  Status CheckCells(size_t cells);
  StatusOr<Shape> ShapeOf(int64_t rows) const;
  /// The shape of a text without rows, as far as it is known.
  Shape ShapeOfNone() const;
  std::string Where() const;

  const std::unique_ptr<ByteSource> source_;
  const std::string name_;
  const DType dtype_;
  const PartialShape wanted_;
  std::string buffer_;
  size_t at_ = 0;
  bool ended_ = false;
  int64_t line_ = 0;  // the number of the last one
  int64_t rows_ = 0;
  size_t cells_ = 0;  // in each row
  char delimiter_ = '\0';
  bool has_names_ = false;
};

}  // namespace tenon::tools
