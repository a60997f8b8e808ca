// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "data/files/byte_source.h"
#include "data/files/file.h"

namespace tenon {

/// How a whole file is compressed.
enum class Compression { kNone, kGzip, kZlib, kZstd };

/// "", "NONE", "GZIP" or "ZLIB", as TensorFlow's ops name it; InvalidArgument otherwise.
StatusOr<Compression> ParseCompression(std::string_view name);

/// Reads `file`, of which it keeps ownership, from byte `offset` on, buffered.
std::unique_ptr<ByteSource> MakeSource(std::unique_ptr<InputFile> file, Compression compression,
                                       int64_t offset = 0);

/// Bytes already in memory, which the caller keeps.
std::unique_ptr<ByteSource> MakeSource(std::string_view bytes, Compression compression);

/// The bytes that `deflated` holds without a header, as members of ZIP archives are (RFC 1951).
std::unique_ptr<ByteSource> MakeInflater(std::unique_ptr<ByteSource> deflated);

/// The compression of a file that begins with the 4 bytes of `head`.
Compression DetectCompression(std::string_view head);

/// Opens a file; without `compression`, DetectCompression decides.
StatusOr<std::unique_ptr<ByteSource>> OpenSource(const std::string& path,
                                                 std::optional<Compression> compression,
                                                 const FileContext& context = {});

/// The same for a text, which is never one of zlib: its files begin as texts do.
Compression DetectTextCompression(std::string_view head);

/// Opens a file of text, for which DetectTextCompression decides.
StatusOr<std::unique_ptr<ByteSource>> OpenTextSource(const std::string& path,
                                                     const FileContext& context = {});

/// Compresses what is appended into `file`. Flush makes everything so far readable. REQUIRES: not
/// with zstd.
std::unique_ptr<OutputFile> MakeCompressor(std::unique_ptr<OutputFile> file,
                                           Compression compression);

/// Reads exactly `size` bytes without taking more memory than really comes. DataLoss "found F
/// bytes, wanted W" at the end.
Status ReadExactly(ByteSource& source, uint64_t size, std::string* out);

}  // namespace tenon
