// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"
#include "data/files/file.h"

namespace tenon {

/// The files that the device lets kernels reach; reading them ends when the step is cancelled.
inline StatusOr<FileContext> FilesFor(const KernelContext& ctx) {
  return FileContext::Of(ctx.device().files(), ctx.run().cancellation);
}

}  // namespace tenon
