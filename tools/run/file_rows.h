// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/status.h"
#include "core/tensor/shape.h"
#include "tools/run/row_source.h"

namespace tenon::tools {

/// The path and the column of "FILE.csv:COLUMN"; nothing for another text.
std::optional<std::pair<std::string, std::string>> SplitCsvColumn(std::string_view value);

/// Whether the value of a feed is an image: FILE.png, .jpg or .jpeg.
bool IsImageFile(std::string_view value);
/// Whether it is a file of records: FILE.tfrecord or .tfrecords.
bool IsRecordFile(std::string_view value);

/// The rows of such a file, for a tensor of this dtype and shape: numbers or texts of a column, one
/// row of pixels, which have as many channels as the shape's last dimension says, or records. They
/// are read as they are asked for, and numbers are not converted yet. Nothing for another value.
StatusOr<std::unique_ptr<RowSource>> OpenFileRows(const std::string& value, DType dtype,
                                                  const PartialShape& shape);

}  // namespace tenon::tools
