// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "data/table/table_header.h"
#include "data/table/unit_reader.h"

namespace tenon {

/// The schema of a table whose columns are all read. REQUIRES: its header can be read.
inline TableSchema WholeSchema(const std::vector<TableFile>& files, TableFormat format = {}) {
  TableSchema schema;
  schema.format = std::move(format);
  schema.header = ReadTableHeader(files, schema.format).value();
  for (size_t c = 0; c < schema.header.names.size(); ++c) {
    schema.columns.push_back({static_cast<int64_t>(c)});
  }
  return schema;
}

}  // namespace tenon
