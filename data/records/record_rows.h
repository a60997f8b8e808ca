// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/batch/batch_stages.h"
#include "data/files/byte_stream.h"
#include "data/files/file.h"

namespace tenon {

/// The records of files, one file after the other, as rows of one column of text, "record". Without
/// `compression`, how each file begins decides.
BatchSourcePtr ReadRecords(std::vector<std::string> paths,
                           std::optional<Compression> compression = std::nullopt,
                           const FileContext& context = {});

}  // namespace tenon
