// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "data/batch/batch_stages.h"
#include "data/files/file.h"

// Files of LIBSVM and SVMlight as dense rows: a line is `label index:value index:value ...`, with
// indices from 1 that ascend; what is left out is 0. Behind # a line is a comment, and lines
// without a label are passed over. Files are plain or gzipped (the content decides), and their
// lines end with LF or CR LF.

namespace tenon {

/// The rows of files, one file after the other, in two columns of floats: "features", vectors of
/// `num_features`, and "label", scalars. Blocks of lines are converted at once by several threads.
/// InvalidArgument for a number of features below 1, before any file is opened. Mistakes in a file
/// are InvalidArgument, and say the file, the line, what was found and wanted.
StatusOr<BatchSourcePtr> ReadLibsvm(std::vector<std::string> paths, int64_t num_features,
                                    const FileContext& context = {});

}  // namespace tenon
