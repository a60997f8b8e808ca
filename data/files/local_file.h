// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/files/file_system.h"

namespace tenon {

/// The files of this machine. Takes plain paths and "file://" ones. Lives until the process ends.
FileSystem& LocalFiles();

/// The files in the folder `root` and below it; see ConfinedFolder for how paths are read.
StatusOr<std::unique_ptr<FileSystem>> LocalFilesBeneath(const std::string& root);

/// A regular file of `size` bytes that is open, which it closes.
std::unique_ptr<InputFile> InputOfDescriptor(int fd, std::string path, int64_t size);

}  // namespace tenon
