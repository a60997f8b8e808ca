// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/file.h"

namespace tenon {

/// The files of this machine. Takes plain paths and "file://" ones. Lives until the process ends.
FileSystem& LocalFiles();

}  // namespace tenon
