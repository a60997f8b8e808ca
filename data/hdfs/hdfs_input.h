// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "data/files/file_system.h"
#include "data/hdfs/hdfs_client.h"

namespace tenon {

/// Opens a file to read, by blocks of 4 MiB, up to 8 at once, of which some are asked for ahead of
/// who reads front to back. Memory holds at most 40 MiB of it. What is read is the file that was
/// opened, whatever gets its name meanwhile; one that is removed or replaced is FailedPrecondition.
/// NotFound without such a file, FailedPrecondition for a folder. `client` outlives the file.
StatusOr<std::unique_ptr<InputFile>> OpenHdfsInput(HdfsClient& client, const HdfsPlace& place);

}  // namespace tenon
