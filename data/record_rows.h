// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/batch_stages.h"
#include "data/byte_stream.h"
#include "data/file.h"

namespace tenon {

/// The records of files, one file after the other, as rows of one column of text, "record". Without
/// `compression`, how each file begins decides.
BatchSourcePtr ReadRecords(std::vector<std::string> paths,
                           std::optional<Compression> compression = std::nullopt,
                           const FileContext& context = {});

}  // namespace tenon
