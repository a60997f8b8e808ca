// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "train/input/element_rows.h"

namespace tenon {

/// The pixels of a PNG or JPEG file, uint8 of shape [height, width, channels]; `channels` are 1, 3,
/// or 0 as in the file. Errors name the file.
StatusOr<Tensor> ReadImage(const std::string& path, int64_t channels);

/// The images of folders: rows of the names of the PNG and JPEG files in each, in the order of
/// their names, with the number of the folder. NotFound for a folder without any.
StatusOr<RowWalk> ImagesOfFolders(const std::vector<std::string>& folders, int64_t channels);

}  // namespace tenon
