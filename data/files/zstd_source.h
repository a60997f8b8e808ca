// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "data/files/byte_source.h"

namespace tenon {

/// Whether a file that begins with `head`, its first 4 bytes, was compressed with zstd.
bool BeginsAsZstd(std::string_view head);

/// The text of the zstd frames that `from` gives, one after the other. DataLoss, naming the byte of
/// what is compressed, where they are damaged, cut short or followed by something else.
std::unique_ptr<ByteSource> MakeZstdSource(std::unique_ptr<ByteSource> from);

}  // namespace tenon
