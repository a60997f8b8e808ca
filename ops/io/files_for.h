// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/op/kernel.h"
#include "data/files/file.h"

namespace tenon {

/// The files that the device lets kernels reach; reading them ends when the step is cancelled.
inline StatusOr<FileContext> FilesFor(const KernelContext& ctx) {
  return FileContext::Of(ctx.device().files(), ctx.run().cancellation);
}

/// The files that match a pattern with ?, * and [abc], sorted.
StatusOr<std::vector<std::string>> FilesMatching(const std::string& pattern,
                                                 const FileContext& files);

}  // namespace tenon
