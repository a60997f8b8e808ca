// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "data/files/file.h"
#include "data/table/table_files.h"
#include "data/table/table_format.h"

namespace tenon {

/// The names of a table's columns.
struct TableHeader {
  std::vector<std::string> names;
  /// The record that has them, as it stands at the beginning of each file; empty when the names
  /// were given and the files have none.
  std::string record;
  std::string path;  // of the file that it was read from
};

/// Reads the first record of the first file that has one. InvalidArgument when no file has any, and
/// for a record that cannot be cut into fields.
StatusOr<TableHeader> ReadTableHeader(const std::vector<TableFile>& files,
                                      const TableFormat& format, const FileContext& context = {});

/// The place of the column in a record. InvalidArgument when there is none of that name, naming the
/// closest one, or when there are two.
StatusOr<int64_t> FindColumn(const TableHeader& header, std::string_view name);

/// The records of a file, `records`, without its header. InvalidArgument, showing both, when it
/// begins with another record than `header` has.
StatusOr<std::string_view> WithoutHeader(std::string_view records, const TableHeader& header,
                                         const TableFormat& format);

}  // namespace tenon
