// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// CRC-32C (Castagnoli: reflected polynomial 0x82F63B78, start and end inverted), the checksum of
// TFRecord files, LevelDB tables and checkpoints. Uses the processor's instruction where the build
// has it (SSE 4.2), and otherwise tables.

namespace tenon {

/// The checksum of the bytes whose checksum so far is `crc`, followed by `size` bytes of `data`.
uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t size);

inline uint32_t Crc32c(std::string_view data) { return ExtendCrc32c(0, data.data(), data.size()); }

/// The form in which checksums are stored: checksums of data that itself holds checksums would be
/// weak otherwise.
inline uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace tenon
