// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "data/batch/batch_stages.h"
#include "data/files/file.h"

// Files of comma-separated values as rows of typed columns. They are UTF-8, with or without a byte
// order mark, of lines that end with LF or CR LF, plain or gzipped (the content decides); fields
// in quotes (RFC 4180) may hold delimiters, doubled quotes and ends of lines. Empty lines are
// passed over.

namespace tenon {

/// A column that is wanted.
struct CsvColumn {
  /// The name that the first line has; without a header, the one that messages use.
  std::string name;
  /// float, double, int32, int64, bool ("true", "false", "1" or "0") or string.
  DType dtype = DType::kFloat;
  /// A scalar that stands for a missing field; without one, a missing field is a mistake, but in a
  /// column of strings, where it is the empty text.
  std::optional<Tensor> fallback = {};
};

struct CsvOptions {
  /// Whether the first line of each file names its columns, which are then found by their names.
  /// Without, `columns` are those of the file in their order.
  bool header = true;
  char delimiter = ',';
  /// Whether fields may be in quotes.
  bool quotes = true;
  /// Stands for a missing field, as an empty one, or one of blanks, does.
  std::string not_there = {};
  /// The name of a last column that readers get with those that are wanted: int64, the number of
  /// the line in its file on which a row begins, from 1 on. Empty: none.
  std::string line_column = {};
};

/// The rows of files, one file after the other, blocks of them converted at once by several
/// threads. InvalidArgument for columns that cannot be, before any file is opened. Mistakes in a
/// file are InvalidArgument, and say the file, the line, the column, what was found and wanted.
StatusOr<BatchSourcePtr> ReadCsv(std::vector<std::string> paths, std::vector<CsvColumn> columns,
                                 const CsvOptions& options = {}, const FileContext& context = {});

/// The names of columns in the first line of a file, in their order. InvalidArgument for an empty
/// file, and for wrong quotes.
StatusOr<std::vector<std::string>> ReadCsvNames(const std::string& path,
                                                const CsvOptions& options = {},
                                                const FileContext& context = {});

}  // namespace tenon
