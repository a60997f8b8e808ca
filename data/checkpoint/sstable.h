// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"

// Sorted tables of keys and values in LevelDB's table format, as checkpoint indexes are: see
// LevelDB's doc/table_format.md. Written without compression, with 262144-byte blocks and a restart
// every 16 entries, which gives the bytes that TensorFlow writes.

namespace tenon {

using SstableEntries = std::vector<std::pair<std::string, std::string>>;

/// The table of `entries`, whose keys must be in bytewise order without repetition.
StatusOr<std::string> WriteSstable(const SstableEntries& entries);

/// The entries of the table whose file has this content, in order. Checks every checksum and every
/// bound: DataLoss for content that is damaged or no table.
StatusOr<SstableEntries> ReadSstable(std::string_view content);

}  // namespace tenon
