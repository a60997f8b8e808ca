// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "data/files/file_system.h"
#include "data/s3/s3_client.h"

namespace tenon {

/// Opens an object to read: its beginning comes with the first request, the rest by blocks of
/// 4 MiB, up to 8 at once, of which some are asked for ahead of who reads front to back. Memory
/// holds at most 40 MiB of it. An object that is replaced meanwhile is FailedPrecondition.
/// NotFound without such an object. `client` outlives the file.
StatusOr<std::unique_ptr<InputFile>> OpenS3Input(S3Client& client, const std::string& path,
                                                 const S3Place& place);

}  // namespace tenon
