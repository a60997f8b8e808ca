// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/base/clock.h"
#include "data/files/file_system.h"
#include "data/http/retries.h"
#include "data/s3/aws_profile.h"

namespace tenon {

/// The file system of "s3://bucket/key", by the settings that the environment and AWS' files have
/// now; `local` reads these files and, like `clock`, outlives it. Nothing is asked of a server yet.
///
/// A folder is what keys have before a slash: it is there while a key is in it, and is not made.
/// Files appear whole when they are closed (OpenS3Output). Rename and Publish copy a file within
/// the servers, where it appears whole, and remove the old one. Of a folder those files appear last
/// that are in no folder within it. WriteMode::kNew finds out once, before, whether there is such a
/// file.
StatusOr<std::unique_ptr<FileSystem>> MakeS3Files(Environment environment, FileSystem& local,
                                                  Clock& clock, RetryPolicy policy = {});

}  // namespace tenon
