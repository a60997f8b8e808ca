// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "data/files/file_system.h"
#include "data/http/workers.h"

namespace tenon {

/// A file of a server that is read by blocks of 4 MiB. Memory holds the 8 of them that are fetched
/// at most at once, and two more.
struct BlockInputOptions {
  std::string path;
  int64_t size = 0;  // of the file
  std::string head;  // its first bytes, which are there already
  /// Fetches bytes `begin` to `end`, on any thread; Cancelled soon after `cancelled` is true.
  std::function<StatusOr<std::string>(int64_t begin, int64_t end,
                                      const std::atomic<bool>* cancelled)>
      fetch = {};
};

/// Opens it. Blocks are fetched by `workers`, which outlives the file, several at once where much
/// is wanted, and ahead of who reads front to back.
std::unique_ptr<InputFile> MakeBlockInput(BlockInputOptions options, Workers& workers);

}  // namespace tenon
