// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "tools/run/row_source.h"

namespace tenon::tools {

/// Whether the value of a feed is the name of a file with rows of text.
bool IsTextFile(std::string_view value);

/// The files that a feed's value names, when it may name several: values of files (see FeedInputs)
/// joined by commas, of which each may be a pattern with *, ? and [...] as shells have them
/// (glob(7)), which stands for the files that match it in the order of their names. Nothing for
/// the value of one file, for a path that is there whatever its name has, and for what is no file.
/// NotFound for a pattern that no file matches.
StatusOr<std::optional<std::vector<std::string>>> ListFiles(const std::string& value);

/// The paths of the files that a feed's value names, one or several; of a literal, itself. The
/// errors of ListFiles.
StatusOr<std::vector<std::string>> PathsOf(const std::string& value);

/// The rows of several files, one file after the other, of which one is open at a time. Used by one
/// thread at a time.
class FileListRows final : public RowSource {
 public:
  using Opener = std::function<StatusOr<std::unique_ptr<RowSource>>(const std::string& file)>;

  /// `files`: as ListFiles gives them. Rows become those of `dtype`; `num_rows` is how many there
  /// are in all, -1 when only their end tells.
  FileListRows(std::vector<std::string> files, Opener open, DType dtype, int64_t num_rows)
      : files_(std::move(files)), open_(std::move(open)), dtype_(dtype), num_rows_(num_rows) {}

  int64_t num_rows() const override { return num_rows_; }
  /// Rows of several files where one ends. InvalidArgument, naming two files, when their rows have
  /// different shapes, unless they are taken one at a time; other errors name the file.
  StatusOr<Tensor> Next(int64_t most) override;
  std::vector<std::pair<std::string, int64_t>> LastFiles() const override { return last_; }

 private:
  const std::vector<std::string> files_;
  const Opener open_;
  const DType dtype_;
  const int64_t num_rows_;
  size_t at_ = 0;                                      // the file that is read
  std::vector<std::pair<std::string, int64_t>> last_;  // that the last rows came from
  std::unique_ptr<RowSource> rows_;
  std::string first_;  // the file whose rows say of which shape all are
  Shape row_;
  Tensor none_;  // no rows, as the last file has them
};

/// InvalidArgument, naming both files, when rows of `found` are not of the shape `wanted` that
/// those of `first` have.
Status CheckRowShape(const std::string& file, const Shape& found, const std::string& first,
                     const Shape& wanted);

}  // namespace tenon::tools
