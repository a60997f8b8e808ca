// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "data/files/file_system.h"
#include "data/s3/s3_client.h"

namespace tenon {

/// Opens an object to write, which appears whole at Close, Sync or Flush and is what it was before
/// until then. One that was neither closed, synced nor flushed never appears.
///
/// Large ones go by parts of 16 MiB (more after the first 1,000), four at a time. After a Flush
/// what is added makes the object anew: the server copies what it has where that is 16 MiB or more,
/// and all is sent again where it is less. So a Flush that comes less than 10 s after the last one
/// waits for another, or for Sync or Close. With `append` what the object has stays at its
/// beginning.
///
/// `client` outlives the file.
StatusOr<std::unique_ptr<OutputFile>> OpenS3Output(S3Client& client, const std::string& path,
                                                   const S3Place& place, bool append);

}  // namespace tenon
