// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "data/files/file_system.h"
#include "data/hdfs/hdfs_client.h"

namespace tenon {

/// Opens a file to write. It is written under another name in its folder and appears at Close,
/// Sync or Flush, until when the name leads to what it did before. What is neither closed, synced
/// nor flushed never appears. With WriteMode::kNew the name is taken at once, by an empty file;
/// AlreadyExists when it is another's. With kAppend what the file has stays.
///
/// Content goes by parts of 16 MiB, one at a time; memory holds two. What comes after the file has
/// appeared is appended to it. A Flush that comes less than 10 s after the last one waits for
/// another, or for Sync or Close.
///
/// `client` outlives the file.
StatusOr<std::unique_ptr<OutputFile>> OpenHdfsOutput(HdfsClient& client, const HdfsPlace& place,
                                                     WriteMode mode);

}  // namespace tenon
