// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "core/base/clock.h"
#include "data/files/file_system.h"
#include "data/http/environment.h"
#include "data/http/retries.h"

namespace tenon {

/// The file system of "hdfs://", "webhdfs://" and "swebhdfs://" paths, by the settings that the
/// environment has now; `login` is the name of this account. `clock` outlives it. Nothing is asked
/// of a server yet.
///
/// Files appear whole when they are closed, by a new name (OpenHdfsOutput). Rename and Publish are
/// one step of the namenode.
StatusOr<std::unique_ptr<FileSystem>> MakeHdfsFiles(const Environment& environment,
                                                    const std::string& login, Clock& clock,
                                                    RetryPolicy policy = {});

}  // namespace tenon
